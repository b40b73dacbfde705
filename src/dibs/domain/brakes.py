"""What stops the sweep, or releases, until a supervisor lets them go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Brake(StrEnum):
    """Each of them is lifted by a supervisor's resume."""

    BREAKER = "breaker"
    """Tasks of one queue are not returned, because too many leases ended or a supervisor said so."""
    CLOCK = "clock"
    """No task is returned, because the database's clock jumped ahead."""
    RELEASES = "releases"
    """Tasks of one queue cannot be handed back, because the database refused the record of it."""


class QueueEvent(StrEnum):
    """What the record says of a whole queue."""

    SETTINGS_CHANGED = "settings_changed"
    """By a supervisor; the event holds the old and the new value of each."""

    PAUSED = "paused"
    RESUMED = "resumed"
    GRACED = "graced"
    """The leases got more time after an outage."""
    PAUSE_REJECTED = "pause_rejected"
    RESUME_REJECTED = "resume_rejected"


@dataclass(frozen=True, slots=True)
class Paused:
    """What came of asking to pause a queue."""

    allowed: bool
    supervisors: tuple[str, ...] = ()
    """Where it was not allowed: who may."""
    changed: bool = False
    since: datetime | None = None
    """Where it was paused already: since when, and by whom."""
    by: str | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came of asking to resume a queue: the brakes that were lifted, and those that could not be."""

    allowed: bool
    supervisors: tuple[str, ...] = ()
    lifted: frozenset[Brake] = frozenset()
    still: frozenset[Brake] = frozenset()
    why: str | None = None
    """Where releases stay paused: what the database said to the trial."""
    sweep_holds_still: bool = False
    """Whether no lease is ended just now all the same, until the clocks have agreed for a while."""
    replayed: bool = False
