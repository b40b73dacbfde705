"""The messages that Dibs sends of its own accord: to supervisors, to owners, to former owners."""

from __future__ import annotations

from enum import StrEnum


class Notice(StrEnum):
    """What a message is about. Each is sent once to each of its recipients."""

    NEEDS_CHECK = "needs_check"
    """To supervisors: a task came back, and something may have happened outside."""
    LEASE_ENDED = "lease_ended"
    """To the former owner: the sweep returned the task."""
    LEASE_ENDS_SOON = "lease_ends_soon"
    """To the owner, a while before the lease ends."""
    HOLD_ENDS_SOON = "hold_ends_soon"
    """To the owner and the supervisors: the task can soon not be renewed any more."""
    TRANSFERRED_AWAY = "transferred_away"
    """To the former owner."""
    TRANSFERRED_TO = "transferred_to"
    """To the new owner."""
    FORCE_RELEASED = "force_released"
    """To the former owner."""
    BREAKER_OPEN = "breaker_open"
    """To supervisors: more leases ended than allowed, and returning tasks is paused."""
    CLOCK_STOPPED = "clock_stopped"
    """To supervisors: the database's clock cannot be trusted, and no lease is ended."""
    RELEASES_PAUSED = "releases_paused"
    """To supervisors: the database refused the record of a release."""
    OWNER_GONE = "owner_gone"
    """To supervisors: an owner was deactivated or lost access."""
    CHANNEL_GONE = "channel_gone"
    """To supervisors: the cards of the queue can no longer be shown in its channel."""
