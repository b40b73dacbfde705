"""What came of an operation, as a value: changed, unchanged or unknown, why, and the task as it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dibs.domain.task import ExternalAction, Task
from dibs.domain.transitions import Operation


class Verdict(StrEnum):
    """Whether the operation changed the task."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """Said only before anything was sent, or after a definite answer of the database."""
    UNKNOWN = "unknown"
    """The connection was lost after sending. Settled by the operation id once the database answers."""


class Refusal(StrEnum):
    """Why an operation changed nothing."""

    NO_SUCH_TASK = "no_such_task"
    NOTHING_WAITING = "nothing_waiting"
    """`next` found no queued task that the person may claim."""
    ALREADY_DONE = "already_done"
    ALREADY_YOURS = "already_yours"
    """The person who claims holds the task already."""
    HELD = "held"
    """Somebody else owns the task."""
    NOT_HELD = "not_held"
    """The task is back in the queue, by expiry or by a release; the task's last change says which."""
    STALE = "stale"
    """The task changed since the button was drawn."""
    WRONG_STATE = "wrong_state"
    LEASE_ENDED = "lease_ended"
    """The lease is over; the sweep returns the task shortly."""
    NOT_A_MEMBER = "not_a_member"
    """Not in the queue's channel, or not in the user group whose members may claim."""
    BOT = "bot"
    OTHER_WORKSPACE = "other_workspace"
    DEACTIVATED = "deactivated"
    MEMBERSHIP_UNKNOWN = "membership_unknown"
    """It could not be looked up whether the person may claim, and that is a refusal."""
    NOT_ALLOWED = "not_allowed"
    """Neither the owner nor a supervisor of the queue."""
    NOT_A_SUPERVISOR = "not_a_supervisor"
    TURNED_OFF = "turned_off"
    """The queue has not turned the supervisors' operations on."""
    HELD_TOO_LONG = "held_too_long"
    """The lease ends with the longest time that the queue lets one owner keep a task."""
    RELEASES_PAUSED = "releases_paused"
    """The database refused the record of a release, and no supervisor has resumed releases yet."""
    NEW_OWNER_NOT_ELIGIBLE = "new_owner_not_eligible"
    THEIRS_ALREADY = "theirs_already"
    """The person whom the task would be transferred to holds it already."""
    NEEDS_CHECK = "needs_check"
    NOT_FLAGGED = "not_flagged"
    ACTION_OPEN = "action_open"
    NO_SUCH_ACTION = "no_such_action"
    ACTION_SETTLED = "action_settled"
    ANSWERS_MISSING = "answers_missing"
    """An open external action got no answer in the check."""
    REASON_MISSING = "reason_missing"
    COMMENT_MISSING = "comment_missing"
    HANDOFF_NOTE_MISSING = "handoff_note_missing"
    ACTION_UNSTATED = "action_unstated"
    """The release says nothing of the external action, or `none` although one is open."""
    TEXT_MISSING = "text_missing"
    INVALID = "invalid"
    """A value that no screen of Dibs sends."""
    BUSY = "busy"
    """The database answered that it could not get to it in time."""
    DATABASE_AWAY = "database_away"
    """Nothing was sent."""
    DATABASE_REFUSED = "database_refused"
    """The database refused the write, and all of it was rolled back."""
    CONNECTION_LOST = "connection_lost"
    """With the verdict unknown: no answer came. With unchanged: it was settled that nothing happened."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one operation.

    `task` is the task as it now stands, or None where it is not known. `replayed` tells that this very
    operation was answered before, and that nothing was written this time. `actions` are the open external
    actions where the refusal is about them, or the one that the operation recorded. `releases_paused` tells
    that this refusal has paused the releases of the task's queue. `eligible_group` is the user group whose
    members may claim; None: the members of the queue's channel.
    """

    operation: Operation
    verdict: Verdict
    op_id: str
    task: Task | None = None
    why: Refusal | None = None
    actor_id: str | None = None
    replayed: bool = False
    answered_at: datetime | None = None
    actions: tuple[ExternalAction, ...] = field(default=())
    releases_paused: bool = False
    who_resumes: tuple[str, ...] = ()
    """Where releases are paused: the supervisors of the queue, one of whom lets them go on."""
    eligible_group: str | None = None

    @property
    def changed(self) -> bool:
        """The task was changed by this operation."""
        return self.verdict is Verdict.CHANGED

    @property
    def unchanged(self) -> bool:
        """It is certain that this operation changed nothing."""
        return self.verdict is Verdict.UNCHANGED

    @property
    def unknown(self) -> bool:
        """It is not known yet whether this operation changed the task."""
        return self.verdict is Verdict.UNKNOWN
