"""The pause of releases: what cannot be recorded is not handed back.

A release and its records are one statement, so one whose release card or event is refused has changed
nothing. Then releases of that queue pause, since the next one would fare no better, until a supervisor
resumes them and a trial write has worked.

Which refusals pause: PostgreSQL names the table for a constraint only. A trigger that raises, a missing
privilege, a renamed column and a full disk are refused without a table's name, and some of these are just
what must pause. So a definite refusal pauses where it names `release_card` or `event`, or no table at all;
not where it names another table, which is no matter of the records. A time-out, a deadlock or a lost
connection is no such refusal (see `dibs.store.errors`), nor is a value that could not even be sent.
"""

from __future__ import annotations

import logging
import threading
import uuid
from dataclasses import dataclass
from enum import StrEnum

from dibs.deadline import Deadline
from dibs.domain.errors import AlreadyDone, Busy, Refused, StoreError
from dibs.domain.outcomes import Refusal
from dibs.domain.task import ExternalAnswer
from dibs.domain.transitions import Operation
from dibs.service.writes import Attempt, parameters_of
from dibs.store import release_pauses
from dibs.store.guard import Guard, Run
from dibs.store.operations import conditional_write

_log = logging.getLogger(__name__)

_RECORDS = frozenset({"event", "release_card"})
_LONGEST_WHY = 300
_STORE_WITHIN_SECONDS = 5.0
_TRIAL = "A trial of Dibs, which is rolled back"


class Resumption(StrEnum):
    """What came of resuming the releases of a queue."""

    RESUMED = "resumed"
    NOT_PAUSED = "not_paused"
    """They were not paused, or somebody else has resumed them meanwhile."""
    STILL_PAUSED = "still_paused"
    """The trial write did not work."""


@dataclass(frozen=True, slots=True)
class ResumedReleases:
    """What came of resuming. `why` is what the database said to the trial, in words for who runs it."""

    came_of: Resumption
    why: str | None = None


class _TrialWorked(Exception):
    """All of the trial was written."""


class ReleasePauses:
    """Pauses and resumes the releases of queues. Safe in several threads and processes at once.

    A pause that cannot be stored is kept here, in this process, which then refuses the releases of that queue
    and tries to store it again; another process pauses as soon as it is refused a release itself.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._held: dict[int, str] = {}

    @property
    def held(self) -> list[int]:
        """The tasks whose queues are paused by this process alone, since that could not be stored yet."""
        with self._lock:
            return sorted(self._held)

    def refused(self, attempt: Attempt, error: Refused) -> bool:
        """Pause the releases of the queue of `attempt`, if its refusal is a matter of records."""
        if isinstance(error, Busy | AlreadyDone) or error.sqlstate is None:
            return False
        if error.table is not None and error.table not in _RECORDS:
            return False
        why = f"{error} ({error.sqlstate})"[:_LONGEST_WHY]
        _log.error("releases of the queue of task %d pause: %s", attempt.task_id, why)
        with self._lock:
            self._held[attempt.task_id] = why
        try:
            self._store(attempt.deadline)
        except StoreError as failure:
            _log.error("the pause could not be stored yet, and holds in this process: %s", failure)
        return True

    def store_held(self) -> None:
        """Store the pauses that could not be stored, and alert the supervisors then. Raises StoreError."""
        self._store(Deadline.after(_STORE_WITHIN_SECONDS))

    def resume(
        self, queue_id: int, actor_id: str, deadline: Deadline, *, op_id: str | None = None
    ) -> ResumedReleases:
        """Let a queue's releases go on, as a supervisor, if a trial of one can be written.

        Of several people at once one resumes. Raises StoreError where the database could not be asked.
        """
        try:
            self._store(deadline)
            paused = self._guard.run_once(release_pauses.TRIP, {"queue_id": queue_id}, deadline)
            if not paused:
                return ResumedReleases(Resumption.NOT_PAUSED)
            why_not = self._try_out(queue_id, actor_id, deadline)
            if why_not is None:
                values = {
                    "queue_id": queue_id,
                    "actor": actor_id,
                    "trip": paused[0]["release_trip"],
                    "op_id": op_id or str(uuid.uuid4()),
                }
                resumed = self._guard.run_once(release_pauses.RESUME, values, deadline)
                return ResumedReleases(Resumption.RESUMED if resumed else Resumption.NOT_PAUSED)
        except Busy:
            raise
        except Refused as error:
            why_not = f"{error} ({error.sqlstate})"
        _log.error("releases of queue %d stay paused: %s", queue_id, why_not)
        return ResumedReleases(Resumption.STILL_PAUSED, why_not[:_LONGEST_WHY])

    def _store(self, deadline: Deadline) -> None:
        with self._lock:
            held = dict(self._held)
        if not held:
            return
        values = {"task_ids": sorted(held), "why": next(iter(held.values()))}
        self._guard.run_once(release_pauses.PAUSE, values, deadline)
        with self._lock:
            for task_id in held:
                self._held.pop(task_id, None)

    def _try_out(self, queue_id: int, actor_id: str, deadline: Deadline) -> str | None:
        """Release a task of the queue, and roll that back. Returns why that did not work."""

        def trial(run: Run) -> str:
            run(release_pauses.LIFT_FOR_TRIAL, {"queue_id": queue_id})
            tasks = run(release_pauses.HOLD_FOR_TRIAL, {"queue_id": queue_id, "actor": actor_id})
            if not tasks:
                # A queue without tasks has nothing that could be handed back.
                raise _TrialWorked
            task = tasks[0]
            attempt = Attempt(
                Operation.RELEASE,
                task["id"],
                actor_id,
                task["version"],
                f"trial:{uuid.uuid4()}",
                deadline,
            )
            given = {
                "reason": task["reason"],
                "comment": _TRIAL,
                "handoff_note": _TRIAL,
                "external_action": ExternalAnswer.COMPLETED,
                "unrecorded": _TRIAL,
            }
            [released] = run(conditional_write(attempt.operation), parameters_of(attempt, **given))
            run(release_pauses.CHECK_WHAT_IS_DEFERRED, {})
            if released["why"] is not None:
                return f"the trial was refused: {Refusal(released['why'])}"
            raise _TrialWorked

        try:
            return self._guard.transact(trial, deadline)
        except _TrialWorked:
            return None
