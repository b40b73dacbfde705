"""What a queue is, and what is known of a task beside its own row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dibs.domain.task import ActionStatus, ExternalAction, Reason, Task

KEY_FORM = re.compile(r"[A-Z][A-Z0-9]{1,9}")
"""A queue's key: two to ten capital letters and digits, a letter first."""

DEFAULT_LEASE_MINUTES = 30
LONGEST_LEASE_MINUTES = 7 * 24 * 60
DEFAULT_SPIKE_LIMIT = 10
DEFAULT_SPIKE_MINUTES = 10
USUAL_REASONS: tuple[str, ...] = tuple(Reason)
"""Why a task may be handed back in a queue that has no list of its own."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A list of tasks worked by one team, shown in one channel, with everything that can be set."""

    id: int
    workspace: str
    key: str
    name: str
    channel_id: str
    lease_seconds: int
    eligible_group: str | None = None
    """The user group whose members may claim; None: the members of the channel."""
    alert_channel: str | None = None
    """Where alerts go; None: to each supervisor, in a direct message."""
    spike_limit: int = DEFAULT_SPIKE_LIMIT
    spike_minutes: int = DEFAULT_SPIKE_MINUTES
    spike_share: int | None = None
    """Percent of the leases held, which is the limit where it is more."""
    longest_hold_seconds: int | None = None
    """How long one owner may keep a task by renewing; None: without end."""
    reasons: tuple[str, ...] = USUAL_REASONS
    """Why a task may be handed back: values of Reason, and the queue's own reasons in its own words."""
    supervisor_operations: bool = False
    """Whether supervisors may transfer a task and force its release."""
    settings_version: int = 1
    """Every change of the settings adds 1, so that no change overwrites another one unseen."""


@dataclass(frozen=True, slots=True)
class NewQueue:
    """What somebody asks for who makes a queue. `lease_seconds` and the spike's numbers are positive."""

    workspace: str
    channel_id: str
    key: str
    name: str
    lease_seconds: int
    created_by: str
    supervisors: tuple[str, ...] = ()
    eligible_group: str | None = None
    alert_channel: str | None = None
    spike_limit: int = DEFAULT_SPIKE_LIMIT
    spike_minutes: int = DEFAULT_SPIKE_MINUTES
    spike_share: int | None = None
    longest_hold_seconds: int | None = None
    reasons: tuple[str, ...] | None = None
    """None: the usual ones."""
    supervisor_operations: bool = False


@dataclass(frozen=True, slots=True)
class Handover:
    """What the last person who handed a task back left for the next owner."""

    by: str
    at: datetime
    reason: str
    comment: str | None
    note: str | None
    external_action: str | None
    forced_by: str | None = None
    """The supervisor who returned it, where it was not the owner."""


@dataclass(frozen=True, slots=True)
class Flagged:
    """What made a task need its check."""

    kind: str
    by: str | None
    at: datetime
    former_owner: str | None
    former_state: str | None


@dataclass(frozen=True, slots=True)
class EventAction:
    """An external action that an event is about; `status` where the event said how it ended."""

    reference: str
    description: str
    status: ActionStatus | None


@dataclass(frozen=True, slots=True)
class Note:
    """A working note."""

    author_id: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a task, or was refused. `actor_id` None is the sweep."""

    kind: str
    actor_id: str | None
    at: datetime
    version_before: int | None
    version_after: int | None
    version_seen: int | None
    why: str | None
    detail: dict[str, Any] | None
    text: str | None
    """The note, the action's description or the release's comment that the event came with."""
    handoff_note: str | None = None
    resolution: str | None = None
    actions: tuple[EventAction, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a task's card shows."""

    task: Task
    channel_id: str
    actions: tuple[ExternalAction, ...] = ()
    """All external actions, oldest first."""
    handover: Handover | None = None
    note: Note | None = None
    reasons: tuple[str, ...] = USUAL_REASONS
    """Why a task of this queue may be handed back."""
    releases_paused: bool = False
    """Whether nothing of this queue can be handed back now (see `dibs.service.release_pauses`)."""
    flagged: Flagged | None = None
    """Where the task needs a check: why."""

    @property
    def open_actions(self) -> tuple[ExternalAction, ...]:
        """The external actions of which nobody has said yet how they ended."""
        return tuple(action for action in self.actions if action.status.is_open)
