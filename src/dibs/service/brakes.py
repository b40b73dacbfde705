"""Pausing and resuming a queue, by its supervisors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.brakes import Brake, Paused, QueueEvent, Resumed
from dibs.domain.errors import AlreadyDone, Busy, NothingSent
from dibs.service.release_pauses import ReleasePauses, Resumption
from dibs.store import breaker
from dibs.store.guard import Guard, Row


class BrakeService:
    """Safe in several processes at once. Every method raises StoreError where the database did not do it.

    An operation id that was used before is answered as the first time.
    """

    def __init__(
        self,
        guard: Guard,
        pauses: ReleasePauses | None = None,
        *,
        sweep_holds_still: Callable[[], bool] = lambda: False,
    ) -> None:
        self._guard = guard
        self._sweep_holds_still = sweep_holds_still
        self._pauses = pauses or ReleasePauses(guard)

    def pause(
        self, queue_id: int, actor_id: str, *, op_id: str | None = None, deadline: Deadline | None = None
    ) -> Paused:
        """Return no more tasks of this queue whose lease has ended, until a supervisor resumes it."""
        deadline = deadline or Deadline.after()
        op_id = op_id or str(uuid.uuid4())
        values = {"queue_id": queue_id, "actor": actor_id, "op_id": op_id}
        try:
            row = self._carry_out(breaker.PAUSE, values, deadline)
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
        """Lift whatever holds up this queue: the leases that wait go through, the window starts afresh.

        Releases go on only if a trial of one could be written.
        """
        deadline = deadline or Deadline.after()
        op_id = op_id or str(uuid.uuid4())
        values = {"queue_id": queue_id, "actor": actor_id, "op_id": op_id}
        try:
            row = self._carry_out(breaker.RESUME, values, deadline)
        except AlreadyDone:
            return self._resumed_before(op_id, deadline) or Resumed(allowed=False, replayed=True)
        if row["refused"]:
            return Resumed(allowed=False, supervisors=tuple(row["supervisors"]))
        lifted = frozenset(brake for brake in (Brake.BREAKER, Brake.CLOCK) if row[brake])
        if not lifted and (before := self._resumed_before(op_id, deadline)):
            return before
        resumed = self._with_releases(queue_id, actor_id, op_id, deadline, lifted)
        # A stop that was just lifted is seen by the sweep with its next look at the clock.
        held = Brake.CLOCK not in lifted and self._sweep_holds_still()
        return replace(resumed, sweep_holds_still=held)

    def held_up(
        self, queue_ids: Sequence[int], *, deadline: Deadline | None = None
    ) -> list[tuple[str, frozenset[Brake]]]:
        """The keys of those of these queues that are held up, each with what a resume would lift."""
        values = {"queue_ids": list(queue_ids)}
        rows = self._guard.run_once(breaker.HELD_UP, values, deadline or Deadline.after())
        found = [(str(row["key"]), frozenset(brake for brake in Brake if row[brake])) for row in rows]
        return [(key, brakes) for key, brakes in found if brakes]

    def _carry_out(self, statement: sa.TextClause, values: Mapping[str, object], deadline: Deadline) -> Row:
        rows = self._guard.run_once(statement, values, deadline)
        if not rows:
            # A queue that was made by hand has no breaker yet.
            self._guard.run_once(breaker.ADD_MISSING, {"queue_id": values["queue_id"]}, deadline)
            rows = self._guard.run_once(statement, values, deadline)
        return rows[0]

    def _with_releases(
        self, queue_id: int, actor_id: str, op_id: str, deadline: Deadline, lifted: frozenset[Brake]
    ) -> Resumed:
        try:
            releases = self._pauses.resume(queue_id, actor_id, deadline, op_id=_of_releases(op_id))
        except (Busy, NothingSent):
            if not lifted:
                raise
            return Resumed(allowed=True, lifted=lifted, still=frozenset({Brake.RELEASES}))
        match releases.came_of:
            case Resumption.RESUMED:
                return Resumed(allowed=True, lifted=lifted | {Brake.RELEASES})
            case Resumption.STILL_PAUSED:
                still = frozenset({Brake.RELEASES})
                return Resumed(allowed=True, lifted=lifted, still=still, why=releases.why)
            case Resumption.NOT_PAUSED:
                return Resumed(allowed=True, lifted=lifted)
            case _:
                assert_never(releases.came_of)

    def _resumed_before(self, op_id: str, deadline: Deadline) -> Resumed | None:
        """What an earlier delivery of the same request has resumed; None where there was none."""
        events = [self._first_time(each, deadline) for each in (op_id, _of_releases(op_id))]
        found = [event for event in events if event is not None]
        if not found:
            return None
        if any(event["kind"] == QueueEvent.RESUME_REJECTED for event in found):
            return Resumed(allowed=False, replayed=True)
        lifted = frozenset(brake for brake in Brake for event in found if (event["detail"] or {}).get(brake))
        return Resumed(allowed=True, lifted=lifted, replayed=True)

    def _first_time(self, op_id: str, deadline: Deadline) -> Row | None:
        found = self._guard.run_once(breaker.DONE_BEFORE, {"op_id": op_id}, deadline)
        return found[0] if found else None


def _paused_before(event: Row | None) -> Paused:
    allowed = event is not None and event["kind"] != QueueEvent.PAUSE_REJECTED
    return Paused(allowed=allowed, changed=allowed, replayed=True)


def _of_releases(op_id: str) -> str:
    """The operation id of the part of a resume that lets releases go on, which is an event of its own."""
    return f"{op_id}:releases"
