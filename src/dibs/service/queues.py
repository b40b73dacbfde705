"""Making queues and adding tasks to them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.errors import AlreadyDone, Busy, Lost, NothingSent
from dibs.domain.outcomes import Refusal
from dibs.domain.queue import KEY_FORM, NewQueue, Queue
from dibs.domain.settings import Change, QueueSettings
from dibs.domain.task import Task
from dibs.domain.text import clean
from dibs.store import queues, tasks
from dibs.store.guard import Guard


@dataclass(frozen=True, slots=True)
class Added:
    """A task that was added. `replayed`: by an earlier delivery of the same request."""

    task: Task
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a change of settings: `why` it was refused, or what changed, which may be nothing."""

    why: Refusal | None = None
    changes: tuple[Change, ...] = ()


@contextlib.contextmanager
def _what_was_done() -> Iterator[None]:
    """Look at what an earlier try may have done: where that fails, it is not known that nothing changed."""
    try:
        yield
    except (NothingSent, Busy) as error:
        raise Lost(str(error)) from error


class QueueService:
    """Queues and their tasks. Every method raises StoreError where the database did not do it."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def create(self, new: NewQueue, *, deadline: Deadline | None = None) -> Queue | None:
        """Make a queue, with its creator among its supervisors. None where the key is taken.

        A second delivery of the same request finds its own queue, since it asks for just the same.
        """
        name = clean(new.name)
        if name is None:
            raise ValueError("a queue needs a name")
        supervisors = sorted({new.created_by, *new.supervisors})
        reasons = None if new.reasons is None else list(new.reasons)
        values = {**asdict(new), "name": name, "supervisors": supervisors, "reasons": reasons}
        rows = self._guard.run_once(queues.CREATE, values, deadline or Deadline.after())
        if rows:
            return queues.as_queue(rows[0])
        with _what_was_done():
            taken = self.by_key(new.workspace, new.key, deadline=deadline)
        same = taken and (taken.channel_id, taken.name, taken.lease_seconds) == (
            new.channel_id,
            name,
            new.lease_seconds,
        )
        return taken if same else None

    def of_channel(
        self, workspace: str, channel_id: str, *, deadline: Deadline | None = None
    ) -> tuple[Queue, ...]:
        """The queues that are shown in a channel, oldest first."""
        values = {"workspace": workspace, "channel_id": channel_id}
        return self._queues(queues.OF_CHANNEL, values, deadline)

    def of_eligible(
        self, workspace: str, user_id: str, *, deadline: Deadline | None = None
    ) -> tuple[Queue, ...]:
        """The queues in which a person is known to be eligible."""
        values = {"workspace": workspace, "user_id": user_id}
        return self._queues(queues.OF_ELIGIBLE, values, deadline)

    def by_key(self, workspace: str, key: str, *, deadline: Deadline | None = None) -> Queue | None:
        """The queue with this key, or None, which it also is for words that can be no key."""
        if not KEY_FORM.fullmatch(key):
            return None
        found = self._queues(queues.BY_KEY, {"workspace": workspace, "key": key}, deadline)
        return found[0] if found else None

    def by_id(self, queue_id: int, *, deadline: Deadline | None = None) -> Queue | None:
        """The queue with this id, or None."""
        found = self._queues(queues.BY_ID, {"queue_id": queue_id}, deadline)
        return found[0] if found else None

    def supervisors(self, queue_id: int, *, deadline: Deadline | None = None) -> tuple[str, ...]:
        """Who supervises a queue, in order."""
        rows = self._guard.run_once(queues.SUPERVISORS, {"queue_id": queue_id}, deadline or Deadline.after())
        return tuple(row["user_id"] for row in rows)

    def may_name_supervisors(self, queue_id: int, user_id: str, *, deadline: Deadline | None = None) -> bool:
        """Whether a queue has nobody left who supervises it, and this person may claim in it."""
        values = {"queue_id": queue_id, "user_id": user_id}
        return bool(self._guard.run_once(queues.MAY_NAME_SUPERVISORS, values, deadline or Deadline.after()))

    def last_change(self, queue_id: int, *, deadline: Deadline | None = None) -> tuple[str, datetime] | None:
        """Who changed the settings within the last day, and when; None where nobody did."""
        rows = self._guard.run_once(queues.LAST_CHANGE, {"queue_id": queue_id}, deadline or Deadline.after())
        return (rows[0]["actor_id"], rows[0]["at"]) if rows else None

    def change_settings(
        self,
        queue_id: int,
        actor_id: str,
        seen: int,
        new: QueueSettings,
        *,
        op_id: str,
        deadline: Deadline | None = None,
    ) -> Settled:
        """Change what is set for a queue, as a supervisor who saw the settings of version `seen`.

        Where nobody is left who supervises it, whoever may claim in it may do this, or nobody could.
        Refused with NOT_A_SUPERVISOR, and with STALE where they were changed since. An operation id
        that was used before is answered as the first time.
        """
        deadline = deadline or Deadline.after()
        settings = new.as_values()
        who = {"queue_id": queue_id, "actor": actor_id, "seen": seen, "op_id": op_id}
        values = {**who, **settings, "settings": json.dumps(settings)}
        try:
            rows = self._guard.run_once(queues.CHANGE_SETTINGS, values, deadline)
        except AlreadyDone:
            rows = []
        if rows and rows[0]["why"] is None:
            return Settled(changes=_changes(rows[0]["changes"]))
        with _what_was_done():
            # A second delivery comes too late for its own first one.
            before = self._guard.run_once(queues.CHANGED_BEFORE, {"op_id": op_id}, deadline)
        if before:
            return Settled(changes=_changes(before[0]["detail"]))
        return Settled(why=Refusal(rows[0]["why"]) if rows else Refusal.NOT_A_SUPERVISOR)

    def add_task(
        self,
        queue_id: int,
        title: str,
        actor_id: str,
        *,
        op_id: str,
        details: str | None = None,
        task_deadline: datetime | None = None,
        deadline: Deadline | None = None,
    ) -> Added | None:
        """Add a task at the end of a queue; its card is posted by the delivery. None where there is no queue.

        An operation id that was used before is answered with the task of the first time. Raises ValueError
        where the title is empty.
        """
        named = clean(title)
        if named is None:
            raise ValueError("a task needs a title")
        deadline = deadline or Deadline.after()
        values = {
            "queue_id": queue_id,
            "title": named,
            "details": clean(details) or "",
            "deadline": task_deadline,
            "actor": actor_id,
            "op_id": op_id,
        }
        try:
            rows = self._guard.run_once(tasks.ADD_TASK, values, deadline)
        except AlreadyDone:
            with _what_was_done():
                event = self._guard.run_once(tasks.EVENT_BY_OP_ID, {"op_id": op_id}, deadline)[0]
                rows = self._guard.run_once(tasks.TASK_BY_ID, {"task_id": event["task_id"]}, deadline)
            return Added(tasks.as_task(rows[0]), replayed=True)
        return Added(tasks.as_task(rows[0])) if rows else None

    def _queues(
        self, statement: sa.TextClause, values: Mapping[str, object], deadline: Deadline | None
    ) -> tuple[Queue, ...]:
        rows = self._guard.run_once(statement, values, deadline or Deadline.after())
        return tuple(queues.as_queue(row) for row in rows)


def _changes(detail: Mapping[str, Mapping[str, object]] | None) -> tuple[Change, ...]:
    found = (detail or {}).items()
    return tuple(Change(setting, values["old"], values["new"]) for setting, values in sorted(found))
