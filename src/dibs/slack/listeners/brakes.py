"""/queue pause and /queue resume."""

from __future__ import annotations

from dibs.domain.queue import Queue
from dibs.slack import replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.listeners.answers import NO_QUEUE, Answer, as_typed, queues_here, said
from dibs.slack.payloads import Typed
from dibs.slack.views import brakes


def pause(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue pause [KEY]`."""
    queue = _queue(front, typed, rest, "pause")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    paused = front.brakes.pause(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    return said(brakes.paused(queue.key, paused, as_typed(typed, Command.QUEUE)))


def resume(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue resume [KEY]`."""
    queue = _queue(front, typed, rest, "resume")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    resumed = front.brakes.resume(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    return said(brakes.resumed(queue.key, resumed))


def _queue(front: Front, typed: Typed, rest: str, what: str) -> Queue | Answer:
    """The queue that was named, or the channel's only one; or what to say where there is none."""
    origin = typed.origin
    here = queues_here(front, typed)
    keys = ", ".join(f"`{queue.key}`" for queue in here)
    if rest:
        found = front.queues.by_key(origin.workspace, rest.upper(), deadline=origin.deadline)
        known = f" This channel has {keys}." if here else ""
        return found or said(
            f"There is no queue “{text.one_line(rest, 40)}”. {replies.NOTHING_CHANGED}{known}"
        )
    if len(here) > 1:
        return said(
            f"This channel has several queues: {keys}. {replies.NOTHING_CHANGED} "
            f"Say which: `{as_typed(typed, Command.QUEUE)} {what} {here[0].key}`"
        )
    return here[0] if here else said(NO_QUEUE)
