"""Renewing has an end where a queue sets one: however often, nobody keeps a task longer than that."""

from __future__ import annotations

import pytest
from tests.support.journey import lapse, now, place, whole_row
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.domain.outcomes import Refusal
from dibs.domain.task import State, Task
from dibs.service.transitions import TransitionService

HOUR = 3600


def _limit(desk: Desk, seconds: int | None, lease: int = 1800) -> None:
    desk.execute("UPDATE dibs.queue SET longest_hold_seconds = :s, lease_seconds = :l", s=seconds, l=lease)


def _held_for(desk: Desk, task: Task, minutes: int, left: int = 10) -> None:
    """The owner has had the task for so long, and the lease goes on for `left` minutes."""
    desk.execute(
        "UPDATE dibs.task SET held_since = now() - make_interval(mins => :m), "
        "lease_until = now() + make_interval(mins => :l) WHERE id = :id",
        m=minutes,
        l=left,
        id=task.id,
    )


def _times(desk: Desk, task: Task) -> tuple[float | None, float | None]:
    """The seconds from the last change to the end of the lease, and from the beginning of the hold to it."""
    [row] = desk.rows(
        "SELECT extract(epoch FROM lease_until - last_at) AS lease, "
        "extract(epoch FROM lease_until - held_since) AS hold FROM dibs.task WHERE id = :id",
        id=task.id,
    )
    lease, hold = (None if row[name] is None else float(row[name]) for name in ("lease", "hold"))
    return lease, hold


def test_the_last_renewal_ends_with_the_hold_and_the_next_is_refused(
    desk: Desk, service: TransitionService
) -> None:
    _limit(desk, HOUR)
    task = place(desk, State.STARTED)
    _held_for(desk, task, 20)
    assert service.renew(task.id, AMAL, 7).changed
    assert _times(desk, task)[0] == 1800
    _held_for(desk, task, 45)
    assert service.renew(task.id, AMAL, 8).changed
    assert _times(desk, task)[1] == HOUR
    before = whole_row(desk, task)
    assert service.renew(task.id, AMAL, 9).why is Refusal.HELD_TOO_LONG
    assert whole_row(desk, task) == before


def test_a_lease_that_is_longer_than_the_hold_is_cut_from_the_claim_on(
    desk: Desk, service: TransitionService
) -> None:
    _limit(desk, 600)
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    assert _times(desk, task) == (600, 600)
    assert service.renew(task.id, AMAL, 2).why is Refusal.HELD_TOO_LONG


@pytest.mark.parametrize("left", [10, 120])
def test_a_limit_that_is_set_later_ends_no_lease_and_lengthens_none(
    desk: Desk, service: TransitionService, left: int
) -> None:
    task = place(desk, State.STARTED)
    _held_for(desk, task, 180, left)
    _limit(desk, HOUR)
    before = whole_row(desk, task)
    assert service.renew(task.id, AMAL, 7).why is Refusal.HELD_TOO_LONG
    assert whole_row(desk, task) == before
    assert service.done(task.id, AMAL, 7).changed


def test_an_ended_lease_is_told_as_ended_and_not_as_too_long(desk: Desk, service: TransitionService) -> None:
    _limit(desk, HOUR)
    task = place(desk, State.STARTED)
    _held_for(desk, task, 180, -1)
    assert service.renew(task.id, AMAL, 7).why is Refusal.LEASE_ENDED


def test_a_task_of_which_nobody_knows_since_when_it_is_held_counts_from_its_next_renewal(
    desk: Desk, service: TransitionService
) -> None:
    _limit(desk, HOUR)
    task = place(desk, State.STARTED)
    assert desk.row_of(task)["held_since"] is None
    assert service.renew(task.id, AMAL, 7).changed
    assert _times(desk, task) == (1800, 1800)


def test_without_a_limit_a_renewal_keeps_the_beginning_of_the_hold(
    desk: Desk, service: TransitionService
) -> None:
    _limit(desk, None)
    task = place(desk, State.CLAIMED)
    _held_for(desk, task, 600)
    since = desk.row_of(task)["held_since"]
    assert service.renew(task.id, AMAL, 7).changed
    assert desk.row_of(task)["held_since"] == since
    assert _times(desk, task)[0] == 1800


def test_each_owner_has_a_hold_of_their_own(desk: Desk, service: TransitionService) -> None:
    _limit(desk, HOUR)
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    task = place(desk, State.STARTED)
    _held_for(desk, task, 55)
    assert service.transfer(task.id, SUE, 7, BILAL, reason="his customer").changed
    assert _times(desk, task) == (1800, 1800)
    assert service.force_release(task.id, SUE, 8, reason="shift_ending").changed
    assert _times(desk, task) == (None, None)
    assert service.claim(task.id, AMAL, 9).changed
    assert _times(desk, task) == (1800, 1800)
    assert lapse(desk, task).owner_id is None
    assert desk.row_of(task)["held_since"] is None
    assert now(desk, task).version == 11
