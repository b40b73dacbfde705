"""How one conditional write is carried out, and how its answer becomes an Outcome."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.errors import AlreadyDone, Busy, Lost, NothingSent, Refused, StoreError
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import LARGEST_ID, ExternalAction, Task
from dibs.domain.transitions import RULES, Operation
from dibs.service.telemetry import Telemetry
from dibs.store import queues, tasks
from dibs.store.guard import Guard, Row
from dibs.store.operations import conditional_write

_log = logging.getLogger(__name__)

_LARGEST_VERSION = 2**31 - 1
_NOT_GIVEN: Mapping[str, object] = {
    "judge_only": False,
    "looked_up": True,
    "readable": True,
    "confirmed": False,
    "answers": "{}",
    "action_id": None,
    "description": None,
    "text": None,
    "committed_to": None,
    "resolution": None,
    "reason": None,
    "comment": None,
    "handoff_note": None,
    "external_action": None,
    "unrecorded": None,
    "finding": None,
    "new_owner": None,
    "paused_here": [],
}
"""What the operations take, where a call does not give it."""
_ABOUT_ACTIONS = frozenset({Refusal.ACTION_OPEN, Refusal.ACTION_UNSTATED, Refusal.ANSWERS_MISSING})


class Attempt:
    """What one call is about, and the Outcomes that can come of it."""

    def __init__(
        self,
        operation: Operation,
        task_id: int,
        actor_id: str,
        version: int | None,
        op_id: str | None,
        deadline: Deadline | None,
    ) -> None:
        self.operation = operation
        self.task_id = task_id
        self.actor_id = actor_id
        # One that no row can have is told as one that is not the task's, and is nothing that can be recorded.
        self.version = version if version is not None and abs(version) <= _LARGEST_VERSION else None
        self.op_id = op_id or str(uuid.uuid4())
        self.deadline = deadline or Deadline.after()

    @property
    def identity(self) -> dict[str, object]:
        """Who tries it, and the operation id."""
        return {"actor": self.actor_id, "op_id": self.op_id}

    @property
    def possible(self) -> bool:
        """Whether such a task can exist at all."""
        return self.is_id(self.task_id)

    def answered(
        self,
        verdict: Verdict,
        task: Task | None = None,
        at: datetime | None = None,
        *,
        why: Refusal | None = None,
        replayed: bool = False,
        actions: tuple[ExternalAction, ...] = (),
        eligible_group: str | None = None,
        releases_paused: bool = False,
    ) -> Outcome:
        """The Outcome with what is known."""
        return Outcome(
            operation=self.operation,
            verdict=verdict,
            op_id=self.op_id,
            task=task,
            why=why,
            actor_id=self.actor_id,
            replayed=replayed,
            answered_at=at,
            actions=actions,
            eligible_group=eligible_group,
            releases_paused=releases_paused,
        )

    def refused(self, why: Refusal, eligible_group: str | None = None) -> Outcome:
        """The Outcome of an attempt that surely changed nothing."""
        return self.answered(Verdict.UNCHANGED, why=why, eligible_group=eligible_group)

    @staticmethod
    def is_id(number: int) -> bool:
        """Whether a row with this id can exist at all."""
        return 0 < number <= LARGEST_ID


PausesReleases = Callable[[Attempt, Refused], bool]
"""Hears what the database refused, and says whether releases pause because of it."""


def parameters_of(
    attempt: Attempt,
    *,
    detail: Mapping[str, Any] | None = None,
    not_final: Collection[Refusal] = (),
    **special: object,
) -> dict[str, object]:
    """What the conditional write of the attempt's operation takes."""
    return {
        **attempt.identity,
        "task_id": attempt.task_id,
        "version": attempt.version,
        "detail": None if detail is None else json.dumps(detail),
        "not_final": list(not_final),
        **_NOT_GIVEN,
        **special,
    }


class Writes:
    """Carries out the conditional writes. Refusals and failures come back as Outcomes, and are counted."""

    def __init__(self, guard: Guard, telemetry: Telemetry | None = None) -> None:
        self._guard = guard
        self._telemetry = telemetry or Telemetry()

    def counted(self, outcome: Outcome) -> Outcome:
        """The same Outcome, which is what a call comes to: each call is counted once."""
        self._telemetry.answered(outcome)
        return outcome

    def carry_out(
        self,
        attempt: Attempt,
        *,
        detail: Mapping[str, Any] | None = None,
        not_final: Collection[Refusal] = (),
        pauses: PausesReleases | None = None,
        **special: object,
    ) -> Outcome:
        """Carry out the operation of `attempt` on its task. `special` is what this operation alone takes.

        A refusal that is `not_final` is neither recorded nor counted.
        """
        if not attempt.possible:
            return self.counted(attempt.refused(Refusal.NO_SUCH_TASK))
        parameters = parameters_of(attempt, detail=detail, not_final=not_final, **special)
        outcome = self.run(conditional_write(attempt.operation), parameters, attempt, pauses)
        outcome = self._with_who_resumes(attempt, outcome or attempt.refused(Refusal.NO_SUCH_TASK))
        final = outcome.replayed or outcome.why not in not_final
        return self.counted(outcome) if final else outcome

    def run(
        self,
        write: sa.TextClause,
        parameters: Mapping[str, Any],
        attempt: Attempt,
        pauses: PausesReleases | None = None,
    ) -> Outcome | None:
        """Run one conditional write. None where it found no task to judge."""
        try:
            return self._judged(attempt, self._guard.run_once(write, parameters, attempt.deadline))
        except AlreadyDone as found:
            return self._recalled(attempt, replayed=not found.of_this_try)
        except StoreError as error:
            outcome = self.failed(attempt, error)
            if not isinstance(error, Refused) or isinstance(error, Busy):
                return outcome
            paused = pauses is not None and pauses(attempt, error)
            self._record_refusal(attempt, releases_paused=paused)
            if not paused:
                return outcome
            task = self._as_it_stands(attempt.task_id, attempt.deadline)
            return replace(outcome, task=task, releases_paused=True)

    def _record_refusal(self, attempt: Attempt, *, releases_paused: bool) -> None:
        """Record what the database refused, where it still takes that; the refusal stands either way."""
        detail = {"releases_paused": True} if releases_paused else None
        why: object = "nothing was written"
        try:
            if self._settled(attempt, Refusal.DATABASE_REFUSED, detail):
                return
        except StoreError as error:
            why = error
        _log.error("the refusal of %s could not be recorded: %s", attempt.operation, why)

    def refuse_without_task(self, attempt: Attempt, queue_id: int, why: Refusal) -> Outcome:
        """Record a refusal that is about no task, unless this very operation was answered before.

        Raises StoreError where the database did not do it.
        """
        refusal = {"queue_id": queue_id, "kind": RULES[attempt.operation].rejection, "why": why}
        rows = self._guard.run_once(
            tasks.REFUSE_WITHOUT_TASK, {**refusal, **attempt.identity}, attempt.deadline
        )
        if rows:
            return attempt.refused(why, rows[0]["eligible_group"])
        return self._recalled(attempt)

    def settle(self, attempt: Attempt, queue_id: int | None) -> Outcome:
        """Find out what became of a write whose answer was lost (see TransitionService.settle).

        Raises StoreError where the database still does not answer.
        """
        if queue_id is not None:
            lost = {"queue_id": queue_id, "kind": RULES[attempt.operation].rejection}
            lost["why"] = Refusal.CONNECTION_LOST
            self._guard.run_once(tasks.REFUSE_WITHOUT_TASK, {**lost, **attempt.identity}, attempt.deadline)
            return self._recall(attempt, replayed=False)
        self._settled(attempt, Refusal.CONNECTION_LOST)
        return self._recall(attempt, replayed=False)

    def _settled(self, attempt: Attempt, why: Refusal, detail: Mapping[str, Any] | None = None) -> bool:
        """Record that an attempt on a task came to nothing, unless there is an event of it already."""
        refusal = {
            "task_id": attempt.task_id,
            "version": attempt.version,
            "rejection": RULES[attempt.operation].rejection,
            "why": why,
            "detail": None if detail is None else json.dumps(detail),
        }
        return bool(self._guard.run_once(tasks.SETTLE, {**refusal, **attempt.identity}, attempt.deadline))

    def _judged(self, attempt: Attempt, rows: Sequence[Row]) -> Outcome | None:
        if not rows:
            return None
        row = rows[0]
        task = tasks.as_task(row)
        if row["why"] is None:
            return attempt.answered(Verdict.CHANGED, task, row["clock"], actions=self._recorded(attempt))
        why = Refusal(row["why"])
        actions = self._open_actions(task, attempt.deadline) if why in _ABOUT_ACTIONS else ()
        group = row["eligible_group"]
        return attempt.answered(
            Verdict.UNCHANGED, task, row["clock"], why=why, actions=actions, eligible_group=group
        )

    def _with_who_resumes(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        paused = outcome.releases_paused or outcome.why is Refusal.RELEASES_PAUSED
        if not paused or outcome.task is None:
            return outcome
        values = {"queue_id": outcome.task.queue_id}
        try:
            rows = self._guard.run_once(queues.SUPERVISORS, values, attempt.deadline)
        except StoreError:
            # The refusal stands without the names of the supervisors.
            return outcome
        return replace(outcome, who_resumes=tuple(row["user_id"] for row in rows))

    def _open_actions(self, task: Task, deadline: Deadline) -> tuple[ExternalAction, ...]:
        return self._actions(tasks.OPEN_ACTIONS, {"task_id": task.id}, deadline)

    def _recorded(self, attempt: Attempt) -> tuple[ExternalAction, ...]:
        if attempt.operation is not Operation.RECORD_ACTION:
            return ()
        return self._actions(tasks.ACTION_OF_OPERATION, {"op_id": attempt.op_id}, attempt.deadline)

    def _actions(
        self, statement: sa.TextClause, values: Mapping[str, object], deadline: Deadline
    ) -> tuple[ExternalAction, ...]:
        try:
            rows = self._guard.run_once(statement, values, deadline)
        except StoreError:
            # The outcome stands without the names of the actions.
            return ()
        return tuple(tasks.as_action(row) for row in rows)

    def _recalled(self, attempt: Attempt, *, replayed: bool = True) -> Outcome:
        try:
            return self._recall(attempt, replayed=replayed)
        except StoreError as error:
            _log.warning("an operation that was answered before could not be looked up: %s", error)
            return attempt.answered(Verdict.UNKNOWN, why=Refusal.CONNECTION_LOST)

    def _recall(self, attempt: Attempt, *, replayed: bool) -> Outcome:
        events = self._guard.run_once(tasks.EVENT_BY_OP_ID, {"op_id": attempt.op_id}, attempt.deadline)
        if not events:
            return attempt.answered(Verdict.UNCHANGED, why=Refusal.NO_SUCH_TASK)
        event = events[0]
        task = self._as_it_stands(event["task_id"], attempt.deadline)
        if event["why"] is None:
            actions = self._recorded(attempt)
            return attempt.answered(Verdict.CHANGED, task, event["at"], replayed=replayed, actions=actions)
        why = Refusal(event["why"])
        actions = self._open_actions(task, attempt.deadline) if task and why in _ABOUT_ACTIONS else ()
        return attempt.answered(
            Verdict.UNCHANGED,
            task,
            event["at"],
            why=why,
            replayed=replayed,
            actions=actions,
            eligible_group=event["eligible_group"],
            releases_paused=event["releases_paused"],
        )

    def _as_it_stands(self, task_id: int | None, deadline: Deadline) -> Task | None:
        try:
            rows = self._guard.run_once(tasks.TASK_BY_ID, {"task_id": task_id}, deadline)
        except StoreError:
            # What became of the operation is certain from its event, without the task.
            return None
        return tasks.as_task(rows[0]) if rows else None

    def failed(self, attempt: Attempt, error: StoreError) -> Outcome:
        """The Outcome that tells what is known after `error`."""
        match error:
            case NothingSent():
                return attempt.refused(Refusal.DATABASE_AWAY)
            case Busy():
                return attempt.refused(Refusal.BUSY)
            case Refused():
                _log.error("the database refused %s on %s: %s", attempt.operation, error.table, error)
                return attempt.refused(Refusal.DATABASE_REFUSED)
            case Lost():
                _log.warning("no answer to %s %s: %s", attempt.operation, attempt.op_id, error)
        return attempt.answered(Verdict.UNKNOWN, why=Refusal.CONNECTION_LOST)
