"""The scene of the playground: a few people, a channel, and a queue with tasks to race for."""

from __future__ import annotations

import uuid

from dibs.domain.queue import NewQueue
from dibs.domain.task import State
from dibs.playground import SlackStandIn
from dibs.wiring import Bot

_PEOPLE = ("Amal", "Bilal", "Hana", "Marek", "Sue")
_KEY = "SUP"
_TASKS = (
    ("Refund order 1001", "The parcel never arrived. The customer has written twice."),
    ("Call back about the invoice of October", ""),
    ("Which voltage does the pump take in Japan?", "Asked by mail; the data sheet says only 230 V."),
)
_COMMANDS = (
    ("/queue", "add a title"),
    ("/queue", "next"),
    ("/queue", "list"),
    ("/queue", "mine"),
    ("/queue", "help"),
)
_LEASE_SECONDS = 10 * 60


def set_the_scene(slack: SlackStandIn, bot: Bot) -> None:
    """Fill the stand-in, which forgets everything when it stops, and the queue, if it is not there yet."""
    slack.commands = list(_COMMANDS)
    people = [slack.add_person(name) for name in _PEOPLE]
    channel = slack.add_channel("support", members=[person.id for person in people])
    supervisor = people[-1].id
    new = NewQueue(
        workspace=slack.team_id,
        channel_id=channel.id,
        key=_KEY,
        name="Customer support",
        lease_seconds=_LEASE_SECONDS,
        created_by=supervisor,
    )
    queue = bot.queues.by_key(slack.team_id, _KEY) or bot.queues.create(new)
    if queue is None:
        raise LookupError("the playground's queue was made and taken away again")
    bot.delivery.post_again(queue.id, channel.id)
    waiting = [task for task in bot.queries.unfinished([queue.id], most=100) if task.state is State.QUEUED]
    for title, details in _TASKS if not waiting else ():
        bot.queues.add_task(queue.id, title, supervisor, details=details, op_id=f"scene:{uuid.uuid4()}")
    bot.membership.catch_up()
    bot.delivery.deliver_once()
