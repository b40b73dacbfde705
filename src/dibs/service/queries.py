"""Looking at tasks: what a card, a list or a history shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.audit import NEWEST, Selection, Topic
from dibs.domain.queue import Event, Facts, Flagged, Handover, Note
from dibs.domain.task import LARGEST_ID, Task
from dibs.service.audit import read_on
from dibs.store import cards, members, queues, tasks
from dibs.store.guard import Guard


class TaskQueries:
    """Reads, from the primary like every decision. Raises StoreError where the database did not answer."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def by_id(self, task_id: int, *, deadline: Deadline | None = None) -> Task | None:
        """The task with this id, or None."""
        return self._one(tasks.TASK_BY_ID, {"task_id": task_id}, deadline)

    def by_name(
        self, workspace: str, key: str, number: int, *, deadline: Deadline | None = None
    ) -> Task | None:
        """The task that people call `key`-`number`, or None."""
        return self._one(tasks.TASK_BY_NAME, {"workspace": workspace, "key": key, "number": number}, deadline)

    def unfinished(
        self, queue_ids: Sequence[int], *, most: int, deadline: Deadline | None = None
    ) -> tuple[Task, ...]:
        """The tasks of these queues that are not done, longest waiting first, `most` at the most."""
        values = {"queue_ids": list(queue_ids), "most": most}
        return self._many(tasks.UNFINISHED_OF_QUEUES, values, deadline)

    def owned_by(
        self, workspace: str, owner_id: str, *, most: int, deadline: Deadline | None = None
    ) -> tuple[Task, ...]:
        """The tasks that a person holds now, the lease that ends first first."""
        values = {"workspace": workspace, "owner": owner_id, "most": most}
        return self._many(tasks.OWNED_BY, values, deadline)

    def facts(self, task_id: int, *, deadline: Deadline | None = None) -> Facts | None:
        """Everything that the card of a task shows, read in one statement; None where there is no task."""
        rows = self._guard.run_once(tasks.FACTS, {"task_id": task_id}, deadline or Deadline.after())
        if not rows:
            return None
        row = rows[0]
        handed_back = row["released_by"] is not None
        return Facts(
            task=tasks.as_task(row),
            channel_id=row["channel_id"],
            actions=tuple(tasks.as_action(action) for action in row["actions"] or ()),
            handover=Handover(
                by=row["released_by"],
                at=row["released_at"],
                reason=row["reason"],
                comment=row["comment"],
                note=row["handoff_note"],
                external_action=row["external_action"],
                forced_by=row["forced_by"],
            )
            if handed_back
            else None,
            note=Note(row["note_by"], row["note"], row["noted_at"]) if row["note"] is not None else None,
            reasons=queues.as_reasons(row["reasons"]),
            releases_paused=row["releases_paused"],
            flagged=Flagged(
                row["flagged_by_kind"],
                row["flagged_by"],
                row["flagged_at"],
                row["flagged_owner"],
                row["flagged_state"],
            )
            if row["flagged_by_kind"] is not None
            else None,
        )

    def history(self, task_id: int, *, most: int, deadline: Deadline | None = None) -> tuple[Event, ...]:
        """What happened to a task and what was refused, newest first, `most` at the most."""
        if not 0 < task_id <= LARGEST_ID:
            return ()
        selection = Selection(Topic.TASK, (), task_id)
        found = read_on(self._guard, selection, NEWEST, most, deadline or Deadline.after(), newer=False)
        return tuple(record.event for record in found)

    def supervises(self, queue_id: int, user_id: str, *, deadline: Deadline | None = None) -> bool:
        """Whether the person is a supervisor of the queue."""
        values = {"queue_ids": [queue_id], "user_id": user_id}
        rows = self._guard.run_once(members.STANDINGS, values, deadline or Deadline.after())
        return any(row["supervisor"] for row in rows)

    def may_intervene(self, queue_id: int, user_id: str, *, deadline: Deadline | None = None) -> bool:
        """Whether the person is a supervisor of the queue, and it lets supervisors transfer and release."""
        values = {"queue_id": queue_id, "user_id": user_id}
        return bool(self._guard.run_once(members.MAY_INTERVENE, values, deadline or Deadline.after()))

    def card_of(self, task_id: int, *, deadline: Deadline | None = None) -> tuple[str, str | None] | None:
        """The channel and the message of a task's card; the message is None until it is posted."""
        rows = self._guard.run_once(cards.WHERE_SHOWN, {"task_id": task_id}, deadline or Deadline.after())
        return (rows[0]["channel_id"], rows[0]["message_ts"]) if rows else None

    def _one(
        self, statement: sa.TextClause, values: Mapping[str, object], deadline: Deadline | None
    ) -> Task | None:
        found = self._many(statement, values, deadline)
        return found[0] if found else None

    def _many(
        self, statement: sa.TextClause, values: Mapping[str, object], deadline: Deadline | None
    ) -> tuple[Task, ...]:
        rows = self._guard.run_once(statement, values, deadline or Deadline.after())
        return tuple(tasks.as_task(row) for row in rows)
