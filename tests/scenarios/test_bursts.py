"""Many changes at once cost few requests, the urgent ones come first, and every card ends right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.support.bot import TOKEN, Office

from dibs.domain.task import Task
from dibs.service.delivery import DeliveryService
from dibs.service.queries import TaskQueries
from dibs.service.transitions import TransitionService
from dibs.slack.limits import Limits
from dibs.slack.web import SlackWeb
from dibs.store.cards import REFRESH_SECONDS
from dibs.store.guard import Guard

CARDS, TRANSITIONS, JOB_EVERY, MINUTE = 100, 1000, 2, 60


class Time:
    """Lets time pass for everybody: for Slack, for the count of requests, and for what waits in the database.

    What passes while the test runs comes on top, for all but the count.
    """

    def __init__(self, office: Office) -> None:
        self._office = office
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def pass_by(self, seconds: float) -> None:
        self._now += seconds
        self._office.slack.clock.advance(seconds)
        self._office.execute(
            "UPDATE dibs.card SET paced_until = paced_until - make_interval(secs => :s), "
            "next_try_at = next_try_at - make_interval(secs => :s)",
            s=seconds,
        )


@pytest.fixture
def time(office: Office) -> Time:
    return Time(office)


@pytest.fixture
def deliveries(office: Office, time: Time) -> DeliveryService:
    web = SlackWeb(TOKEN, office.slack.api_url)
    web.sending.limits = Limits(time)
    office.slack.rate_limits = True
    guard = Guard(office.engine)
    return DeliveryService(guard, TaskQueries(guard), web)


def shown_tasks(office: Office, number: int) -> list[Task]:
    """Tasks whose cards stand in the channel already."""
    office.verify_members()
    tasks = []
    for n in range(1, number + 1):
        added = office.bot.queues.add_task(1, f"Task {n}", office.id("Sue"), op_id=f"add-{n}")
        assert added is not None
        with office.slack.world.lock:
            message = office.slack.world.compose(text="a card", user=office.slack.bot_user_id)
            office.slack.world.post(office.channel, message)
        office.execute(
            "UPDATE dibs.card SET message_ts = :ts, shown_version = 1 WHERE task_id = :id",
            ts=message["ts"],
            id=added.task.id,
        )
        tasks.append(added.task)
    return tasks


def change(service: TransitionService, task: Task, amal: str) -> Task:
    """The next thing that happens to a task: it is claimed, started, and then noted and renewed in turn."""
    match task.version:
        case 1:
            outcome = service.claim(task.id, amal, 1)
        case 2:
            outcome = service.start(task.id, amal, 2)
        case version if version % 2:
            outcome = service.note(task.id, amal, version, text="x")
        case version:
            outcome = service.renew(task.id, amal, version)
    assert outcome.changed
    assert outcome.task is not None
    return outcome.task


def updates(office: Office) -> Sequence[Any]:
    return office.slack.calls_to("chat.update")


def test_a_thousand_changes_of_a_hundred_cards_in_a_minute(
    office: Office, time: Time, deliveries: DeliveryService
) -> None:
    tasks = shown_tasks(office, CARDS)
    service, amal = TransitionService(office.engine), office.id("Amal")
    rounds = MINUTE // JOB_EVERY
    changed = 0
    while changed < TRANSITIONS:
        for _ in range(-(-TRANSITIONS // rounds)):
            tasks[changed % CARDS] = change(service, tasks[changed % CARDS], amal)
            changed += 1
        time.pass_by(JOB_EVERY)
        deliveries.deliver_once()
    due = "SELECT FROM dibs.card WHERE shown_version < wanted_version"
    for _ in range(10 * rounds):
        if not office.rows(due):
            break
        time.pass_by(JOB_EVERY)
        deliveries.deliver_once()
    assert not office.rows(due)

    sent = [(call.params["ts"], call.at) for call in updates(office)]
    assert all(call.response["ok"] for call in updates(office))
    for _, begin in sent:
        assert sum(begin <= at < begin + MINUTE for _, at in sent) <= 50
    drawn = defaultdict(list)
    for ts, at in sent:
        drawn[ts].append(at)
    assert len(drawn) == CARDS
    for times in drawn.values():
        assert all(later - earlier >= REFRESH_SECONDS for earlier, later in pairwise(times))
    shown = [str(message["blocks"]) for message in office.slack.messages(office.channel.id)]
    for card, task in zip(shown, tasks, strict=True):
        assert f'"version":{task.version}' in card
        assert f"*{task.name}*" in card


def test_cards_of_claims_come_before_cosmetic_ones(office: Office, deliveries: DeliveryService) -> None:
    tasks = shown_tasks(office, 24)
    service, amal = TransitionService(office.engine), office.id("Amal")
    for task in tasks[:12]:
        claimed = change(service, task, amal)
        service.renew(task.id, amal, claimed.version)
    for task in tasks[12:]:
        change(service, task, amal)
    deliveries.deliver_once()
    first = [
        message["text"]
        for message in office.slack.messages(office.channel.id)
        if "Claimed" in message["text"]
    ]
    assert 0 < len(first) <= 12
    assert {text.split("*")[1] for text in first} <= {task.name for task in tasks[12:]}


def test_a_new_card_does_not_wait_behind_redraws_or_behind_another_channel(
    office: Office, deliveries: DeliveryService
) -> None:
    tasks = shown_tasks(office, 30)
    service, amal = TransitionService(office.engine), office.id("Amal")
    for task in tasks:
        change(service, task, amal)
    for n in range(20):
        office.bot.queues.add_task(1, "More", office.id("Sue"), op_id=f"more-{n}")
    other = office.slack.add_channel("billing", members=[office.id("Sue")])
    office.slack.command(office.id("Sue"), other.id, "/queue", "create")
    assert office.submit("Sue", {"name": "Billing", "key": "BIL", "lease_minutes": "30"}).closed
    [billing] = office.rows("SELECT id FROM dibs.queue WHERE key = 'BIL'")
    office.bot.queues.add_task(billing["id"], "Pay", office.id("Sue"), op_id="pay")
    deliveries.deliver_once()
    assert len(office.slack.messages(other.id)) == 1
    posted = office.slack.calls_to("chat.postMessage")
    assert all(call.response["ok"] for call in posted)
    assert len(updates(office)) > 0


def test_a_press_redraws_its_card_at_once_and_costs_no_update(office: Office) -> None:
    card = office.add_task()
    for button in ("claim", "renew", "renew", "start"):
        office.wait(lambda button=button: button in office.buttons(card))  # type: ignore[misc]
        office.press("Amal", card, button)
        office.wait(lambda: office.bot.outgoing.waiting == 0)
    office.shows(card, "In progress")
    assert len(updates(office)) == 0


def test_two_changes_by_command_within_a_moment_cost_one_update_each_interval(office: Office) -> None:
    office.add_task()
    office.type("Amal", "next")
    office.wait(lambda: len(updates(office)) == 1)
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    began = office.rows("SELECT paced_until FROM dibs.card")[0]["paced_until"]
    # However long the machine takes until the next look, the interval is not over.
    office.execute("UPDATE dibs.card SET paced_until = clock_timestamp() + interval '1 minute'")
    office.execute("UPDATE dibs.task SET version = version + 1")
    office.execute("UPDATE dibs.card SET wanted_version = wanted_version + 1")
    assert office.bot.delivery.deliver_once() == 0
    assert office.bot.delivery.refresh(1) is not None
    assert len(updates(office)) == 1
    office.execute("UPDATE dibs.card SET paced_until = clock_timestamp()")
    assert office.bot.delivery.deliver_once() == 1
    assert len(updates(office)) == 2
    assert office.rows("SELECT paced_until FROM dibs.card")[0]["paced_until"] >= began
