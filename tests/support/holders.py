"""People's presses are not the only ones who lock rows: holders that lock, change, commit and roll back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, LiteralString, TypeVar

import psycopg

T = TypeVar("T")

PATIENCE = 60.0

LOCK: LiteralString = "SELECT FROM dibs.task WHERE id = %(id)s FOR UPDATE"
TOUCH: LiteralString = "UPDATE dibs.task SET details = details || '.' WHERE id = %(id)s"
"""A change that an operator might make: the row is a new one, its version the same."""

TAKE: LiteralString = (
    "UPDATE dibs.task SET state = 'claimed', owner_id = 'U0ELSE', version = version + 1, "
    "lease_until = now() + interval '1 hour', held_since = now() WHERE id = %(id)s"
)


class Holder:
    """An open transaction of somebody else's."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def do(self, sql: LiteralString, **values: object) -> None:
        self._connection.execute(sql, values)

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


@contextmanager
def holder(url: str) -> Iterator[Holder]:
    """A transaction, rolled back in the end if it was not ended before."""
    with psycopg.connect(url) as connection:
        try:
            yield Holder(connection)
        finally:
            connection.rollback()


class Pressed(Generic[T]):
    """A press that is on its way in a thread of its own."""

    def __init__(self, press: Callable[[], T]) -> None:
        self._answers: list[T] = []
        self._failures: list[BaseException] = []

        def run() -> None:
            try:
                self._answers.append(press())
            except BaseException as failure:  # noqa: BLE001 - told to the test
                self._failures.append(failure)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def answered(self) -> bool:
        return not self._thread.is_alive()

    def answer(self) -> T:
        self._thread.join(PATIENCE)
        assert self.answered, "the press was never answered"
        if self._failures:
            raise self._failures[0]
        return self._answers[0]


def wait_for_waiters(url: str, number: int = 1) -> None:
    """Wait until `number` sessions of this database wait for a lock, by the server's own account."""
    asked: LiteralString = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(url, autocommit=True) as watcher:
        wait_until(lambda: _one(watcher.execute(asked)) >= number)


def wait_for_lease_end(url: str, task_id: int) -> None:
    """Wait, on the database's clock, until the task's lease is over."""
    with psycopg.connect(url, autocommit=True) as watcher:
        watcher.execute(
            "SELECT pg_sleep(0.01 + greatest(0, extract(epoch FROM lease_until - clock_timestamp()))) "
            "FROM dibs.task WHERE id = %s",
            (task_id,),
        )


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


def _one(cursor: psycopg.Cursor[Any]) -> int:
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])
