"""What happened to a task, newest first, for somebody who was not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dibs.domain.queue import Event
from dibs.domain.task import ActionStatus, ExternalAnswer, Task
from dibs.domain.transitions import EventKind
from dibs.slack import replies, text, words
from dibs.slack.ids import View
from dibs.slack.views.elements import context, modal, section

MOST_EVENTS = 40
QUOTE = 700

_REJECTED = "_rejected"


def history(task: Task, events: Sequence[Event], *, more: bool) -> dict[str, Any]:
    """The newest events of a task; `more` says that there are older ones that are not shown."""
    blocks = [section(f"*{task.name}*  {text.one_line(task.title, 300)}")]
    blocks += [section(told(event)) for event in events]
    if more:
        blocks.append(context(f"Only the newest {MOST_EVENTS} are shown."))
    return modal(View.HISTORY, f"History of {task.name}", blocks, close="Close")


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
        line += f"\nIt is {text.mention(str(new_owner))}'s now."
    if event.kind in (EventKind.RELEASED, EventKind.FORCE_RELEASED) and details.get("reason"):
        line += f"\nReason: {words.reason(str(details['reason']))}"
        if answer := details.get("external_action"):
            line += f"\nExternal action: {words.EXTERNAL_ANSWER[ExternalAnswer(answer)]}"
    for status in sorted(set((details.get("answers") or {}).values())):
        line += f"\nIt was {words.ACTION_STATUS[ActionStatus(status)]}."
    for title, written in (
        ("", event.text),
        ("\nHandoff note", event.handoff_note),
        ("\nResolution", event.resolution),
    ):
        if written:
            line += f"{title}\n{text.quoted(str(written), quote)}"
    return line


def _deed(event: Event) -> str:
    if event.why is None:
        return words.event(event.kind)
    tried = event.kind.removesuffix(_REJECTED).replace("_", " ")
    return f"tried to {tried}, which changed nothing: {replies.why(event.why)}"
