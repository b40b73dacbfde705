"""Lists of tasks, as an answer to a command."""

from __future__ import annotations

from collections.abc import Sequence

from dibs.domain.task import State, Task
from dibs.slack import text, words
from dibs.slack.ids import Action
from dibs.slack.views.card import MOST_TEXT, Message, value_of
from dibs.slack.views.elements import button, section

MOST_TASKS = 30
TITLE = 120


def task_list(title: str, tasks: Sequence[Task], *, empty: str) -> Message:
    """The tasks, one line each; it says so where there are more than MOST_TASKS and the rest is not shown."""
    if not tasks:
        said = f"{title}\n{empty}"
        return Message(said, [section(said)])
    lines = [_line(task) for task in tasks[:MOST_TASKS]]
    if len(tasks) > MOST_TASKS:
        lines.append(f"Only the first {MOST_TASKS} are shown.")
    return Message(
        text.cut_formatted("\n".join([title, *lines]), MOST_TEXT),
        [section(title), *(section(line) for line in lines)],
    )


def to_hand_back(tasks: Sequence[Task]) -> Message:
    """A person's tasks, each with the button that hands it back, so that one press opens its form."""
    title = "*Which task do you hand back?*"
    lines = [_line(task) for task in tasks[:MOST_TASKS]]
    blocks = [section(title)] + [
        section(line, button(Action.RELEASE, "Release", value_of(task), label=f"Release {task.name}"))
        for task, line in zip(tasks, lines, strict=False)
    ]
    if len(tasks) > MOST_TASKS:
        more = f"Only the first {MOST_TASKS} are shown. `/release` and a task's name opens any other."
        lines.append(more)
        blocks.append(section(more))
    return Message(text.cut_formatted("\n".join([title, *lines]), MOST_TEXT), blocks)


def _line(task: Task) -> str:
    name = f"*{task.name}*  {text.one_line(task.title, TITLE)}"
    match task.state:
        case State.QUEUED:
            flagged = " · :warning: needs a check" if task.needs_check else ""
            return f"{name}\nWaiting for an owner, added {text.moment(task.created_at)}{flagged}"
        case State.DONE:
            return f"{name}\nDone by {text.mention(task.owner_id)}"
        case _:
            until = f" until {text.moment(task.lease_until)}" if task.lease_until else ""
            return f"{name}\n{words.STATE[task.state]} · {text.mention(task.owner_id)}{until}"
