"""The lease review, counted from events that the operations wrote and from some at chosen times."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from datetime import timedelta

import pytest
import sqlalchemy as sa
from tests.support.store import AMAL, BILAL, SUE, Desk, open_desk

from dibs.deadline import Deadline
from dibs.domain.errors import Busy, LookUpFailed
from dibs.domain.leases import Advice, LeaseReview
from dibs.domain.task import ExternalAnswer, Reason, Standing, Task
from dibs.service.members import MembershipService
from dibs.service.reports import ReportService
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store.guard import Guard

MINUTE = 60
_numbers = itertools.count(1)


class People:
    """A directory in which the people in `present` are in every channel."""

    def __init__(self, *present: str) -> None:
        self.present = present
        self.answers = True

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:  # noqa: ARG002
        return self.present

    def group_members(self, group_id: str, deadline: Deadline) -> set[str]:  # noqa: ARG002
        return set()

    def has_member(self, channel_id: str, user_id: str, deadline: Deadline) -> bool:  # noqa: ARG002
        if not self.answers:
            raise LookUpFailed("no answer")
        return user_id in self.present

    def standing(self, workspace: str, user_id: str, deadline: Deadline) -> Standing:  # noqa: ARG002
        return Standing.BOT if user_id.endswith("BOT") else Standing.ELIGIBLE


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def reports(engine: sa.Engine, people: People) -> ReportService:
    guard = Guard(engine)
    return ReportService(guard, MembershipService(guard, people))


def happened(desk: Desk, *steps: tuple[str, float], days_ago: float = 1) -> None:
    """A task with these kinds of events, each so many minutes after `days_ago`."""
    task = desk.task()
    begun = desk.value("SELECT clock_timestamp()") - timedelta(days=days_ago)
    for version, (kind, minutes) in enumerate(steps, 1):
        desk.execute(
            "INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, "
            "op_id) VALUES (:q, :t, :kind, :who, :at, :v, :v + 1, :op)",
            q=desk.queue.id,
            t=task.id,
            kind=kind,
            who=AMAL,
            at=begun + timedelta(minutes=minutes),
            v=version,
            op=f"at-{next(_numbers)}",
        )


def review(desk: Desk, reports: ReportService, days: int = 30) -> LeaseReview:
    return reports.lease_review(desk.queue, days)


def test_a_queue_without_events_is_empty(desk: Desk, reports: ReportService) -> None:
    desk.task()
    found = review(desk, reports)
    assert found.empty
    assert found.suggestion.advice is Advice.TOO_FEW
    assert len(found.by_day) == 31


def test_what_the_operations_write_is_counted(
    desk: Desk, service: TransitionService, reports: ReportService, engine: sa.Engine
) -> None:
    done, expired, returned, unknown = (desk.task(f"Task {number}") for number in range(4))

    def claim_and_start(task: Task) -> None:
        assert service.claim(task.id, AMAL, 1, op_id=f"claim-{task.id}").changed
        assert service.start(task.id, AMAL, 2, op_id=f"start-{task.id}").changed

    for task in (done, expired, unknown):
        claim_and_start(task)
    assert service.renew(done.id, AMAL, 3, op_id="renew").changed
    assert service.done(done.id, AMAL, 4, op_id="done").changed
    desk.end_lease(expired)
    assert len(SweepService(Guard(engine)).sweep_once()) == 1
    assert service.claim(returned.id, BILAL, 1, op_id="claim-r").changed
    assert service.release(returned.id, BILAL, 2, op_id="r", reason=Reason.OUT_OF_SCOPE).changed
    assert service.release(
        unknown.id, AMAL, 3, op_id="u", reason=Reason.SHIFT_ENDING, handoff_note="It hangs",
        external_action=ExternalAnswer.UNKNOWN,
    ).changed  # fmt: skip
    found = review(desk, reports)
    assert (found.to_start.count, found.to_start.finished) == (4, 3)
    assert (found.to_done.count, found.to_done.finished) == (3, 1)
    assert (found.whole.count, found.whole.finished) == (4, 1)
    assert (found.expired, found.flagged) == (1, 2)
    assert {kind: found.kinds[kind] for kind in ("claimed", "renewed", "released", "done")} == {
        "claimed": 4, "renewed": 1, "released": 2, "done": 1,
    }  # fmt: skip
    assert found.reasons == (("out_of_scope", 1), ("shift_ending", 1))
    assert found.by_day[-1].expired + found.by_day[-2].expired == 1


def test_lengths_are_those_between_the_events(desk: Desk, reports: ReportService) -> None:
    happened(desk, ("claimed", 0), ("started", 4), ("noted", 5), ("renewed", 9), ("done", 50))
    happened(desk, ("claimed", 0), ("started", 10), ("expired", 31))
    happened(desk, ("claimed", 0), ("expired", 30.2))
    found = review(desk, reports)
    assert [(one.seconds, one.finished) for one in found.to_start.observations] == [
        (4 * MINUTE, True), (10 * MINUTE, True), (30 * MINUTE + 12, False),
    ]  # fmt: skip
    assert [(one.seconds, one.finished) for one in found.to_done.observations] == [
        (21 * MINUTE, False), (46 * MINUTE, True),
    ]  # fmt: skip
    assert [(one.seconds, one.finished) for one in found.whole.observations] == [
        (30 * MINUTE + 12, False), (31 * MINUTE, False), (50 * MINUTE, True),
    ]  # fmt: skip
    assert found.whole.outlasted == 3


def test_each_hold_of_a_task_counts_by_itself(desk: Desk, reports: ReportService) -> None:
    happened(desk, ("claimed", 0), ("released", 3), ("claimed", 10), ("started", 12), ("expired", 40),
             ("claimed", 60), ("started", 61), ("done", 66))  # fmt: skip
    found = review(desk, reports)
    assert [(one.seconds / MINUTE, one.finished) for one in found.whole.observations] == [
        (3, False), (6, True), (30, False),
    ]  # fmt: skip


def test_a_transfer_ends_one_hold_and_begins_the_next(desk: Desk, reports: ReportService) -> None:
    happened(desk, ("claimed", 0), ("started", 2), ("transferred", 20), ("started", 25), ("done", 30))
    found = review(desk, reports)
    assert [(one.seconds / MINUTE, one.finished) for one in found.whole.observations] == [
        (10, True), (20, False),
    ]  # fmt: skip
    assert [one.seconds / MINUTE for one in found.to_start.observations] == [2, 5]


def test_what_goes_on_counts_until_now_and_what_began_before_does_not_count(
    desk: Desk, reports: ReportService
) -> None:
    happened(desk, ("claimed", 0), days_ago=1 / 24)
    happened(desk, ("claimed", 0), ("started", 60), ("done", 2 * 24 * 60), days_ago=8)
    found = review(desk, reports, days=7)
    (going_on,) = found.whole.observations
    assert not going_on.finished
    assert 60 <= going_on.seconds / MINUTE <= 62
    assert review(desk, reports, days=9).whole.finished == 1


def test_an_action_recorded_since_the_last_check_flags_what_runs_out_unstarted(
    desk: Desk, reports: ReportService
) -> None:
    happened(desk, ("claimed", 0), ("started", 1), ("action_recorded", 2), ("released", 3), ("claimed", 4),
             ("expired", 34))  # fmt: skip
    happened(desk, ("claimed", 0), ("started", 1), ("action_recorded", 2), ("released", 3), ("checked", 4),
             ("claimed", 5), ("expired", 35))  # fmt: skip
    happened(desk, ("claimed", 0), ("expired", 30))
    found = review(desk, reports)
    assert (found.expired, found.flagged) == (3, 1)


def test_a_task_that_was_made_by_hand_and_runs_out_started_is_flagged(
    desk: Desk, engine: sa.Engine, reports: ReportService
) -> None:
    desk.execute(
        "INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, version, created_by) "
        "SELECT :queue, n, 'By hand', s, :amal, clock_timestamp(), 3, :amal "
        "FROM (VALUES (1, 'started'), (2, 'claimed')) AS v (n, s)",
        queue=desk.queue.id, amal=AMAL,
    )  # fmt: skip
    assert len(SweepService(Guard(engine)).sweep_once()) == 2
    found = review(desk, reports)
    assert (found.expired, found.flagged) == (2, 1)


def test_what_supervisors_take_away_is_counted_and_flagged_as_an_expiry_is(
    desk: Desk, service: TransitionService, reports: ReportService
) -> None:
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    for number, started in enumerate((False, True)):
        transferred, forced = desk.task(f"Transfer {number}"), desk.task(f"Force {number}")
        for task in (transferred, forced):
            assert service.claim(task.id, AMAL, 1, op_id=f"claim-{task.id}").changed
            if started:
                assert service.start(task.id, AMAL, 2, op_id=f"start-{task.id}").changed
        version = 2 + started
        assert service.transfer(
            transferred.id, SUE, version, BILAL, reason="Amal is ill", op_id=f"transfer-{number}"
        ).changed
        assert service.force_release(
            forced.id, SUE, version, reason=Reason.SHIFT_ENDING, handoff_note="See the mail",
            op_id=f"force-{number}",
        ).changed  # fmt: skip
    found = review(desk, reports)
    flagged = desk.value("SELECT count(*) FROM dibs.task WHERE needs_check")
    assert found.flagged == flagged == 2
    assert (found.kinds["transferred"], found.kinds["force_released"]) == (2, 2)
    assert (found.whole.count, found.whole.finished) == (6, 0)
    assert found.reasons == (("shift_ending", 2),)


def test_every_day_is_there_and_has_its_own(desk: Desk, reports: ReportService) -> None:
    for days_ago in (2, 2, 5):
        happened(desk, ("claimed", 0), ("expired", 30), days_ago=days_ago)
    found = review(desk, reports, days=7)
    assert len(found.by_day) == 8
    assert [one.day for one in found.by_day] == sorted({one.day for one in found.by_day})
    assert sorted(one.expired for one in found.by_day if one.expired) == [1, 2]


def test_another_queue_and_refusals_are_left_out(
    desk: Desk, service: TransitionService, reports: ReportService, engine: sa.Engine
) -> None:
    other = open_desk(engine, key="BIL")
    happened(other, ("claimed", 0), ("started", 4), ("done", 9))
    task = desk.task()
    assert service.claim(task.id, AMAL, 1, op_id="one").changed
    assert not service.claim(task.id, BILAL, 1, op_id="two").changed
    found = review(desk, reports)
    assert (found.whole.count, found.whole.finished) == (1, 0)
    assert dict(found.kinds) == {"claimed": 1}


def test_a_lease_is_suggested_from_enough_holds(desk: Desk, reports: ReportService) -> None:
    for number in range(20):
        happened(desk, ("claimed", 0), ("started", 1), ("done", 35 + number / 10))
    found = review(desk, reports)
    assert (found.suggestion.advice, found.suggestion.seconds) == (Advice.LENGTHEN, 45 * MINUTE)
    assert found.suggestion.finished == 20


def test_a_clock_that_ran_backwards_makes_no_length_below_zero(desk: Desk, reports: ReportService) -> None:
    happened(desk, ("claimed", 10), ("started", 4), ("done", 3))
    found = review(desk, reports)
    assert [one.seconds for one in found.whole.observations] == [0]


def test_a_period_is_1_to_365_days(desk: Desk, reports: ReportService) -> None:
    for days in (0, -1, 366):
        with pytest.raises(ValueError, match="1 to 365"):
            review(desk, reports, days)
    assert review(desk, reports, 365).empty


def test_what_takes_too_long_is_told_as_such(desk: Desk, reports: ReportService) -> None:
    guard = Guard(desk.engine)
    until = Deadline.after(0.49)
    slow = ReportService(guard, MembershipService(guard, People()))
    with pytest.raises(Busy):
        slow.lease_review(desk.queue, 30, deadline=until)
    assert reports.lease_review(desk.queue, 30).empty


def test_members_and_supervisors_may_read_it(desk: Desk, reports: ReportService, people: People) -> None:
    people.present = ("U0NEW", "U0BOT")
    assert reports.may_read(desk.queue.id, AMAL)
    assert reports.may_read(desk.queue.id, SUE)
    assert reports.may_read(desk.queue.id, "U0NEW")
    assert not reports.may_read(desk.queue.id, "U0BOT")
    assert not reports.may_read(desk.queue.id, "U0STRANGER")
    people.answers = False
    assert reports.may_read(desk.queue.id, AMAL)
    with pytest.raises(LookUpFailed):
        reports.may_read(desk.queue.id, "U0ANOTHER")
