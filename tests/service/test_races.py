"""Presses that wait for somebody else's lock: what counts is the row as it stands once the lock is theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import pytest
from tests.support.holders import (
    LOCK,
    TOUCH,
    Holder,
    Pressed,
    holder,
    wait_for_lease_end,
    wait_for_waiters,
)
from tests.support.journey import (
    add_action,
    count_events,
    newest_event,
    now,
    place,
    whole_row,
)
from tests.support.store import AMAL, BILAL, DANA, HANA, MAREK, SUE, Desk

from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import ActionStatus, State, Task
from dibs.service.transitions import TransitionService
from dibs.store.engine import PRESS, make_engine

HOLDERS = [
    pytest.param(LOCK, Holder.rollback, id="locks, rolls back"),
    pytest.param(LOCK, Holder.commit, id="locks, commits"),
    pytest.param(TOUCH, Holder.rollback, id="updates, rolls back"),
    pytest.param(TOUCH, Holder.commit, id="updates, commits"),
]
NEEDS_A_LEASE: dict[str, tuple[State, Callable[[TransitionService, Task], Outcome]]] = {
    "start": (State.CLAIMED, lambda s, t: s.start(t.id, AMAL, t.version)),
    "renew": (State.STARTED, lambda s, t: s.renew(t.id, AMAL, t.version)),
    "record_action": (State.STARTED, lambda s, t: s.record_action(t.id, AMAL, t.version, "refund")),
}


def _end_lease_in(desk: Desk, task: Task, seconds: float) -> None:
    desk.execute(
        "UPDATE dibs.task SET lease_until = clock_timestamp() + make_interval(secs => :s) WHERE id = :id",
        s=seconds,
        id=task.id,
    )


@pytest.mark.parametrize(("hold", "let_go"), HOLDERS)
@pytest.mark.parametrize("operation", NEEDS_A_LEASE)
def test_a_lease_that_ends_during_the_wait_for_the_lock_has_ended(
    desk: Desk,
    service: TransitionService,
    database_url: str,
    operation: str,
    hold: LiteralString,
    let_go: Callable[[Holder], None],
) -> None:
    state, press = NEEDS_A_LEASE[operation]

    def lapses(seconds: float) -> tuple[Task, Outcome, bool]:
        """What a press came to, and whether the lease still ran when its wait had begun."""
        task = place(desk, state)
        _end_lease_in(desk, task, seconds)
        still_runs = "SELECT lease_until > clock_timestamp() FROM dibs.task WHERE id = :id"
        with holder(database_url) as somebody:
            somebody.do(hold, id=task.id)
            pressed = Pressed(lambda: press(service, task))
            wait_for_waiters(database_url)
            ran = desk.value(still_runs, id=task.id)
            wait_for_lease_end(database_url, task.id)
            let_go(somebody)
            return task, pressed.answer(), ran

    task, outcome, ran = lapses(0.35)
    # A busy machine may take so long that the wait begins after the lease's end, or is over before it.
    for seconds in (0.6, 0.6, 0.9):
        if not ran or outcome.why is Refusal.BUSY:
            task, outcome, ran = lapses(seconds)
    assert ran
    assert (outcome.unchanged, outcome.why) == (True, Refusal.LEASE_ENDED)
    stands = now(desk, task)
    assert (stands.state, stands.version) == (task.state, task.version)
    assert newest_event(desk, task)["kind"] == f"{operation}_rejected"


@pytest.mark.parametrize(("hold", "let_go"), HOLDERS)
def test_waiting_behind_somebody_is_no_refusal(
    desk: Desk,
    service: TransitionService,
    database_url: str,
    hold: LiteralString,
    let_go: Callable[[Holder], None],
) -> None:
    task = place(desk, State.CLAIMED)
    with holder(database_url) as somebody:
        somebody.do(hold, id=task.id)
        pressed = Pressed(lambda: service.start(task.id, AMAL, task.version))
        wait_for_waiters(database_url)
        let_go(somebody)
        assert pressed.answer().changed
    assert now(desk, task).state is State.STARTED


OPEN_CLAIM = "the claim whose transaction stays open"
HOLD_OPEN = f"""
CREATE FUNCTION hold_open() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(52);
    IF current_setting('application_name') = 'rolls back' THEN RAISE 'rolled back'; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold_open AFTER INSERT ON dibs.event DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.op_id = '{OPEN_CLAIM}') EXECUTE FUNCTION hold_open()"""
"""Lets a claim of the service's do everything but commit until an advisory lock is given up."""


@pytest.mark.parametrize(("first", "second"), [(HANA, MAREK), (MAREK, HANA)])
@pytest.mark.parametrize("ends", ["commits", "rolls back"])
def test_of_two_overlapped_claims_the_first_to_reach_the_row_wins(
    desk: Desk, service: TransitionService, database_url: str, first: str, second: str, ends: str
) -> None:
    task = desk.task("Q-52")
    desk.execute(HOLD_OPEN)
    engine = make_engine(database_url, PRESS, pool_size=1, name=ends)
    with holder(database_url) as gate:
        gate.do("SELECT pg_advisory_xact_lock(52)")
        open_claim = Pressed(lambda: TransitionService(engine).claim(task.id, first, 1, op_id=OPEN_CLAIM))
        wait_for_waiters(database_url)
        competing = Pressed(lambda: service.claim(task.id, second, 1))
        wait_for_waiters(database_url, 2)
        assert not open_claim.answered
        assert not competing.answered
        assert now(desk, task).state is State.QUEUED
        gate.commit()
        outcomes = open_claim.answer(), competing.answer()
    engine.dispose()
    owner = first if ends == "commits" else second
    assert [outcome.changed for outcome in outcomes] == [owner == first, owner == second]
    assert outcomes[1].why is (Refusal.HELD if owner == first else None)
    assert outcomes[1].task is not None
    assert (outcomes[1].task.owner_id, outcomes[1].task.version) == (owner, 2)
    assert desk.kinds(task).count("claimed") == 1
    assert now(desk, task).owner_id == owner


def test_neither_a_stale_page_nor_a_direct_claim_takes_over_an_assigned_task(
    desk: Desk, service: TransitionService
) -> None:
    q53 = desk.task("Q-53")
    assert service.claim(q53.id, DANA, 1).changed
    before = whole_row(desk, q53)
    for person in (HANA, MAREK, SUE, "U0NOBODY"):
        for version in (1, 2, 3):
            outcome = service.claim(q53.id, person, version)
            assert (outcome.unchanged, outcome.why) == (True, Refusal.HELD)
            assert outcome.task is not None
            assert outcome.task.owner_id == DANA
    assert whole_row(desk, q53) == before
    assert desk.kinds(q53).count("claim_rejected") == 12


LEAVES = "UPDATE dibs.queue_member SET standing = 'left' WHERE user_id = %(who)s"
IS_DELETED = "DELETE FROM dibs.queue_member WHERE user_id = %(who)s"


@pytest.mark.parametrize("removal", [LEAVES, IS_DELETED], ids=["leaves", "row deleted"])
def test_who_is_removed_while_the_claim_waits_for_the_task_does_not_get_it(
    desk: Desk, service: TransitionService, database_url: str, removal: LiteralString
) -> None:
    task = desk.task()
    with holder(database_url) as somebody, holder(database_url) as admin:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: service.claim(task.id, AMAL, 1))
        wait_for_waiters(database_url)
        admin.do(removal, who=AMAL)
        admin.commit()
        somebody.rollback()
        outcome = pressed.answer()
    assert (outcome.unchanged, outcome.why) == (True, Refusal.NOT_A_MEMBER)
    assert now(desk, task).state is State.QUEUED


@pytest.mark.parametrize("removal", [LEAVES, IS_DELETED], ids=["leaves", "row deleted"])
@pytest.mark.parametrize("ends", [Holder.commit, Holder.rollback])
@pytest.mark.parametrize("which", ["claim", "claim_next"])
def test_a_claim_waits_for_a_removal_that_is_under_way(
    desk: Desk,
    service: TransitionService,
    database_url: str,
    removal: LiteralString,
    ends: Callable[[Holder], None],
    which: str,
) -> None:
    task = desk.task()
    presses: dict[str, Callable[[], Outcome]] = {
        "claim": lambda: service.claim(task.id, AMAL, 1),
        "claim_next": lambda: service.claim_next([desk.queue.id], AMAL),
    }
    with holder(database_url) as admin:
        admin.do(removal, who=AMAL)
        pressed = Pressed(presses[which])
        wait_for_waiters(database_url)
        ends(admin)
        outcome = pressed.answer()
    stayed = ends is Holder.rollback
    assert outcome.changed is stayed
    assert outcome.why is (None if stayed else Refusal.NOT_A_MEMBER)
    assert now(desk, task).owner_id == (AMAL if stayed else None)


def test_a_supervisor_who_is_no_longer_one_checks_nothing(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = place(desk, State.QUEUED, needs_check=True)
    with holder(database_url) as somebody, holder(database_url) as admin:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: service.check(task.id, SUE, task.version))
        wait_for_waiters(database_url)
        admin.do("UPDATE dibs.queue_member SET supervisor = false WHERE user_id = %(who)s", who=SUE)
        admin.commit()
        somebody.rollback()
        assert pressed.answer().why is Refusal.NOT_ALLOWED
    assert now(desk, task).needs_check


# --- the event and the row say the same, also where the row changed during the wait


def test_the_longest_waiting_task_is_claimed_also_if_it_changed_during_the_wait(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = place(desk, State.QUEUED, needs_check=True)
    with holder(database_url) as admin:
        admin.do("UPDATE dibs.queue_member SET changed_at = now() WHERE user_id = %(who)s", who=AMAL)
        pressed = Pressed(lambda: service.claim_next([desk.queue.id], AMAL))
        wait_for_waiters(database_url)
        assert service.check(task.id, SUE, task.version).changed
        admin.rollback()
        outcome = pressed.answer()
    assert outcome.changed
    stands = now(desk, task)
    assert (stands.owner_id, stands.version) == (AMAL, task.version + 2)
    assert desk.kinds(task) == ["created", "checked", "claimed"]


GUESSES: dict[str, tuple[State, Callable[[TransitionService, Task], Outcome]]] = {
    "claim": (State.QUEUED, lambda s, t: s.claim(t.id, AMAL, t.version + 1)),
    "start": (State.CLAIMED, lambda s, t: s.start(t.id, AMAL, t.version + 1)),
    "done": (State.STARTED, lambda s, t: s.done(t.id, AMAL, t.version + 1)),
    "note": (State.STARTED, lambda s, t: s.note(t.id, AMAL, t.version + 1, "text")),
}


@pytest.mark.parametrize("operation", GUESSES)
def test_a_version_that_nobody_has_seen_yet_is_stale(
    desk: Desk, service: TransitionService, database_url: str, operation: str
) -> None:
    state, press = GUESSES[operation]
    task = place(desk, state)
    with holder(database_url) as somebody:
        somebody.do("UPDATE dibs.task SET version = version + 1 WHERE id = %(id)s", id=task.id)
        somebody.do(
            "INSERT INTO dibs.external_action (task_id, number, version, description, status, recorded_by) "
            "VALUES (%(id)s, 1, 8, 'refund', 'in_progress', 'U0AMAL')",
            id=task.id,
        )
        pressed = Pressed(lambda: press(service, task))
        wait_for_waiters(database_url)
        somebody.commit()
        outcome = pressed.answer()
    assert (outcome.unchanged, outcome.why) == (True, Refusal.STALE)
    stands = now(desk, task)
    assert (stands.state, stands.version) == (task.state, task.version + 1)
    assert newest_event(desk, task)["kind"] == f"{operation}_rejected"


def test_many_changes_at_once_are_all_counted(desk: Desk, service: TransitionService) -> None:
    """Each note takes the version that it was written on; of two with the same one, one is stale."""
    task = place(desk, State.STARTED)

    def write(_: int) -> int:
        written = 0
        while written < 5:
            written += service.note(task.id, AMAL, now(desk, task).version, "text").changed
        return written

    pressed = [Pressed(lambda: write(0)) for _ in range(4)]
    assert sum(press.answer() for press in pressed) == 20
    assert now(desk, task).version == task.version + 20
    assert desk.kinds(task).count("noted") == 20


def test_done_does_not_overlook_an_action_recorded_during_its_wait(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = place(desk, State.STARTED)
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        recorded = Pressed(lambda: service.record_action(task.id, AMAL, task.version, "refund"))
        wait_for_waiters(database_url)
        done = Pressed(lambda: service.done(task.id, AMAL, task.version))
        wait_for_waiters(database_url, 2)
        somebody.rollback()
        answers = (recorded.answer(), done.answer())
    assert sorted(answer.changed for answer in answers) == [False, True]
    if answers[0].changed:
        assert now(desk, task).state is State.STARTED
        assert desk.value("SELECT status FROM dibs.external_action") == ActionStatus.IN_PROGRESS
    assert count_events(desk, task) == 3


def test_a_busy_row_is_told_as_busy_and_leaves_nothing(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = desk.task()
    events = count_events(desk, task)
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        outcome = service.claim(task.id, AMAL, 1, op_id="busy")
        assert (outcome.unchanged, outcome.why) == (True, Refusal.BUSY)
    assert (count_events(desk, task), now(desk, task).version) == (events, 1)
    assert service.claim(task.id, AMAL, 1, op_id="busy").changed


def test_a_wait_of_nearly_a_second_behind_another_press_succeeds(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    task = desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: service.claim(task.id, AMAL, 1))
        wait_for_waiters(database_url)
        # Not longer, however long it took to see that it waits: at 1.2 seconds it would be told to be busy.
        desk.execute(
            "SELECT pg_sleep(greatest(0, 0.9 - extract(epoch FROM clock_timestamp() - min(waitstart)))) "
            "FROM pg_locks WHERE NOT granted"
        )
        assert not pressed.answered
        somebody.rollback()
        assert pressed.answer().changed


def test_actions_that_the_holder_settled_are_not_settled_again(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED)
    action = add_action(desk, task)
    answers = [
        Pressed(lambda: service.resolve_action(task.id, AMAL, task.version, action, ActionStatus.COMPLETED))
        for _ in range(4)
    ]
    whys = [press.answer().why for press in answers]
    assert sorted(whys, key=str) == [None, Refusal.STALE, Refusal.STALE, Refusal.STALE]


def test_two_people_claim_two_tasks_at_the_same_moment_without_waiting(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    first, second = desk.task(), desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=first.id)
        assert service.claim(second.id, BILAL, 1).changed
