"""The lever of the demonstration: the leases of one queue are over at once, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.support.store import AMAL, BILAL, Desk, open_desk

from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard


@pytest.fixture
def sweep(database_url: str) -> Iterator[SweepService]:
    engine = make_engine(database_url, BACKGROUND, pool_size=2)
    yield SweepService(Guard(engine))
    engine.dispose()


def test_only_the_leases_of_the_queue_end(
    desk: Desk, engine: sa.Engine, service: TransitionService, sweep: SweepService
) -> None:
    elsewhere = open_desk(engine, key="OPS")
    mine, waiting, theirs = desk.task(), desk.task(), elsewhere.task()
    assert service.claim(mine.id, AMAL, 1).changed
    assert service.claim(theirs.id, BILAL, 1).changed
    kinds = desk.kinds(mine)
    assert sweep.end_leases(desk.queue.id) == 1
    assert desk.kinds(mine) == kinds
    assert [expired.task.id for expired in sweep.sweep_once()] == [mine.id]
    assert elsewhere.row_of(theirs)["owner_id"] == BILAL
    assert desk.row_of(waiting)["version"] == 1
    assert sweep.end_leases(desk.queue.id) == 0
