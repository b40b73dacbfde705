"""The sweep: tasks whose lease has ended go back to the queue, unless too many would."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dibs.deadline import Deadline
from dibs.domain.errors import Refused
from dibs.domain.task import State, Task
from dibs.service.clock import ClockService
from dibs.service.telemetry import Telemetry
from dibs.store import breaker
from dibs.store.guard import Guard, Row, Run
from dibs.store.sweep import BATCH, END_LEASES, EXPIRE_BATCH, WITH_ENDED_LEASES
from dibs.store.tasks import as_task

_log = logging.getLogger(__name__)

BATCH_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 5.0
"""How old a look at the clock may be when a batch is returned."""


@dataclass(frozen=True, slots=True)
class Expired:
    """One task that the sweep has returned, and who had it."""

    task: Task
    former_owner: str
    former_state: State


class SweepService:
    """Safe in several processes at once: each expired lease is returned by exactly one of them."""

    def __init__(
        self, guard: Guard, telemetry: Telemetry | None = None, *, clock: ClockService | None = None
    ) -> None:
        self._guard = guard
        self._telemetry = telemetry or Telemetry()
        self._clock = clock or ClockService(guard)

    def sweep_once(self) -> list[Expired]:
        """Return every task whose lease has ended, by the database's clock, queue by queue and in batches.

        Nothing is returned while that clock is not to be trusted, or after an outage before the owners have
        had their grace.
        Where more than a queue's limit would return within its window, nothing more of that queue is
        returned: its breaker opens, and its supervisors are told. Repeating the sweep changes nothing more.
        Rows that somebody holds locked, and queues that another process is sweeping, are left for the next
        sweep. Raises StoreError where the database did not do it; whole batches before that stand, and a
        queue of which it refuses the records holds up no other.
        """
        returned: list[Expired] = []
        refused: Refused | None = None
        look = self._clock.look_once()
        if look.holds_still:
            return returned
        until = {"until": self._clock.trusted_until(look)}
        for queue in self._guard.run(WITH_ENDED_LEASES, until, Deadline.after(BATCH_SECONDS)):
            try:
                if queue["breaker_missing"]:
                    values = {"queue_id": queue["queue_id"]}
                    self._guard.run(breaker.ADD_MISSING, values, Deadline.after(BATCH_SECONDS))
                returned += self._sweep_queue(queue["queue_id"])
            except Refused as error:
                _log.error("queue %s could not be swept: %s", queue["queue_id"], error)
                refused = refused or error
        if returned:
            _log.info("the sweep returned %d tasks", len(returned))
        if refused:
            raise refused
        return returned

    def _sweep_queue(self, queue_id: int) -> list[Expired]:
        returned: list[Expired] = []
        while batch := self._return_batch(queue_id):
            returned += [
                Expired(as_task(row), row["former_owner"], State(row["former_state"])) for row in batch
            ]
            self._telemetry.expired(len(batch))
        return returned

    def _return_batch(self, queue_id: int) -> Sequence[Row]:
        """Return one batch. This process may have been stopped since it last looked at the clock."""
        look = self._clock.look_again(_LOOK_AGAIN_SECONDS)
        if look.holds_still:
            return ()
        until = self._clock.trusted_until(look)
        return self._guard.transact(
            lambda run: _next_batch(run, queue_id, until=until), Deadline.after(BATCH_SECONDS)
        )

    def end_leases(self, queue_id: int) -> int:
        """Let every lease of a queue be over at once, as an operator's SQL may. Returns how many there were.

        Nobody waits ten minutes to see a demonstration. The tasks are returned by the next sweep.
        """
        return len(self._guard.run(END_LEASES, {"queue_id": queue_id}, Deadline.after(BATCH_SECONDS)))


def _next_batch(run: Run, queue_id: int, *, until: datetime) -> Sequence[Row]:
    """Return one batch of a queue, in one transaction that holds the lock of its breaker throughout."""
    queue = {"queue_id": queue_id}
    locked = run(breaker.LOCK_CLOSED, queue)
    if not locked:
        return ()
    let_through_until = locked[0]["let_through_until"]
    values = {**queue, "until": until, "after": None, "most": BATCH, "let_through": False}
    if let_through_until is not None:
        # What ended before the breaker was closed goes through first, and is not counted.
        let_through = min(until, let_through_until)
        if batch := run(EXPIRE_BATCH, {**values, "until": let_through, "let_through": True}):
            return batch
        run(breaker.ALL_LET_THROUGH, queue)
    [figures] = run(breaker.OPEN_IF_SPIKE, {**queue, "trusted_until": until})
    if figures["opened"]:
        _log.warning(
            "the breaker of queue %s opened: %s leases in %s minutes, at a limit of %s",
            queue_id,
            figures["number"],
            figures["minutes"],
            figures["most"],
        )
        return ()
    return run(EXPIRE_BATCH, {**values, "after": let_through_until, "most": figures["room"]})
