"""Whether the database's clock can be trusted: a judgement of readings, without a clock of its own.

All leases are set and ended by the database's clock. It is compared with two clocks of the process: one that
only ever runs on, at the right pace, and one that tells the time of day. Each sees what the other cannot: a
step of the clock of a machine that both share shows only against the first, a clock that was wrong from the
beginning only against the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

AGREED_SECONDS = 60.0
"""How long the readings must have agreed, after they had not, before leases are ended again."""

_SLEWED = 0.001
"""How fast two clocks may drift apart while both are right: each is slewed by 500 millionths at the most."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The database's clock, and the process's own in the middle of the round trip, all in seconds.

    The database read its clock at some moment of the round trip, so what is known of the difference is known
    to within `uncertainty`, half of it.
    """

    database: float
    wall: float
    monotonic: float
    uncertainty: float

    @classmethod
    def between(
        cls, database: float, *, wall: tuple[float, float], monotonic: tuple[float, float]
    ) -> Reading:
        """The reading of a statement, with the process's clocks as they were before and after it."""
        return cls(
            database=database,
            wall=sum(wall) / 2,
            monotonic=sum(monotonic) / 2,
            uncertainty=(monotonic[1] - monotonic[0]) / 2,
        )


class Fault(StrEnum):
    """Why the database's clock cannot be trusted."""

    BACKWARDS = "backwards"
    """It was set back."""
    AHEAD = "ahead"
    """It jumped ahead: only a person can say whether it was wrong before or is now."""
    APART = "apart"
    """It differs from the time of day of the process."""


@dataclass(frozen=True, slots=True)
class Base:
    """By how much the database's clock is ahead of the monotonic one while all is well, and since when."""

    offset: float
    monotonic: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reading says. `seconds` is by how much the clock is off; `base` is for the next reading."""

    base: Base
    fault: Fault | None = None
    seconds: float = 0.0


def judge(reading: Reading, base: Base | None, *, tolerance: float) -> Judgement:
    """Compare a reading with what was known before; without a `base`, only with the time of day.

    The base follows the readings no faster than clocks are slewed, so that many small steps add up. After
    a fault it is that of the new reading: from then on the clock is judged by how it goes on.
    """
    offset = reading.database - reading.monotonic
    off_by = tolerance + reading.uncertainty
    here = Base(offset, reading.monotonic)
    if base is not None:
        drift = _SLEWED * max(reading.monotonic - base.monotonic, 0.0)
        followed = min(max(offset, base.offset - drift), base.offset + drift)
        jump = offset - followed
        if jump < -off_by:
            return Judgement(here, Fault.BACKWARDS, -jump)
        if jump > off_by:
            return Judgement(here, Fault.AHEAD, jump)
        here = Base(followed, reading.monotonic)
    apart = abs(reading.database - reading.wall)
    return Judgement(here, Fault.APART, apart) if apart > off_by else Judgement(here)


@dataclass(frozen=True, slots=True)
class Course:
    """How the clock has gone so far. `held`: it was found at fault, and has not agreed for long enough since.

    `trusted` is the base from before the trouble: a clock that was set back and is right again has not jumped
    ahead. It is None where the trouble was there from the beginning.
    """

    base: Base | None = None
    fault: Fault | None = None
    seconds: float = 0.0
    held: bool = False
    trusted: Base | None = None
    agreed_since: float | None = None

    def after(self, reading: Reading, *, tolerance: float) -> Course:
        """The course with one more reading."""
        judged = judge(reading, self.base, tolerance=tolerance)
        if judged.fault is Fault.AHEAD and self.held:
            judged = judge(reading, self.trusted, tolerance=tolerance)
        if judged.fault:
            return Course(
                base=judged.base,
                fault=judged.fault,
                seconds=judged.seconds,
                held=True,
                trusted=self.trusted if self.held else self.base,
            )
        agreed_since = self.agreed_since if self.agreed_since is not None else reading.monotonic
        if not self.held or reading.monotonic - agreed_since >= AGREED_SECONDS:
            return Course(base=judged.base)
        return Course(base=judged.base, held=True, trusted=self.trusted, agreed_since=agreed_since)

    def behind(self, reading: Reading, seconds: float) -> Course:
        """The course of a clock that is behind a time which it had shown before this process began."""
        here = judge(reading, None, tolerance=seconds).base
        return Course(base=here, fault=Fault.BACKWARDS, seconds=seconds, held=True)
