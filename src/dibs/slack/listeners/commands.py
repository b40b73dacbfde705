"""Slash commands: read what was typed, make one call, answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.errors import Lost, StoreError
from dibs.slack import payloads, replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.listeners import audit, settings
from dibs.slack.listeners.answers import (
    Answer,
    as_typed,
    card_link,
    no_queue,
    open_modal,
    private,
    queues_here,
    said,
)
from dibs.slack.listeners.brakes import pause, resume
from dibs.slack.listeners.release import on_release
from dibs.slack.listeners.reports import lease_report
from dibs.slack.payloads import Typed
from dibs.slack.views import brakes, lists, modals
from dibs.slack.views.lists import MOST_TASKS

Handler = Callable[[Front, Typed, str], Answer]


def register(app: App, front: Front) -> None:
    """Listen to the four commands through one listener."""

    @app.command(re.compile(f"^({'|'.join(Command)})$"))
    def on_command(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            deadline = context["deadline"]
            typed = payloads.typed(body, deadline, lambda named: front.web.name_of(named, deadline))
        except payloads.UnreadableError:
            ack(said(f"Dibs could not read this command. {replies.NOTHING_CHANGED}"))
            return
        try:
            answer = _dispatch(front, typed)
        except Lost:
            look = f"Look at `{as_typed(typed, Command.QUEUE)} list` before you type it again."
            answer = said(f"We could not confirm this. {look}")
        except StoreError as error:
            answer = said(replies.not_stored(error))
        # An empty object would be shown as such.
        ack(answer) if answer else ack()


def _dispatch(front: Front, typed: Typed) -> Answer:
    command, rest = typed.command, typed.text
    if command == Command.DIBS:
        first, rest = _split(rest)
        command = f"/{first.lower()}"
    match command:
        case Command.QUEUE:
            word, rest = _split(rest)
            return QUEUE.get(word.lower() or "help", _unknown)(front, typed, rest)
        case Command.RELEASE:
            return on_release(front, typed, rest)
        case Command.AUDIT:
            words = typed.sent if typed.command == Command.AUDIT else _split(typed.sent)[1]
            return audit.show(front, typed, words)
        case _:
            return _help(front, typed, "")


def _split(words: str) -> tuple[str, str]:
    first, _, rest = words.strip().partition(" ")
    return first, rest.strip()


def _add(front: Front, typed: Typed, rest: str) -> Answer:
    origin = typed.origin
    first, title = _split(rest)
    # In capitals only, or “it broke again” would go to a queue named IT.
    named = front.queues.by_key(origin.workspace, first, deadline=origin.deadline) if title else None
    here = queues_here(front, typed) if named is None else (named,)
    if not here:
        return said(no_queue(typed))
    if not rest:
        return open_modal(front, typed, modals.new_task(here, payloads.metadata_of(origin)))
    if len(here) > 1:
        keys = ", ".join(f"`{queue.key}`" for queue in here)
        return said(
            f"This channel has several queues: {keys}. {replies.NOTHING_CHANGED} "
            f"Say which: `{as_typed(typed, Command.QUEUE)} add {here[0].key} {text.one_line(rest, 100)}`"
        )
    queue = here[0]
    added = front.queues.add_task(
        queue.id,
        title if named else rest,
        origin.user_id,
        op_id=origin.op_id,
        deadline=origin.deadline,
    )
    if added is None:
        return said(no_queue(typed))
    front.outgoing.refresh(added.task.id)
    return said(f"*{added.task.name}* is in the queue. Its card is in <#{queue.channel_id}>.")


def _list(front: Front, typed: Typed, _rest: str) -> Answer:
    here = queues_here(front, typed)
    if not here:
        return said(no_queue(typed))
    ids = [queue.id for queue in here]
    tasks = front.queries.unfinished(ids, most=MOST_TASKS + 1, deadline=typed.origin.deadline)
    title = " and ".join(f"*{queue.key}* {text.one_line(queue.name, 80)}" for queue in here)
    queue_command = as_typed(typed, Command.QUEUE)
    held_up = front.brakes.held_up(ids, deadline=typed.origin.deadline)
    title = "\n".join([title, *(brakes.held_up(key, by, queue_command) for key, by in held_up)])
    empty = (
        f"Nothing is waiting and nobody holds anything. Type `{queue_command} add` and a title to add a task."
    )
    return private(lists.task_list(title, tasks, empty=empty))


def _mine(front: Front, typed: Typed, _rest: str) -> Answer:
    origin = typed.origin
    tasks = front.queries.owned_by(
        origin.workspace, origin.user_id, most=MOST_TASKS + 1, deadline=origin.deadline
    )
    following = f"{as_typed(typed, Command.QUEUE)} next"
    empty = f"You hold no task. `{following}` gives you the one that has waited longest."
    return private(lists.task_list("*Your tasks*", tasks, empty=empty))


def _next(front: Front, typed: Typed, _rest: str) -> Answer:
    origin = typed.origin
    queues = queues_here(front, typed) or front.queues.of_eligible(
        origin.workspace, origin.user_id, deadline=origin.deadline
    )
    if not queues:
        return said(no_queue(typed))
    outcome = front.transitions.claim_next(
        [queue.id for queue in queues], origin.user_id, op_id=origin.op_id, deadline=origin.deadline
    )
    if outcome.unknown:
        front.outgoing.watch(origin, outcome, task_id=0, version=0, queue_id=queues[0].id)
        return said(
            "We could not confirm this, and Dibs will tell you what became of it. "
            f"Look at `{as_typed(typed, Command.QUEUE)} mine` before you type it again."
        )
    if outcome.task is None:
        return said(front.outgoing.worded(replies.reply(outcome), origin.deadline))
    front.outgoing.refresh(outcome.task.id)
    link = card_link(front, origin, outcome.task.id)
    return said(f"{replies.reply(outcome)}\n> {text.one_line(outcome.task.title, 300)}\n{link}")


def _help(front: Front, typed: Typed, _rest: str) -> Answer:
    del front
    told = (
        "*Dibs* gives every task in a shared queue one owner at a time.\n"
        "• `/queue create` makes a queue in this channel; `/queue settings` lets its supervisors change it\n"
        "• `/queue add Refund order 1001` adds a task; "
        "`/queue add SUP Refund order 1001` says in which queue\n"
        "• `/queue next` gives you the task that has waited longest\n"
        "• `/queue list` shows what is waiting and who has what; `/queue mine` shows your tasks\n"
        "• `/queue report` shows how long the work takes against the lease; `/queue report SUP 90` says of "
        "which queue, and over how many days\n"
        "• `/queue pause` holds up the return of tasks whose lease has ended, `/queue resume` lets it go on; "
        "both are for supervisors\n"
        "• On a task's card: *Claim* it, *Start* when you begin, *Renew* if you need longer, then *Done*, or "
        "*Release* to hand it back; `/release SUP-12` does that from anywhere\n"
        "• `/audit SUP-1` shows what happened to a task, `/audit queue` what happened in the queue, "
        "`/audit @name` what a person did\n"
    )
    for command in (Command.QUEUE, Command.RELEASE, Command.AUDIT):
        told = told.replace(f"`{command}", f"`{as_typed(typed, command)}")
    return said(f"{told}Where another app has taken `/queue`, `/dibs queue` does the same.")


def _unknown(front: Front, typed: Typed, _rest: str) -> Answer:
    words = _split(typed.text)[1] if typed.command == Command.DIBS else typed.text
    word = text.one_line(_split(words)[0], 40)
    known = _help(front, typed, "")["text"]
    return said(f"Dibs does not know “{word}”. {replies.NOTHING_CHANGED}\n\n{known}")


QUEUE: Mapping[str, Handler] = {
    "add": _add,
    "list": _list,
    "mine": _mine,
    "next": _next,
    "create": settings.create,
    "settings": settings.settings,
    "report": lease_report,
    "pause": pause,
    "resume": resume,
    "help": _help,
}
"""What may follow `/queue`."""
