"""The breaker: too many leases that end at once are no lazy owners, and a person decides."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.support.holders import Pressed, wait_for_waiters
from tests.support.store import AMAL, BILAL, SUE, Desk, open_desk

from dibs.domain.brakes import Brake
from dibs.service.brakes import BrakeService
from dibs.service.sweep import SweepService
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard

LIMIT = 3


@pytest.fixture
def sweep(database_url: str) -> Iterator[SweepService]:
    engine = make_engine(database_url, BACKGROUND, pool_size=8)
    yield SweepService(Guard(engine))
    engine.dispose()


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A queue that lets three leases end within ten minutes."""
    desk.execute("UPDATE dibs.queue SET spike_limit = :limit", limit=LIMIT)
    return desk


@pytest.fixture
def brakes(desk: Desk) -> BrakeService:
    return BrakeService(Guard(desk.engine))


def ended(desk: Desk, number: int, *, since: str = "1 second") -> None:
    """That many claimed tasks whose lease is over."""
    desk.execute(
        "WITH numbered AS (UPDATE dibs.queue SET last_number = last_number + :number WHERE id = :q "
        "RETURNING last_number) "
        "INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, created_by) "
        "SELECT :q, last_number - n, 'T', 'claimed', :owner, now() - CAST(:since AS interval), :owner "
        "FROM numbered, generate_series(0, :number - 1) n",
        q=desk.queue.id,
        owner=AMAL,
        number=number,
        since=since,
    )


def waiting(desk: Desk) -> int:
    number: int = desk.value("SELECT count(*) FROM dibs.task WHERE lease_until <= now()")
    return number


def is_open(desk: Desk) -> bool:
    opened: bool = desk.value(
        "SELECT open_since IS NOT NULL FROM dibs.breaker WHERE queue_id = :q", q=desk.queue.id
    )
    return opened


@pytest.mark.parametrize("number", [LIMIT - 1, LIMIT])
def test_up_to_the_limit_every_task_is_returned(desk: Desk, sweep: SweepService, number: int) -> None:
    ended(desk, number)
    assert len(sweep.sweep_once()) == number
    assert not is_open(desk)


def test_one_more_than_the_limit_and_nothing_is_returned(desk: Desk, sweep: SweepService) -> None:
    ended(desk, LIMIT + 1)
    assert sweep.sweep_once() == []
    assert (is_open(desk), waiting(desk)) == (True, LIMIT + 1)
    assert sweep.sweep_once() == []


def test_what_was_returned_within_the_window_counts(desk: Desk, sweep: SweepService) -> None:
    for _ in range(LIMIT):
        ended(desk, 1)
        assert len(sweep.sweep_once()) == 1
    ended(desk, 1)
    assert sweep.sweep_once() == []
    assert is_open(desk)


def test_what_was_returned_before_the_window_does_not_count(desk: Desk, sweep: SweepService) -> None:
    desk.execute("UPDATE dibs.breaker SET window_started_at = now() - interval '1 day'")
    desk.execute(
        "INSERT INTO dibs.event (queue_id, kind, at, op_id) "
        "SELECT :q, 'expired', now() - interval '10 minutes 1 second', 'old-' || n "
        "FROM generate_series(1, 20) n",
        q=desk.queue.id,
    )
    ended(desk, LIMIT)
    assert len(sweep.sweep_once()) == LIMIT
    desk.execute(
        "INSERT INTO dibs.event (queue_id, kind, at, op_id) "
        "VALUES (:q, 'expired', now() - interval '9 minutes', 'recent')",
        q=desk.queue.id,
    )
    ended(desk, 1)
    assert sweep.sweep_once() == []


def test_a_share_of_the_leases_held_raises_the_limit_of_a_large_team(desk: Desk, sweep: SweepService) -> None:
    desk.execute("UPDATE dibs.queue SET spike_share = 20")
    ended(desk, 60, since="-1 hour")
    # 15 of 75 that were held are just a fifth, whether they end at once or one after the other.
    for number in (10, 5):
        ended(desk, number)
        assert len(sweep.sweep_once()) == number
    ended(desk, 1)
    assert sweep.sweep_once() == []


def test_two_sweepers_at_once_return_no_more_than_the_limit(desk: Desk, sweep: SweepService) -> None:
    """Each would count only what the other has committed, if it did not wait for the lock to count."""
    for _ in range(5):
        desk.execute("UPDATE dibs.breaker SET window_started_at = clock_timestamp(), open_since = NULL")
        desk.execute("UPDATE dibs.task SET state = 'queued', owner_id = NULL, lease_until = NULL")
        start = threading.Barrier(5)

        def sweeping(start: threading.Barrier = start) -> int:
            start.wait()
            return sum(len(sweep.sweep_once()) for _ in range(8))

        def ending(start: threading.Barrier = start) -> int:
            start.wait()
            for _ in range(2 * LIMIT):
                ended(desk, 1)
            return 0

        with ThreadPoolExecutor(5) as threads:
            jobs = [threads.submit(sweeping) for _ in range(4)] + [threads.submit(ending)]
            returned = sum(job.result() for job in jobs)
        sweep.sweep_once()
        assert returned <= LIMIT
        assert is_open(desk)


def test_a_queue_that_another_process_is_sweeping_is_left_to_it(
    desk: Desk, sweep: SweepService, database_url: str
) -> None:
    ended(desk, 1)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM dibs.breaker FOR UPDATE")
        assert sweep.sweep_once() == []
    assert len(sweep.sweep_once()) == 1


def test_the_supervisors_are_told_once_with_the_figures(desk: Desk, sweep: SweepService) -> None:
    ended(desk, 1)
    sweep.sweep_once()
    ended(desk, 5)
    for _ in range(3):
        sweep.sweep_once()
    [told] = desk.rows("SELECT * FROM dibs.outbox WHERE kind = 'breaker_open'")
    assert (told["recipient"], told["live"]) == (SUE, True)
    assert told["payload"] == {"count": 6, "limit": 3, "minutes": 10, "opened_by": None}
    [event] = desk.rows("SELECT * FROM dibs.event WHERE kind = 'paused'")
    assert (event["actor_id"], event["task_id"]) == (None, None)
    assert event["hash"] is not None


def test_the_alert_channel_is_told_where_there_is_one(desk: Desk, sweep: SweepService) -> None:
    desk.execute("UPDATE dibs.queue SET alert_channel = 'C0ALERTS'")
    ended(desk, 4)
    sweep.sweep_once()
    assert desk.value("SELECT recipient FROM dibs.outbox WHERE kind = 'breaker_open'") == "C0ALERTS"


def test_resuming_lets_the_waiting_ones_through_once_and_starts_the_window_afresh(
    desk: Desk, brakes: BrakeService, sweep: SweepService
) -> None:
    ended(desk, 3)
    sweep.sweep_once()
    ended(desk, 600, since="1 hour")
    assert sweep.sweep_once() == []
    assert brakes.resume(desk.queue.id, SUE).lifted == {Brake.BREAKER}
    assert len(sweep.sweep_once()) == 600
    # They did not count, and neither does what was before the resume; what ends now counts again, ...
    ended(desk, 3)
    assert len(sweep.sweep_once()) == 3
    # ... however long ago it is said to have ended.
    ended(desk, 1, since="1 day")
    assert sweep.sweep_once() == []
    assert is_open(desk)


def test_a_resume_for_which_nothing_waited_lets_nothing_through_later(
    desk: Desk, brakes: BrakeService, sweep: SweepService
) -> None:
    brakes.pause(desk.queue.id, SUE)
    brakes.resume(desk.queue.id, SUE)
    ended(desk, LIMIT + 1, since="1 hour")
    assert sweep.sweep_once() == []
    assert is_open(desk)


def test_what_ends_after_a_resume_counts_even_while_others_are_let_through(
    desk: Desk, brakes: BrakeService, sweep: SweepService
) -> None:
    ended(desk, 5)
    sweep.sweep_once()
    brakes.resume(desk.queue.id, SUE)
    ended(desk, 4, since="0 seconds")
    assert len(sweep.sweep_once()) == 5
    assert (is_open(desk), waiting(desk)) == (True, 4)


def test_each_trip_alerts_anew_and_a_resume_has_the_alert_drawn_again(
    desk: Desk, brakes: BrakeService, sweep: SweepService
) -> None:
    for _ in range(2):
        ended(desk, 4)
        sweep.sweep_once()
        brakes.resume(desk.queue.id, SUE)
        sweep.sweep_once()
    rows = desk.rows("SELECT * FROM dibs.outbox WHERE kind = 'breaker_open' ORDER BY id")
    assert [(row["wanted"], row["payload"]["resumed_by"]) for row in rows] == [(2, SUE), (2, SUE)]
    assert len({row["key"] for row in rows}) == 2


def test_an_open_breaker_holds_up_no_other_queue(desk: Desk, sweep: SweepService) -> None:
    other = open_desk(desk.engine, key="OPS")
    ended(desk, 50)
    ended(other, 2)
    assert {expired.task.queue_key for expired in sweep.sweep_once()} == {"OPS"}
    assert (is_open(desk), is_open(other)) == (True, False)


def test_a_queue_whose_records_the_database_refuses_holds_up_no_other(
    desk: Desk, sweep: SweepService
) -> None:
    other = open_desk(desk.engine, key="OPS")
    ended(desk, 1)
    ended(other, 1)
    desk.execute(
        f"ALTER TABLE dibs.event ADD CONSTRAINT broken CHECK (queue_id <> {desk.queue.id}) NOT VALID"
    )
    with pytest.raises(Exception, match="broken"):
        sweep.sweep_once()
    assert [row["queue_id"] for row in desk.rows("SELECT * FROM dibs.task WHERE state = 'queued'")] == [
        other.queue.id
    ]
    assert waiting(desk) == 1


def test_a_queue_made_by_hand_has_a_breaker_by_the_first_sweep(desk: Desk, sweep: SweepService) -> None:
    desk.execute("DELETE FROM dibs.breaker")
    ended(desk, 4)
    assert sweep.sweep_once() == []
    assert is_open(desk)


def test_a_queue_made_by_hand_can_be_paused_and_resumed(desk: Desk, brakes: BrakeService) -> None:
    desk.execute("DELETE FROM dibs.breaker")
    assert brakes.pause(desk.queue.id, SUE).changed
    desk.execute("DELETE FROM dibs.breaker")
    assert brakes.resume(desk.queue.id, SUE).allowed


def test_only_supervisors_pause_and_resume_and_others_hear_who_may(desk: Desk, brakes: BrakeService) -> None:
    refused = brakes.pause(desk.queue.id, BILAL)
    assert (refused.allowed, refused.changed, refused.supervisors) == (False, False, (SUE,))
    assert not is_open(desk)
    assert brakes.pause(desk.queue.id, SUE).changed
    again = brakes.resume(desk.queue.id, BILAL)
    assert (again.allowed, again.supervisors) == (False, (SUE,))
    assert is_open(desk)
    kinds = [(row["kind"], row["why"], row["actor_id"]) for row in desk.rows("SELECT * FROM dibs.event")]
    assert kinds == [
        ("pause_rejected", "not_a_supervisor", BILAL),
        ("paused", None, SUE),
        ("resume_rejected", "not_a_supervisor", BILAL),
    ]


def test_a_paused_queue_returns_nothing_until_it_is_resumed(
    desk: Desk, brakes: BrakeService, sweep: SweepService
) -> None:
    assert brakes.pause(desk.queue.id, SUE).changed
    ended(desk, 1)
    assert sweep.sweep_once() == []
    again = brakes.pause(desk.queue.id, SUE)
    assert (again.allowed, again.changed, again.by) == (True, False, SUE)
    assert brakes.resume(desk.queue.id, SUE).lifted == {Brake.BREAKER}
    assert len(sweep.sweep_once()) == 1
    assert brakes.resume(desk.queue.id, SUE).lifted == frozenset()


def test_a_repeated_delivery_is_answered_as_the_first_time_and_writes_nothing(
    desk: Desk, brakes: BrakeService
) -> None:
    first = brakes.pause(desk.queue.id, SUE, op_id="p")
    again = brakes.pause(desk.queue.id, SUE, op_id="p")
    assert (first.changed, again.changed, again.replayed) == (True, True, True)
    first_resume = brakes.resume(desk.queue.id, SUE, op_id="r")
    again_resume = brakes.resume(desk.queue.id, SUE, op_id="r")
    assert first_resume.lifted == again_resume.lifted == {Brake.BREAKER}
    assert again_resume.replayed
    assert brakes.pause(desk.queue.id, BILAL, op_id="b").allowed is False
    assert brakes.pause(desk.queue.id, BILAL, op_id="b").replayed
    assert desk.value("SELECT count(*) FROM dibs.event") == 3


def test_a_pause_waits_for_the_sweep_of_its_queue_and_then_holds(
    desk: Desk, brakes: BrakeService, sweep: SweepService, database_url: str
) -> None:
    with psycopg.connect(database_url) as sweeper:
        sweeper.execute("SELECT FROM dibs.breaker FOR UPDATE")
        pressed = Pressed(lambda: brakes.pause(desk.queue.id, SUE))
        wait_for_waiters(database_url)
        assert not pressed.answered
    assert pressed.answer().changed
    ended(desk, 1)
    assert sweep.sweep_once() == []
