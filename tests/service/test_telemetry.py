"""Who counts is told of every operation once, as what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from tests.support.journey import place
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import ActionStatus, State, Task
from dibs.domain.transitions import Operation
from dibs.service.sweep import SweepService
from dibs.service.telemetry import Telemetry
from dibs.service.transitions import TransitionService
from dibs.store.guard import Guard

Press = Callable[[TransitionService, Task], Outcome]

PRESSES: dict[Operation, Press] = {
    Operation.CLAIM: lambda s, t: s.claim(t.id, AMAL, t.version),
    Operation.RENEW: lambda s, t: s.renew(t.id, AMAL, t.version),
    Operation.START: lambda s, t: s.start(t.id, AMAL, t.version),
    Operation.RECORD_ACTION: lambda s, t: s.record_action(t.id, AMAL, t.version, "the refund"),
    Operation.RESOLVE_ACTION: lambda s, t: s.resolve_action(t.id, AMAL, t.version, 1, ActionStatus.COMPLETED),
    Operation.NOTE: lambda s, t: s.note(t.id, AMAL, t.version, "a note"),
    Operation.COMMIT: lambda s, t: s.commit(t.id, AMAL, t.version, datetime(2030, 1, 1, tzinfo=UTC)),
    Operation.DONE: lambda s, t: s.done(t.id, AMAL, t.version),
    Operation.RELEASE: lambda s, t: s.release(t.id, AMAL, t.version, reason="shift_ending"),
    Operation.CHECK: lambda s, t: s.check(t.id, AMAL, t.version),
    Operation.TRANSFER: lambda s, t: s.transfer(t.id, SUE, t.version, BILAL, reason="a holiday"),
    Operation.FORCE_RELEASE: lambda s, t: s.force_release(t.id, SUE, t.version, reason="shift_ending"),
}


class Heard(Telemetry):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.numbers: list[int] = []

    def answered(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def expired(self, number: int) -> None:
        self.numbers.append(number)


class Directory:
    """Looks people up: finds them to be eligible, or finds out nothing."""

    def __init__(self, desk: Desk, *, fails: bool) -> None:
        self._desk = desk
        self._fails = fails

    def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
        if self._fails:
            raise LookUpFailed(f"nothing is known of {user_id} in {queue_id} by {deadline}")
        self._desk.admit(user_id)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_every_operation_is_tried_here() -> None:
    assert set(PRESSES) == set(Operation) - {Operation.EXPIRE}


@pytest.mark.parametrize("looked_up", [False, True])
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("operation", PRESSES)
def test_each_is_told_once_whatever_becomes_of_it(
    desk: Desk, engine: sa.Engine, heard: Heard, operation: Operation, state: State, *, looked_up: bool
) -> None:
    directory = Directory(desk, fails=False) if looked_up else None
    service = TransitionService(engine, telemetry=heard, membership=directory)
    outcome = PRESSES[operation](service, place(desk, state))
    assert heard.outcomes == [outcome]
    assert outcome.operation is operation


@pytest.mark.parametrize("operation", PRESSES)
def test_so_is_one_on_a_task_that_cannot_exist(
    desk: Desk, engine: sa.Engine, heard: Heard, operation: Operation
) -> None:
    gone = replace(desk.task(), id=-1)
    outcome = PRESSES[operation](TransitionService(engine, telemetry=heard), gone)
    assert heard.outcomes == [outcome]
    assert outcome.why is Refusal.NO_SUCH_TASK


@pytest.mark.parametrize(("fails", "why"), [(False, None), (True, Refusal.MEMBERSHIP_UNKNOWN)])
def test_only_what_a_look_up_leaves_is_told(
    desk: Desk, engine: sa.Engine, heard: Heard, *, fails: bool, why: Refusal | None
) -> None:
    service = TransitionService(engine, telemetry=heard, membership=Directory(desk, fails=fails))
    outcome = service.claim(desk.task().id, "U0NEW", 1)
    assert heard.outcomes == [outcome]
    assert outcome.why is why


def test_the_next_task_is_told_once_and_so_is_that_there_is_none(
    desk: Desk, engine: sa.Engine, heard: Heard
) -> None:
    service = TransitionService(engine, telemetry=heard, membership=Directory(desk, fails=False))
    desk.task()
    for claimed in (1, 2):
        service.claim_next([desk.queue.id], "U0NEW")
        assert len(heard.outcomes) == claimed
    service.claim_next([], "U0NEW")
    assert [outcome.why for outcome in heard.outcomes] == [None, *[Refusal.NOTHING_WAITING] * 2]


def test_what_only_judges_is_told_too(desk: Desk, engine: sa.Engine, heard: Heard) -> None:
    service = TransitionService(engine, telemetry=heard)
    outcome = service.judge(Operation.DONE, desk.task().id, AMAL, 1)
    assert heard.outcomes == [outcome]
    assert outcome.unchanged


def test_what_arrives_again_is_told_as_a_repeat(desk: Desk, engine: sa.Engine, heard: Heard) -> None:
    service = TransitionService(engine, telemetry=heard)
    task = desk.task()
    for _ in range(3):
        service.claim(task.id, AMAL, 1, op_id="one press")
    assert [outcome.replayed for outcome in heard.outcomes] == [False, True, True]


def test_the_sweep_tells_how_many_it_returned(desk: Desk, engine: sa.Engine, heard: Heard) -> None:
    for task in (place(desk, State.CLAIMED), place(desk, State.STARTED)):
        desk.end_lease(task)
    sweep = SweepService(Guard(engine), heard)
    sweep.sweep_once()
    sweep.sweep_once()
    assert heard.numbers == [2]
