"""What somebody asks of the records, and what they hold: events, with what people wrote beside them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from dibs.domain.queue import Event


class Topic(StrEnum):
    """What the records are asked about."""

    TASK = "task"
    QUEUE = "queue"
    PERSON = "person"
    """What they did, and what happened to the tasks that they held."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The events of one task or queue, or of a person in some queues; `since` leaves out what is older."""

    topic: Topic
    queue_ids: tuple[int, ...]
    subject: int | str
    """The task's or the queue's id, or the person's."""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place among the events, between two of which others may come to stand."""

    at: datetime
    id: int


NEWEST = Place(datetime(9999, 12, 31, tzinfo=UTC), 2**63 - 1)
"""Above every event."""
OLDEST = Place(datetime(1, 1, 3, tzinfo=UTC), 0)
"""Below every event."""


@dataclass(frozen=True, slots=True)
class ReleaseCard:
    """The record of one release. `forced_by` is the supervisor, where it was not the owner."""

    previous_owner: str
    state_at_release: str
    version_before: int
    version_after: int
    reason: str
    comment: str | None
    handoff_note: str | None
    external_action: str | None
    forced_by: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """One event, the task that it is of, and its release card where it left one."""

    id: int
    queue_key: str
    number: int | None
    title: str | None
    op_id: str
    event: Event
    card: ReleaseCard | None = None
    hash: bytes | None = None

    @property
    def task_name(self) -> str | None:
        """The name of its task, such as SUP-12; None where it is of none."""
        return None if self.number is None else f"{self.queue_key}-{self.number}"

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.event.at, self.id)


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, the newest first, and whether there are others beside them."""

    records: tuple[Record, ...]
    older: bool
    newer: bool
