"""Looking at the records: who may, and a page of them at a time."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.audit import NEWEST, OLDEST, Page, Place, Record, Selection, Topic
from dibs.domain.errors import LookUpFailed
from dibs.domain.queue import Queue
from dibs.domain.task import Standing, Task
from dibs.service.claims import Membership
from dibs.store import audit, members, queues, tasks
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

RECORDS_A_PAGE = 10
_MOST_LOOKED_UP = 3
"""In how many queues a person is looked up within one answer."""


class NotOpened(StrEnum):
    """Why somebody is shown nothing."""

    MAY_NOT = "may_not"
    """They are neither a member nor a supervisor of the queue, or it does not exist: which, is not said."""
    NO_SUCH_TASK = "no_such_task"
    """In a queue that they may look into."""
    UNKNOWN = "unknown"
    """It could not be looked up in Slack whether they may."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks for records, where and by when; `since` leaves out what is older."""

    workspace: str
    user_id: str
    channel_id: str | None
    deadline: Deadline
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """What somebody may look at, and in which of its queues they are a supervisor."""

    selection: Selection
    name: str
    """The task's name, or the queues' keys."""
    title: str
    supervised: frozenset[int]

    @property
    def for_export(self) -> Selection | None:
        """The part that they may have as a file, which is for supervisors; None where that is none."""
        ours = tuple(queue for queue in self.selection.queue_ids if queue in self.supervised)
        return replace(self.selection, queue_ids=ours) if ours else None


Answer = Opened | NotOpened


class AuditService:
    """The records, for members and supervisors of their queue.

    A person is looked up afresh before they are refused. Every method raises StoreError where the database
    did not answer.
    """

    def __init__(self, guard: Guard, membership: Membership) -> None:
        self._guard = guard
        self._membership = membership

    def of_task(self, ask: Ask, key: str, number: int) -> Answer:
        """Open the records of the task `key`-`number`."""
        into = self._into(ask, self._queue(queues.BY_KEY, ask, workspace=ask.workspace, key=key))
        if not isinstance(into, _Into):
            return into
        values = {"workspace": ask.workspace, "key": key, "number": number}
        rows = self._guard.run_once(tasks.TASK_BY_NAME, values, ask.deadline)
        return _opened_task(into, tasks.as_task(rows[0]), ask) if rows else NotOpened.NO_SUCH_TASK

    def of_queue(self, ask: Ask, key: str) -> Answer:
        """Open the records of the queue `key`."""
        into = self._into(ask, self._queue(queues.BY_KEY, ask, workspace=ask.workspace, key=key))
        return _opened_queue(into, ask) if isinstance(into, _Into) else into

    def of_person(self, ask: Ask, person: str) -> Answer:
        """Open what a person did, and what befell their tasks, in the queues that the asker may look into.

        Among the queues in which the asker is looked up afresh are those of the channel where they ask.
        """
        values = {"workspace": ask.workspace, "user_id": ask.user_id, "channel_id": ask.channel_id or ""}
        rows = self._guard.run_once(queues.AROUND, values, ask.deadline)
        known = {row["id"]: row for row in rows if _may(row["standing"], row["supervisor"])}
        failed = False
        for row in [row for row in rows if row["id"] not in known][:_MOST_LOOKED_UP]:
            into = self._into(ask, queues.as_queue(row))
            failed = failed or into is NotOpened.UNKNOWN
            if isinstance(into, _Into):
                known[row["id"]] = row
        if not known:
            return NotOpened.UNKNOWN if failed else NotOpened.MAY_NOT
        ids = tuple(sorted(known))
        return Opened(
            Selection(Topic.PERSON, ids, person, ask.since),
            name=", ".join(known[queue]["key"] for queue in ids),
            title="",
            supervised=frozenset(queue for queue in ids if known[queue]["supervisor"]),
        )

    def again(self, ask: Ask, topic: Topic, subject: int) -> Answer:
        """Open once more what a button of an earlier answer names, a task or a queue by its id."""
        task: Task | None = None
        queue_id = subject
        if topic is Topic.TASK:
            rows = self._guard.run_once(tasks.TASK_BY_ID, {"task_id": subject}, ask.deadline)
            if not rows:
                return NotOpened.MAY_NOT
            task = tasks.as_task(rows[0])
            queue_id = task.queue_id
        found = self._queue(queues.BY_ID, ask, queue_id=queue_id)
        into = self._into(ask, found if found and found.workspace == ask.workspace else None)
        if not isinstance(into, _Into):
            return into
        return _opened_task(into, task, ask) if task else _opened_queue(into, ask)

    def page(
        self, selection: Selection, deadline: Deadline, *, beyond: Place = NEWEST, newer: bool = False
    ) -> Page:
        """The records next to a place, older than it or `newer`. Where no newer ones are left, the newest."""
        found = read_on(self._guard, selection, beyond, RECORDS_A_PAGE + 1, deadline, newer=newer)
        more, found = len(found) > RECORDS_A_PAGE, found[:RECORDS_A_PAGE]
        if not newer:
            return Page(tuple(found), older=more, newer=beyond is not NEWEST)
        if not more:
            return self.page(selection, deadline)
        return Page(tuple(reversed(found)), older=True, newer=True)

    def _queue(self, statement: sa.TextClause, ask: Ask, **values: object) -> Queue | None:
        rows = self._guard.run_once(statement, values, ask.deadline)
        return queues.as_queue(rows[0]) if rows else None

    def _into(self, ask: Ask, queue: Queue | None) -> _Into | NotOpened:
        """The person's way into a queue, if they may look into it."""
        if queue is None:
            return NotOpened.MAY_NOT
        if into := self._known(ask, queue):
            return into
        try:
            self._membership.look_up(queue.id, ask.user_id, ask.deadline)
        except LookUpFailed as error:
            _log.warning("could not look up whether a person may see the records: %s", error)
            return NotOpened.UNKNOWN
        return self._known(ask, queue) or NotOpened.MAY_NOT

    def _known(self, ask: Ask, queue: Queue) -> _Into | None:
        values = {"queue_ids": [queue.id], "user_id": ask.user_id}
        for row in self._guard.run_once(members.STANDINGS, values, ask.deadline):
            if _may(row["standing"], row["supervisor"]):
                return _Into(queue, supervisor=row["supervisor"])
        return None


def read_on(
    guard: Guard, selection: Selection, beyond: Place, most: int, deadline: Deadline, *, newer: bool
) -> list[Record]:
    """The next records beyond a place, the nearest first, `most` at the most. Raises StoreError."""
    values = {
        "subject": selection.subject,
        "queue_ids": list(selection.queue_ids),
        "at": beyond.at,
        "id": beyond.id,
        "since": selection.since or OLDEST.at,
    }
    statement = audit.page(selection.topic, most, newer=newer)
    wanted = {name: values[name] for name in audit.TAKES[selection.topic]}
    return [audit.as_record(row) for row in guard.run_once(statement, wanted, deadline)]


@dataclass(frozen=True, slots=True)
class _Into:
    """A queue that the person who asks may look into."""

    queue: Queue
    supervisor: bool

    @property
    def supervised(self) -> frozenset[int]:
        return frozenset({self.queue.id} if self.supervisor else ())


def _may(standing: str | None, supervisor: bool | None) -> bool:  # noqa: FBT001 - two columns of a row
    return bool(supervisor) or standing == Standing.ELIGIBLE


def _opened_task(into: _Into, task: Task, ask: Ask) -> Opened:
    selection = Selection(Topic.TASK, (into.queue.id,), task.id, ask.since)
    return Opened(selection, task.name, task.title, into.supervised)


def _opened_queue(into: _Into, ask: Ask) -> Opened:
    selection = Selection(Topic.QUEUE, (into.queue.id,), into.queue.id, ask.since)
    return Opened(selection, into.queue.key, into.queue.name, into.supervised)
