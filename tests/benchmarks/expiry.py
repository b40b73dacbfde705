"""The sweep of a thousand expired leases, among more and more tasks that it has nothing to do with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

import psycopg
from tests.benchmarks import figures
from tests.benchmarks.database import AMAL, CHANNEL, SUE, WORKSPACE, Stock, open_stock
from tests.benchmarks.figures import Run

from dibs.service.sweep import SweepService
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard

EXPIRED = 1000
SIZES = (1_000, 1_000_000, 5_000_000)
HELD_UP = 100_000
IDLE_SWEEPS = 200

# Of ten tasks one is held with a current lease, two are waiting and seven are done.
_FILL = """
INSERT INTO dibs.task (queue_id, number, title, created_by, last_actor, state, owner_id, lease_until)
SELECT %(queue)s, n, 'Refund order ' || n, %(sue)s, %(sue)s, state,
       CASE WHEN state <> 'queued' THEN %(amal)s END,
       CASE WHEN state = 'claimed' THEN now() + interval '1 day' + n * interval '1 second' END
FROM (SELECT n, CASE n %% 10 WHEN 0 THEN 'claimed' WHEN 1 THEN 'queued' WHEN 2 THEN 'queued' ELSE 'done' END
          AS state
      FROM generate_series(1, %(tasks)s) n) mixed;
INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, version_before, version_after, op_id)
SELECT queue_id, id, 'created', %(sue)s, 0, 1, 'created:' || id FROM dibs.task;
INSERT INTO dibs.card (task_id, channel_id, message_ts, shown_version, wanted_version)
SELECT id, %(channel)s, '1700000000.' || lpad(number::text, 7, '0'), 1, 1 FROM dibs.task"""

_END_LEASES = """
UPDATE dibs.task SET state = 'claimed', owner_id = '{owner}', lease_until = now() - interval '1 minute'
WHERE number % {step} = 0"""

# As if the sweep had run all the time, and with a limit that a thousand leases at once do not reach.
_READY = """
UPDATE dibs.queue SET spike_limit = 1000000;
UPDATE dibs.breaker SET window_started_at = clock_timestamp() WHERE open_since IS NULL;
UPDATE dibs.clock SET swept_at = clock_timestamp()"""

_HOLD_UP = """
WITH q AS (
    INSERT INTO dibs.queue (workspace, key, name, channel_id, lease_seconds, created_by)
    VALUES ('{workspace}', 'HELD', 'Held up', '{channel}', 60, '{sue}') RETURNING id
), b AS (
    INSERT INTO dibs.breaker (queue_id, open_since, trip) SELECT id, now(), 1 FROM q
)
INSERT INTO dibs.task (queue_id, number, title, created_by, state, owner_id, lease_until)
SELECT id, n, 'Refund order ' || n, '{sue}', 'claimed', '{amal}', now() - interval '1 hour'
FROM q, generate_series(1, {number}) n"""


class _Desk:
    """A database with `tasks` tasks, and the sweep on it."""

    def __init__(self, server_url: str, tasks: int) -> None:
        self.tasks = tasks
        self._stock = open_stock(server_url, f"sweep_{tasks}")
        self._fill(self._stock)
        self._engine = make_engine(self._stock.url, BACKGROUND, pool_size=1)
        self._sweep = SweepService(Guard(self._engine))

    def close(self) -> None:
        self._engine.dispose()

    def sweep(self) -> float:
        """End a thousand leases, put the tables in order, and time the sweep alone."""
        self._stock.execute(_END_LEASES.format(owner=AMAL, step=self.tasks // EXPIRED))
        self._stock.tidy()
        took, returned = self._timed()
        assert returned == EXPIRED, f"{returned} tasks were returned"
        return took

    def sweep_idly(self) -> list[float]:
        """Time sweeps that find nothing to return."""
        found = [self._timed() for _ in range(IDLE_SWEEPS)]
        assert not any(returned for _, returned in found)
        return [took for took, _ in found]

    def hold_up(self) -> None:
        """Add a queue of which very many leases have ended, and whose breaker is open."""
        values = {"workspace": WORKSPACE, "channel": CHANNEL, "sue": SUE, "amal": AMAL, "number": HELD_UP}
        self._stock.execute(_HOLD_UP.format(**values))
        self._stock.tidy()

    def _timed(self) -> tuple[float, int]:
        self._stock.execute(_READY)
        begun = time.perf_counter()
        returned = self._sweep.sweep_once()
        return time.perf_counter() - begun, len(returned)

    def _fill(self, stock: Stock) -> None:
        values = {"queue": stock.queue.id, "tasks": self.tasks, "sue": SUE, "amal": AMAL, "channel": CHANNEL}
        with psycopg.connect(stock.url) as connection, psycopg.ClientCursor(connection) as cursor:
            # The rows agree with one another by their making; checking each foreign key takes minutes.
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(_FILL, values)
        stock.tidy()


def measure(server_url: str, *, rounds: int, sizes: Sequence[int]) -> None:
    figures.heading(f"The sweep of {EXPIRED:,} expired leases")
    with ExitStack() as opened:
        desks = [_Desk(server_url, size) for size in sizes]
        for desk in desks:
            opened.callback(desk.close)
            desk.sweep()
        times: dict[int, list[Run]] = {size: [] for size in sizes}
        for number in range(rounds):
            for desk in desks[:: 1 if number % 2 else -1]:
                times[desk.tasks].append(Run([desk.sweep()]))
        first = figures.medians(times[sizes[0]])
        figures.row("among", "time", f"to that among {sizes[0]:,}")
        for size in sizes:
            taken = figures.medians(times[size])
            figures.row(
                f"  {size:,} tasks", taken.milliseconds(), figures.ratios(taken.values, first.values).ratio()
            )
        _measure_idle(desks, sizes, rounds)


def _measure_idle(desks: Sequence[_Desk], sizes: Sequence[int], rounds: int) -> None:
    """What a sweep costs that returns nothing, which is what most of them do."""
    figures.heading("A sweep that finds nothing to return")
    alone = [[Run(desk.sweep_idly()) for _ in range(rounds)] for desk in (desks[0], desks[-1])]
    desks[-1].hold_up()
    beside = [Run(desks[-1].sweep_idly()) for _ in range(rounds)]
    first = figures.medians(alone[0])
    figures.row("among", "time", f"to that among {sizes[0]:,}")
    for words, runs in (
        (f"  {sizes[0]:,} tasks", alone[0]),
        (f"  {sizes[-1]:,} tasks", alone[1]),
        (f"  and {HELD_UP:,} leases held up", beside),
    ):
        taken = figures.medians(runs)
        figures.row(words, taken.milliseconds(), figures.ratios(taken.values, first.values).ratio())
