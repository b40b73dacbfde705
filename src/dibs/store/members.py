"""Who may claim in which queue."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.outcomes import Refusal
from dibs.domain.task import Standing

REFUSAL = {
    Standing.LEFT: Refusal.NOT_A_MEMBER,
    Standing.UNVERIFIED: Refusal.MEMBERSHIP_UNKNOWN,
    Standing.BOT: Refusal.BOT,
    Standing.OTHER_WORKSPACE: Refusal.OTHER_WORKSPACE,
    Standing.DEACTIVATED: Refusal.DEACTIVATED,
}
"""The refusal that names each standing which may not claim."""

STANDINGS = sa.text(
    "SELECT queue_id, standing, supervisor FROM dibs.queue_member "
    "WHERE queue_id = ANY(:queue_ids) AND user_id = :user_id ORDER BY queue_id"
).bindparams(sa.bindparam("queue_ids", type_=sa.ARRAY(sa.BigInteger())))

SET_STANDING = sa.text(
    "INSERT INTO dibs.queue_member (queue_id, user_id, standing) VALUES (:queue_id, :user_id, :standing) "
    "ON CONFLICT (queue_id, user_id) "
    "DO UPDATE SET standing = excluded.standing, changed_at = clock_timestamp() "
    "WHERE queue_member.standing <> excluded.standing"
)

VERIFIED = sa.text(
    "UPDATE dibs.queue_member SET standing = :standing, changed_at = clock_timestamp() "
    "WHERE queue_id = :queue_id AND user_id = :user_id AND standing = 'unverified'"
)
"""For a look-up of who somebody is, during which they may have left the channel."""

JOINED = sa.text(
    "INSERT INTO dibs.queue_member (queue_id, user_id, standing) "
    "SELECT q.id, :user_id, 'unverified' FROM dibs.queue q "
    "WHERE q.workspace = :workspace AND q.channel_id = :channel_id "
    "ON CONFLICT (queue_id, user_id) DO UPDATE SET standing = 'unverified', changed_at = clock_timestamp() "
    "WHERE queue_member.standing = 'left'"
)

LEFT = sa.text(
    "INSERT INTO dibs.queue_member (queue_id, user_id, standing) "
    "SELECT q.id, :user_id, 'left' FROM dibs.queue q "
    "WHERE q.workspace = :workspace AND q.channel_id = :channel_id "
    "ON CONFLICT (queue_id, user_id) DO UPDATE SET standing = 'left', changed_at = clock_timestamp()"
)

# Events tell of a change sooner than a reading of the whole channel that had begun before it.
READ_WHOLE = sa.text(
    """
WITH present AS (
    INSERT INTO dibs.queue_member (queue_id, user_id, standing)
    SELECT :queue_id, p.user_id, 'unverified' FROM unnest(:present) AS p (user_id)
    ON CONFLICT (queue_id, user_id) DO UPDATE SET standing = 'unverified', changed_at = clock_timestamp()
    WHERE queue_member.standing = 'left' AND queue_member.changed_at < :read_at
), gone AS (
    UPDATE dibs.queue_member SET standing = 'left', changed_at = clock_timestamp()
    WHERE queue_id = :queue_id AND standing <> 'left' AND NOT user_id = ANY(:present)
      AND changed_at < :read_at
)
UPDATE dibs.queue SET members_read_at = clock_timestamp() WHERE id = :queue_id"""
).bindparams(
    sa.bindparam("queue_id", type_=sa.BigInteger()),
    sa.bindparam("present", type_=sa.ARRAY(sa.Text())),
    sa.bindparam("read_at", type_=sa.TIMESTAMP(timezone=True)),
)

READ_LONG_AGO = sa.text(
    "SELECT id AS queue_id, workspace, channel_id, clock_timestamp() AS read_at FROM dibs.queue "
    "WHERE members_read_at IS NULL OR members_read_at < now() - make_interval(secs => :seconds) "
    "ORDER BY members_read_at NULLS FIRST LIMIT :most"
)

UNVERIFIED = sa.text(
    "SELECT m.queue_id, m.user_id, q.workspace "
    "FROM dibs.queue_member m JOIN dibs.queue q ON q.id = m.queue_id "
    "WHERE m.standing = 'unverified' ORDER BY m.changed_at LIMIT :most"
)
