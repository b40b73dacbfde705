"""Who may claim: an eligible person is never refused, and a refusal names the rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from tests.support.holders import LOCK, Pressed, holder, wait_for_waiters
from tests.support.journey import events_of, newest_event, now, place
from tests.support.store import AMAL, SUE, Desk

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import Standing, State
from dibs.service.transitions import TransitionService

NEWCOMER = "U0NEWCOMER"

RULES = [
    (Standing.ELIGIBLE, None),
    (Standing.LEFT, Refusal.NOT_A_MEMBER),
    (None, Refusal.NOT_A_MEMBER),
    (Standing.BOT, Refusal.BOT),
    (Standing.OTHER_WORKSPACE, Refusal.OTHER_WORKSPACE),
    (Standing.DEACTIVATED, Refusal.DEACTIVATED),
    (Standing.UNVERIFIED, Refusal.MEMBERSHIP_UNKNOWN),
]
PRESSES: dict[str, Callable[[TransitionService, Desk, int], Outcome]] = {
    "claim": lambda s, _, task: s.claim(task, NEWCOMER, 1, op_id="op"),
    "claim_next": lambda s, desk, _: s.claim_next([desk.queue.id], NEWCOMER, op_id="op"),
}


class Directory:
    """Finds out that people have `found` standing, or that it cannot be found out."""

    def __init__(self, desk: Desk, found: Standing | None, *, fails: bool = False) -> None:
        self._desk = desk
        self._found = found
        self._fails = fails
        self.asked: list[tuple[int, str]] = []

    def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
        assert deadline.remaining > 0
        self.asked.append((queue_id, user_id))
        if self._fails:
            raise LookUpFailed("Slack does not answer")
        if self._found is not None:
            self._desk.admit(user_id, self._found)


@pytest.mark.parametrize("supervisor", [False, True])
@pytest.mark.parametrize(("standing", "why"), RULES)
@pytest.mark.parametrize("operation", PRESSES)
def test_the_role_matrix(
    desk: Desk,
    service: TransitionService,
    operation: str,
    standing: Standing | None,
    why: Refusal | None,
    supervisor: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Being a supervisor neither helps nor hinders."""
    if standing is not None:
        desk.admit(NEWCOMER, standing, supervisor=supervisor)
    task = desk.task()
    outcome = PRESSES[operation](service, desk, task.id)
    assert (outcome.changed, outcome.why) == (why is None, why)
    assert now(desk, task).owner_id == (NEWCOMER if why is None else None)
    assert events_of(desk, "op") == ["claim_rejected" if why else "claimed"]
    event = desk.rows("SELECT * FROM dibs.event WHERE op_id = 'op'")[0]
    assert (event["actor_id"], event["why"]) == (NEWCOMER, why)


@pytest.mark.parametrize("known", [None, Standing.UNVERIFIED])
@pytest.mark.parametrize(("found", "why"), [rule for rule in RULES if rule[0]])
@pytest.mark.parametrize("operation", PRESSES)
def test_nobody_is_refused_before_being_looked_up_afresh(
    desk: Desk,
    engine: sa.Engine,
    operation: str,
    known: Standing | None,
    found: Standing,
    why: Refusal | None,
) -> None:
    if known is not None:
        desk.admit(NEWCOMER, known)
    directory = Directory(desk, found)
    service = TransitionService(engine, membership=directory)
    task = desk.task()
    outcome = PRESSES[operation](service, desk, task.id)
    assert directory.asked == [(desk.queue.id, NEWCOMER)]
    assert (outcome.changed, outcome.why) == (why is None, why)
    # A look-up that turns a refusal into a success leaves no refusal behind.
    assert events_of(desk, "op") == ["claim_rejected" if why else "claimed"]
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind <> 'created'") == 1


@pytest.mark.parametrize("operation", PRESSES)
def test_what_cannot_be_found_out_is_a_refusal_that_says_so(
    desk: Desk, engine: sa.Engine, operation: str
) -> None:
    service = TransitionService(engine, membership=Directory(desk, None, fails=True))
    task = desk.task()
    outcome = PRESSES[operation](service, desk, task.id)
    assert (outcome.unchanged, outcome.why) == (True, Refusal.MEMBERSHIP_UNKNOWN)
    assert events_of(desk, "op") == ["claim_rejected"]


@pytest.mark.parametrize("operation", PRESSES)
def test_who_is_known_to_be_eligible_is_not_looked_up(desk: Desk, engine: sa.Engine, operation: str) -> None:
    desk.admit(NEWCOMER)
    directory = Directory(desk, None, fails=True)
    task = desk.task()
    assert PRESSES[operation](TransitionService(engine, membership=directory), desk, task.id).changed
    assert directory.asked == []


def test_a_failed_look_up_does_not_refuse_who_became_eligible_meanwhile(
    desk: Desk, engine: sa.Engine
) -> None:
    class JoinsDuringTheLookUp(Directory):
        def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
            desk.admit(user_id)
            super().look_up(queue_id, user_id, deadline)

    task = desk.task()
    directory = JoinsDuringTheLookUp(desk, None, fails=True)
    assert TransitionService(engine, membership=directory).claim(task.id, NEWCOMER, 1).changed


def test_a_refusal_for_another_reason_needs_no_look_up(desk: Desk, engine: sa.Engine) -> None:
    directory = Directory(desk, None, fails=True)
    service = TransitionService(engine, membership=directory)
    held, done, queued = (place(desk, state) for state in (State.CLAIMED, State.DONE, State.QUEUED))
    assert service.claim(held.id, NEWCOMER, held.version).why is Refusal.HELD
    assert service.claim(done.id, NEWCOMER, done.version).why is Refusal.ALREADY_DONE
    assert service.claim(queued.id, NEWCOMER, queued.version - 1).why is Refusal.STALE
    assert directory.asked == []
    assert newest_event(desk, held)["why"] == "held"


def test_a_claim_that_is_delivered_again_after_its_refusal_stays_refused(
    desk: Desk, engine: sa.Engine
) -> None:
    task = desk.task()
    outsider = TransitionService(engine, membership=Directory(desk, Standing.LEFT))
    assert outsider.claim(task.id, NEWCOMER, 1, op_id="op").why is Refusal.NOT_A_MEMBER
    joined = TransitionService(engine, membership=Directory(desk, Standing.ELIGIBLE))
    again = joined.claim(task.id, NEWCOMER, 1, op_id="op")
    assert (again.unchanged, again.why, again.replayed) == (True, Refusal.NOT_A_MEMBER, True)
    assert now(desk, task).state is State.QUEUED


def test_eligible_in_one_queue_is_not_eligible_in_another(desk: Desk, service: TransitionService) -> None:
    desk.admit(NEWCOMER)
    desk.execute(
        "INSERT INTO dibs.queue (workspace, key, name, channel_id, lease_seconds, created_by) "
        "VALUES ('T0TEST', 'OPS', 'Operations', 'C0OPS', 60, 'U0SUE')"
    )
    other = desk.value("SELECT id FROM dibs.queue WHERE key = 'OPS'")
    added = desk.queues.add_task(other, "Restart it", SUE, op_id="ops")
    assert added is not None
    assert service.claim(added.task.id, NEWCOMER, 1).why is Refusal.NOT_A_MEMBER
    assert service.claim_next([other], NEWCOMER).why is Refusal.NOT_A_MEMBER
    mine = desk.task()
    got = service.claim_next([other, desk.queue.id], NEWCOMER).task
    assert got is not None
    assert got.id == mine.id


def test_who_leaves_keeps_what_they_hold_and_can_finish_it(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    """Membership is asked for at the claim; work that is under way is not lost."""
    task = place(desk, State.STARTED)
    desk.admit(AMAL, Standing.LEFT)
    assert service.note(task.id, AMAL, task.version, "nearly there").changed
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: service.done(task.id, AMAL, task.version + 1))
        wait_for_waiters(database_url)
        somebody.rollback()
        assert pressed.answer().changed


@pytest.mark.parametrize("standing", [Standing.LEFT, Standing.ELIGIBLE, None])
def test_only_a_supervisor_of_this_queue_checks_what_others_own(
    desk: Desk, service: TransitionService, standing: Standing | None
) -> None:
    task = place(desk, State.CLAIMED, needs_check=True)
    if standing is not None:
        desk.admit(NEWCOMER, standing)
    assert service.check(task.id, NEWCOMER, task.version).why is Refusal.NOT_ALLOWED
    desk.admit(NEWCOMER, standing or Standing.LEFT, supervisor=True)
    assert service.check(task.id, NEWCOMER, task.version).changed
