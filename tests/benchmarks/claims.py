"""A claim through the service, against the same statement run by pgbench on the same server."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.benchmarks import figures, pgbench
from tests.benchmarks.database import AMAL, Stock
from tests.benchmarks.figures import Run

from dibs.service.transitions import TransitionService
from dibs.store.engine import PRESS, make_engine
from dibs.store.guard import Guard

WARM_UP = 20
EACH = {1: 1000, 8: 300, 32: 150}
"""How many claims each client makes in a round, by the number of clients."""


class _Service:
    def __init__(self, stock: Stock, clients: int) -> None:
        self._stock = stock
        self._clients = clients
        self._engine = make_engine(stock.url, PRESS, pool_size=clients + 2)
        guard = Guard(self._engine)
        guard.open_connections(clients)
        self._service = TransitionService(self._engine, guard=guard)

    def close(self) -> None:
        self._engine.dispose()

    def claim_once_each(self, each: int, warm_up: int) -> Run:
        first = self._stock.take(self._clients * each)
        times: list[list[float]] = [[] for _ in range(self._clients)]
        together = threading.Barrier(self._clients)

        def claim(own_first: int, own_times: list[float]) -> None:
            together.wait()
            ended = time.perf_counter()
            for task_id in range(own_first, own_first + each):
                begun = ended
                assert self._service.claim(task_id, AMAL, 1, op_id=str(task_id)).changed
                ended = time.perf_counter()
                own_times.append(ended - begun)

        threads = [
            threading.Thread(target=claim, args=(first + number * each, times[number]))
            for number in range(self._clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._stock.expect_claims(self._clients * each)
        return Run([one for own in times for one in own[warm_up:]], self._clients)


def measure(bin_dir: Path, stock: Stock, *, rounds: int) -> None:
    figures.heading("A claim through TransitionService, against the same statement by pgbench")
    for clients, each in EACH.items():
        stock.add_tasks(2 * (rounds + 1) * clients * each)
        service = _Service(stock, clients)
        service.claim_once_each(each, WARM_UP)
        ours: list[Run] = []
        bare: list[Run] = []
        for number in range(rounds):
            # Whichever side comes second finds the server as the first one left it, so they take turns.
            for side in ("service", "pgbench")[:: 1 if number % 2 else -1]:
                if side == "service":
                    ours.append(service.claim_once_each(each, WARM_UP))
                else:
                    bare.append(
                        pgbench.claim_once_each(bin_dir, stock, clients=clients, each=each, warm_up=WARM_UP)
                    )
        service.close()
        _report(clients, ours, bare)


def _report(clients: int, ours: list[Run], bare: list[Run]) -> None:
    figures.row(f"{clients} at once", "service", "pgbench", "service / pgbench")
    medians = figures.medians(ours), figures.medians(bare)
    rates = figures.rates(ours), figures.rates(bare)
    slow = figures.Spread([run.slow for run in ours]), figures.Spread([run.slow for run in bare])
    for name, (one, other) in (("  time, median", medians), ("  time, 19 in 20 within", slow)):
        ratio = figures.ratios(one.values, other.values).ratio()
        figures.row(name, one.milliseconds(), other.milliseconds(), ratio)
    ratio = figures.ratios(rates[0].values, rates[1].values).ratio()
    figures.row("  throughput", rates[0].per_second(), rates[1].per_second(), ratio)
