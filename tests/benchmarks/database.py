"""Databases for the benchmark: migrated, and filled by SQL so that a million tasks take no hours."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import psycopg

from dibs.domain.queue import NewQueue, Queue
from dibs.service.queues import QueueService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard

WORKSPACE, CHANNEL, AMAL, SUE = "T0BENCH", "C0SUPPORT", "U0AMAL", "U0SUE"
LEASE_SECONDS = 8 * 60 * 60

_ADD_TASKS = """
WITH added AS (
    INSERT INTO dibs.task (queue_id, number, title, created_by, last_actor)
    SELECT %(queue)s, %(last)s + n, 'Refund order ' || n, %(sue)s, %(sue)s
    FROM generate_series(1, %(tasks)s) n
    RETURNING id, queue_id, version, number
), logged AS (
    INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, version_before, version_after, op_id)
    SELECT queue_id, id, 'created', %(sue)s, 0, 1, 'created:' || id FROM added
), carded AS (
    INSERT INTO dibs.card (task_id, channel_id, message_ts, shown_version, wanted_version)
    SELECT id, %(channel)s, '1700000000.' || lpad(number::text, 7, '0'), 1, 1 FROM added
)
SELECT min(id) FROM added"""


@dataclass
class Stock:
    """A database with one queue, whose tasks are waiting to be claimed by Amal."""

    url: str
    queue: Queue
    tasks: int = 0
    claimed: int = 0
    _first_id: int = 1
    _taken: int = 0

    def add_tasks(self, number: int) -> None:
        """Add tasks at version 1, each with its event and its card, and put the tables in order."""
        values = {
            "queue": self.queue.id,
            "last": self.tasks,
            "tasks": number,
            "sue": SUE,
            "channel": CHANNEL,
        }
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(_ADD_TASKS, values).fetchone()
            assert found is not None
            self._first_id, self._taken = found[0], 0
            self.tasks += number
        self.tidy()

    def take(self, number: int) -> int:
        """The first id of `number` tasks that nobody has touched."""
        first = self._first_id + self._taken
        self._taken += number
        assert self._first_id + self._taken <= self._first_id + self.tasks, "too few tasks were prepared"
        return first

    def expect_claims(self, number: int) -> None:
        """See that exactly these many more tasks were claimed and no press was refused."""
        self.claimed += number
        counts = self.execute(
            "SELECT count(*) FILTER (WHERE kind = 'claimed'), count(*) FILTER (WHERE why IS NOT NULL) "
            "FROM dibs.event"
        )
        assert counts == (self.claimed, 0), f"{counts} claimed and refused, not {self.claimed} and 0"

    def tidy(self) -> None:
        self.execute("VACUUM ANALYZE")
        self.execute("CHECKPOINT")

    def execute(self, sql: str) -> tuple[int, ...] | None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchone() if cursor.description else None


def open_stock(server_url: str, name: str) -> Stock:
    """Make a database with a queue in which Amal is eligible."""
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    engine = make_engine(url, BACKGROUND, pool_size=1)
    schema.upgrade(engine)
    queue = QueueService(Guard(engine)).create(
        NewQueue(
            workspace=WORKSPACE,
            channel_id=CHANNEL,
            key="SUP",
            name="Support",
            lease_seconds=LEASE_SECONDS,
            created_by=SUE,
        )
    )
    engine.dispose()
    assert queue is not None
    stock = Stock(url, queue)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO dibs.queue_member (queue_id, user_id, standing) VALUES (%s, %s, 'eligible')",
            (queue.id, AMAL),
        )
    return stock
