"""The messages that Dibs sends of its own accord: to supervisors, to owners, to former owners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from dibs.domain.queue import Facts


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


TO_ONE_PERSON = frozenset(
    {
        Notice.LEASE_ENDED,
        Notice.LEASE_ENDS_SOON,
        Notice.TRANSFERRED_AWAY,
        Notice.TRANSFERRED_TO,
        Notice.FORCE_RELEASED,
    }
)
"""What is of use to nobody but the person whom it addresses."""

GROUPED = frozenset({Notice.NEEDS_CHECK, Notice.LEASE_ENDED})
"""What may come for many tasks at once. One message to a recipient then lists them all."""
FEWEST_IN_A_GROUP = 4
MOST_IN_A_GROUP = 12
"""What fits into one message of Slack's whatever the tasks are called, with buttons for each."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """Who answered an alert that asked for a check, and when."""

    by: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Letter:
    """One notice to one recipient, with the newest state of what it is about.

    `recipient` is a channel or a person. `payload` is what was true when the notice was written. `over`
    tells of a notice about a whole queue that what it reports has ended; `settled` of one that asks for a
    check that somebody has checked.
    """

    id: int
    notice: Notice
    key: str
    recipient: str
    payload: Mapping[str, Any]
    queue_id: int
    queue_key: str
    queue_name: str
    queue_channel: str
    facts: Facts | None = None
    settled: Settlement | None = None
    over: bool = False

    @property
    def until(self) -> datetime | None:
        """The moment that a reminder is about."""
        moment = self.payload.get("until")
        return datetime.fromisoformat(str(moment)) if moment else None


def is_final(letter: Letter) -> bool:
    """Whether the message, as it is drawn now, need never be drawn again."""
    match letter.notice:
        case Notice.NEEDS_CHECK:
            return letter.settled is not None
        case Notice.LEASE_ENDS_SOON | Notice.HOLD_ENDS_SOON | Notice.OWNER_GONE:
            return not still_matters(letter)
        case Notice.BREAKER_OPEN | Notice.CLOCK_STOPPED | Notice.RELEASES_PAUSED:
            return letter.over
        case _:
            return True


def is_moot(letter: Letter) -> bool:
    """Whether a message that was not sent yet need not be sent any more."""
    of_an_owner = letter.notice in (Notice.LEASE_ENDS_SOON, Notice.HOLD_ENDS_SOON, Notice.OWNER_GONE)
    return of_an_owner and "unsent" not in letter.payload and not still_matters(letter)


def still_matters(letter: Letter) -> bool:
    """Whether a notice about an owner and their task is still true: same owner, same end of the lease."""
    task = letter.facts.task if letter.facts else None
    if task is None or task.lease_until is None:
        return False
    match letter.notice:
        case Notice.LEASE_ENDS_SOON:
            return task.owner_id == letter.recipient and task.lease_until == letter.until
        case Notice.HOLD_ENDS_SOON | Notice.OWNER_GONE:
            return task.owner_id == letter.payload.get("owner")
        case _:
            return False
