"""Handing a task back, by its owner or by a supervisor, as long as that can be recorded."""

from __future__ import annotations

from dibs.domain.outcomes import Outcome
from dibs.domain.task import ExternalAnswer
from dibs.domain.text import clean
from dibs.service.release_pauses import ReleasePauses
from dibs.service.writes import Attempt, Writes

_EXTERNAL_ANSWERS = frozenset(ExternalAnswer)

UNRECORDED_ACTION = "(not recorded before the release)"
"""How an external action is described that is first heard of when its task is handed back."""


class Releases:
    """Carries out releases, and has those of a queue paused where the database refuses their records."""

    def __init__(self, writes: Writes, pauses: ReleasePauses) -> None:
        self._writes = writes
        self._pauses = pauses

    def release(
        self,
        attempt: Attempt,
        *,
        reason: str | None,
        comment: str | None,
        handoff_note: str | None,
        external_action: str | None,
    ) -> Outcome:
        """Hand back the task of `attempt` (see `TransitionService.release`)."""
        given = clean(reason)
        stated = external_action if external_action in _EXTERNAL_ANSWERS else None
        return self._writes.carry_out(
            attempt,
            detail={"reason": given, "external_action": stated},
            pauses=self._pauses.refused,
            paused_here=self._pauses.held,
            reason=given,
            comment=clean(comment),
            handoff_note=clean(handoff_note),
            external_action=stated,
            # What cannot be understood is no statement, and not the same as having made none.
            readable=stated is not None or not external_action,
            unrecorded=UNRECORDED_ACTION,
        )

    def force(
        self, attempt: Attempt, *, reason: str | None, comment: str | None, handoff_note: str | None
    ) -> Outcome:
        """Force the release of the task of `attempt`."""
        given = clean(reason)
        return self._writes.carry_out(
            attempt,
            detail={"reason": given},
            pauses=self._pauses.refused,
            paused_here=self._pauses.held,
            reason=given,
            comment=clean(comment),
            handoff_note=clean(handoff_note),
        )
