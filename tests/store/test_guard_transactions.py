"""Several statements that stand or fall together, however the database behaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.support.holders import LOCK, holder, wait_until
from tests.support.proxy import proxy_before
from tests.support.store import Desk

from dibs.deadline import Deadline
from dibs.domain.errors import Busy, Lost, Refused
from dibs.store.engine import PRESS, make_engine
from dibs.store.guard import Guard, Run

WRITE = sa.text("UPDATE dibs.task SET details = :words WHERE id = :id")
READ = sa.text("SELECT details FROM dibs.task WHERE id = :id")


@pytest.fixture
def guard(desk: Desk) -> Iterator[Guard]:
    guard = Guard(desk.engine)
    yield guard
    guard.close()


def test_what_was_written_is_there_once_all_is_done_and_not_before(desk: Desk, guard: Guard) -> None:
    task = desk.task()

    def work(run: Run) -> str:
        run(WRITE, {"id": task.id, "words": "a"})
        assert desk.row_of(task)["details"] == ""
        return str(run(READ, {"id": task.id})[0]["details"])

    assert guard.transact(work, Deadline.after()) == "a"
    assert desk.row_of(task)["details"] == "a"


def test_an_error_of_the_work_or_of_the_database_undoes_everything(desk: Desk, guard: Guard) -> None:
    task = desk.task()

    def stumbles(run: Run) -> None:
        run(WRITE, {"id": task.id, "words": "a"})
        raise LookupError

    def is_refused(run: Run) -> None:
        run(WRITE, {"id": task.id, "words": "a"})
        run(sa.text("UPDATE dibs.task SET title = '' WHERE id = :id"), {"id": task.id})

    with pytest.raises(LookupError):
        guard.transact(stumbles, Deadline.after())
    with pytest.raises(Refused) as refused:
        guard.transact(is_refused, Deadline.after())
    assert refused.value.table == "task"
    assert desk.row_of(task)["details"] == ""
    # Single statements afterwards are each their own transaction again.
    guard.run(WRITE, {"id": task.id, "words": "b"}, Deadline.after())
    assert desk.row_of(task)["details"] == "b"


def test_what_waits_too_long_for_a_lock_is_undone_and_says_so(
    desk: Desk, guard: Guard, database_url: str
) -> None:
    first, second = desk.task(), desk.task()

    def work(run: Run) -> None:
        run(WRITE, {"id": first.id, "words": "a"})
        run(WRITE, {"id": second.id, "words": "a"})

    with holder(database_url) as other:
        other.do(LOCK, id=second.id)
        with pytest.raises(Busy):
            guard.transact(work, Deadline.after())
    assert desk.row_of(first)["details"] == ""
    assert not guard.away


def test_a_server_that_freezes_within_it_is_noticed_by_the_deadline_and_nothing_stands(
    desk: Desk, database_url: str
) -> None:
    task = desk.task()
    with proxy_before(database_url) as proxy:
        engine = make_engine(proxy.url, PRESS, pool_size=2)
        guard = Guard(engine)

        def work(run: Run) -> None:
            run(WRITE, {"id": task.id, "words": "a"})
            proxy.freeze()
            run(READ, {"id": task.id})

        with pytest.raises(Lost):
            guard.transact(work, Deadline.after())
        assert guard.away
        proxy.thaw()
        wait_until(lambda: not guard.away)
        engine.dispose()
    assert desk.row_of(task)["details"] == ""
