"""What a task is: the row that everybody looks at, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

LARGEST_ID = 2**63 - 1
"""No row can have a higher id."""


class State(StrEnum):
    """Where a task stands. needs_check is a flag beside it, not a fifth state."""

    QUEUED = "queued"
    """Nobody has it; an eligible member may claim it."""
    CLAIMED = "claimed"
    """One owner has taken it and not begun."""
    STARTED = "started"
    """Its owner is working on it, so something outside may have happened."""
    DONE = "done"
    """Finished by its owner. Nothing leaves this state."""


class ActionStatus(StrEnum):
    """What is known of an external action: something done outside the queue, such as a refund."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    NOT_COMPLETED = "not_completed"
    UNKNOWN = "unknown"

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to find out how it ended."""
        return self in OPEN_STATUSES


OPEN_STATUSES = frozenset({ActionStatus.IN_PROGRESS, ActionStatus.UNKNOWN})
SETTLED_STATUSES = frozenset({ActionStatus.COMPLETED, ActionStatus.NOT_COMPLETED})


class Standing(StrEnum):
    """Why a person may or may not claim in a queue. Only `eligible` may."""

    ELIGIBLE = "eligible"
    UNVERIFIED = "unverified"
    """Among those who may claim, but it has not been looked up yet who this is."""
    UNKNOWN = "unknown"
    """Who may claim was changed since, and it has not been looked up yet whether this person may."""
    LEFT = "left"
    """Not among those who may claim: the members of the queue's channel, or of its user group."""
    BOT = "bot"
    OTHER_WORKSPACE = "other_workspace"
    DEACTIVATED = "deactivated"


class Reason(StrEnum):
    """Why a task is handed back. A queue may set its own list."""

    MISSING_INFORMATION = "missing_information"
    OUT_OF_SCOPE = "out_of_scope"
    SHIFT_ENDING = "shift_ending"
    NEEDS_SPECIALIST = "needs_specialist"
    OTHER = "other"
    """The comment says which; it is required then."""


class ExternalAnswer(StrEnum):
    """What the person who releases says of the external action."""

    NONE = "none"
    """Nothing was done outside. Only possible where no action is open."""
    COMPLETED = "completed"
    NOT_COMPLETED = "not_completed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Task:
    """One task as it stood when the database last answered. Times are in UTC.

    `version` is the fencing token: every change adds exactly 1, and every button carries the one it
    was drawn with. `last_kind`, `last_actor` and `last_at` tell the newest change, by whom and when;
    `last_actor` is None where the sweep made it.
    """

    id: int
    queue_id: int
    queue_key: str
    number: int
    title: str
    details: str
    state: State
    owner_id: str | None
    lease_until: datetime | None
    version: int
    needs_check: bool
    started_before: bool
    deadline: datetime | None
    committed_to: datetime | None
    resolution: str | None
    created_by: str
    created_at: datetime
    last_kind: str
    last_actor: str | None
    last_at: datetime

    @property
    def name(self) -> str:
        """The name that people use, such as SUP-12."""
        return f"{self.queue_key}-{self.number}"


@dataclass(frozen=True, slots=True)
class ExternalAction:
    """Something done outside the queue, recorded before it is done."""

    id: int
    task_id: int
    number: int
    description: str
    status: ActionStatus
    recorded_by: str
    recorded_at: datetime

    def reference(self, task: Task) -> str:
        """The stable name of the action, such as SUP-12-A1, whoever owns the task."""
        return f"{task.name}-A{self.number}"
