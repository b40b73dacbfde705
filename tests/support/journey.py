"""Tasks brought to where a test begins, and what was written of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from tests.support.store import AMAL, Desk

from dibs.domain.task import ActionStatus, State, Task
from dibs.service.queries import TaskQueries
from dibs.service.sweep import SweepService
from dibs.store.guard import Guard

T = TypeVar("T")

_guards: WeakKeyDictionary[sa.Engine, Guard] = WeakKeyDictionary()

PLACED_VERSION = 7
"""The version of a placed task, so that an older and a newer one both exist."""


def place(
    desk: Desk,
    state: State = State.QUEUED,
    *,
    owner: str = AMAL,
    lapsed: bool = False,
    needs_check: bool = False,
) -> Task:
    """A task that has come to `state` at PLACED_VERSION, whoever brought it there."""
    task = desk.task()
    desk.execute(
        """UPDATE dibs.task SET state = :state, owner_id = :owner, version = :version, needs_check = :flagged,
           lease_until = CASE WHEN :leased
                              THEN clock_timestamp() + make_interval(mins => CAST(:minutes AS int)) END
           WHERE id = :id""",
        id=task.id,
        state=state,
        owner=None if state is State.QUEUED else owner,
        version=PLACED_VERSION,
        flagged=needs_check,
        leased=state in {State.CLAIMED, State.STARTED},
        minutes=-1 if lapsed else 30,
    )
    return now(desk, task)


def add_action(desk: Desk, task: Task, status: ActionStatus = ActionStatus.IN_PROGRESS) -> int:
    """An external action on the task; its id."""
    added: int = desk.value(
        """INSERT INTO dibs.external_action (task_id, number, version, description, status, recorded_by,
                                             answered_by)
           SELECT :id, 1 + count(*), :version, 'refund of 20 EUR', :status, :by,
                  CASE WHEN :status <> 'in_progress' THEN :by END
           FROM dibs.external_action WHERE task_id = :id RETURNING id""",
        id=task.id,
        version=task.version,
        status=status,
        by=AMAL,
    )
    return added


def action_statuses(desk: Desk, task: Task) -> list[str]:
    rows = desk.rows(
        "SELECT status FROM dibs.external_action WHERE task_id = :id ORDER BY number", id=task.id
    )
    return [row["status"] for row in rows]


def guard_of(desk: Desk) -> Guard:
    """One guard for all looks at a desk."""
    if desk.engine not in _guards:
        _guards[desk.engine] = Guard(desk.engine)
    return _guards[desk.engine]


def now(desk: Desk, task: Task) -> Task:
    """The task as it stands."""
    found = TaskQueries(guard_of(desk)).by_id(task.id)
    assert found is not None
    return found


def whole_row(desk: Desk, task: Task) -> str:
    """The task's row as one text, to compare byte for byte."""
    row: str = desk.value("SELECT CAST(t AS text) FROM dibs.task t WHERE id = :id", id=task.id)
    return row


def newest_event(desk: Desk, task: Task) -> sa.RowMapping:
    return desk.rows("SELECT * FROM dibs.event WHERE task_id = :id ORDER BY id DESC LIMIT 1", id=task.id)[0]


def count_events(desk: Desk, task: Task) -> int:
    number: int = desk.value("SELECT count(*) FROM dibs.event WHERE task_id = :id", id=task.id)
    return number


def events_of(desk: Desk, op_id: str) -> list[str]:
    """The kinds of the events with this operation id: one, or none."""
    return [row["kind"] for row in desk.rows("SELECT kind FROM dibs.event WHERE op_id = :op", op=op_id)]


def lapse(desk: Desk, task: Task) -> Task:
    """Let the lease end and the sweep return the task."""
    desk.end_lease(task)
    SweepService(guard_of(desk)).sweep_once()
    return now(desk, task)


def together(presses: list[Callable[[], T]]) -> list[T]:
    """Press all at once, each in a thread of its own; the answers in the same order."""
    with ThreadPoolExecutor(len(presses)) as pool:
        return [future.result(60) for future in [pool.submit(press) for press in presses]]
