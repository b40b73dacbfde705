"""Cards on their way: senders that are overtaken, cards that are given up, and a stop in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

import pytest
import sqlalchemy as sa
from tests.support.holders import PATIENCE, Pressed, wait_until
from tests.support.store import AMAL, Desk

from dibs.deadline import Deadline
from dibs.domain.queue import Facts
from dibs.domain.task import Task
from dibs.service import delivery
from dibs.service.delivery import Delivered, Delivery, DeliveryService, GivenUp, MessageGone, TryLater
from dibs.service.queries import TaskQueries
from dibs.service.transitions import TransitionService
from dibs.store import cards
from dibs.store.guard import Guard


def _at_once() -> None:
    pass


class Channel:
    """A channel with one message for each card: which version it shows."""

    def __init__(self) -> None:
        self.shown: dict[int, int] = {}
        self.sent = 0
        self.looked_since: list[datetime] = []


class Sender:
    """Sends to the channel when `before` has returned, or answers with `refusal`."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.before: Callable[[], None] = _at_once
        self.refusal: GivenUp | TryLater | None = None

    def post(self, facts: Facts, deadline: Deadline) -> Delivery:
        return self._send(facts, deadline)

    def update(self, facts: Facts, message_ts: str, answer_url: str | None, deadline: Deadline) -> Delivery:
        assert (message_ts, answer_url) == (str(facts.task.id), None)
        return self._send(facts, deadline)

    def find(self, facts: Facts, since: datetime, deadline: Deadline) -> Delivered | MessageGone | TryLater:
        assert facts.channel_id
        assert deadline.remaining > 0
        self.channel.looked_since.append(since)
        return MessageGone()

    def _send(self, facts: Facts, deadline: Deadline) -> Delivery:
        assert 0 < deadline.remaining <= delivery.SEND_SECONDS
        self.before()
        self.channel.sent += 1
        if self.refusal:
            return self.refusal
        self.channel.shown[facts.task.id] = facts.task.version
        return Delivered(str(facts.task.id))


class Held:
    """A sender that is on its way until it is let go."""

    def __init__(self, engine: sa.Engine, channel: Channel, task: Task) -> None:
        sender = Sender(channel)
        self._on_its_way, self._let_go = threading.Event(), threading.Event()

        def before() -> None:
            self._on_its_way.set()
            assert self._let_go.wait(PATIENCE)
            sender.before = _at_once

        sender.before = before
        service = a_service(engine, sender)
        self._pressed = Pressed(lambda: service.refresh(task.id))
        assert self._on_its_way.wait(PATIENCE)

    def arrives(self) -> None:
        self._let_go.set()
        self._pressed.answer()


def a_service(engine: sa.Engine, sender: Sender) -> DeliveryService:
    guard = Guard(engine)
    return DeliveryService(guard, TaskQueries(guard), sender)


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def sender(channel: Channel) -> Sender:
    return Sender(channel)


@pytest.fixture
def deliveries(engine: sa.Engine, sender: Sender) -> DeliveryService:
    return a_service(engine, sender)


def card(desk: Desk) -> sa.RowMapping:
    return desk.rows("SELECT * FROM dibs.card")[0]


def lose_the_fence(desk: Desk) -> None:
    desk.execute("UPDATE dibs.card SET sender_until = clock_timestamp() - interval '1 second'")


def test_the_fence_lasts_longer_than_the_slowest_delivery() -> None:
    # The facts are read, and what became of the message is written, each within its own time.
    assert delivery.SEND_SECONDS + 4 * delivery.STATEMENT_SECONDS < cards.SENDER_SECONDS


def test_an_older_state_that_lands_late_is_drawn_over_with_the_newest(
    desk: Desk, engine: sa.Engine, service: TransitionService, channel: Channel, deliveries: DeliveryService
) -> None:
    task = desk.task()
    deliveries.deliver_once()
    claimed = service.claim(task.id, AMAL, 1).task
    assert claimed is not None
    late = Held(engine, channel, task)
    lose_the_fence(desk)
    assert service.release(task.id, AMAL, 2, reason="shift_ending").changed
    deliveries.deliver_once()
    assert channel.shown == {task.id: 3}
    late.arrives()
    assert channel.shown == {task.id: 2}
    deliveries.deliver_once()
    assert channel.shown == {task.id: 3}
    assert deliveries.deliver_once() == 0


def test_an_older_state_that_lands_while_the_newest_is_on_its_way_is_drawn_over_too(
    desk: Desk, engine: sa.Engine, service: TransitionService, channel: Channel, deliveries: DeliveryService
) -> None:
    task = desk.task()
    deliveries.deliver_once()
    service.claim(task.id, AMAL, 1)
    late = Held(engine, channel, task)
    lose_the_fence(desk)
    service.release(task.id, AMAL, 2, reason="shift_ending")
    newest = Held(engine, channel, task)
    late.arrives()
    before = channel.sent
    newest.arrives()
    assert channel.sent == before + 2
    assert channel.shown == {task.id: 3}
    assert deliveries.deliver_once() == 0


def test_a_card_that_was_given_up_is_tried_once_more_at_each_change(
    desk: Desk, service: TransitionService, channel: Channel, sender: Sender, deliveries: DeliveryService
) -> None:
    task = desk.task()
    sender.refusal = GivenUp("is_archived")
    for version in (1, 2):
        deliveries.deliver_once()
        deliveries.deliver_once()
        deliveries.refresh(task.id)
        assert channel.sent == version
        assert card(desk)["disabled"] == "is_archived"
        if version == 1:
            service.claim(task.id, AMAL, 1)
    sender.refusal = None
    service.release(task.id, AMAL, 2, reason="shift_ending")
    deliveries.deliver_once()
    assert channel.shown == {task.id: 3}
    assert card(desk)["disabled"] is None
    # Nothing was ever sent without a word back, so there was nothing to look for.
    assert channel.looked_since == []


def test_a_change_while_a_card_is_given_up_is_not_missed(
    desk: Desk, service: TransitionService, channel: Channel, sender: Sender, deliveries: DeliveryService
) -> None:
    task = desk.task()
    sender.refusal = GivenUp("invalid_blocks")

    def claim() -> None:
        assert service.claim(task.id, AMAL, 1).changed

    sender.before = claim
    deliveries.deliver_once()
    sender.before, sender.refusal = _at_once, None
    deliveries.deliver_once()
    assert channel.shown == {task.id: 2}


def test_a_post_that_was_lost_is_looked_for_since_the_first_try(
    desk: Desk, channel: Channel, sender: Sender, deliveries: DeliveryService
) -> None:
    desk.task()
    began = desk.value("SELECT clock_timestamp()")
    sender.refusal = TryLater()
    deliveries.deliver_once()
    first = card(desk)["tried_since"]
    assert first >= began
    for _ in range(2):
        desk.execute("UPDATE dibs.card SET next_try_at = clock_timestamp()")
        deliveries.deliver_once()
    assert channel.looked_since == [first, first]


def test_a_stop_waits_for_one_card_and_not_for_all(
    desk: Desk, engine: sa.Engine, channel: Channel, sender: Sender, deliveries: DeliveryService
) -> None:
    for _ in range(5):
        desk.task()
    let_go = threading.Event()
    on_its_way = threading.Event()

    def before() -> None:
        on_its_way.set()
        assert let_go.wait(PATIENCE)

    sender.before = before
    delivering = Pressed(deliveries.deliver_once)
    wait_until(on_its_way.is_set)
    deliveries.stop()
    let_go.set()
    assert delivering.answer() == 1
    assert channel.sent == 1
    # The others stay due, for whoever comes next.
    assert a_service(engine, Sender(channel)).deliver_once() == 4


@pytest.mark.parametrize("attempts", [1, 5, 1_024, 1_000_000])
def test_however_often_it_failed_there_is_a_next_try(attempts: int) -> None:
    assert 0 < delivery.back_off(attempts, delivery.LONGEST_WAIT_SECONDS) <= delivery.LONGEST_WAIT_SECONDS
