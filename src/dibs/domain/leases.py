"""What the time that tasks were held says about the lease.

A hold is the time from a claim until its owner finishes the task, hands it back or loses it. What has to fit
into a lease is the whole hold, from claim to done, since starting does not renew it.

A hold that did not end in done (it expired, was handed back, was taken over, or still goes on) says only
that the work takes at least so long. Left out, or counted as if it had been finished, it would make the work
look shorter than it is. So the figures are read from the Kaplan-Meier estimate: at each length, the share of
the holds still going on that were finished then. Where no hold was cut short these are the plain median and
percentiles; each one that was can only raise them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby

from dibs.domain.queue import LONGEST_LEASE_MINUTES, Queue
from dibs.domain.transitions import EventKind

FEWEST = 20
"""From fewer finished holds than this no lease length is suggested."""

_HOURS = (1, 1.5, 2, 3, 4, 6, 8, 12, 24, 48, 72, 120)
STEPS = (5, 10, 15, 20, 30, 45, *(int(60 * hours) for hours in _HOURS), LONGEST_LEASE_MINUTES)
"""The lengths that are suggested, in minutes."""

_HALF, _NINE_OF_TEN = 0.5, 0.9
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Lasted:
    """`count` times that something lasted so many seconds; if not `finished`, at least so many."""

    seconds: float
    finished: bool = True
    count: int = 1


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, in seconds, against the lease. None: not known, it is more than was seen."""

    observations: tuple[Lasted, ...]
    count: int
    finished: int
    median: float | None
    ninetieth: float | None
    outlasted: int
    """How many lasted longer than the lease, finished or not."""

    @property
    def outlasted_share(self) -> float:
        """The share that lasted longer than the lease, between 0 and 1."""
        return self.outlasted / self.count if self.count else 0.0


class Advice(StrEnum):
    """What the observations say of the lease, and why."""

    TOO_FEW = "too_few"
    """Fewer than FEWEST holds were finished."""
    NOT_SEEN = "not_seen"
    """So many were cut short that nobody saw how long nine of ten take: no reason to shorten it."""
    KEEP = "keep"
    """Nine of ten fit, and the next step down would be too short."""
    LENGTHEN = "lengthen"
    """Fewer than nine of ten fit."""
    SHORTEN = "shorten"
    """Nine of ten would fit into less, so a forgotten task would come back sooner."""
    TOO_LONG = "too_long"
    """Nine of ten take longer than the longest lease there is."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The lease that would suit, from so many finished holds. `seconds` None: none is suggested."""

    advice: Advice
    seconds: int | None
    finished: int


@dataclass(frozen=True, slots=True)
class Day:
    """What happened to the leases of a queue on one day in UTC."""

    day: date
    expired: int
    flagged: int
    """Tasks that came back needing a check."""


@dataclass(frozen=True, slots=True)
class LeaseReview:
    """How a queue's lease worked in the `days` before `until`."""

    queue: Queue
    days: int
    since: datetime
    until: datetime
    to_start: Spread
    """From claim to start."""
    to_done: Spread
    """From start to done."""
    whole: Spread
    """From claim to done."""
    by_day: tuple[Day, ...]
    """Every day of the period, also those on which nothing happened."""
    kinds: Mapping[str, int]
    """How many events of each kind there were."""
    reasons: tuple[tuple[str, int], ...]
    """Why tasks were handed back, the commonest first."""
    suggestion: Suggestion

    @property
    def expired(self) -> int:
        """How many leases ran out."""
        return self.kinds.get(EventKind.EXPIRED, 0)

    @property
    def flagged(self) -> int:
        """How many tasks came back needing a check."""
        return sum(day.flagged for day in self.by_day)

    @property
    def empty(self) -> bool:
        """Whether nothing was observed."""
        return not self.whole.count and not any(self.kinds.values())


def spread(observations: Iterable[Lasted], lease_seconds: int) -> Spread:
    """The figures of some observations, in any order, against a lease."""
    ordered = tuple(sorted(observations, key=lambda one: (one.seconds, not one.finished)))
    return Spread(
        observations=ordered,
        count=sum(one.count for one in ordered),
        finished=sum(one.count for one in ordered if one.finished),
        median=_reached_by(ordered, _HALF),
        ninetieth=_reached_by(ordered, _NINE_OF_TEN),
        outlasted=sum(one.count for one in ordered if one.seconds > lease_seconds),
    )


def _reached_by(ordered: Sequence[Lasted], share: float) -> float | None:
    """The seconds within which this share of the holds would be finished; None where that was not seen."""
    going_on = sum(one.count for one in ordered)
    unfinished = 1.0
    for _, together in groupby(ordered, key=lambda one: one.seconds):
        same = list(together)
        unfinished *= 1 - sum(one.count for one in same if one.finished) / going_on
        if unfinished <= 1 - share + _TINY:
            return same[0].seconds
        going_on -= sum(one.count for one in same)
    return None


def suggest(whole: Spread, lease_seconds: int) -> Suggestion:
    """The lease that nine of ten holds fit into, in a round step of minutes, or why none is suggested."""
    if whole.finished < FEWEST:
        return Suggestion(Advice.TOO_FEW, None, whole.finished)
    if whole.ninetieth is None:
        return Suggestion(Advice.NOT_SEEN, None, whole.finished)
    steps = (60 * minutes for minutes in STEPS)
    step = next((seconds for seconds in steps if seconds >= whole.ninetieth), None)
    if step is None:
        return Suggestion(Advice.TOO_LONG, None, whole.finished)
    if whole.ninetieth <= lease_seconds <= step:
        return Suggestion(Advice.KEEP, lease_seconds, whole.finished)
    advice = Advice.LENGTHEN if lease_seconds < step else Advice.SHORTEN
    return Suggestion(advice, step, whole.finished)
