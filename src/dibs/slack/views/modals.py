"""The small modals that ask what an operation needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dibs.domain.queue import Facts, Queue
from dibs.domain.task import ActionStatus, ExternalAction, ExternalAnswer, Reason, State, Task
from dibs.slack import text, words
from dibs.slack.ids import ANSWER_PREFIX, Field, View
from dibs.slack.views.card import why_flagged
from dibs.slack.views.elements import (
    Block,
    context,
    field,
    modal,
    option,
    radios,
    section,
    select,
    text_input,
)

MOST_ANSWERS = 95
"""A modal takes a hundred blocks; the others are the task, the advice and the finding."""
MOST_NAMED = 10
"""A paragraph takes 3,000 characters, and nobody reads more on a phone."""


def release(facts: Facts, metadata: str) -> dict[str, Any]:
    """Hand a task back: why, what the next owner must know, and what became of anything done outside."""
    task, open_actions = facts.task, facts.open_actions
    started = task.state is State.STARTED
    blocks = [about(task)]
    if task.needs_check:
        blocks.append(
            context(":warning: It needs a check. Handed back unchecked, it stays flagged for the next owner.")
        )
    blocks += [
        reason(facts),
        comment(facts),
        field(
            Field.HANDOFF_NOTE,
            "Handoff note",
            text_input(multiline=True),
            hint="What the next owner must know: what is done, what is left, whom to ask.",
            optional=not started,
        ),
    ]
    if open_actions:
        blocks.append(section(open_ones(task, open_actions)))
    if started or open_actions:
        blocks.append(_how_it_ended(facts))
    return modal(View.RELEASE, f"Release {task.name}", blocks, metadata=metadata, submit="Release")


def reason(facts: Facts) -> Block:
    """The input for the reason why a task goes back, from its queue's list."""
    choices = [option(value, said) for value, said in words.reasons(facts.reasons)]
    return field(Field.REASON, "Why does it go back?", select(choices, placeholder="Choose a reason"))


def comment(facts: Facts) -> Block:
    """The input for what is to be said beside the reason."""
    hint = "Needed if the reason is another one." if Reason.OTHER in facts.reasons else ""
    return field(Field.COMMENT, "Comment", text_input(multiline=True), hint=hint, optional=True)


def open_ones(task: Task, actions: Sequence[ExternalAction]) -> str:
    """The external actions of which it is not known how they ended, by their references, one line each."""
    lines = [f"• {words.action(task, action, 150)}" for action in actions[:MOST_NAMED]]
    if len(actions) > MOST_NAMED:
        lines.append(f"• and {len(actions) - MOST_NAMED} more; History on the card shows them")
    return "\n".join(["*Begun outside, and not known how it ended*", *lines])


def _how_it_ended(facts: Facts) -> Block:
    task, open_actions = facts.task, facts.open_actions
    answers = list(ExternalAnswer)
    asked = "Was anything done outside, such as a refund or a mail?"
    hint = "If nobody knows, the task is flagged, and a person checks before anything is repeated."
    if open_actions:
        answers.remove(ExternalAnswer.NONE)
        asked = f"How did {open_actions[0].reference(task)} end?"
    if len(open_actions) > 1:
        asked = f"How did these {len(open_actions)} end?"
        hint = (
            "The answer goes to all of them. Where they ended differently, close this form and press "
            "“How did it end?” on the card first."
            if task.state is State.STARTED
            else "The answer goes to all of them. Where they ended differently, choose that you don't know, "
            "and say so in the note."
        )
    choices = [option(answer, words.EXTERNAL_ANSWER[answer]) for answer in answers]
    return field(Field.EXTERNAL_ACTION, asked, radios(choices), hint=hint)


def check(facts: Facts, metadata: str, *, then_start: bool) -> dict[str, Any]:
    """Confirm what happened outside, before anything is repeated."""
    task = facts.task
    blocks = [
        about(task),
        section(
            f"{why_flagged(facts.flagged)} Look it up where it would have happened, and say what you found."
        ),
    ]
    blocks += [
        field(
            f"{ANSWER_PREFIX}{action.id}",
            text.cut(f"{action.reference(task)}: {action.description}", 250),
            radios(
                [
                    option(status, words.EXTERNAL_ANSWER[ExternalAnswer(status)])
                    for status in (ActionStatus.COMPLETED, ActionStatus.NOT_COMPLETED)
                ]
            ),
        )
        for action in facts.open_actions[:MOST_ANSWERS]
    ]
    blocks.append(
        field(
            Field.FINDING,
            "What did you find, and where?",
            text_input(multiline=True),
            hint="One sentence is enough. It stays in the history.",
        )
    )
    submit = "Confirm and start" if then_start else "Confirm"
    return modal(View.CHECK, f"Check {task.name}", blocks, metadata=metadata, submit=submit)


def done(facts: Facts, metadata: str) -> dict[str, Any]:
    """Finish a task, with a resolution if one is wanted; what stands in the way is said before they type."""
    blocks = [about(facts.task)]
    if facts.open_actions:
        first = "It can be finished when that is known: cancel, and press “How did it end?” on the card."
        blocks.append(section(f"{open_ones(facts.task, facts.open_actions)}\n{first}"))
    blocks.append(
        field(
            Field.RESOLUTION,
            "Resolution",
            text_input(multiline=True),
            hint="What came of it. Working notes stay apart from it.",
            optional=True,
        )
    )
    return modal(View.DONE, f"Finish {facts.task.name}", blocks, metadata=metadata, submit="Done")


def note(facts: Facts, metadata: str) -> dict[str, Any]:
    """Write a working note."""
    newest = facts.note
    blocks = [about(facts.task)]
    if newest:
        blocks.append(
            section(
                f"*Newest note* by {text.mention(newest.author_id)}, {text.moment(newest.created_at)}\n"
                f"{text.quoted(newest.text, 1500)}"
            )
        )
    blocks.append(
        field(
            Field.TEXT,
            "Working note",
            text_input(multiline=True),
            hint="For whoever works on this. It is never sent to the customer.",
        )
    )
    return modal(View.NOTE, f"Note on {facts.task.name}", blocks, metadata=metadata, submit="Save")


def record_action(facts: Facts, metadata: str) -> dict[str, Any]:
    """Record an external action before it is done; the version of the form makes sure of its number."""
    recorded = facts.actions[-1].number if facts.actions else 0
    reference = f"{facts.task.name}-A{recorded + 1}"
    blocks = [
        about(facts.task),
        section(
            "Record it *before* you do it, so that nobody repeats it if you are interrupted. It is recorded "
            f"as `{reference}`: use that as the reference in the other system, or as its idempotency key."
        ),
        field(
            Field.DESCRIPTION,
            "What are you about to do outside?",
            text_input(),
            hint="Such as: refund 20 EUR for order 1001.",
        ),
    ]
    title = f"Outside: {facts.task.name}"
    return modal(View.RECORD_ACTION, title, blocks, metadata=metadata, submit="Record")


def resolve_action(facts: Facts, metadata: str) -> dict[str, Any]:
    """Say how an external action ended."""
    task = facts.task
    choices = [
        option(str(action.id), text.cut(f"{action.reference(task)} {action.description}", 75))
        for action in facts.open_actions
    ]
    statuses = (ActionStatus.COMPLETED, ActionStatus.NOT_COMPLETED, ActionStatus.UNKNOWN)
    blocks = [
        about(task),
        field(
            Field.EXTERNAL_ACTION,
            "Which one?",
            select(choices, placeholder="Choose one", initial=choices[0] if len(choices) == 1 else None),
        ),
        field(
            Field.STATUS,
            "How did it end?",
            radios([option(status, words.EXTERNAL_ANSWER[ExternalAnswer(status)]) for status in statuses]),
        ),
    ]
    title = f"Outside: {task.name}"
    return modal(View.RESOLVE_ACTION, title, blocks, metadata=metadata, submit="Save")


def new_task(queues: Sequence[Queue], metadata: str) -> dict[str, Any]:
    """Add a task, with details and a deadline."""
    choices = [option(str(queue.id), text.cut(f"{queue.key} · {queue.name}", 75)) for queue in queues]
    blocks = [
        field(
            Field.QUEUE,
            "Queue",
            select(choices, placeholder="Choose a queue", initial=choices[0] if len(choices) == 1 else None),
        ),
        field(Field.TITLE, "What is to be done?", text_input(), hint="Everybody in the channel reads it."),
        field(Field.DETAILS, "Details", text_input(multiline=True), optional=True),
        field(Field.DEADLINE, "Wanted by", {"type": "datetimepicker"}, optional=True),
    ]
    return modal(View.NEW_TASK, "New task", blocks, metadata=metadata, submit="Add")


def about(task: Task) -> Block:
    """Which task a form is about."""
    return context(f"*{task.name}*  {text.one_line(task.title, 300)}")
