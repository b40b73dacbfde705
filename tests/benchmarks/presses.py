"""A press over HTTP to the whole bot, against what it cannot do without.

That is the sum of the same request to a Bolt app that only acknowledges, and of the one statement by pgbench.
The bot, the other app and Slack run in processes of their own. What the bot sends after its answer (the card
and the words to the person) is part of its work: where presses follow one another at once, it competes with
the next press; where they come at a human pace, it is over by then.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks import figures, pgbench
from tests.benchmarks.database import Stock
from tests.benchmarks.figures import Run
from tests.benchmarks.load import claim_press, press_all
from tests.benchmarks.serving import serving

from dibs.store.operations import LOOKED_UP_AFRESH

WARM_UP = 20
PAUSE_SECONDS = 0.03
SETTLE_SECONDS = 0.5


@dataclass
class _Pace:
    """How presses come: from how many people at once, how many from each, and how far apart."""

    clients: int
    each: int
    pause: float = 0.0
    pressed: list[Run] = field(default_factory=list)
    acknowledged: list[Run] = field(default_factory=list)
    written: list[Run] = field(default_factory=list)

    @property
    def words(self) -> str:
        people = "1 person" if self.clients == 1 else f"{self.clients} people"
        return f"{people}, {f'{self.pause * 1000:.0f} ms apart' if self.pause else 'without a pause'}"


def measure(bin_dir: Path, stock: Stock, *, rounds: int) -> None:
    figures.heading("A press over HTTP, against an acknowledgement only plus pgbench's one statement")
    paces = (_Pace(1, 120, PAUSE_SECONDS), _Pace(1, 500), _Pace(8, 100))
    needed = sum(pace.clients * pace.each for pace in paces)
    stock.add_tasks((3 * rounds + 2) * needed)
    with (
        serving("slack") as slack,
        serving("bot", database_url=stock.url, slack_port=slack) as bot,
        serving("acks") as acks,
    ):
        side = _Sides(bin_dir, stock, bot, acks, slack)
        for pace in paces:
            if not pace.pause:
                side.press(pace)
                side.acknowledge(pace)
        for number in range(rounds):
            for pace in paces:
                sides = [
                    (side.press, pace.pressed),
                    (side.acknowledge, pace.acknowledged),
                    (side.write, pace.written),
                ]
                for run, runs in sides[:: 1 if number % 2 else -1]:
                    runs.append(run(pace))
    for pace in paces:
        _report(pace)


@dataclass(frozen=True)
class _Sides:
    bin_dir: Path
    stock: Stock
    bot: int
    acks: int
    slack: int

    def press(self, pace: _Pace) -> Run:
        run = self._send(self.bot, pace)
        self.stock.expect_claims(pace.clients * pace.each)
        # What the bot still sends must not disturb the next side.
        time.sleep(SETTLE_SECONDS)
        return run

    def acknowledge(self, pace: _Pace) -> Run:
        return self._send(self.acks, pace)

    def write(self, pace: _Pace) -> Run:
        return pgbench.claim_once_each(
            self.bin_dir,
            self.stock,
            clients=pace.clients,
            each=pace.each,
            warm_up=WARM_UP,
            not_final=sorted(LOOKED_UP_AFRESH),
            per_second=1 / pace.pause if pace.pause else None,
        )

    def _send(self, port: int, pace: _Pace) -> Run:
        number = pace.clients * pace.each
        first = self.stock.take(number)
        presses = [claim_press(task_id, self.slack) for task_id in range(first, first + number)]
        return press_all(port, presses, clients=pace.clients, warm_up=WARM_UP, pause=pace.pause)


def _report(pace: _Pace) -> None:
    figures.row(pace.words, "median time", "19 in 20 within")
    for name, runs in (
        ("  press", pace.pressed),
        ("  acknowledgement only", pace.acknowledged),
        ("  statement by pgbench", pace.written),
    ):
        slow = figures.Spread([run.slow for run in runs])
        figures.row(name, figures.medians(runs).milliseconds(), slow.milliseconds())
    sums = [one.median + other.median for one, other in zip(pace.acknowledged, pace.written, strict=True)]
    ratio = figures.ratios([run.median for run in pace.pressed], sums)
    figures.row("  press / (acknowledgement + statement)", ratio.ratio())
