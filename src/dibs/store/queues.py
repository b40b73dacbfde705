"""Queues: made, found, and who supervises them."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.queue import USUAL_REASONS, Queue

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
