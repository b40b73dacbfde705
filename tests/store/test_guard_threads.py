"""A system that has no thread to give for a moment costs that moment, and nothing after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.support.threads import no_threads

from dibs.deadline import Deadline
from dibs.domain.errors import Busy, Lost, NothingSent
from dibs.store.engine import UNHURRIED, make_engine
from dibs.store.guard import Guard

SELECT_ONE = sa.text("SELECT 1 AS one")
FOR_LONG = sa.text("SELECT pg_sleep(20)")


@pytest.fixture
def guard(database_url: str) -> Iterator[Guard]:
    """A guard of statements that the server itself would never end."""
    engine = make_engine(database_url, UNHURRIED, pool_size=2)
    guard = Guard(engine)
    yield guard
    guard.close()
    engine.dispose()


def test_statements_still_end_by_their_deadline_after_the_watchdog_could_not_begin(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_threads(monkeypatch, "dibs-database-watchdog"), pytest.raises(NothingSent):
        guard.run(SELECT_ONE, {}, Deadline.after())
    with pytest.raises(Busy):
        guard.run(FOR_LONG, {}, Deadline.after(1))
    assert [row["one"] for row in guard.run(SELECT_ONE, {}, Deadline.after())] == [1]


def test_the_watchdog_goes_on_where_nothing_could_be_cancelled_and_nobody_could_probe(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_threads(monkeypatch, "dibs-database-cancel", "dibs-database-probe"), pytest.raises(Lost):
        guard.run(FOR_LONG, {}, Deadline.after(1))
    assert not guard.away
    assert [row["one"] for row in guard.run(SELECT_ONE, {}, Deadline.after())] == [1]
    with pytest.raises(Busy):
        guard.run(FOR_LONG, {}, Deadline.after(1))
