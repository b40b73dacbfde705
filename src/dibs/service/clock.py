"""Whether leases may be ended now: the clock is to be trusted, and owners could have renewed.

Every few seconds, and at each sweep, the database's clock is read and judged, and the time is written down
for all processes. Where that had stopped for long, the bot, the database or Slack was away: nobody could
renew, so the leases get a grace before any of them is ended.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from dibs.deadline import Deadline
from dibs.domain.clock import AGREED_SECONDS, Course, Fault, Reading
from dibs.store import clock
from dibs.store.guard import Guard, Row, Run

_log = logging.getLogger(__name__)

_STATEMENT_SECONDS = 5.0
_GRACE_SECONDS = 20.0
_SOON_AGAIN_SECONDS = 2.0
"""The time is not written down again sooner than this."""
_TELL_AGAIN_SECONDS = 10.0
"""How often it is seen to it that everybody knows of a clock that is off, also of queues made meanwhile."""

_FAULTS = {
    Fault.BACKWARDS: "the database's clock was set back by {:.1f} s",
    Fault.AHEAD: "the database's clock jumped ahead by {:.1f} s",
    Fault.APART: "the database's clock and this machine's differ by {:.1f} s",
}


def running_on() -> float:
    """Seconds on a clock that is never set and also counts while the machine sleeps.

    Python's own monotonic clock stands still on Linux while a laptop is suspended. The database's clock does
    not, so that waking up would look like a jump ahead. A process that was merely stopped sees both go on.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class ClockLimits:
    """How far clocks may differ, how long an outage is, and what grace follows it. In seconds."""

    tolerance: float = 5.0
    outage: float = 300.0
    grace: float = 600.0


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. `holds_still` says why no lease may be ended; None where they may."""

    holds_still: str | None
    database: float
    monotonic: float


class ClockService:
    """One for each process. Safe in several processes and threads at once.

    `slack_answers` says whether Slack answered when it was last asked. `wall` and `monotonic` are the
    process's clocks, in seconds.
    """

    def __init__(
        self,
        guard: Guard,
        limits: ClockLimits | None = None,
        *,
        slack_answers: Callable[[], bool] = lambda: True,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = running_on,
    ) -> None:
        self._guard = guard
        self._limits = limits or ClockLimits()
        self._slack_answers = slack_answers
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._course = Course()
        self._trip: int | None = None
        self._last: Look | None = None
        self._told_at = -math.inf
        self.holds_still: str | None = None
        """Why no lease is ended just now; None where leases are ended as ever."""

    def look_once(self) -> Look:
        """Read and judge the clock, write down that owners can renew, and give the grace after an outage.

        Raises StoreError where the database did not answer.
        """
        with self._lock:
            row, reading = self._read()
            held = self._distrust(row, reading) or self._beat(row, reading)
            if held and not self.holds_still:
                _log.error("the sweep holds still: %s", held)
            elif self.holds_still and not held:
                _log.warning("the sweep goes on")
            self.holds_still = held
            self._last = Look(held, reading.database, reading.monotonic)
            return self._last

    def look_again(self, seconds: float) -> Look:
        """The last look where it is no older than so many seconds, or a new one."""
        last = self._last
        return last if last and self._age(last) <= seconds else self.look_once()

    def _age(self, look: Look) -> float:
        return self._monotonic() - look.monotonic

    def trusted_until(self, look: Look) -> datetime:
        """How far the database's clock may have come since a look; beyond that it must have jumped."""
        return datetime.fromtimestamp(look.database + self._age(look) + self._limits.tolerance, UTC)

    def _read(self) -> tuple[Row, Reading]:
        wall, monotonic = self._wall(), self._monotonic()
        [row] = self._guard.run(clock.READ, {}, Deadline.after(_STATEMENT_SECONDS))
        reading = Reading.between(
            row["clock"].timestamp(), wall=(wall, self._wall()), monotonic=(monotonic, self._monotonic())
        )
        return row, reading

    def _distrust(self, row: Row, reading: Reading) -> str | None:
        """Why the clock is not to be trusted; None where it is."""
        before, trip = self._course, row["trip"]
        if row["stopped_since"] is not None:
            # Until a supervisor resumes, nothing that the clock does matters; then it is right as it is.
            self._course, self._trip = Course().after(reading, tolerance=math.inf), trip
            return _stopped(row["jump_seconds"] or 0.0)
        if self._trip is not None and trip > self._trip:
            before = Course()
        course = self._after(before, row, reading)
        if course.fault is Fault.AHEAD:
            stop = {"seconds": course.seconds, "trip": trip}
            self._guard.run_once(clock.STOP, stop, Deadline.after(_STATEMENT_SECONDS))
            self._course, self._trip = Course(course.base), trip + 1
            return _stopped(course.seconds)
        if course.held and (
            not before.held or (course.fault and reading.monotonic - self._told_at >= _TELL_AGAIN_SECONDS)
        ):
            self._tell(course)
            self._told_at = reading.monotonic
        elif not course.held and (before.held or self._trip is None):
            # Also at the start: the process that told of it may have ended since. One for which it is still
            # true tells of it again.
            self._guard.run(clock.OVER, {}, Deadline.after(_STATEMENT_SECONDS))
        # Only now, or what could not be written down would be forgotten.
        self._course, self._trip = course, trip
        return _held(course, reading)

    def _after(self, before: Course, row: Row, reading: Reading) -> Course:
        if self._trip is None and row["swept_at"] is not None:
            behind = row["swept_at"].timestamp() - reading.database
            if behind > self._limits.tolerance:
                return before.behind(reading, behind)
        return before.after(reading, tolerance=self._limits.tolerance)

    def _tell(self, course: Course) -> None:
        alert = {"why": course.fault, "seconds": course.seconds}

        def work(run: Run) -> None:
            run(clock.LOCK, {})
            run(clock.TELL, alert)

        self._guard.transact(work, Deadline.after(_STATEMENT_SECONDS))

    def _beat(self, row: Row, reading: Reading) -> str | None:
        """Write down that owners can renew. Why leases may not be ended yet, or None."""
        swept_at = row["swept_at"].timestamp() if row["swept_at"] else None
        silent = 0.0 if swept_at is None else reading.database - swept_at
        away = silent > self._limits.outage
        if not self._slack_answers():
            return f"Slack has not answered for {silent:.0f} s" if away else None
        if swept_at is not None and 0 <= silent < _SOON_AGAIN_SECONDS:
            return None
        limits = {"outage": self._limits.outage}
        if not away:
            beaten = self._guard.run(clock.BEAT, limits, Deadline.after(_STATEMENT_SECONDS))
            if not (beaten and beaten[0]["away"]):
                return None
        limits["grace"] = self._limits.grace
        given = self._guard.run(clock.GRACE, limits, Deadline.after(_GRACE_SECONDS))
        if given:
            _log.warning(
                "nobody could renew for %s s; %s leases now end in %.0f s at the earliest",
                given[0]["silent"],
                given[0]["number"],
                self._limits.grace,
            )
            return None
        # Another process is giving the grace, or has just given it.
        return "the leases are getting a grace after an outage"


def _held(course: Course, reading: Reading) -> str | None:
    if course.fault:
        return _FAULTS[course.fault].format(course.seconds)
    if not course.held:
        return None
    agreed = reading.monotonic - (course.agreed_since or reading.monotonic)
    return f"the clocks have agreed again for {agreed:.0f} s of the {AGREED_SECONDS:.0f} s that it takes"


def _stopped(seconds: float) -> str:
    return f"{_FAULTS[Fault.AHEAD].format(seconds)}; it waits until a supervisor resumes"
