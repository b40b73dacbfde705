"""Reading tasks and what belongs to them, and adding new ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from dibs.domain.queue import EventAction
from dibs.domain.task import OPEN_STATUSES, ActionStatus, ExternalAction, State, Task
from dibs.store.chain import WORDS_OF_TASK, digest, event_hash
from dibs.store.columns import sql_list
from dibs.store.operations import TASK_COLUMNS

_OPEN = sql_list(sorted(OPEN_STATUSES))


def as_task(row: sa.RowMapping) -> Task:
    """The Task in a row that has TASK_COLUMNS and queue_key."""
    return Task(
        **{column: row[column] for column in TASK_COLUMNS.split(", ") if column != "state"},
        state=State(row["state"]),
        queue_key=row["queue_key"],
    )


def as_action(row: Mapping[str, Any] | sa.RowMapping) -> ExternalAction:
    """The ExternalAction in a row of external_action."""
    return ExternalAction(
        id=row["id"],
        task_id=row["task_id"],
        number=row["number"],
        description=row["description"],
        status=ActionStatus(row["status"]),
        recorded_by=row["recorded_by"],
        recorded_at=_as_time(row["recorded_at"]),
    )


def _as_time(value: datetime | str) -> datetime:
    """A time as the driver gives it, or as it stands in JSON that the database made."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


_COLUMNS = ", ".join(f"t.{column}" for column in TASK_COLUMNS.split(", "))
_TASKS = f"SELECT {_COLUMNS}, q.key AS queue_key FROM dibs.task t JOIN dibs.queue q ON q.id = t.queue_id"

TASK_BY_ID = sa.text(f"{_TASKS} WHERE t.id = :task_id")

TASK_BY_NAME = sa.text(f"{_TASKS} WHERE q.workspace = :workspace AND q.key = :key AND t.number = :number")

UNFINISHED_OF_QUEUES = sa.text(
    f"""
SELECT {_COLUMNS}, q.key AS queue_key
FROM dibs.queue q CROSS JOIN LATERAL (
    SELECT * FROM dibs.task t WHERE t.queue_id = q.id AND t.state <> 'done'
    ORDER BY t.created_at, t.id LIMIT :most
) t
WHERE q.id = ANY(:queue_ids)
ORDER BY q.id, t.created_at, t.id LIMIT :most"""
)

OWNED_BY = sa.text(
    f"{_TASKS} WHERE t.owner_id = :owner AND t.lease_until IS NOT NULL AND q.workspace = :workspace "
    "ORDER BY t.lease_until, t.id LIMIT :most"
)

OPEN_ACTIONS = sa.text(
    f"SELECT * FROM dibs.external_action WHERE task_id = :task_id AND status IN ({_OPEN}) ORDER BY number"
)

FACTS = sa.text(
    f"""
SELECT {_COLUMNS}, q.key AS queue_key, coalesce(c.channel_id, q.channel_id) AS channel_id, q.reasons,
       b.releases_paused_since IS NOT NULL AS releases_paused,
       r.previous_owner AS released_by, r.created_at AS released_at, r.reason, r.comment, r.handoff_note,
       r.external_action, r.forced_by, n.author_id AS note_by, n.text AS note, n.created_at AS noted_at,
       (SELECT jsonb_agg(a ORDER BY a.number) FROM dibs.external_action a WHERE a.task_id = t.id) AS actions,
       f.kind AS flagged_by_kind, f.actor_id AS flagged_by, f.at AS flagged_at,
       f.detail ->> 'former_owner' AS flagged_owner, f.detail ->> 'former_state' AS flagged_state
FROM dibs.task t
JOIN dibs.queue q ON q.id = t.queue_id
LEFT JOIN dibs.card c ON c.task_id = t.id
LEFT JOIN dibs.breaker b ON b.queue_id = t.queue_id
LEFT JOIN LATERAL (
    SELECT * FROM dibs.release_card r WHERE r.task_id = t.id ORDER BY r.version_before DESC LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT * FROM dibs.task_note n WHERE n.task_id = t.id ORDER BY n.id DESC LIMIT 1
) n ON true
LEFT JOIN LATERAL (
    -- What began in somebody's hands tells more than what only left the flag as it was.
    SELECT e.* FROM dibs.event e
    WHERE t.needs_check AND e.task_id = t.id AND e.why IS NULL
      AND (e.kind IN ('expired', 'transferred', 'force_released')
           OR (e.kind = 'released' AND e.detail ->> 'external_action' = 'unknown'))
      AND e.id > coalesce((SELECT max(c.id) FROM dibs.event c
                           WHERE c.task_id = t.id
                             AND (c.kind = 'checked' OR (c.kind = 'started' AND c.detail IS NOT NULL))), 0)
    ORDER BY (e.kind = 'released' OR e.detail ->> 'former_state' = 'started') DESC, e.id DESC LIMIT 1
) f ON true
WHERE t.id = :task_id"""
)

ACTION_OF_OPERATION = sa.text(
    "SELECT a.* FROM dibs.event e "
    "JOIN dibs.external_action a ON a.task_id = e.task_id AND a.version = e.version_after "
    "WHERE e.op_id = :op_id AND e.kind = 'action_recorded'"
)
"""The external action that an operation recorded."""

EVENT_ACTIONS = """(
    SELECT jsonb_agg(jsonb_build_object(
               'reference', concat(q.key, '-', t.number, '-A', x.number), 'description', x.description,
               'status', e.detail -> 'answers' ->> CAST(x.id AS text)) ORDER BY x.number)
    FROM dibs.external_action x
    WHERE e.why IS NULL AND x.task_id = e.task_id
      AND (x.version = e.version_after OR jsonb_exists(e.detail -> 'answers', CAST(x.id AS text))))"""
"""The SQL of the external actions that an event `e` of a task `t` in a queue `q` recorded or settled."""


def as_event_actions(found: list[Mapping[str, Any]] | None) -> tuple[EventAction, ...]:
    """The actions in a column of EVENT_ACTIONS."""
    return tuple(
        EventAction(
            action["reference"],
            action["description"],
            ActionStatus(action["status"]) if action["status"] else None,
        )
        for action in found or ()
    )


_ADDED = {
    "task_id": "n.task_id",
    "kind": "'created'",
    "actor_id": "CAST(:actor AS text)",
    "at": "n.clock",
    "version_before": "0",
    "version_after": "1",
    "version_seen": "CAST(NULL AS integer)",
    "op_id": "CAST(:op_id AS text)",
    "why": "CAST(NULL AS text)",
    "detail": "CAST(NULL AS jsonb)",
    "content": "n.content",
}

ADD_TASK = sa.text(
    f"""
WITH numbered AS (
    UPDATE dibs.queue SET last_number = last_number + 1 WHERE id = :queue_id
    RETURNING id, key, channel_id, last_number,
              nextval(pg_get_serial_sequence('dibs.task', 'id')) AS task_id, clock_timestamp() AS clock,
              {digest(WORDS_OF_TASK.format(":title", ":details"))} AS content
), sealed AS MATERIALIZED (
    SELECT n.*, {event_hash(_ADDED, "CAST(NULL AS bytea)")} AS hash FROM numbered n
), added AS (
    INSERT INTO dibs.task (id, queue_id, number, title, details, deadline, created_by, created_at,
                           last_actor, last_at, head)
    OVERRIDING SYSTEM VALUE
    SELECT task_id, id, last_number, :title, :details, :deadline, :actor, clock, :actor, clock, hash
    FROM sealed
    RETURNING *
), logged AS (
    INSERT INTO dibs.event
        (queue_id, task_id, kind, actor_id, at, version_before, version_after, op_id, content, hash)
    SELECT a.queue_id, a.id, 'created', :actor, a.created_at, 0, a.version, :op_id, s.content, s.hash
    FROM added a JOIN sealed s ON s.task_id = a.id
), carded AS (
    INSERT INTO dibs.card (task_id, channel_id, wanted_version)
    SELECT a.id, n.channel_id, a.version FROM added a JOIN numbered n ON n.id = a.queue_id
)
SELECT {_COLUMNS}, n.key AS queue_key
FROM added t JOIN numbered n ON n.id = t.queue_id"""
).bindparams(
    sa.bindparam("queue_id", type_=sa.BigInteger()),
    sa.bindparam("title", type_=sa.Text()),
    sa.bindparam("details", type_=sa.Text()),
    sa.bindparam("deadline", type_=sa.TIMESTAMP(timezone=True)),
    sa.bindparam("actor", type_=sa.Text()),
    sa.bindparam("op_id", type_=sa.Text()),
)

EVENT_BY_OP_ID = sa.text(
    "SELECT e.task_id, e.kind, e.why, e.actor_id, e.at, q.eligible_group, "
    "e.why IS NOT NULL AND coalesce(jsonb_exists(e.detail, 'releases_paused'), false) AS releases_paused "
    "FROM dibs.event e JOIN dibs.queue q ON q.id = e.queue_id WHERE e.op_id = :op_id"
)

_REFUSED = {
    "task_id": "l.id",
    "kind": "CAST(:rejection AS text)",
    "actor_id": "CAST(:actor AS text)",
    "at": "l.clock",
    "version_before": "l.version",
    "version_after": "l.version",
    "version_seen": "CAST(:version AS integer)",
    "op_id": "CAST(:op_id AS text)",
    "why": "CAST(:why AS text)",
    "detail": "CAST(:detail AS jsonb)",
    "content": "CAST(NULL AS bytea)",
}

# Takes the task's lock first, as the lost write does: otherwise each would wait for the other.
SETTLE = sa.text(
    f"""
WITH locked AS MATERIALIZED (
    SELECT t.* FROM dibs.task t WHERE t.id = :task_id FOR UPDATE
), timed AS MATERIALIZED (
    SELECT t.*, clock_timestamp() AS clock FROM locked t
)
INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, version_seen,
                        op_id, why, detail, previous, hash)
SELECT l.queue_id, l.id, :rejection, :actor, l.clock, l.version, l.version, CAST(:version AS integer), :op_id,
       :why, CAST(:detail AS jsonb), l.head, {event_hash(_REFUSED, "l.head")}
FROM timed l
ON CONFLICT (op_id) DO NOTHING
RETURNING id"""
)

_WITHOUT_TASK = {
    **_REFUSED,
    "detail": "CAST(NULL AS jsonb)",
    "task_id": "CAST(NULL AS bigint)",
    "kind": "CAST(:kind AS text)",
    "at": "l.clock",
    "version_before": "CAST(NULL AS integer)",
    "version_after": "CAST(NULL AS integer)",
    "version_seen": "CAST(NULL AS integer)",
}

REFUSE_WITHOUT_TASK = sa.text(
    f"""
INSERT INTO dibs.event (queue_id, kind, actor_id, at, op_id, why, hash)
SELECT :queue_id, :kind, :actor, l.clock, :op_id, :why, {event_hash(_WITHOUT_TASK, "CAST(NULL AS bytea)")}
FROM (SELECT clock_timestamp() AS clock OFFSET 0) l
ON CONFLICT (op_id) DO NOTHING
RETURNING (SELECT q.eligible_group FROM dibs.queue q WHERE q.id = queue_id) AS eligible_group"""
)
