"""What a queue allows is asked when the press has its task, not when it was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import pytest
from tests.support.holders import LOCK, Pressed, holder, wait_for_waiters
from tests.support.journey import newest_event, now, place, whole_row
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import State, Task
from dibs.service.transitions import TransitionService

Press = Callable[[TransitionService, Task], Outcome]


def _release(service: TransitionService, task: Task) -> Outcome:
    return service.release(task.id, AMAL, task.version, reason="shift_ending")


def _force_release(service: TransitionService, task: Task) -> Outcome:
    return service.force_release(task.id, SUE, task.version, reason="shift_ending")


def _transfer(service: TransitionService, task: Task) -> Outcome:
    return service.transfer(task.id, SUE, task.version, BILAL, reason="she left")


def _renew(service: TransitionService, task: Task) -> Outcome:
    return service.renew(task.id, AMAL, task.version)


PAUSED: LiteralString = "UPDATE dibs.breaker SET releases_paused_since = now(), releases_paused_why = 'full'"
TURNED_OFF: LiteralString = "UPDATE dibs.queue SET supervisor_operations = false"
OTHER_REASONS: LiteralString = "UPDATE dibs.queue SET reasons = ARRAY['Waits for the bank']"
SHORTER_HOLD: LiteralString = "UPDATE dibs.queue SET longest_hold_seconds = 60"


@pytest.mark.parametrize(
    ("press", "change", "why"),
    [
        (_release, PAUSED, Refusal.RELEASES_PAUSED),
        (_force_release, PAUSED, Refusal.RELEASES_PAUSED),
        (_force_release, TURNED_OFF, Refusal.TURNED_OFF),
        (_transfer, TURNED_OFF, Refusal.TURNED_OFF),
        (_release, OTHER_REASONS, Refusal.REASON_MISSING),
        (_force_release, OTHER_REASONS, Refusal.REASON_MISSING),
        (_renew, SHORTER_HOLD, Refusal.HELD_TOO_LONG),
    ],
)
def test_what_changed_while_the_press_waited_for_its_task_counts(
    desk: Desk,
    service: TransitionService,
    database_url: str,
    press: Press,
    change: LiteralString,
    why: Refusal,
) -> None:
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    task = place(desk, State.CLAIMED)
    desk.execute("UPDATE dibs.task SET held_since = now()")
    before = whole_row(desk, task)
    with holder(database_url) as somebody, holder(database_url) as admin:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: press(service, task))
        wait_for_waiters(database_url)
        admin.do(change)
        admin.commit()
        somebody.rollback()
        outcome = pressed.answer()
    assert (outcome.unchanged, outcome.why) == (True, why)
    assert whole_row(desk, task) == before
    event = newest_event(desk, task)
    assert (event["kind"], event["why"]) == (f"{outcome.operation}_rejected", why)


@pytest.mark.parametrize("press", [_transfer, _force_release])
def test_what_supervisors_may_do_is_off_once_the_change_that_a_press_waited_for_stands(
    desk: Desk, service: TransitionService, database_url: str, press: Press
) -> None:
    """A change of the settings holds the people's rows, too."""
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    task = place(desk, State.CLAIMED)
    with holder(database_url) as settings:
        settings.do("SELECT FROM dibs.queue_member ORDER BY user_id FOR UPDATE")
        settings.do(TURNED_OFF)
        pressed = Pressed(lambda: press(service, task))
        wait_for_waiters(database_url)
        settings.commit()
        assert pressed.answer().why is Refusal.TURNED_OFF
    assert now(desk, task).owner_id == AMAL


def test_a_reason_is_asked_for_whatever_an_operator_has_put_in_the_list(
    desk: Desk, service: TransitionService
) -> None:
    """A null in the list makes `<> ALL` unknown, which would let anything through."""
    task = place(desk, State.CLAIMED)
    desk.execute("UPDATE dibs.queue SET reasons = ARRAY['Waits for the bank', NULL]")
    assert _release(service, task).why is Refusal.REASON_MISSING
    assert service.release(task.id, AMAL, task.version, reason=None).why is Refusal.REASON_MISSING
    assert service.release(task.id, AMAL, task.version, reason="Waits for the bank").changed
