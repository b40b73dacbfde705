"""The sweep: what it returns, how often, and beside whom."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest
from tests.support.store import AMAL, BILAL, Desk

from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import State, Task
from dibs.service.sweep import Expired, SweepService
from dibs.service.transitions import TransitionService
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard


@pytest.fixture
def sweep(database_url: str) -> Iterator[SweepService]:
    engine = make_engine(database_url, BACKGROUND, pool_size=4)
    yield SweepService(Guard(engine))
    engine.dispose()


def _claimed(desk: Desk, service: TransitionService) -> Task:
    outcome = service.claim(desk.task().id, AMAL, 1)
    assert outcome.changed
    assert outcome.task is not None
    return outcome.task


def _started(desk: Desk, service: TransitionService) -> Task:
    task = _claimed(desk, service)
    outcome = service.start(task.id, AMAL, task.version)
    assert outcome.task is not None
    return outcome.task


def test_a_claimed_task_whose_lease_ended_is_plainly_queued_again(
    desk: Desk, service: TransitionService, sweep: SweepService
) -> None:
    task = _claimed(desk, service)
    desk.end_lease(task)
    [expired] = sweep.sweep_once()
    assert (expired.former_owner, expired.former_state) == (AMAL, State.CLAIMED)
    row = desk.row_of(task)
    assert (row["state"], row["owner_id"], row["lease_until"], row["version"]) == ("queued", None, None, 3)
    assert (row["needs_check"], row["started_before"]) == (False, False)
    [event] = desk.rows("SELECT * FROM dibs.event WHERE kind = 'expired'")
    assert (event["actor_id"], event["version_before"], event["version_after"]) == (None, 2, 3)
    assert event["detail"] == {"former_owner": AMAL, "former_state": "claimed"}


def test_expiry_of_started_work_needs_a_check_and_repeats_nothing(
    desk: Desk, service: TransitionService, sweep: SweepService
) -> None:
    task = _started(desk, service)
    service.record_action(task.id, AMAL, task.version, "refund 20 EUR")
    desk.end_lease(task)
    assert len(sweep.sweep_once()) == 1
    row = desk.row_of(task)
    assert (row["needs_check"], row["started_before"]) == (True, True)
    assert desk.value("SELECT status FROM dibs.external_action") == "in_progress"


def test_a_claimed_task_with_an_action_recorded_since_the_last_check_needs_one(
    desk: Desk, service: TransitionService, sweep: SweepService
) -> None:
    task = _started(desk, service)
    released = service.release(
        task.id, AMAL, 3, reason="shift_ending", handoff_note="sent", external_action="completed"
    )
    assert released.task is not None
    assert not released.task.needs_check
    assert service.claim(task.id, BILAL, 4).changed
    desk.end_lease(task)
    assert [expired.task.needs_check for expired in sweep.sweep_once()] == [True]


def test_repeating_the_sweep_changes_nothing_more(
    desk: Desk, service: TransitionService, sweep: SweepService
) -> None:
    task = _claimed(desk, service)
    desk.end_lease(task)
    assert len(sweep.sweep_once()) == 1
    before = desk.rows("SELECT * FROM dibs.event ORDER BY id"), desk.row_of(task)
    assert sweep.sweep_once() == []
    assert (desk.rows("SELECT * FROM dibs.event ORDER BY id"), desk.row_of(task)) == before


def test_a_current_lease_is_left_alone(desk: Desk, service: TransitionService, sweep: SweepService) -> None:
    task = _claimed(desk, service)
    assert sweep.sweep_once() == []
    assert desk.row_of(task)["owner_id"] == AMAL


def test_a_queue_whose_breaker_is_open_is_left_out(
    desk: Desk, service: TransitionService, sweep: SweepService
) -> None:
    task = _claimed(desk, service)
    desk.end_lease(task)
    desk.execute("UPDATE dibs.breaker SET open_since = now()")
    assert sweep.sweep_once() == []
    desk.execute("UPDATE dibs.breaker SET open_since = NULL")
    assert len(sweep.sweep_once()) == 1


def test_a_row_that_somebody_holds_delays_no_other(
    desk: Desk, service: TransitionService, sweep: SweepService, database_url: str
) -> None:
    held, free = _claimed(desk, service), _claimed(desk, service)
    desk.end_lease(held)
    desk.end_lease(free)
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT FROM dibs.task WHERE id = %s FOR UPDATE", [held.id])
        assert [expired.task.id for expired in sweep.sweep_once()] == [free.id]
    assert [expired.task.id for expired in sweep.sweep_once()] == [held.id]


def test_four_sweeps_at_once_return_each_task_once(desk: Desk, sweep: SweepService) -> None:
    desk.execute(
        "INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, created_by) "
        "SELECT :q, n, 'T', 'claimed', :owner, now() - interval '1 second', :owner "
        "FROM generate_series(1, 1100) n",
        q=desk.queue.id,
        owner=AMAL,
    )
    desk.execute("UPDATE dibs.queue SET spike_limit = 5000")
    start = Barrier(4)

    def one(_: int) -> list[Expired]:
        start.wait()
        return sweep.sweep_once()

    with ThreadPoolExecutor(4) as threads:
        returned = [expired.task.id for found in threads.map(one, range(4)) for expired in found]
    assert len(returned) == len(set(returned)) == 1100
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'expired'") == 1100
    assert desk.value("SELECT count(*) FROM dibs.task WHERE state <> 'queued' OR version <> 2") == 0


@pytest.mark.parametrize("operation", ["done", "renew", "release"])
def test_a_sweep_that_meets_a_press_leaves_exactly_one_of_them_standing(
    desk: Desk, service: TransitionService, sweep: SweepService, operation: str
) -> None:
    for _ in range(8):
        task = _started(desk, service)
        # As close to the end of the lease as can be, so that either may come first.
        desk.execute(
            "UPDATE dibs.task SET lease_until = clock_timestamp() + interval '3 ms' WHERE id = :id",
            id=task.id,
        )
        start = Barrier(2)

        def press(task: Task = task, start: Barrier = start) -> Outcome:
            start.wait()
            if operation == "done":
                return service.done(task.id, AMAL, task.version)
            if operation == "renew":
                return service.renew(task.id, AMAL, task.version)
            return service.release(
                task.id, AMAL, task.version, reason="shift_ending", handoff_note="n", external_action="none"
            )

        def sweep_until_over(start: Barrier = start) -> int:
            start.wait()
            return sum(len(sweep.sweep_once()) for _ in range(6))

        with ThreadPoolExecutor(2) as threads:
            pressed, swept = threads.submit(press), threads.submit(sweep_until_over)
            outcome, expired = pressed.result(), swept.result()
        assert outcome.changed + expired <= 1
        if not outcome.changed:
            assert outcome.why in (Refusal.NOT_HELD, Refusal.LEASE_ENDED)
        sweep.sweep_once()
        successes = [kind for kind in desk.kinds(task) if not kind.endswith("_rejected")]
        assert desk.row_of(task)["version"] == len(successes)
