"""What cannot be recorded is not handed back: real refusals by a real database, wherever they can strike."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.support.broken_records import FAILURES, NO_EVENTS, plain_role, run, trigger
from tests.support.holders import LOCK, holder
from tests.support.journey import (
    action_statuses,
    add_action,
    count_events,
    events_of,
    guard_of,
    now,
    place,
    together,
    whole_row,
)
from tests.support.store import AMAL, BILAL, DANA, SUE, Desk, open_desk

from dibs.deadline import Deadline
from dibs.domain.brakes import Brake
from dibs.domain.errors import StoreError
from dibs.domain.outcomes import Refusal
from dibs.domain.task import State
from dibs.service.brakes import BrakeService
from dibs.service.release_pauses import ReleasePauses, Resumption
from dibs.service.transitions import TransitionService

NOTE = "A private word about the customer"
GIVEN: dict[str, Any] = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "completed"}


@pytest.fixture
def pauses(desk: Desk) -> ReleasePauses:
    return ReleasePauses(guard_of(desk))


@pytest.fixture
def service(desk: Desk, pauses: ReleasePauses) -> TransitionService:
    return TransitionService(desk.engine, guard=guard_of(desk), pauses=pauses)


def _paused(desk: Desk) -> tuple[bool, int, str | None]:
    row = desk.rows("SELECT * FROM dibs.breaker WHERE queue_id = :q", q=desk.queue.id)[0]
    return row["releases_paused_since"] is not None, row["release_trip"], row["releases_paused_why"]


def _alerts(desk: Desk) -> list[tuple[str, str]]:
    rows = desk.rows("SELECT key, recipient FROM dibs.outbox WHERE kind = 'releases_paused' ORDER BY id")
    return [(row["key"], row["recipient"]) for row in rows]


def _resume(desk: Desk, pauses: ReleasePauses, by: str = SUE) -> Resumption:
    return pauses.resume(desk.queue.id, by, Deadline.after(5)).came_of


def _supervised(desk: Desk) -> None:
    desk.admit(SUE, supervisor=True)


@pytest.mark.parametrize("failure", FAILURES)
def test_whatever_refuses_a_record_rolls_the_release_back_and_pauses_the_queue(
    desk: Desk,
    service: TransitionService,
    pauses: ReleasePauses,
    failure: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaks, mends = FAILURES[failure]
    task = place(desk, State.STARTED)
    add_action(desk, task)
    before, events = whole_row(desk, task), count_events(desk, task)
    run(desk, breaks)
    outcome = service.release(task.id, AMAL, task.version, op_id="first", **GIVEN)

    assert (outcome.unchanged, outcome.why, outcome.releases_paused) == (
        True,
        Refusal.DATABASE_REFUSED,
        True,
    )
    assert outcome.task == now(desk, task)
    assert whole_row(desk, task) == before
    # The attempt stays in the record, unless it is the table of events that takes nothing.
    attempts = [] if failure in NO_EVENTS else ["release_rejected"]
    assert (count_events(desk, task), events_of(desk, "first")) == (events + len(attempts), attempts)
    assert bool(attempts) is not any("could not be recorded" in told for told in caplog.messages)
    assert action_statuses(desk, task) == ["in_progress"]
    paused, trip, why = _paused(desk)
    assert (paused, trip) == (True, 1)
    assert why
    assert NOTE not in why
    assert _alerts(desk) == [(f"releases_paused:{desk.queue.id}:1:{SUE}", SUE)]
    assert pauses.held == []

    # The trial strikes the same obstacle, so nothing is resumed before it is gone.
    still = pauses.resume(desk.queue.id, SUE, Deadline.after(5))
    assert still.came_of is Resumption.STILL_PAUSED
    assert still.why
    assert _paused(desk)[0]
    run(desk, mends)
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 0
    refused = service.release(task.id, AMAL, task.version, op_id="second", **GIVEN)
    assert (refused.why, refused.releases_paused) == (Refusal.RELEASES_PAUSED, False)
    assert events_of(desk, "second") == ["release_rejected"]

    kept = whole_row(desk, task)
    assert _resume(desk, pauses) is Resumption.RESUMED
    assert (whole_row(desk, task), desk.value("SELECT count(*) FROM dibs.release_card")) == (kept, 0)
    assert _paused(desk) == (False, 1, None)
    assert service.release(task.id, AMAL, task.version, op_id="third", **GIVEN).changed
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 1


@pytest.mark.parametrize("table", ["release_card", "event"])
def test_a_missing_privilege_pauses_although_the_database_names_no_table(
    desk: Desk, database_url: str, table: str
) -> None:
    task = place(desk, State.CLAIMED)
    with plain_role(desk, database_url) as (service, pauses, role):
        desk.execute(f"REVOKE INSERT ON dibs.{table} FROM {role}")
        outcome = service.release(task.id, AMAL, task.version, reason="shift_ending")
        assert (outcome.why, outcome.releases_paused) == (Refusal.DATABASE_REFUSED, True)
        assert _paused(desk)[2] == f"permission denied for table {table} (42501)"
        assert _resume(desk, pauses) is Resumption.STILL_PAUSED
        desk.execute(f"GRANT INSERT ON dibs.{table} TO {role}")
        assert _resume(desk, pauses) is Resumption.RESUMED
        assert service.release(task.id, AMAL, task.version, reason="shift_ending").changed


def test_a_forced_release_that_cannot_be_recorded_pauses_too(
    desk: Desk, service: TransitionService, pauses: ReleasePauses
) -> None:
    task = place(desk, State.STARTED)
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    breaks, mends = FAILURES["a CHECK on the card"]
    run(desk, breaks)
    outcome = service.force_release(task.id, SUE, task.version, reason="shift_ending")
    assert (outcome.why, outcome.releases_paused) == (Refusal.DATABASE_REFUSED, True)
    run(desk, mends)
    held = service.force_release(task.id, SUE, task.version, reason="shift_ending")
    assert held.why is Refusal.RELEASES_PAUSED
    assert _resume(desk, pauses) is Resumption.RESUMED
    assert service.force_release(task.id, SUE, task.version, reason="shift_ending").changed


def test_a_refusal_by_another_table_is_no_matter_of_the_records(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED)
    desk.execute("ALTER TABLE dibs.task ADD CONSTRAINT odd CHECK (version < 8) NOT VALID")
    outcome = service.release(task.id, AMAL, task.version, reason="shift_ending")
    assert (outcome.why, outcome.releases_paused) == (Refusal.DATABASE_REFUSED, False)
    assert _paused(desk) == (False, 0, None)
    assert _alerts(desk) == []


def test_waiting_for_a_lock_in_vain_does_not_pause(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = place(desk, State.CLAIMED)
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        outcome = service.release(task.id, AMAL, task.version, reason="shift_ending")
        assert outcome.why is Refusal.BUSY
    assert _paused(desk) == (False, 0, None)


def test_a_lost_connection_does_not_pause(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    cut = "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW"
    run(desk, trigger("release_card", cut))
    assert service.release(task.id, AMAL, task.version, reason="shift_ending").unknown
    assert _paused(desk) == (False, 0, None)


def test_other_queues_and_other_operations_go_on(desk: Desk, service: TransitionService) -> None:
    other = open_desk(desk.engine, key="OPS")
    mine, theirs, working = (
        place(desk, State.CLAIMED),
        place(other, State.CLAIMED),
        place(desk, State.STARTED),
    )
    breaks, mends = FAILURES["a CHECK on the card"]
    run(desk, breaks)
    assert service.release(mine.id, AMAL, mine.version, reason="shift_ending").releases_paused
    run(desk, mends)
    assert service.release(theirs.id, AMAL, theirs.version, reason="shift_ending").changed
    assert service.done(working.id, AMAL, working.version).changed
    assert service.renew(mine.id, AMAL, mine.version).changed


def test_each_supervisor_or_else_the_alert_channel_hears_once_for_each_pause(
    desk: Desk, service: TransitionService, pauses: ReleasePauses
) -> None:
    _supervised(desk)
    desk.admit(DANA, supervisor=True)
    tasks = [place(desk, State.CLAIMED) for _ in range(2)]
    breaks, mends = FAILURES["a trigger that raises on the card"]
    run(desk, breaks)
    together([partial(service.release, task.id, AMAL, task.version, reason="shift_ending") for task in tasks])
    assert sorted(recipient for _, recipient in _alerts(desk)) == [DANA, SUE]
    run(desk, mends)
    assert _resume(desk, pauses) is Resumption.RESUMED

    desk.execute("UPDATE dibs.queue SET alert_channel = 'C0ALERTS'")
    run(desk, breaks)
    assert service.release(tasks[0].id, AMAL, tasks[0].version, reason="shift_ending").releases_paused
    assert _alerts(desk)[2:] == [(f"releases_paused:{desk.queue.id}:2:C0ALERTS", "C0ALERTS")]


def test_two_supervisors_resume_once_and_the_alert_tells_by_whom(
    desk: Desk, service: TransitionService, pauses: ReleasePauses
) -> None:
    desk.admit(DANA, supervisor=True)
    task = place(desk, State.CLAIMED)
    breaks, mends = FAILURES["a CHECK on the card"]
    run(desk, breaks)
    service.release(task.id, AMAL, task.version, reason="shift_ending")
    run(desk, mends)
    came_of = together([partial(_resume, desk, pauses, who) for who in (SUE, DANA, SUE, DANA)])
    assert sorted(came_of) == [Resumption.NOT_PAUSED] * 3 + [Resumption.RESUMED]
    alerts = desk.rows("SELECT * FROM dibs.outbox WHERE kind = 'releases_paused'")
    by = {alert["payload"]["resumed_by"] for alert in alerts}
    assert len(by) == 1
    assert [alert["wanted"] for alert in alerts] == [2, 2]
    events = desk.rows("SELECT actor_id FROM dibs.event WHERE kind = 'resumed'")
    assert [event["actor_id"] for event in events] == list(by)


def test_only_a_supervisor_resumes(desk: Desk, service: TransitionService, pauses: ReleasePauses) -> None:
    task = place(desk, State.CLAIMED)
    breaks, mends = FAILURES["a CHECK on the card"]
    run(desk, breaks)
    service.release(task.id, AMAL, task.version, reason="shift_ending")
    run(desk, mends)
    assert _resume(desk, pauses, BILAL) is Resumption.NOT_PAUSED
    assert _paused(desk)[0]
    brakes = BrakeService(guard_of(desk), pauses)
    assert not brakes.resume(desk.queue.id, BILAL).allowed
    lifted = brakes.resume(desk.queue.id, SUE, op_id="twice")
    assert (lifted.allowed, lifted.lifted, lifted.replayed) == (True, frozenset({Brake.RELEASES}), False)
    again = brakes.resume(desk.queue.id, SUE, op_id="twice")
    assert (again.allowed, again.lifted, again.replayed) == (True, frozenset({Brake.RELEASES}), True)


# --- where the pause itself cannot be stored

NO_PAUSE = {
    "the breaker": ("ALTER TABLE dibs.breaker ADD CONSTRAINT shut CHECK (release_trip = 0)", "breaker"),
    "the alerts": ("ALTER TABLE dibs.outbox ADD CONSTRAINT shut CHECK (kind = '') NOT VALID", "outbox"),
}


@pytest.mark.parametrize("what", NO_PAUSE)
def test_a_pause_that_cannot_be_stored_holds_in_this_process_and_is_stored_later(
    desk: Desk, service: TransitionService, pauses: ReleasePauses, what: str
) -> None:
    shut, table = NO_PAUSE[what]
    task, next_one = place(desk, State.CLAIMED), place(desk, State.CLAIMED)
    breaks, mends = FAILURES["a CHECK on the card"]
    run(desk, [*breaks, shut])
    outcome = service.release(task.id, AMAL, task.version, reason="shift_ending")
    assert (outcome.why, outcome.releases_paused) == (Refusal.DATABASE_REFUSED, True)
    assert _paused(desk) == (False, 0, None)
    assert (_alerts(desk), pauses.held) == ([], [task.id])

    run(desk, mends)
    held = service.release(next_one.id, AMAL, next_one.version, reason="shift_ending")
    assert held.why is Refusal.RELEASES_PAUSED
    elsewhere = place(open_desk(desk.engine, key="OPS"), State.CLAIMED)
    assert service.release(elsewhere.id, AMAL, elsewhere.version, reason="shift_ending").changed
    with pytest.raises(StoreError):
        pauses.store_held()
    assert _resume(desk, pauses) is Resumption.STILL_PAUSED
    assert pauses.held == [task.id]

    desk.execute(f"ALTER TABLE dibs.{table} DROP CONSTRAINT shut")
    pauses.store_held()
    assert (_paused(desk)[:2], pauses.held) == ((True, 1), [])
    assert _alerts(desk) == [(f"releases_paused:{desk.queue.id}:1:{SUE}", SUE)]
    pauses.store_held()
    assert len(_alerts(desk)) == 1
    assert _resume(desk, pauses) is Resumption.RESUMED
    assert service.release(task.id, AMAL, task.version, reason="shift_ending").changed


def test_a_queue_made_by_hand_without_a_breaker_is_paused_all_the_same(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED)
    desk.execute("DELETE FROM dibs.breaker")
    run(desk, FAILURES["a CHECK on the card"][0])
    assert service.release(task.id, AMAL, task.version, reason="shift_ending").releases_paused
    assert _paused(desk)[:2] == (True, 1)


# --- preconditions that cannot be evaluated


@pytest.mark.parametrize(
    ("table", "column"),
    [("task", "version"), ("queue", "reasons"), ("external_action", "status"), ("breaker", "queue_id")],
)
def test_a_precondition_that_cannot_be_evaluated_refuses(
    desk: Desk, service: TransitionService, table: str, column: str
) -> None:
    task = place(desk, State.STARTED)
    before = whole_row(desk, task)
    desk.execute(f"ALTER TABLE dibs.{table} RENAME COLUMN {column} TO hidden")
    outcome = service.release(task.id, AMAL, task.version, **GIVEN)
    desk.execute(f"ALTER TABLE dibs.{table} RENAME COLUMN hidden TO {column}")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.DATABASE_REFUSED)
    assert whole_row(desk, task) == before
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 0


@pytest.mark.parametrize("version", [0, -1, 2**31, 2**40])
def test_a_version_that_no_task_can_have_is_refused(
    desk: Desk, service: TransitionService, version: int
) -> None:
    task = place(desk, State.CLAIMED)
    assert service.release(task.id, AMAL, version, reason="shift_ending").unchanged
    assert now(desk, task).version == task.version


def test_a_queue_without_tasks_goes_on_when_it_is_resumed(desk: Desk, pauses: ReleasePauses) -> None:
    _supervised(desk)
    desk.execute(
        "UPDATE dibs.breaker SET releases_paused_since = now(), releases_paused_why = 'a test', "
        "release_trip = 1 WHERE queue_id = :q",
        q=desk.queue.id,
    )
    assert _resume(desk, pauses) is Resumption.RESUMED
    assert not _paused(desk)[0]
