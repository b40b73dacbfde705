"""What supervisors may set for their queue: read from what was typed, with every mistake named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from dibs.domain.queue import KEY_FORM, LONGEST_LEASE_MINUTES, USUAL_REASONS, Queue
from dibs.domain.text import clean

LONGEST_NAME = 80
MOST_SPIKE_LIMIT = 10_000
MOST_SPIKE_MINUTES = 7 * 24 * 60
LONGEST_HOLD_MINUTES = 365 * 24 * 60
MOST_REASONS = 20
LONGEST_REASON = 75
_MOST_DIGITS = 9
_AN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Mistake(StrEnum):
    """What is wrong with a value. The name begins with the setting that it is about."""

    NAME_MISSING = "name_missing"
    NAME_LONG = "name_long"
    KEY_FORM = "key_form"
    LEASE_RANGE = "lease_range"
    GROUP_FORM = "group_form"
    SUPERVISORS_MISSING = "supervisors_missing"
    SPIKE_LIMIT_RANGE = "spike_limit_range"
    SPIKE_MINUTES_RANGE = "spike_minutes_range"
    SPIKE_SHARE_RANGE = "spike_share_range"
    HOLD_RANGE = "hold_range"
    HOLD_NOT_LONGER = "hold_not_longer"
    """The longest hold is not longer than the lease."""
    REASONS_TOO_MANY = "reasons_too_many"
    REASONS_TWICE = "reasons_twice"
    REASONS_LONG = "reasons_long"


@dataclass(frozen=True, slots=True)
class Written:
    """What somebody wrote and chose, as it was typed."""

    name: str | None
    lease_minutes: str | None
    supervisors: tuple[str, ...]
    spike_limit: str | None
    spike_minutes: str | None
    spike_share: str | None = None
    longest_hold_minutes: str | None = None
    reasons: str | None = None
    eligible_group: str | None = None
    alert_channel: str | None = None
    supervisor_operations: bool = False


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Everything that supervisors may change of their queue. The key stays: tasks are named by it."""

    name: str
    lease_seconds: int
    supervisors: tuple[str, ...]
    """At least one, in order."""
    eligible_group: str | None
    alert_channel: str | None
    spike_limit: int
    spike_minutes: int
    spike_share: int | None
    longest_hold_seconds: int | None
    reasons: tuple[str, ...] | None
    """None: the usual ones."""
    supervisor_operations: bool

    def keeping(self, queue: Queue) -> QueueSettings:
        """These settings with the queue's own seconds, where the minutes that are shown for them stayed."""
        lease, hold = queue.lease_seconds, queue.longest_hold_seconds
        return replace(
            self,
            lease_seconds=lease if self.lease_seconds == in_minutes(lease) * 60 else self.lease_seconds,
            longest_hold_seconds=hold
            if hold and self.longest_hold_seconds == in_minutes(hold) * 60
            else self.longest_hold_seconds,
        )

    def as_values(self) -> dict[str, Any]:
        """The settings by name, as JSON can hold them."""
        reasons = None if self.reasons is None else list(self.reasons)
        return {**asdict(self), "supervisors": list(self.supervisors), "reasons": reasons}


@dataclass(frozen=True, slots=True)
class UserGroup:
    """A group of people of the workspace. People write its handle after an @."""

    id: str
    handle: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One setting before and after."""

    setting: str
    old: Any
    new: Any


def read(written: Written, known_as: Mapping[str, str]) -> QueueSettings | frozenset[Mistake]:
    """The settings, or everything that is wrong with what was written.

    `known_as` gives the value of each usual reason by the words that stand for it on screens.
    """
    mistakes: set[Mistake] = set()
    name = clean(written.name)
    if name is None:
        mistakes.add(Mistake.NAME_MISSING)
    elif len(name) > LONGEST_NAME:
        mistakes.add(Mistake.NAME_LONG)
    if written.eligible_group is not None and not _AN_ID.fullmatch(written.eligible_group):
        mistakes.add(Mistake.GROUP_FORM)
    if not written.supervisors:
        mistakes.add(Mistake.SUPERVISORS_MISSING)

    def number(text: str | None, most: int, mistake: Mistake, *, optional: bool = False) -> int | None:
        if optional and clean(text) is None:
            return None
        found = whole_number(text)
        if found is None or not 1 <= found <= most:
            mistakes.add(mistake)
            return None
        return found

    lease = number(written.lease_minutes, LONGEST_LEASE_MINUTES, Mistake.LEASE_RANGE)
    limit = number(written.spike_limit, MOST_SPIKE_LIMIT, Mistake.SPIKE_LIMIT_RANGE)
    minutes = number(written.spike_minutes, MOST_SPIKE_MINUTES, Mistake.SPIKE_MINUTES_RANGE)
    share = number(written.spike_share, 100, Mistake.SPIKE_SHARE_RANGE, optional=True)
    hold = number(written.longest_hold_minutes, LONGEST_HOLD_MINUTES, Mistake.HOLD_RANGE, optional=True)
    if lease is not None and hold is not None and hold <= lease:
        mistakes.add(Mistake.HOLD_NOT_LONGER)
    reasons = _reasons(written.reasons, known_as, mistakes)
    if mistakes or name is None or lease is None or limit is None or minutes is None:
        return frozenset(mistakes)
    return QueueSettings(
        name=name,
        lease_seconds=lease * 60,
        supervisors=tuple(sorted(set(written.supervisors))),
        eligible_group=written.eligible_group,
        alert_channel=written.alert_channel,
        spike_limit=limit,
        spike_minutes=minutes,
        spike_share=share,
        longest_hold_seconds=None if hold is None else hold * 60,
        reasons=reasons,
        supervisor_operations=written.supervisor_operations,
    )


def read_key(written: str | None) -> str | None:
    """The key in capitals, or None where it can be none."""
    key = (clean(written) or "").upper()
    return key if KEY_FORM.fullmatch(key) else None


def in_minutes(seconds: int) -> int:
    """Seconds as the whole minutes that are shown for them, at least one."""
    return seconds // 60 or 1


def whole_number(written: str | None) -> int | None:
    """The number that was written, or None where it is none, or longer than any that can be set."""
    text = (written or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _reasons(
    written: str | None, known_as: Mapping[str, str], mistakes: set[Mistake]
) -> tuple[str, ...] | None:
    """A queue's own list, one reason a line; None for the usual one."""
    usual = {words.casefold(): value for words, value in known_as.items()}
    usual |= {value.casefold(): value for value in USUAL_REASONS}
    lines = [" ".join(line.split()) for line in (clean(written) or "").splitlines()]
    found = [usual.get(line.casefold(), line) for line in lines if line]
    if len(found) > MOST_REASONS:
        mistakes.add(Mistake.REASONS_TOO_MANY)
    if len({reason.casefold() for reason in found}) < len(found):
        mistakes.add(Mistake.REASONS_TWICE)
    if any(len(reason.encode("utf-16-le")) // 2 > LONGEST_REASON for reason in found):
        # Counted as Slack counts: an emoji is two.
        mistakes.add(Mistake.REASONS_LONG)
    return None if not found or tuple(found) == USUAL_REASONS else tuple(found)
