"""Pausing and resuming a queue, by its supervisors."""

from __future__ import annotations

import uuid

from dibs.deadline import Deadline
from dibs.domain.brakes import Brake, Paused, Resumed
from dibs.domain.errors import AlreadyDone
from dibs.store import breaker
from dibs.store.guard import Guard, Row
from dibs.store.queue_events import QueueEvent


class BrakeService:
    """Safe in several processes at once. Every method raises StoreError where the database did not do it.

    An operation id that was used before is answered as the first time.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def pause(
        self, queue_id: int, actor_id: str, *, op_id: str | None = None, deadline: Deadline | None = None
    ) -> Paused:
        """Return no more tasks of this queue whose lease has ended, until a supervisor resumes it."""
        deadline = deadline or Deadline.after()
        op_id = op_id or str(uuid.uuid4())
        values = {"queue_id": queue_id, "actor": actor_id, "op_id": op_id}
        try:
            [row] = self._guard.run_once(breaker.PAUSE, values, deadline)
        except AlreadyDone:
            return _paused_before(self._first_time(op_id, deadline))
        if row["refused"]:
            return Paused(allowed=False, supervisors=tuple(row["supervisors"]))
        if row["changed"]:
            return Paused(allowed=True, changed=True)
        if before := self._first_time(op_id, deadline):
            return _paused_before(before)
        return Paused(allowed=True, since=row["open_since"], by=row["opened_by"])

    def resume(
        self, queue_id: int, actor_id: str, *, op_id: str | None = None, deadline: Deadline | None = None
    ) -> Resumed:
        """Lift whatever holds up this queue: the leases that wait go through, the window starts afresh."""
        deadline = deadline or Deadline.after()
        op_id = op_id or str(uuid.uuid4())
        values = {"queue_id": queue_id, "actor": actor_id, "op_id": op_id}
        try:
            [row] = self._guard.run_once(breaker.RESUME, values, deadline)
        except AlreadyDone:
            return _resumed_before(self._first_time(op_id, deadline))
        if row["refused"]:
            return Resumed(allowed=False, supervisors=tuple(row["supervisors"]))
        lifted = frozenset(brake for brake in (Brake.BREAKER, Brake.CLOCK) if row[brake])
        if not lifted and (before := self._first_time(op_id, deadline)):
            return _resumed_before(before)
        return Resumed(allowed=True, lifted=lifted)

    def _first_time(self, op_id: str, deadline: Deadline) -> Row | None:
        found = self._guard.run_once(breaker.DONE_BEFORE, {"op_id": op_id}, deadline)
        return found[0] if found else None


def _paused_before(event: Row | None) -> Paused:
    allowed = event is not None and event["kind"] != QueueEvent.PAUSE_REJECTED
    return Paused(allowed=allowed, changed=allowed, replayed=True)


def _resumed_before(event: Row | None) -> Resumed:
    if event is None or event["kind"] == QueueEvent.RESUME_REJECTED:
        return Resumed(allowed=False, replayed=True)
    detail = event["detail"] or {}
    lifted = frozenset(brake for brake in Brake if detail.get(brake))
    return Resumed(allowed=True, lifted=lifted, replayed=True)
