"""Queues: made, found, and who supervises them."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.brakes import QueueEvent
from dibs.domain.outcomes import Refusal
from dibs.domain.queue import USUAL_REASONS, Queue
from dibs.store.queue_events import log_queue

_COLUMNS = (
    "q.id, q.workspace, q.key, q.name, q.channel_id, q.lease_seconds, q.eligible_group, q.alert_channel, "
    "q.spike_limit, q.spike_minutes, q.spike_share, q.longest_hold_seconds, q.reasons, "
    "q.supervisor_operations, q.settings_version"
)


def as_queue(row: sa.RowMapping) -> Queue:
    """The Queue in a row that has its columns."""
    return Queue(
        id=row["id"],
        workspace=row["workspace"],
        key=row["key"],
        name=row["name"],
        channel_id=row["channel_id"],
        lease_seconds=row["lease_seconds"],
        eligible_group=row["eligible_group"],
        alert_channel=row["alert_channel"],
        spike_limit=row["spike_limit"],
        spike_minutes=row["spike_minutes"],
        spike_share=row["spike_share"],
        longest_hold_seconds=row["longest_hold_seconds"],
        reasons=as_reasons(row["reasons"]),
        supervisor_operations=row["supervisor_operations"],
        settings_version=row["settings_version"],
    )


def as_reasons(stored: list[str] | None) -> tuple[str, ...]:
    """Why a task may be handed back, from what a queue's row says of it."""
    return USUAL_REASONS if stored is None else tuple(stored)


CREATE = sa.text(
    f"""
WITH q AS (
    INSERT INTO dibs.queue (workspace, channel_id, key, name, lease_seconds, eligible_group, alert_channel,
                            spike_limit, spike_minutes, spike_share, longest_hold_seconds, reasons,
                            supervisor_operations, created_by)
    VALUES (:workspace, :channel_id, :key, :name, :lease_seconds, :eligible_group, :alert_channel,
            :spike_limit, :spike_minutes, :spike_share, :longest_hold_seconds, :reasons,
            :supervisor_operations, :created_by)
    ON CONFLICT (workspace, key) DO NOTHING
    RETURNING *
), supervised AS (
    INSERT INTO dibs.queue_member (queue_id, user_id, standing, supervisor)
    SELECT q.id, s.user_id, 'left', true FROM q, unnest(:supervisors) AS s (user_id)
), guarded AS (
    INSERT INTO dibs.breaker (queue_id) SELECT q.id FROM q
)
SELECT {_COLUMNS} FROM q"""
).bindparams(
    sa.bindparam("supervisors", type_=sa.ARRAY(sa.Text())), sa.bindparam("reasons", type_=sa.ARRAY(sa.Text()))
)

OF_CHANNEL = sa.text(
    f"SELECT {_COLUMNS} FROM dibs.queue q WHERE q.workspace = :workspace AND q.channel_id = :channel_id "
    "ORDER BY q.id"
)

BY_KEY = sa.text(f"SELECT {_COLUMNS} FROM dibs.queue q WHERE q.workspace = :workspace AND q.key = :key")

BY_ID = sa.text(f"SELECT {_COLUMNS} FROM dibs.queue q WHERE q.id = :queue_id")

OF_ELIGIBLE = sa.text(
    f"SELECT {_COLUMNS} FROM dibs.queue q JOIN dibs.queue_member m ON m.queue_id = q.id "
    "WHERE q.workspace = :workspace AND m.user_id = :user_id AND m.standing = 'eligible' ORDER BY q.id"
)

SUPERVISORS = sa.text(
    "SELECT m.user_id FROM dibs.queue_member m WHERE m.queue_id = :queue_id AND m.supervisor "
    'ORDER BY m.user_id COLLATE "C"'
)

MAY_NAME_SUPERVISORS = sa.text(
    """
SELECT FROM dibs.queue_member m
WHERE m.queue_id = :queue_id AND m.user_id = :user_id AND m.standing = 'eligible' AND NOT EXISTS (
    SELECT FROM dibs.queue_member s
    WHERE s.queue_id = m.queue_id AND s.supervisor AND s.standing <> 'deactivated')"""
)
"""A row where nobody is left who supervises the queue, and this person may claim in it."""

# What is set, by the names of `dibs.domain.settings.QueueSettings`.
_SETTABLE = (
    "name",
    "lease_seconds",
    "eligible_group",
    "alert_channel",
    "spike_limit",
    "spike_minutes",
    "spike_share",
    "longest_hold_seconds",
    "reasons",
    "supervisor_operations",
)
_AS_JSON = ", ".join(f"'{column}', l.{column}" for column in _SETTABLE)

# The queue is locked before its people, as a reading of its members does it, and they in order. Whatever
# changes the supervisors adds 1 to settings_version, so that a list read from a snapshot that is too old is
# noticed; the lock lets tasks be added meanwhile, whose rows refer to the queue. With another group nobody is
# known to be eligible, until they are looked up or the group is read.
CHANGE_SETTINGS = sa.text(
    f"""
WITH locked AS MATERIALIZED (
    SELECT q.* FROM dibs.queue q WHERE q.id = :queue_id FOR NO KEY UPDATE
), people AS MATERIALIZED (
    SELECT m.user_id, m.supervisor, m.standing FROM dibs.queue_member m
    WHERE m.queue_id = (SELECT l.id FROM locked l) ORDER BY m.user_id FOR UPDATE
), known AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS clock,
           jsonb_build_object({_AS_JSON}, 'supervisors', coalesce(
               (SELECT jsonb_agg(p.user_id ORDER BY p.user_id COLLATE "C") FROM people p WHERE p.supervisor),
               '[]')) AS before
    FROM locked l
), judged AS MATERIALIZED (
    SELECT k.*,
           (SELECT jsonb_object_agg(a.key, jsonb_build_object('old', b.value, 'new', a.value))
            FROM jsonb_each(CAST(:settings AS jsonb)) a JOIN jsonb_each(k.before) b USING (key)
            WHERE a.value <> b.value) AS changes,
           CASE
               WHEN NOT EXISTS (SELECT FROM people p WHERE p.user_id = :actor AND (
                   p.supervisor OR (p.standing = 'eligible' AND NOT EXISTS (
                       SELECT FROM people s WHERE s.supervisor AND s.standing <> 'deactivated'))))
                   THEN '{Refusal.NOT_A_SUPERVISOR}'
               WHEN k.settings_version <> :seen OR k.settings_version <>
                   (SELECT q.settings_version FROM dibs.queue q WHERE q.id = k.id) THEN '{Refusal.STALE}'
           END AS why
    FROM known k
), changed AS (
    UPDATE dibs.queue q
    SET settings_version = q.settings_version + 1, name = :name, lease_seconds = :lease_seconds,
        eligible_group = :eligible_group, alert_channel = :alert_channel, spike_limit = :spike_limit,
        spike_minutes = :spike_minutes, spike_share = :spike_share,
        longest_hold_seconds = :longest_hold_seconds, reasons = :reasons,
        supervisor_operations = :supervisor_operations,
        members_tried_at = CASE WHEN j.changes ? 'eligible_group' THEN NULL ELSE q.members_tried_at END,
        members_read_at = CASE WHEN j.changes ? 'eligible_group' THEN NULL ELSE q.members_read_at END
    FROM judged j
    WHERE q.id = j.id AND j.why IS NULL AND j.changes IS NOT NULL
    RETURNING q.*
), known_people AS (
    UPDATE dibs.queue_member m
    SET supervisor = m.user_id = ANY(:supervisors),
        standing = CASE WHEN r.renewed AND m.standing IN ('eligible', 'unverified') THEN 'unknown'
                        ELSE m.standing END,
        changed_at = CASE WHEN r.renewed THEN r.clock ELSE m.changed_at END,
        joined_at = CASE WHEN r.renewed THEN NULL ELSE m.joined_at END,
        left_at = CASE WHEN r.renewed THEN NULL ELSE m.left_at END
    FROM (SELECT c.id, j.clock, j.changes ? 'eligible_group' AS renewed
          FROM changed c JOIN judged j ON j.id = c.id) r
    WHERE m.queue_id = r.id AND (r.renewed OR m.supervisor <> (m.user_id = ANY(:supervisors)))
), new_people AS (
    INSERT INTO dibs.queue_member AS m (queue_id, user_id, standing, supervisor)
    SELECT c.id, s.user_id, 'left', true FROM changed c, unnest(:supervisors) AS s (user_id)
    WHERE s.user_id NOT IN (SELECT p.user_id FROM people p)
    ON CONFLICT (queue_id, user_id) DO UPDATE SET supervisor = true
), {
        log_queue(
            "logged",
            "(SELECT j.id AS queue_id, j.why, j.clock, j.changes FROM judged j)",
            QueueEvent.SETTINGS_CHANGED,
            op_id="CAST(:op_id AS text)",
            detail="x.changes",
            where="x.why IS NULL AND x.changes IS NOT NULL",
        ).strip()
    }
SELECT j.why, j.changes FROM judged j"""
).bindparams(
    sa.bindparam("queue_id", type_=sa.BigInteger()),
    sa.bindparam("actor", type_=sa.Text()),
    sa.bindparam("op_id", type_=sa.Text()),
    sa.bindparam("seen", type_=sa.Integer()),
    sa.bindparam("settings", type_=sa.Text()),
    sa.bindparam("supervisors", type_=sa.ARRAY(sa.Text())),
    sa.bindparam("reasons", type_=sa.ARRAY(sa.Text())),
    *(sa.bindparam(name, type_=sa.Text()) for name in ("name", "eligible_group", "alert_channel")),
    *(
        sa.bindparam(name, type_=sa.Integer())
        for name in (
            "lease_seconds",
            "spike_limit",
            "spike_minutes",
            "spike_share",
            "longest_hold_seconds",
        )
    ),
    sa.bindparam("supervisor_operations", type_=sa.Boolean()),
)
"""Change a queue's settings as a supervisor, from those that the form was drawn with.

It returns one row, unless there is no such queue: `why` it was refused, or null, and what `changes`, by
setting with its old and its new value, or null where everything stands like that already.
"""

LAST_CHANGE = sa.text(
    f"SELECT e.actor_id, e.at FROM dibs.event e WHERE e.queue_id = :queue_id "
    f"AND e.kind = '{QueueEvent.SETTINGS_CHANGED}' AND e.at > now() - interval '1 day' "
    "ORDER BY e.at DESC LIMIT 1"
)
"""Who changed the settings last, and when, if that is not long ago."""

CHANGED_BEFORE = sa.text(
    f"SELECT e.detail FROM dibs.event e WHERE e.op_id = :op_id AND e.kind = '{QueueEvent.SETTINGS_CHANGED}'"
)

AROUND = sa.text(
    f"SELECT {_COLUMNS}, m.standing, m.supervisor "
    "FROM dibs.queue q LEFT JOIN dibs.queue_member m ON m.queue_id = q.id AND m.user_id = :user_id "
    "WHERE q.workspace = :workspace AND (m.user_id IS NOT NULL OR q.channel_id = :channel_id) "
    "ORDER BY (q.channel_id = :channel_id) DESC, q.id"
)
"""The queues of a channel, and those that a person is known in, with what is known of the person."""
