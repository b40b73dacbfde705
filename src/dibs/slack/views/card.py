"""A task's card: what everybody in the channel sees, whoever they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dibs.domain.queue import Facts, Flagged
from dibs.domain.task import State, Task
from dibs.domain.transitions import EventKind
from dibs.slack import text, words
from dibs.slack.ids import Action
from dibs.slack.views.elements import Block, Element, actions, button, context, section

TITLE = 300
DETAILS = 600
NOTE = 1000
MOST_ACTIONS = 8
MOST_TEXT = 3900
"""chat.update refuses a text of more than 4,000 characters."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its blocks, and a text that carries all that the blocks say."""

    text: str
    blocks: list[Block]

    def as_payload(self) -> dict[str, Any]:
        """The message as the Web API and a response_url take it."""
        return {"text": self.text, "blocks": self.blocks}


def card(facts: Facts) -> Message:
    """The card of a task in its present state."""
    paragraphs = list(_paragraphs(facts))
    remarks = list(_remarks(facts))
    blocks = [section(paragraph) for paragraph in paragraphs]
    if remarks:
        blocks.append(context("   ·   ".join(remarks)))
    blocks.append(actions(f"task_{facts.task.id}", _buttons(facts)))
    return Message(text.cut_formatted("\n".join([*paragraphs, *remarks]), MOST_TEXT), blocks)


def _paragraphs(facts: Facts) -> Iterator[str]:
    task = facts.task
    yield f"*{task.name}*  {text.one_line(task.title, TITLE)}\n{_status(task)}"
    if task.details:
        yield text.shown(task.details, DETAILS)
    if task.needs_check:
        yield _check_warning(facts)
    handover = facts.handover
    if handover and task.state is not State.DONE:
        reason = words.reason(handover.reason)
        said = f"*Handed back* by {text.mention(handover.by)}: {reason}"
        if handover.forced_by:
            former = text.mention(handover.by)
            said = f"*Taken from* {former} by {text.mention(handover.forced_by)}, as a supervisor: {reason}"
        if handover.comment:
            said += f"\n{text.quoted(handover.comment, NOTE // 2)}"
        if handover.note:
            said += f"\n*Handoff note*\n{text.quoted(handover.note, NOTE)}"
        yield said
    if task.resolution:
        yield f"*Resolution*\n{text.quoted(task.resolution, NOTE)}"


def _status(task: Task) -> str:
    match task.state:
        case State.QUEUED if task.needs_check:
            return "Back in the queue · *needs a check* before anything is repeated"
        case State.QUEUED:
            return "Waiting for an owner"
        case State.CLAIMED | State.STARTED:
            state = words.STATE[task.state]
            until = f" · lease until {text.moment(task.lease_until)}" if task.lease_until else ""
            return f"*{state}* · owner {text.mention(task.owner_id)}{until}"
        case State.DONE:
            return f"*Done* by {text.mention(task.owner_id)} · {text.moment(task.last_at)}"


def _check_warning(facts: Facts) -> str:
    """Why the task needs a check, what was recorded and by whom; what is still open comes first."""
    task = facts.task
    lines = [f":warning: *Needs a check.* {why_flagged(facts.flagged)} Find out before you repeat anything."]
    actions = sorted(facts.actions, key=lambda action: not action.status.is_open)
    lines += [f"• {words.action(task, action, 150)}" for action in actions[:MOST_ACTIONS]]
    if len(actions) > MOST_ACTIONS:
        lines.append(f"• and {len(actions) - MOST_ACTIONS} more; press History to see them")
    if not actions:
        lines.append("• No external action was recorded")
    return "\n".join(lines)


def why_flagged(flagged: Flagged | None) -> str:
    """What made a task need its check, in a sentence."""
    may = "something may already have happened outside."
    if flagged is None:
        return may.capitalize()
    when, former = text.moment(flagged.at), text.mention(flagged.former_owner)
    begun = "work had begun" if flagged.former_state == State.STARTED else "an external action was recorded"
    match flagged.kind:
        case EventKind.EXPIRED:
            return f"The lease of {former} ended {when} after {begun}, so {may}"
        case EventKind.RELEASED:
            return f"{text.mention(flagged.by)} handed it back {when} without knowing how it ended outside."
        case _:
            return f"{text.mention(flagged.by)} took it from {former} {when} after {begun}, so {may}"


def _remarks(facts: Facts) -> Iterator[str]:
    task = facts.task
    if task.state is State.QUEUED and task.last_kind == EventKind.EXPIRED:
        yield f"Returned to the queue {text.moment(task.last_at)}, because the lease expired"
    if task.state is State.QUEUED and task.started_before:
        yield "Started before"
    if task.deadline:
        yield f"Wanted by {text.moment(task.deadline)}"
    if task.committed_to:
        yield f"Promised for {text.moment(task.committed_to)}"
    if not task.needs_check:
        for action in facts.open_actions[:MOST_ACTIONS]:
            yield f"`{action.reference(task)}` {words.ACTION_STATUS[action.status]}"
        if len(facts.open_actions) > MOST_ACTIONS:
            yield f"and {len(facts.open_actions) - MOST_ACTIONS} more, see History"
    if facts.note and task.state is not State.DONE:
        author, when = text.mention(facts.note.author_id), text.moment(facts.note.created_at)
        yield f"Working note by {author}, {when}: press History to read it"


def value_of(task: Task) -> str:
    """What a button of the task's card carries: the task, and the version that it was drawn with."""
    return json.dumps({"task": task.id, "version": task.version}, separators=(",", ":"))


def _buttons(facts: Facts) -> Iterator[Element]:
    task = facts.task
    value = value_of(task)

    def press(action: Action, words_on_it: str, *, primary: bool = False) -> Element:
        label = f"{words_on_it} {task.name}"
        return button(action, words_on_it, value, style="primary" if primary else None, label=label)

    if task.state is State.QUEUED:
        yield press(Action.CLAIM, "Claim", primary=True)
    if task.state is State.CLAIMED:
        yield press(Action.START, "Start", primary=True)
    if task.state is State.STARTED:
        yield press(Action.DONE, "Done", primary=True)
    if task.state in (State.CLAIMED, State.STARTED):
        yield press(Action.RENEW, "Renew")
        yield press(Action.RELEASE, "Release")
        yield press(Action.NOTE, "Note")
    if task.state is State.STARTED:
        yield press(Action.RECORD_ACTION, "External action")
        if facts.open_actions:
            yield press(Action.RESOLVE_ACTION, "How did it end?")
    if task.needs_check:
        yield press(Action.CHECK, "Check")
    yield press(Action.HISTORY, "History")
