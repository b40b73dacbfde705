"""What is told of settings that were changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dibs.domain.queue import Queue
from dibs.domain.settings import Change, in_minutes
from dibs.slack import text, words

_MOST_PEOPLE = 20
_LONGEST_VALUE = 500

Show = Callable[[Any], str]


def changed(queue: Queue, changes: Sequence[Change]) -> str:
    """What a supervisor is told of the settings that were changed."""
    return "\n".join([f"The settings of *{queue.key}* are changed:", *_lines(changes)])


def recorded(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """What the records tell of settings that were changed, as the event holds it: old and new by setting."""
    told = [Change(setting, change.get("old"), change.get("new")) for setting, change in changes.items()]
    return "\n".join(_lines(told))


def _lines(changes: Sequence[Change]) -> list[str]:
    return [
        f"• {name}: {_cut(show(change.old))} → {_cut(show(change.new))}"
        for setting, (name, show) in _SHOWN.items()
        for change in changes
        if change.setting == setting
    ]


def _cut(shown: str) -> str:
    return text.cut_formatted(shown, _LONGEST_VALUE)


def _plain(value: object) -> str:
    return text.one_line(str(value), _LONGEST_VALUE)


def _minutes_of(seconds: int) -> str:
    return _counted(in_minutes(seconds))


def _counted(minutes: int) -> str:
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def _reasons(values: Sequence[str] | None) -> str:
    return (
        "; ".join(text.one_line(label, 75) for _, label in words.reasons(values))
        if values
        else "the usual ones"
    )


_SHOWN: dict[str, tuple[str, Show]] = {
    "name": ("Name", _plain),
    "lease_seconds": ("Lease", _minutes_of),
    "eligible_group": (
        "Who may claim",
        lambda value: text.group(value) if value else "everybody in the channel",
    ),
    "supervisors": ("Supervisors", lambda value: text.people(value, _MOST_PEOPLE)),
    "alert_channel": ("Alerts go to", lambda value: f"<#{value}>" if value else "each supervisor directly"),
    "spike_limit": ("Pause when more leases end than", _plain),
    "spike_minutes": ("… within", _counted),
    "spike_share": (
        "… or than",
        lambda value: f"{value} % of the leases held" if value else "no share",
    ),
    "longest_hold_seconds": ("Longest hold", lambda value: _minutes_of(value) if value else "without end"),
    "reasons": ("Reasons for handing back", _reasons),
    "supervisor_operations": ("Supervisors transfer and release", lambda value: "yes" if value else "no"),
}
"""The words for each setting and how its value is shown, in the order of the form."""
