"""A queue with people in it, and a look at what the database holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dibs.domain.queue import NewQueue, Queue
from dibs.domain.task import Standing, Task
from dibs.service.queues import QueueService
from dibs.store.guard import Guard

AMAL, BILAL, HANA, MAREK, DANA, SUE = "U0AMAL", "U0BILAL", "U0HANA", "U0MAREK", "U0DANA", "U0SUE"
WORKSPACE, CHANNEL = "T0TEST", "C0SUPPORT"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Desk:
    """A queue of the test's own. Everybody but Sue may claim; Sue supervises."""

    engine: sa.Engine
    queue: Queue
    queues: QueueService

    def task(self, title: str = "Refund order 1001") -> Task:
        """A new task, queued, at version 1."""
        added = self.queues.add_task(self.queue.id, title, SUE, op_id=f"add-{next(_numbers)}")
        assert added is not None
        return added.task

    def rows(self, sql: str, **values: object) -> Sequence[sa.RowMapping]:
        with self.engine.connect() as connection:
            return connection.execute(sa.text(sql), values).mappings().all()

    def execute(self, sql: str, **values: object) -> None:
        with self.engine.connect() as connection:
            connection.execute(sa.text(sql), values)

    def value(self, sql: str, **values: object) -> Any:  # noqa: ANN401 - what a statement returns is up to it
        with self.engine.connect() as connection:
            return connection.scalar(sa.text(sql), values)

    def row_of(self, task: Task) -> sa.RowMapping:
        return self.rows("SELECT * FROM dibs.task WHERE id = :id", id=task.id)[0]

    def kinds(self, task: Task) -> list[str]:
        """The kinds of the task's events, oldest first."""
        rows = self.rows("SELECT kind FROM dibs.event WHERE task_id = :id ORDER BY id", id=task.id)
        return [row["kind"] for row in rows]

    def end_lease(self, task: Task) -> None:
        """Let the task's lease be over, as an operator's SQL may."""
        self.execute(
            "UPDATE dibs.task SET lease_until = clock_timestamp() - interval '1 second' WHERE id = :id",
            id=task.id,
        )

    def admit(
        self, user_id: str, standing: Standing = Standing.ELIGIBLE, *, supervisor: bool = False
    ) -> None:
        self.execute(
            "INSERT INTO dibs.queue_member (queue_id, user_id, standing, supervisor) VALUES (:q, :u, :s, :v) "
            "ON CONFLICT (queue_id, user_id) DO UPDATE SET standing = :s, supervisor = :v",
            q=self.queue.id,
            u=user_id,
            s=standing,
            v=supervisor,
        )


def open_desk(engine: sa.Engine, *, key: str = "SUP", lease_seconds: int = 1800) -> Desk:
    queues = QueueService(Guard(engine))
    queue = queues.create(
        NewQueue(
            workspace=WORKSPACE,
            channel_id=CHANNEL,
            key=key,
            name="Support",
            lease_seconds=lease_seconds,
            created_by=SUE,
        )
    )
    assert queue is not None
    desk = Desk(engine, queue, queues)
    for person in (AMAL, BILAL, HANA, MAREK, DANA):
        desk.admit(person)
    return desk
