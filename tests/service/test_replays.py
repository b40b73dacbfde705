"""One operation id happens at most once, and what arrives again is answered as the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import pytest
from tests.support.holders import LOCK, PATIENCE, TAKE, Pressed, holder, wait_for_waiters
from tests.support.journey import count_events, events_of, place, together, whole_row
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.deadline import Deadline
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import State, Task
from dibs.service.queues import Added
from dibs.service.transitions import TransitionService
from dibs.store.engine import UNHURRIED, make_engine

Press = Callable[[TransitionService, Task], Outcome]

PRESSES: dict[str, tuple[State, Press]] = {
    "claim": (State.QUEUED, lambda s, t: s.claim(t.id, AMAL, t.version, op_id="op")),
    "renew": (State.CLAIMED, lambda s, t: s.renew(t.id, AMAL, t.version, op_id="op")),
    "start": (State.CLAIMED, lambda s, t: s.start(t.id, AMAL, t.version, op_id="op")),
    "note": (State.STARTED, lambda s, t: s.note(t.id, AMAL, t.version, "text", op_id="op")),
    "record_action": (State.STARTED, lambda s, t: s.record_action(t.id, AMAL, t.version, "x", op_id="op")),
    "done": (State.STARTED, lambda s, t: s.done(t.id, AMAL, t.version, op_id="op")),
    "release": (
        State.CLAIMED,
        lambda s, t: s.release(t.id, AMAL, t.version, reason="shift_ending", op_id="op"),
    ),
    "transfer": (State.STARTED, lambda s, t: s.transfer(t.id, SUE, t.version, BILAL, reason="x", op_id="op")),
    "force_release": (
        State.STARTED,
        lambda s, t: s.force_release(t.id, SUE, t.version, reason="shift_ending", op_id="op"),
    ),
    "claim_next": (State.QUEUED, lambda s, t: s.claim_next([t.queue_id], AMAL, op_id="op")),
}


@pytest.fixture(autouse=True)
def supervisors_may_intervene(desk: Desk) -> None:
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")


@pytest.mark.parametrize("operation", PRESSES)
def test_delivered_three_times_one_after_another(
    desk: Desk, service: TransitionService, operation: str
) -> None:
    state, press = PRESSES[operation]
    task = place(desk, state)
    events = count_events(desk, task)
    answers = [press(service, task) for _ in range(3)]
    assert [answer.verdict for answer in answers] == [Verdict.CHANGED] * 3
    assert [answer.replayed for answer in answers] == [False, True, True]
    assert {answer.task.version for answer in answers if answer.task} == {task.version + 1}
    assert {answer.answered_at for answer in answers} == {answers[0].answered_at}
    assert count_events(desk, task) == events + 1


@pytest.mark.parametrize("operation", PRESSES)
def test_delivered_three_times_at_once(desk: Desk, service: TransitionService, operation: str) -> None:
    state, press = PRESSES[operation]
    task = place(desk, state)
    spare = place(desk, state)
    events = count_events(desk, task)
    before = whole_row(desk, spare)
    answers = together([lambda: press(service, task)] * 3)
    assert [answer.verdict for answer in answers] == [Verdict.CHANGED] * 3
    assert sorted(answer.replayed for answer in answers) == [False, True, True]
    assert count_events(desk, task) == events + 1
    assert whole_row(desk, spare) == before


def test_a_refusal_stays_one_when_it_arrives_again(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    first = service.claim(task.id, BILAL, task.version, op_id="op")
    assert (first.why, first.replayed) == (Refusal.HELD, False)
    assert service.release(task.id, AMAL, task.version, reason="shift_ending").changed
    # By now the same press could succeed, but it was answered already.
    again = service.claim(task.id, BILAL, task.version + 1, op_id="op")
    assert (again.unchanged, again.why, again.replayed) == (True, Refusal.HELD, True)
    assert again.answered_at == first.answered_at
    assert again.task is not None
    assert again.task.state is State.QUEUED
    assert events_of(desk, "op") == ["claim_rejected"]


def test_a_success_is_told_again_after_the_task_has_gone_on(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    service.claim(task.id, AMAL, 1, op_id="op")
    assert service.release(task.id, AMAL, 2, reason="shift_ending").changed
    assert service.claim(task.id, BILAL, 3).changed
    again = service.claim(task.id, AMAL, 1, op_id="op")
    assert (again.changed, again.replayed) == (True, True)
    assert again.task is not None
    assert again.task.owner_id == BILAL


def test_an_operation_id_is_spent_whatever_it_is_used_for_next(
    desk: Desk, service: TransitionService
) -> None:
    task, other = desk.task(), desk.task()
    assert service.claim(task.id, AMAL, 1, op_id="op").changed
    before = whole_row(desk, other)
    assert service.claim(other.id, AMAL, 1, op_id="op").replayed
    assert whole_row(desk, other) == before


def test_a_task_that_is_asked_for_twice_is_added_once(desk: Desk) -> None:
    def add(op_id: str) -> Added:
        added = desk.queues.add_task(desk.queue.id, "Refund", AMAL, op_id=op_id)
        assert added is not None
        return added

    first, again = add("op"), add("op")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.task == first.task
    at_once = together([lambda: add("at once")] * 3)
    assert len({added.task.id for added in at_once}) == 1
    assert sorted(added.replayed for added in at_once) == [False, True, True]
    assert desk.value("SELECT count(*) FROM dibs.task") == 2


def test_without_an_operation_id_each_press_is_its_own(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    outcomes = [service.claim(task.id, person, 1) for person in (AMAL, BILAL, AMAL)]
    assert len({outcome.op_id for outcome in outcomes}) == 3
    assert [outcome.why for outcome in outcomes] == [None, Refusal.HELD, Refusal.ALREADY_YOURS]


# --- next


def test_next_takes_the_longest_waiting_task_first(desk: Desk, service: TransitionService) -> None:
    older, newer, oldest = desk.task(), desk.task(), desk.task()
    desk.execute("UPDATE dibs.task SET created_at = now() - interval '1 day' WHERE id = :id", id=oldest.id)
    taken = [service.claim_next([desk.queue.id], AMAL).task for _ in range(3)]
    assert [task.id for task in taken if task] == [oldest.id, older.id, newer.id]


def test_many_at_once_get_different_tasks_the_oldest_of_all(desk: Desk, service: TransitionService) -> None:
    tasks = [desk.task() for _ in range(15)]
    people = [AMAL, BILAL, *(f"U0P{n}" for n in range(10))]
    for person in people:
        desk.admit(person)
    outcomes = together(
        [lambda person=person: service.claim_next([desk.queue.id], person) for person in people]  # type: ignore[misc]
    )
    assert all(outcome.changed for outcome in outcomes)
    owners = {outcome.task.id: outcome.task.owner_id for outcome in outcomes if outcome.task}
    assert sorted(owners) == [task.id for task in tasks[: len(people)]]
    assert sorted(str(owner) for owner in owners.values()) == sorted(people)


def test_two_at_once_and_one_task(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    outcomes = together(
        [
            lambda: service.claim_next([desk.queue.id], AMAL, op_id="amal"),
            lambda: service.claim_next([desk.queue.id], BILAL, op_id="bilal"),
        ]
    )
    assert sorted(outcome.changed for outcome in outcomes) == [False, True]
    loser = next(outcome for outcome in outcomes if outcome.unchanged)
    assert loser.why is Refusal.NOTHING_WAITING
    assert events_of(desk, loser.op_id) == ["claim_rejected"]
    assert desk.kinds(task) == ["created", "claimed"]


def test_next_does_not_wait_for_a_task_that_somebody_else_is_taking(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    oldest, second = desk.task(), desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=oldest.id)
        got = service.claim_next([desk.queue.id], AMAL).task
    assert got is not None
    assert got.id == second.id


@pytest.mark.parametrize(("does", "why"), [(LOCK, None), (TAKE, Refusal.NOTHING_WAITING)])
def test_next_waits_where_somebody_else_has_the_only_task_and_is_told_the_truth(
    desk: Desk, service: TransitionService, database_url: str, does: LiteralString, why: Refusal | None
) -> None:
    """Nothing is waiting once it was taken; a lock alone, such as that of a refused press, is no claim."""
    task = desk.task()
    with holder(database_url) as somebody:
        somebody.do(does, id=task.id)
        pressed = Pressed(lambda: service.claim_next([desk.queue.id], AMAL))
        wait_for_waiters(database_url)
        somebody.commit()
        outcome = pressed.answer()
    assert (outcome.changed, outcome.why) == (why is None, why)


def test_next_passes_over_what_is_owned_done_or_in_another_queue(
    desk: Desk, service: TransitionService
) -> None:
    for state in (State.CLAIMED, State.STARTED, State.DONE):
        place(desk, state)
    outcome = service.claim_next([desk.queue.id], BILAL)
    assert (outcome.unchanged, outcome.why, outcome.task) == (True, Refusal.NOTHING_WAITING, None)
    desk.task()
    assert service.claim_next([desk.queue.id + 1], BILAL).unchanged
    assert service.claim_next([], BILAL).why is Refusal.NOTHING_WAITING


def test_a_next_that_found_nothing_finds_nothing_when_it_arrives_again(
    desk: Desk, service: TransitionService
) -> None:
    assert service.claim_next([desk.queue.id], AMAL, op_id="op").why is Refusal.NOTHING_WAITING
    nothing = service.claim_next([desk.queue.id], AMAL, op_id="op")
    assert (nothing.why, nothing.replayed) == (Refusal.NOTHING_WAITING, True)
    task = desk.task()
    again = service.claim_next([desk.queue.id], AMAL, op_id="op")
    assert (again.unchanged, again.why, again.replayed) == (True, Refusal.NOTHING_WAITING, True)
    assert desk.row_of(task)["state"] == "queued"


def test_the_last_task_is_told_again_to_who_got_it(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    first, again = (service.claim_next([desk.queue.id], AMAL, op_id="op") for _ in range(2))
    assert (first.changed, again.changed, again.replayed) == (True, True, True)
    assert again.task is not None
    assert again.task.id == task.id


def test_of_two_deliveries_of_one_next_neither_passes_over_what_the_other_is_about_to_take(
    desk: Desk, database_url: str
) -> None:
    longest, _ = desk.task(), desk.task()
    engine = make_engine(database_url, UNHURRIED, pool_size=2)
    patient = TransitionService(engine)

    def delivered() -> Outcome:
        return patient.claim_next([desk.queue.id], AMAL, op_id="op", deadline=Deadline.after(PATIENCE))

    with holder(database_url) as somebody:
        somebody.do("SELECT FROM dibs.card WHERE task_id = %(id)s FOR UPDATE", id=longest.id)
        first = Pressed(delivered)
        wait_for_waiters(database_url)
        again = Pressed(delivered)
        wait_for_waiters(database_url, 2)
        # The first comes to nothing, so that the second decides.
        desk.execute(
            "SELECT pg_cancel_backend((SELECT pid FROM pg_locks WHERE NOT granted "
            "ORDER BY waitstart LIMIT 1))"
        )
        assert first.answer().why is Refusal.BUSY
        somebody.rollback()
        taken = again.answer().task
    engine.dispose()
    assert taken is not None
    assert taken.id == longest.id
