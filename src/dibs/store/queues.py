"""Queues: made, found, and who supervises them."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.queue import Queue

_COLUMNS = "q.id, q.workspace, q.key, q.name, q.channel_id, q.lease_seconds"


def as_queue(row: sa.RowMapping) -> Queue:
    """The Queue in a row that has its columns."""
    return Queue(
        id=row["id"],
        workspace=row["workspace"],
        key=row["key"],
        name=row["name"],
        channel_id=row["channel_id"],
        lease_seconds=row["lease_seconds"],
    )


CREATE = sa.text(
    f"""
WITH q AS (
    INSERT INTO dibs.queue (workspace, channel_id, key, name, lease_seconds, eligible_group, alert_channel,
                            spike_limit, spike_minutes, created_by)
    VALUES (:workspace, :channel_id, :key, :name, :lease_seconds, :eligible_group, :alert_channel,
            :spike_limit, :spike_minutes, :created_by)
    ON CONFLICT (workspace, key) DO NOTHING
    RETURNING *
), supervised AS (
    INSERT INTO dibs.queue_member (queue_id, user_id, standing, supervisor)
    SELECT q.id, s.user_id, 'left', true FROM q, unnest(:supervisors) AS s (user_id)
), guarded AS (
    INSERT INTO dibs.breaker (queue_id) SELECT q.id FROM q
)
SELECT {_COLUMNS} FROM q"""
).bindparams(sa.bindparam("supervisors", type_=sa.ARRAY(sa.Text())))

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
