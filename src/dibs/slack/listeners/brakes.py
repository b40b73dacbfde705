"""/queue pause and /queue resume, and the button on an alert that does the same."""

from __future__ import annotations

from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.errors import Lost, StoreError
from dibs.domain.queue import Queue
from dibs.slack import payloads, replies
from dibs.slack.front import Front
from dibs.slack.ids import Command, QueueAction
from dibs.slack.listeners.actions import unreadable
from dibs.slack.listeners.answers import Answer, as_typed, named_queue, said
from dibs.slack.payloads import Origin, Typed
from dibs.slack.views import brakes

UNKNOWN = "We could not confirm this. Look at the alert before you press again."
NO_SUCH_QUEUE = f"There is no such queue. {replies.NOTHING_CHANGED}"


def register(app: App, front: Front) -> None:
    """Listen to the button on the alerts that say that something is paused."""

    @app.action(QueueAction.RESUME)
    def on_press(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            pressed = payloads.pressed_button(body, context["deadline"])
            queue_id = payloads.id_in(str(pressed.number("queue")))
        except payloads.UnreadableError:
            unreadable(front, body)
        else:
            try:
                told = _resume_pressed(front, pressed.origin, queue_id)
            except Lost:
                told = UNKNOWN
            except StoreError as error:
                told = replies.not_stored(error)
            front.outgoing.tell(pressed.origin, told)
        ack()


def _resume_pressed(front: Front, origin: Origin, queue_id: int | None) -> str:
    queue = front.queues.by_id(queue_id, deadline=origin.deadline) if queue_id else None
    if queue is None or queue.workspace != origin.workspace:
        return NO_SUCH_QUEUE
    resumed = front.brakes.resume(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    front.outgoing.send_notices()
    return brakes.resumed(queue.key, resumed)


def pause(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue pause [KEY]`."""
    queue = named_queue(front, typed, rest, "pause")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    paused = front.brakes.pause(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    front.outgoing.send_notices()
    return said(brakes.paused(queue.key, paused, as_typed(typed, Command.QUEUE)))


def resume(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue resume [KEY]`."""
    queue = named_queue(front, typed, rest, "resume")
    if not isinstance(queue, Queue):
        return queue
    origin = typed.origin
    resumed = front.brakes.resume(queue.id, origin.user_id, op_id=origin.op_id, deadline=origin.deadline)
    front.outgoing.send_notices()
    return said(brakes.resumed(queue.key, resumed))
