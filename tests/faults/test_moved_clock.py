"""The clock of a running server is really moved: no lease ends early or late by more than the tolerance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from tests.support.embedded import on_linux
from tests.support.moved_clock import ServerClocks, needs_faketime, now, server_with_movable_clock
from tests.support.store import AMAL, SUE, Desk, open_desk

from dibs.domain.clock import AGREED_SECONDS
from dibs.domain.outcomes import Refusal
from dibs.domain.task import Task
from dibs.service.brakes import BrakeService
from dibs.service.clock import ClockLimits, ClockService
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, PRESS, make_engine
from dibs.store.guard import Guard

pytestmark = [on_linux, needs_faketime]

LEASE = 30
TOLERANCE = 5.0
A_SWEEP = 1.0

_numbers = itertools.count(10)


@pytest.fixture(scope="module")
def clocks() -> Iterator[ServerClocks]:
    with server_with_movable_clock() as clocks:
        engine = make_engine(clocks.url, BACKGROUND, pool_size=1)
        schema.upgrade(engine)
        engine.dispose()
        yield clocks


class Shop:
    """A queue with leases of half a minute, on the server, and one process that sweeps it."""

    def __init__(self, clocks: ServerClocks) -> None:
        self.clocks = clocks
        self.presses = make_engine(clocks.url, PRESS, pool_size=4)
        self.background = make_engine(clocks.url, BACKGROUND, pool_size=4)
        self.desk: Desk = open_desk(self.presses, key=f"Q{next(_numbers)}", lease_seconds=LEASE)
        self.service = TransitionService(self.presses)
        guard = Guard(self.background)
        self.clock = ClockService(
            guard, ClockLimits(tolerance=TOLERANCE), wall=clocks.wall, monotonic=clocks.monotonic
        )
        self.sweep = SweepService(guard, clock=self.clock)
        self.begun = now()

    @property
    def elapsed(self) -> float:
        """How much time has truly passed, in seconds, with what a test let pass at once."""
        return now() - self.begun + self.clocks.passed

    def claim(self) -> Task:
        outcome = self.service.claim(self.desk.task().id, AMAL, 1)
        assert outcome.task is not None
        return outcome.task

    def returned(self) -> int:
        return len(self.sweep.sweep_once())

    def passes_until_returned(self, *, at_most: float) -> float:
        """Sweep every second until something is returned. The true time at which it was."""
        end = self.elapsed + at_most
        while not self.returned():
            assert self.elapsed < end, f"nothing was returned: {self.clock.holds_still}"
            self.clocks.let_pass(A_SWEEP)
        return self.elapsed


@pytest.fixture
def shop(clocks: ServerClocks) -> Iterator[Shop]:
    engine = make_engine(clocks.url, BACKGROUND, pool_size=1)
    with engine.connect() as connection:
        for table in ("outbox", "card", "breaker", "queue_member"):
            connection.execute(sa.text(f"DELETE FROM dibs.{table}"))  # noqa: S608 - ours
        connection.execute(
            sa.text("UPDATE dibs.task SET state = 'queued', owner_id = NULL, lease_until = NULL")
        )
        connection.execute(sa.text("UPDATE dibs.clock SET swept_at = NULL, stopped_since = NULL"))
    engine.dispose()
    clocks.step_database(clocks.process_is_ahead + clocks.passed - clocks.ahead)
    shop = Shop(clocks)
    assert shop.returned() == 0
    yield shop
    shop.presses.dispose()
    shop.background.dispose()


def test_a_clock_that_is_left_alone_ends_a_lease_in_time(shop: Shop) -> None:
    claimed = shop.elapsed
    shop.claim()
    held = shop.passes_until_returned(at_most=2 * LEASE) - claimed
    assert LEASE <= held <= LEASE + 2 * A_SWEEP + 2


@pytest.mark.parametrize("step", [60.0, 3600.0, 86_400.0 * 400])
def test_a_jump_ahead_ends_no_lease_early(shop: Shop, step: float) -> None:
    claimed = shop.elapsed
    shop.claim()
    shop.clocks.step_both(step)
    for _ in range(3):
        assert shop.returned() == 0
        shop.clocks.let_pass(A_SWEEP)
    assert "jumped ahead" in str(shop.clock.holds_still)
    # It is a step of the clock that live sessions see, not only new ones.
    assert shop.desk.value(
        "SELECT bool_and(lease_until < clock_timestamp()) FROM dibs.task WHERE owner_id <> ''"
    )
    shop.clocks.step_both(-step)
    assert shop.returned() == 0
    assert BrakeService(Guard(shop.presses)).resume(shop.desk.queue.id, SUE).lifted
    held = shop.passes_until_returned(at_most=2 * LEASE) - claimed
    assert LEASE <= held <= LEASE + 2 * A_SWEEP + 2


@pytest.mark.parametrize("step", [-10.0, -3600.0])
def test_a_step_back_that_is_mended_ends_the_lease_neither_early_nor_later_than_the_clocks_agree(
    shop: Shop, step: float
) -> None:
    claimed = shop.elapsed
    shop.claim()
    shop.clocks.step_database(step)
    assert shop.returned() == 0
    assert "set back" in str(shop.clock.holds_still)
    shop.clocks.let_pass(10)
    assert shop.returned() == 0
    shop.clocks.step_database(-step)
    held = shop.passes_until_returned(at_most=2 * AGREED_SECONDS) - claimed
    assert LEASE <= held <= 10 + AGREED_SECONDS + 4 * A_SWEEP + 2


@pytest.mark.parametrize("steps", [[3.0], [-3.0], [4.0, -4.0, 4.0], [1.0, 1.0, 1.0, 1.0], [-2.0, -2.0]])
def test_steps_within_the_tolerance_move_the_end_by_no_more_than_it(shop: Shop, steps: list[float]) -> None:
    claimed = shop.elapsed
    shop.claim()
    for step in steps:
        shop.clocks.step_both(step)
        assert shop.returned() == 0
        shop.clocks.let_pass(A_SWEEP)
    held = shop.passes_until_returned(at_most=2 * LEASE) - claimed
    assert LEASE - TOLERANCE <= held <= LEASE + TOLERANCE + 2 * A_SWEEP + 2
    shop.clocks.step_both(-sum(steps))


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2027, 3, 28, 0, 59, 50, tzinfo=UTC),
        datetime(2027, 10, 31, 0, 59, 50, tzinfo=UTC),
        datetime(2027, 10, 31, 1, 59, 50, tzinfo=UTC),
    ],
)
def test_a_change_of_daylight_saving_time_moves_no_end(clocks: ServerClocks, moment: datetime) -> None:
    clocks.start_at(moment.timestamp())
    engine = make_engine(clocks.url, BACKGROUND, pool_size=1)
    with engine.connect() as connection:
        connection.execute(sa.text("ALTER DATABASE dibs SET timezone = 'Europe/Berlin'"))
        connection.execute(sa.text("UPDATE dibs.clock SET swept_at = NULL, stopped_since = NULL"))
        connection.execute(
            sa.text("UPDATE dibs.task SET state = 'queued', owner_id = NULL, lease_until = NULL")
        )
    engine.dispose()
    shop = Shop(clocks)
    zones = (
        "SELECT DISTINCT at AT TIME ZONE 'Europe/Berlin' - at AT TIME ZONE 'UTC' "
        "FROM (VALUES (clock_timestamp()), (:until)) t (at)"
    )
    assert shop.returned() == 0
    claimed = shop.elapsed
    task = shop.claim()
    offsets = [
        row[0] for row in map(tuple, (row.values() for row in shop.desk.rows(zones, until=task.lease_until)))
    ]
    assert len(offsets) == (1 if moment.hour == 1 else 2)
    held = shop.passes_until_returned(at_most=2 * LEASE) - claimed
    assert LEASE <= held <= LEASE + 2 * A_SWEEP + 2
    assert shop.clock.holds_still is None
    shop.presses.dispose()
    shop.background.dispose()


def test_owners_finish_by_a_clock_that_has_jumped_and_renew_only_by_a_current_lease(shop: Shop) -> None:
    done, lapsed = shop.claim(), shop.claim()
    assert shop.service.start(done.id, AMAL, 2).changed
    shop.clocks.step_both(3600)
    assert shop.returned() == 0
    assert shop.service.renew(lapsed.id, AMAL, 2).why is Refusal.LEASE_ENDED
    assert shop.service.done(done.id, AMAL, 3).changed
    assert shop.service.release(lapsed.id, AMAL, 2, reason="shift_ending").changed
