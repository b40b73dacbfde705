"""/queue pause and /queue resume."""

from __future__ import annotations

from dibs.domain.queue import Queue
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.listeners.answers import Answer, as_typed, named_queue, said
from dibs.slack.payloads import Typed
from dibs.slack.views import brakes


def pause(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue pause [KEY]`."""
    queue = named_queue(front, typed, rest, "pause")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    paused = front.brakes.pause(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    return said(brakes.paused(queue.key, paused, as_typed(typed, Command.QUEUE)))


def resume(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue resume [KEY]`."""
    queue = named_queue(front, typed, rest, "resume")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    resumed = front.brakes.resume(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    return said(brakes.resumed(queue.key, resumed))
