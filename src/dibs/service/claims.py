"""Claiming: who may is looked up afresh before anybody is refused for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed, StoreError
from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import Standing
from dibs.service.writes import Attempt, Writes
from dibs.store import members
from dibs.store.guard import Guard
from dibs.store.operations import LOOKED_UP_AFRESH, claim_of_longest_waiting

_log = logging.getLogger(__name__)


_NOT_KNOWN_YET = frozenset({Standing.UNVERIFIED, Standing.UNKNOWN})


class Membership(Protocol):
    """Where the standing of a person in a queue is looked up afresh."""

    def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
        """Bring the person's row in the queue up to date. Raises LookUpFailed."""


class Claims:
    """Carries out claims. Without `membership` the stored standing of a person is final."""

    def __init__(self, guard: Guard, writes: Writes, membership: Membership | None) -> None:
        self._guard = guard
        self._writes = writes
        self._membership = membership

    def claim(self, attempt: Attempt) -> Outcome:
        """Claim the task of `attempt`."""
        if self._membership is None:
            return self._writes.carry_out(attempt)
        outcome = self._writes.carry_out(attempt, not_final=LOOKED_UP_AFRESH)
        if outcome.replayed or outcome.task is None or outcome.why not in LOOKED_UP_AFRESH:
            return outcome
        looked_up = self._look_up([outcome.task.queue_id], attempt)
        return self._writes.carry_out(attempt, looked_up=looked_up)

    def transfer(self, attempt: Attempt, new_owner: str, reason: str | None) -> Outcome:
        """Transfer the task of `attempt` to `new_owner`."""
        given: dict[str, Any] = {"detail": {"to": new_owner}, "new_owner": new_owner, "text": reason}
        if self._membership is None:
            return self._writes.carry_out(attempt, **given)
        not_final = (Refusal.NEW_OWNER_NOT_ELIGIBLE,)
        outcome = self._writes.carry_out(attempt, not_final=not_final, **given)
        if outcome.replayed or outcome.task is None or outcome.why not in not_final:
            return outcome
        looked_up = self._look_up([outcome.task.queue_id], attempt, new_owner)
        return self._writes.carry_out(attempt, looked_up=looked_up, **given)

    def claim_next(self, queue_ids: Sequence[int], attempt: Attempt) -> Outcome:
        """Claim the longest waiting task of these queues that the person may claim."""
        if not queue_ids:
            return attempt.refused(Refusal.NOTHING_WAITING)
        try:
            if len(queue_ids) > 1:
                # A task of a queue in which the person is not known yet may have waited longest.
                self._look_up(self._not_known_yet(queue_ids, attempt), attempt)
            outcome = self._longest_waiting(queue_ids, attempt, pass_over=True)
            if outcome is not None:
                return outcome
            why = self._why_not(queue_ids, attempt)
            if why is None:
                # What was passed over may be waiting still: whoever had it locked need not have taken it.
                outcome = self._longest_waiting(queue_ids, attempt, pass_over=False)
                why = Refusal.NOTHING_WAITING
            return outcome or self._writes.refuse_without_task(attempt, queue_ids[0], why)
        except StoreError as error:
            return self._writes.failed(attempt, error)

    def _longest_waiting(
        self, queue_ids: Sequence[int], attempt: Attempt, *, pass_over: bool
    ) -> Outcome | None:
        parameters = {
            **attempt.identity,
            "queue_ids": list(queue_ids),
            "version": None,
            "detail": None,
            "not_final": [],
            "looked_up": True,
        }
        return self._writes.run(claim_of_longest_waiting(pass_over=pass_over), parameters, attempt)

    def _why_not(self, queue_ids: Sequence[int], attempt: Attempt) -> Refusal | None:
        """Why the person may claim nothing in these queues; None where they are, or turn out, eligible."""
        if Standing.ELIGIBLE in self._standings(queue_ids, attempt).values():
            return None
        if not self._look_up(queue_ids, attempt):
            return Refusal.MEMBERSHIP_UNKNOWN
        found = list(self._standings(queue_ids, attempt).values())
        if Standing.ELIGIBLE in found:
            return None
        return members.REFUSAL[found[0]] if found else Refusal.NOT_A_MEMBER

    def _not_known_yet(self, queue_ids: Sequence[int], attempt: Attempt) -> list[int]:
        known = self._standings(queue_ids, attempt)
        return [queue for queue in queue_ids if known.get(queue, Standing.UNKNOWN) in _NOT_KNOWN_YET]

    def _standings(self, queue_ids: Sequence[int], attempt: Attempt) -> Mapping[int, Standing]:
        rows = self._guard.run_once(
            members.STANDINGS, {"queue_ids": list(queue_ids), "user_id": attempt.actor_id}, attempt.deadline
        )
        return {row["queue_id"]: Standing(row["standing"]) for row in rows}

    def _look_up(self, queue_ids: Iterable[int], attempt: Attempt, user_id: str | None = None) -> bool:
        """Look a person up in each queue, by default the one who presses. False where that failed in any."""
        if self._membership is None:
            return True
        succeeded = True
        for queue_id in queue_ids:
            try:
                self._membership.look_up(queue_id, user_id or attempt.actor_id, attempt.deadline)
            except LookUpFailed as error:
                _log.warning("could not look up a person's membership: %s", error)
                succeeded = False
        return succeeded
