"""The sweep: tasks whose lease has ended go back to the queue."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from dibs.deadline import Deadline
from dibs.domain.task import State, Task
from dibs.service.telemetry import Telemetry
from dibs.store.guard import Guard
from dibs.store.sweep import END_LEASES, EXPIRE_BATCH
from dibs.store.tasks import as_task

_log = logging.getLogger(__name__)

BATCH_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Expired:
    """One task that the sweep has returned, and who had it."""

    task: Task
    former_owner: str
    former_state: State


class SweepService:
    """Safe in several processes at once: each expired lease is returned by exactly one of them."""

    def __init__(self, guard: Guard, telemetry: Telemetry | None = None) -> None:
        self._guard = guard
        self._telemetry = telemetry or Telemetry()

    def sweep_once(self) -> list[Expired]:
        """Return every task whose lease has ended, by the database's clock, in batches.

        Repeating it changes nothing more. Rows that somebody holds locked are left for the next sweep.
        Raises StoreError where the database did not answer; whole batches before that stand.
        """
        returned: list[Expired] = []
        while batch := self._guard.run(EXPIRE_BATCH, {}, Deadline.after(BATCH_SECONDS)):
            returned += [
                Expired(as_task(row), row["former_owner"], State(row["former_state"])) for row in batch
            ]
            self._telemetry.expired(len(batch))
        if returned:
            _log.info("the sweep returned %d tasks", len(returned))
        return returned

    def end_leases(self, queue_id: int) -> int:
        """Let every lease of a queue be over at once, as an operator's SQL may. Returns how many there were.

        Nobody waits ten minutes to see a demonstration. The tasks are returned by the next sweep.
        """
        return len(self._guard.run(END_LEASES, {"queue_id": queue_id}, Deadline.after(BATCH_SECONDS)))
