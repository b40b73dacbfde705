"""`/release`: hand a task back from wherever one is."""

from __future__ import annotations

import re

from dibs.domain.outcomes import Outcome
from dibs.domain.task import Task
from dibs.domain.transitions import RULES, Operation
from dibs.slack import payloads, replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.listeners.answers import Answer, as_typed, card_link, open_modal, private, said
from dibs.slack.listeners.forms import admitted
from dibs.slack.payloads import Typed
from dibs.slack.views import lists, modals
from dibs.slack.views.lists import MOST_TASKS

_NAME = re.compile(r"([A-Z][A-Z0-9]{1,9})-([0-9]{1,10})", re.ASCII)
_AROUND = "*_`#,.:;!?()[]\"'\u2018\u2019\u201c\u201d"
"""What people put around a name, which is no part of it."""
_HYPHENS = str.maketrans("\u2010\u2011\u2013", "---")
"""What keyboards and word processors put for a hyphen."""
_LARGEST_NUMBER = 2**31 - 1


def on_release(front: Front, typed: Typed, rest: str) -> Answer:
    """Open the form for the task that was named, or for the person's only one, or have one chosen."""
    return _named(front, typed, rest) if rest else _mine(front, typed)


def _named(front: Front, typed: Typed, rest: str) -> Answer:
    origin = typed.origin
    first, *others = [word.strip(_AROUND).translate(_HYPHENS).upper() for word in rest.split()]
    name, named = first, _NAME.fullmatch(first)
    if named is None:
        return said(
            f"“{text.one_line(rest, 40)}” is not the name of a task. {replies.NOTHING_CHANGED} "
            f"Type `{as_typed(typed, Command.RELEASE)} SUP-12`, or no name at all to see your tasks."
        )
    if also := next((word for word in others if word != name and _NAME.fullmatch(word)), None):
        return said(
            f"One task is handed back at a time, and you named *{name}* and *{also}*. "
            f"{replies.NOTHING_CHANGED} Type `{as_typed(typed, Command.RELEASE)} {name}` first."
        )
    key, number = named[1], int(named[2])
    task = None
    if number <= _LARGEST_NUMBER:
        task = front.queries.by_name(origin.workspace, key, number, deadline=origin.deadline)
    if task is None:
        return said(
            f"There is no task *{name}*. {replies.NOTHING_CHANGED} "
            f"`{as_typed(typed, Command.QUEUE)} mine` shows your tasks."
        )
    return _form(front, typed, task)


def _mine(front: Front, typed: Typed) -> Answer:
    origin = typed.origin
    tasks = front.queries.owned_by(
        origin.workspace, origin.user_id, most=MOST_TASKS + 1, deadline=origin.deadline
    )
    if not tasks:
        return said(
            f"You hold no task, so there is nothing to hand back. {replies.NOTHING_CHANGED} "
            f"`{as_typed(typed, Command.QUEUE)} list` shows who has what."
        )
    return _form(front, typed, tasks[0]) if len(tasks) == 1 else private(lists.to_hand_back(tasks))


def _form(front: Front, typed: Typed, task: Task) -> Answer:
    origin = typed.origin
    found = admitted(front, origin, RULES[Operation.RELEASE], task_id=task.id, version=task.version)
    if not isinstance(found, Outcome):
        metadata = payloads.metadata_of(origin, task=task.id, version=task.version)
        return open_modal(front, typed, modals.release(found, metadata))
    if found.unknown:
        front.outgoing.watch(origin, found, task_id=task.id, version=task.version)
    link = card_link(front, origin, task.id, "The current card")
    return said(replies.reply(found, link or None))
