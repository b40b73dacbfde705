"""Medians, ratios and how far they scatter from round to round."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles


@dataclass(frozen=True)
class Run:
    """The times of one round, in seconds, of `clients` that each go on as soon as they have an answer."""

    times: Sequence[float]
    clients: int = 1

    @property
    def median(self) -> float:
        return median(self.times)

    @property
    def slow(self) -> float:
        """The time that one in twenty takes or exceeds."""
        return quantiles(self.times, n=20)[-1]

    @property
    def per_second(self) -> float:
        """How many are done in a second, by Little's law."""
        return self.clients / fmean(self.times)


@dataclass(frozen=True)
class Spread:
    """One figure of each round: the middle one, and the ends."""

    values: Sequence[float]

    @property
    def middle(self) -> float:
        return median(self.values)

    def ratio(self) -> str:
        return f"{self.middle:.2f} ({min(self.values):.2f} to {max(self.values):.2f})"

    def milliseconds(self) -> str:
        low, middle, high = (1000 * value for value in (min(self.values), self.middle, max(self.values)))
        return f"{middle:.3f} ms ({low:.3f} to {high:.3f})"

    def per_second(self) -> str:
        return f"{self.middle:.0f}/s ({min(self.values):.0f} to {max(self.values):.0f})"


def medians(runs: Sequence[Run]) -> Spread:
    return Spread([run.median for run in runs])


def rates(runs: Sequence[Run]) -> Spread:
    return Spread([run.per_second for run in runs])


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """The ratios within each round, whose two sides ran one right after the other."""
    return Spread([above / below for above, below in zip(over, under, strict=True)])


def heading(words: str) -> None:
    _print(f"\n{words}\n{'-' * len(words)}")


def row(name: str, *columns: str) -> None:
    _print(f"{name:<44}" + "".join(f"{column:<32}" for column in columns).rstrip())


def remark(words: str) -> None:
    _print(words)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
