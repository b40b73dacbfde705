"""The scene of the playground: a few people, a channel, and a queue with tasks to race for."""

from __future__ import annotations

import uuid

from dibs.domain.errors import StoreError
from dibs.domain.queue import NewQueue
from dibs.domain.task import State
from dibs.playground import Lever, SlackStandIn, Step, Where
from dibs.slack import manifest
from dibs.wiring import Bot

_PEOPLE = ("Amal", "Bilal", "Hana", "Marek", "Sue")
_KEY = "SUP"
_TASKS = (
    ("Refund order 1001", "The parcel never arrived. The customer has written twice."),
    ("Call back about the invoice of October", ""),
    ("Which voltage does the pump take in Japan?", "Asked by mail; the data sheet says only 230 V."),
)
_COMMANDS = (
    ("/queue add ", "a title: puts a task into the queue"),
    ("/queue next", "gives you the task that has waited longest"),
    ("/queue list", "shows what is waiting and who has what"),
    ("/queue mine", "shows what you have"),
    ("/queue help", "shows what else there is"),
)
_LEASE_SECONDS = 10 * 60
_ALERTS = "support-alerts"
_END_LEASES = "Let the leases end now"
_TOUR = (
    Step(
        title="Race for a task",
        do="Turn on “Press together” above, then press Claim on the same task in both panes.",
        see="Both presses arrive at the same moment. One of you has the task; the other is told who, and "
        "that nothing changed.",
        where=Where.PRIVATE,
        words=("did not change its owner",),
    ),
    Step(
        title="Start it",
        do="Turn “Press together” off again, and let the new owner press Start on the card.",
        see="The card is in progress and says until when it is theirs.",
        where=Where.PRIVATE,
        words=("You have started",),
    ),
    Step(
        title="Go quiet",
        do=f"Press “{_END_LEASES}” here, instead of waiting for ten minutes in which the owner does nothing.",
        see="The task comes back by itself. The card says that the lease expired and, as work had begun, "
        "that it needs a check.",
        where=Where.MESSAGE,
        words=("because the lease expired", "Needs a check"),
        lever=_END_LEASES,
    ),
    Step(
        title="Hear of it",
        do=f"Choose #{_ALERTS} above the messages in one pane, and press History on the alert.",
        see="Supervisors are told once, with who had the task and what was recorded, and never with what the "
        "customer wrote. The alert is drawn anew when somebody has checked.",
        where=Where.MODAL,
        words=("History of",),
    ),
    Step(
        title="Check before repeating",
        do="Back in #support, claim the same task again and press Start. Say what you found, and confirm.",
        see="Started work may have had an effect outside, so a person looks first. Dibs repeats nothing.",
        where=Where.PRESS,
        words=("Submit Check",),
    ),
    Step(
        title="Hand it back",
        do="Press Release, choose a reason, and leave a note for the next owner.",
        see="The task waits again, and its card carries the note for whoever claims it.",
        where=Where.MESSAGE,
        words=("*Handed back*",),
    ),
    Step(
        title="See the record",
        do="Type /audit SUP-1 below the messages, or the number of the task that you used.",
        see="Everything that happened is there, with who and when; so are the presses that changed nothing. "
        "If you like, be Sue next, who supervises this queue, and try /queue settings, pause and report.",
        where=Where.PRIVATE,
        words=("Audit of",),
    ),
)


def set_the_scene(slack: SlackStandIn, bot: Bot) -> None:
    """Fill the stand-in, which forgets everything when it stops, and the queue, if it is not there yet.

    Dibs is installed by its own manifest and held to Slack's rate limits, so that it can do here only what
    it can do in Slack.
    """
    slack.install(manifest.read(manifest.Way.HTTP))
    slack.rate_limits = True
    slack.commands = list(_COMMANDS)
    people = [slack.add_person(name) for name in _PEOPLE]
    everybody = [person.id for person in people]
    channel = slack.add_channel("support", members=everybody)
    alerts = slack.add_channel(_ALERTS, members=everybody)
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
    bot.delivery.post_again(queue.id, channel.id, alert_channel=alerts.id)
    waiting = [task for task in bot.queries.unfinished([queue.id], most=100) if task.state is State.QUEUED]
    for title, details in _TASKS if not waiting else ():
        bot.queues.add_task(queue.id, title, supervisor, details=details, op_id=f"scene:{uuid.uuid4()}")
    bot.membership.catch_up()
    bot.delivery.deliver_once()
    bot.notices.deliver_once()
    slack.levers = [
        Lever(
            _END_LEASES,
            "Ends every lease of this queue, as if its owners had been quiet for too long.",
            lambda: _end_leases(bot, queue.id),
        )
    ]
    slack.tour.begin(_TOUR)


def _end_leases(bot: Bot, queue_id: int) -> str:
    try:
        ended = bot.sweep.end_leases(queue_id)
        bot.sweep.sweep_once()
        bot.delivery.deliver_once()
        bot.notices.deliver_once()
    except StoreError as error:
        raise RuntimeError(f"the database did not do it: {error}") from error
    return "" if ended else "Nobody has a task, so there was no lease that could end. Claim one first."
