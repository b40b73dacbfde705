"""Everything that people may do to a task: one method, one conditional write, one Outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.domain.outcomes import Outcome
from dibs.domain.task import SETTLED_STATUSES, ActionStatus
from dibs.domain.text import clean
from dibs.domain.transitions import Operation
from dibs.service.claims import Claims, Membership
from dibs.service.release_pauses import ReleasePauses
from dibs.service.releases import Releases
from dibs.service.telemetry import Telemetry
from dibs.service.writes import Attempt, Writes
from dibs.store.guard import Guard

_SAYS_HOW_IT_ENDED = frozenset({*SETTLED_STATUSES, ActionStatus.UNKNOWN})


class TransitionService:
    """The operations of `dibs.domain.transitions`.

    Every method takes the operation id of the press or command (`op_id`, made up where there is none) and
    a deadline, and returns an Outcome; refusals are values, never exceptions. An operation id that was
    used before is answered as the first time, and nothing is written. Without `membership` the stored
    standing of a person is final.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        guard: Guard | None = None,
        membership: Membership | None = None,
        telemetry: Telemetry | None = None,
        pauses: ReleasePauses | None = None,
    ) -> None:
        guard = guard or Guard(engine)
        self._writes = Writes(guard, telemetry)
        self._releases = Releases(self._writes, pauses or ReleasePauses(guard))
        self._claims = Claims(guard, self._writes, membership)

    def claim(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Make an eligible member the owner of a queued task, with a new lease.

        A person who is not known as eligible is looked up afresh before the refusal is final.
        """
        return self._claims.claim(Attempt(Operation.CLAIM, task_id, actor_id, version, op_id, deadline))

    def claim_next(
        self,
        queue_ids: Sequence[int],
        actor_id: str,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Claim the longest waiting task of these queues that the person may claim.

        Two people at once get two tasks. Refused with `nothing_waiting` where none is left.
        """
        attempt = Attempt(Operation.CLAIM, 0, actor_id, None, op_id, deadline)
        return self._writes.counted(self._claims.claim_next(queue_ids, attempt))

    def renew(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Give the owner a new lease from now on, while the old one is current."""
        return self._writes.carry_out(Attempt(Operation.RENEW, task_id, actor_id, version, op_id, deadline))

    def start(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        confirmed: bool = False,
        answers: Mapping[int, ActionStatus] | None = None,
        finding: str | None = None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Begin work on a claimed task. A flagged one needs its check confirmed in the same write.

        `answers` says of each open external action, by its id, whether it was completed; `finding` is
        what the person saw. Giving any of them confirms the check.
        """
        settled = _settled(answers)
        found = clean(finding)
        confirmed = confirmed or bool(settled) or found is not None
        attempt = Attempt(Operation.START, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(
            attempt,
            detail={"answers": settled} if confirmed else None,
            confirmed=confirmed,
            answers=json.dumps(settled),
            finding=found,
        )

    def record_action(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        description: str,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Record an external action, in progress, before it is done outside."""
        attempt = Attempt(Operation.RECORD_ACTION, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(attempt, description=clean(description))

    def resolve_action(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        action_id: int,
        status: ActionStatus,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Say how an open external action ended: completed, not_completed or unknown."""
        attempt = Attempt(Operation.RESOLVE_ACTION, task_id, actor_id, version, op_id, deadline)
        if status not in _SAYS_HOW_IT_ENDED or not Attempt.is_id(action_id):
            return self._writes.carry_out(attempt, readable=False)
        answers = {str(action_id): str(status)}
        detail = {"answers": answers}
        return self._writes.carry_out(
            attempt, detail=detail, action_id=action_id, answers=json.dumps(answers)
        )

    def note(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        text: str,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Save a working note of the owner's; it is never the final response to the customer."""
        attempt = Attempt(Operation.NOTE, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(attempt, text=clean(text))

    def commit(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        committed_to: datetime,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Set the time that the owner commits to. The deadline that the requester asked for stays as it is.

        Raises ValueError where `committed_to` names no time zone.
        """
        if committed_to.utcoffset() is None:
            raise ValueError("committed_to needs a time zone")
        attempt = Attempt(Operation.COMMIT, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(
            attempt, detail={"committed_to": committed_to.isoformat()}, committed_to=committed_to
        )

    def done(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        resolution: str | None = None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Finish a started task. It stands after the lease has lapsed, while state and owner still match."""
        attempt = Attempt(Operation.DONE, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(attempt, resolution=clean(resolution))

    def release(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        reason: str | None,
        comment: str | None = None,
        handoff_note: str | None = None,
        external_action: str | None = None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Hand a task back to the queue and leave its release card, in the same write.

        `reason` is one of the queue's list. `external_action` is one of ExternalAnswer: required where the
        task is started or an external action is open. The answer goes to every open action. Where the
        database refuses a record, nothing changes and the queue's releases pause (see `release_pauses`).
        """
        return self._releases.release(
            Attempt(Operation.RELEASE, task_id, actor_id, version, op_id, deadline),
            reason=reason,
            comment=comment,
            handoff_note=handoff_note,
            external_action=external_action,
        )

    def check(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        answers: Mapping[int, ActionStatus] | None = None,
        finding: str | None = None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Confirm what happened outside and clear needs_check, as the owner or a supervisor.

        `answers` says of each open external action, by its id, whether it was completed.
        """
        settled = _settled(answers)
        attempt = Attempt(Operation.CHECK, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(
            attempt, detail={"answers": settled}, answers=json.dumps(settled), finding=clean(finding)
        )

    def transfer(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        new_owner: str,
        *,
        reason: str | None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Make somebody else the owner, as a supervisor, where the queue has turned this on.

        `reason` is a sentence of the supervisor's. The new owner must be eligible, and is looked up afresh
        before anything is refused for it. Both owners are told.
        """
        attempt = Attempt(Operation.TRANSFER, task_id, actor_id, version, op_id, deadline)
        return self._claims.transfer(attempt, new_owner, clean(reason))

    def force_release(
        self,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        reason: str | None,
        comment: str | None = None,
        handoff_note: str | None = None,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Return somebody's task to the queue, as a supervisor, where the queue has turned this on.

        It leaves a release card that names the supervisor, and flags the task as an expiry would.
        """
        attempt = Attempt(Operation.FORCE_RELEASE, task_id, actor_id, version, op_id, deadline)
        return self._releases.force(attempt, reason=reason, comment=comment, handoff_note=handoff_note)

    def judge(
        self,
        operation: Operation,
        task_id: int,
        actor_id: str,
        version: int,
        *,
        op_id: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Have an operation refused for who asks and when, and the refusal recorded; it never succeeds.

        For a press that would open a form which could not be accepted.
        """
        attempt = Attempt(operation, task_id, actor_id, version, op_id, deadline)
        return self._writes.carry_out(attempt, judge_only=True)

    def settle(
        self,
        outcome: Outcome,
        *,
        task_id: int,
        version: int,
        deadline: Deadline,
        queue_id: int | None = None,
    ) -> Outcome:
        """Find out what became of an operation whose outcome is unknown.

        `queue_id` is one of the queues of a `claim_next`, which has no task before it succeeds.

        Where its event is missing, a refusal with its operation id is recorded, so that the lost write can
        no longer take effect: the id is unique. The answer is definite, or unknown again where the
        database still does not answer.
        """
        attempt = Attempt(
            outcome.operation, task_id, outcome.actor_id or "", version, outcome.op_id, deadline
        )
        try:
            return self._writes.counted(self._writes.settle(attempt, queue_id))
        except StoreError:
            return outcome


def _settled(answers: Mapping[int, ActionStatus] | None) -> dict[str, str]:
    """The answers that settle an action; `unknown` is no answer to a check."""
    return {
        str(action): str(status) for action, status in (answers or {}).items() if status in SETTLED_STATUSES
    }
