"""What happened to a task, newest first, for somebody who was not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dibs.domain.queue import Event, EventAction
from dibs.domain.task import ExternalAnswer, Task
from dibs.domain.transitions import EventKind
from dibs.slack import replies, text, words
from dibs.slack.ids import Command, View
from dibs.slack.views import supervise
from dibs.slack.views.elements import context, modal, section

MOST_EVENTS = 40
QUOTE = 700

MOST_ACTIONS = 4

_TITLES: dict[str, str] = {
    EventKind.NOTED: "Working note",
    EventKind.CHECKED: "Found",
    EventKind.STARTED: "Found",
    EventKind.RELEASED: "Comment",
    EventKind.FORCE_RELEASED: "Comment",
    EventKind.TRANSFERRED: "Why",
}
"""What stands above the words that came with an event."""


def history(
    task: Task, events: Sequence[Event], *, more: bool, metadata: str = "", may_intervene: bool = False
) -> dict[str, Any]:
    """The newest events of a task; `more` says that there are older ones that are not shown.

    With `may_intervene` it has the buttons of a supervisor, for a task that somebody owns.
    """
    blocks = [section(f"*{task.name}*  {text.one_line(task.title, 300)}")]
    if may_intervene and task.lease_until:
        blocks.append(supervise.buttons(task))
    blocks += [section(told(event)) for event in events]
    if more:
        blocks.append(
            context(f"Only the newest {MOST_EVENTS} are shown. The older ones: `{Command.AUDIT} {task.name}`")
        )
    return modal(View.HISTORY, f"History of {task.name}", blocks, metadata=metadata, close="Close")


def told(event: Event, *, of: str | None = None, quote: int = QUOTE) -> str:
    """One event in a few lines; `of` names its task. What people wrote is cut to `quote`."""
    when = text.moment(event.at, "{date_short_pretty}, {time_secs}")
    line = f"{when}{f'  ·  *{of}*' if of else ''}\n{text.mention(event.actor_id)} {_deed(event)}"
    if event.version_after is not None and event.why is None:
        line += f"  _(version {event.version_after})_"
    details = event.detail or {}
    if former := details.get("former_owner"):
        line += f"\nIt was {text.mention(str(former))}'s."
    if new_owner := details.get("to"):
        whose = f"{text.mention(str(new_owner))}'s"
        line += f"\nIt is {whose} now." if event.why is None else f"\nIt was to be {whose}."
    if event.kind in (EventKind.RELEASED, EventKind.FORCE_RELEASED) and details.get("reason"):
        line += f"\nReason: {words.reason(str(details['reason']))}"
        if answer := details.get("external_action"):
            line += f"\nExternal action: {words.EXTERNAL_ANSWERED[ExternalAnswer(answer)]}"
    line += "".join(f"\n{_outside(action)}" for action in event.actions[:MOST_ACTIONS])
    if len(event.actions) > MOST_ACTIONS:
        line += f"\nand {len(event.actions) - MOST_ACTIONS} more"
    named = event.kind == EventKind.ACTION_RECORDED and event.actions
    for title, written in (
        (_TITLES.get(event.kind), None if named else event.text),
        ("Handoff note", event.handoff_note),
        ("Resolution", event.resolution),
    ):
        if written:
            line += f"\n_{title}_" if title else ""
            line += f"\n{text.quoted(str(written), quote)}"
    return line


def _outside(action: EventAction) -> str:
    ended = f": *{words.ACTION_STATUS[action.status]}*" if action.status else ""
    return f"`{action.reference}` {text.one_line(action.description, 100)}{ended}"


def _deed(event: Event) -> str:
    if event.why is None:
        return words.event(event.kind)
    return f"tried to {words.tried(event.kind)}, which changed nothing: {replies.why(event.why)}"
