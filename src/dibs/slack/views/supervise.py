"""What supervisors do to other people's tasks: the buttons in the history, and the two forms behind them."""

from __future__ import annotations

from typing import Any

from dibs.domain.queue import Facts
from dibs.domain.task import State, Task
from dibs.slack import text
from dibs.slack.ids import Field, Supervise, View
from dibs.slack.views.card import value_of
from dibs.slack.views.elements import Block, actions, button, context, field, modal, section, text_input
from dibs.slack.views.modals import about, comment, open_ones, reason


def buttons(task: Task) -> Block:
    """The row of buttons for a supervisor."""
    value = value_of(task)
    return actions(
        f"supervise_{task.id}",
        [
            button(Supervise.TRANSFER, "Transfer…", value, label=f"Transfer {task.name}"),
            button(
                Supervise.FORCE_RELEASE, "Force release…", value, label=f"Force the release of {task.name}"
            ),
        ],
    )


def transfer(facts: Facts, metadata: str) -> dict[str, Any]:
    """Give a task to somebody else."""
    task = facts.task
    blocks = [
        about(task),
        section(
            f"{text.mention(task.owner_id)} has it now. The new owner starts afresh with a new lease. Both "
            "are told that it was you."
        ),
        *_what_is_known(facts),
        field(
            Field.NEW_OWNER,
            "New owner",
            {"type": "users_select"},
            hint="Somebody who may claim in this queue.",
        ),
        field(
            Field.REASON,
            "Why?",
            text_input(multiline=True),
            hint="It stays in the history of the task.",
        ),
    ]
    return modal(View.TRANSFER, f"Transfer {task.name}", blocks, metadata=metadata, submit="Transfer")


def force_release(facts: Facts, metadata: str) -> dict[str, Any]:
    """Return somebody's task to the queue."""
    task = facts.task
    blocks = [
        about(task),
        section(
            f"{text.mention(task.owner_id)} has it now, and is told that you returned it to the queue. The "
            "release card names you."
        ),
        *_what_is_known(facts),
        reason(facts),
        comment(facts),
        field(
            Field.HANDOFF_NOTE,
            "Handoff note",
            text_input(multiline=True),
            hint="What the next owner must know, if you know it.",
            optional=True,
        ),
    ]
    title = f"Force release {task.name}"
    return modal(View.FORCE_RELEASE, title, blocks, metadata=metadata, submit="Force release")


def refused(task_name: str, view: View, said: str) -> dict[str, Any]:
    """That the form was not opened, and why, where an answer behind the window would not be seen."""
    return modal(view, task_name, [section(said)], close="Close")


def _what_is_known(facts: Facts) -> list[Block]:
    blocks = []
    if facts.open_actions:
        blocks.append(section(open_ones(facts.task, facts.open_actions)))
    if facts.task.state is State.STARTED or facts.task.needs_check or facts.open_actions:
        blocks.append(
            context(
                ":warning: Something may have been done outside, so it will be flagged: a person checks "
                "before anything is repeated."
            )
        )
    return blocks
