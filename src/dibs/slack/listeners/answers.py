"""How a slash command is answered: to who typed it alone, or by a window."""

from __future__ import annotations

from typing import Any

from dibs.domain.errors import StoreError
from dibs.domain.queue import Queue
from dibs.slack import replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.payloads import Origin, Typed
from dibs.slack.views.card import Message

Answer = dict[str, Any]
"""What the command is answered with; empty where a window was opened."""


def said(words: str) -> Answer:
    """An answer that only the person who typed sees."""
    return {"response_type": "ephemeral", "text": words}


def private(message: Message) -> Answer:
    """A message with blocks that only the person who typed sees."""
    return {"response_type": "ephemeral", **message.as_payload()}


def open_modal(front: Front, typed: Typed, view: dict[str, Any]) -> Answer:
    """Open a window, or say that Slack did not open it in time."""
    origin = typed.origin
    if origin.trigger_id and front.web.open_view(origin.trigger_id, view, origin.deadline):
        return {}
    return said(f"Slack did not open the window in time. {replies.NOTHING_CHANGED} Please type it again.")


def queues_here(front: Front, typed: Typed) -> tuple[Queue, ...]:
    """The queues of the channel in which the command was typed."""
    origin = typed.origin
    return front.queues.of_channel(origin.workspace, origin.channel_id or "", deadline=origin.deadline)


def named_queue(front: Front, typed: Typed, key: str, what: str, then: str = "") -> Queue | Answer:
    """The queue that was named after `/queue what`, or the channel's only one; or what to say instead.

    `then` is what was typed besides, and should be typed again.
    """
    origin = typed.origin
    here = queues_here(front, typed)
    keys = ", ".join(f"`{queue.key}`" for queue in here)
    if key:
        found = front.queues.by_key(origin.workspace, key.upper(), deadline=origin.deadline)
        known = f" This channel has {keys}." if here else ""
        return found or said(
            f"There is no queue “{text.one_line(key, 40)}”. {replies.NOTHING_CHANGED}{known}"
        )
    if len(here) > 1:
        return said(
            f"This channel has several queues: {keys}. {replies.NOTHING_CHANGED} "
            f"Say which: `{f'{as_typed(typed, Command.QUEUE)} {what} {here[0].key} {then}'.rstrip()}`"
        )
    return here[0] if here else said(no_queue(typed))


def card_link(front: Front, origin: Origin, task_id: int, words: str = "Its card") -> str:
    """A link to a task's card; empty where it is not known just now, since no answer hangs on it."""
    try:
        where = front.queries.card_of(task_id, deadline=origin.deadline)
    except StoreError:
        where = None
    return front.outgoing.link_to(*where, words=words) if where else ""


def no_queue(typed: Typed) -> str:
    """What somebody is told who asks for the queue of a channel that has none."""
    create = f"{as_typed(typed, Command.QUEUE)} create"
    return f"This channel has no queue yet, so nothing changed. Type `{create}` to make one here."


def as_typed(typed: Typed, command: Command) -> str:
    """How this person types a command, who may have to write `/dibs queue` for `/queue`."""
    return f"{Command.DIBS} {command.removeprefix('/')}" if typed.command == Command.DIBS else command
