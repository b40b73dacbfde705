"""Who may claim in which queue."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.outcomes import Refusal
from dibs.domain.task import Standing

REFUSAL = {
    Standing.LEFT: Refusal.NOT_A_MEMBER,
    Standing.UNVERIFIED: Refusal.MEMBERSHIP_UNKNOWN,
    Standing.UNKNOWN: Refusal.MEMBERSHIP_UNKNOWN,
    Standing.BOT: Refusal.BOT,
    Standing.OTHER_WORKSPACE: Refusal.OTHER_WORKSPACE,
    Standing.DEACTIVATED: Refusal.DEACTIVATED,
}
"""The refusal that names each standing which may not claim."""

_ID, _TEXT, _TIME = sa.BigInteger(), sa.Text(), sa.TIMESTAMP(timezone=True)

STANDINGS = sa.text(
    "SELECT queue_id, standing, supervisor FROM dibs.queue_member "
    "WHERE queue_id = ANY(:queue_ids) AND user_id = :user_id ORDER BY queue_id"
).bindparams(sa.bindparam("queue_ids", type_=sa.ARRAY(sa.BigInteger())))

MAY_INTERVENE = sa.text(
    "SELECT FROM dibs.queue_member m JOIN dibs.queue q ON q.id = m.queue_id "
    "WHERE m.queue_id = :queue_id AND m.user_id = :user_id AND m.supervisor AND q.supervisor_operations"
).bindparams(sa.bindparam("queue_id", type_=_ID), sa.bindparam("user_id", type_=_TEXT))

THE_SUPERVISOR = """
    SELECT m.supervisor FROM dibs.queue_member m
    WHERE m.queue_id = :queue_id AND m.user_id = :actor AND m.supervisor FOR SHARE"""
"""The SQL that locks the row of who acts, if they supervise the queue."""

# What Slack is asked

TO_LOOK_UP = sa.text(
    """
SELECT q.workspace, q.channel_id, q.eligible_group, m.standing, clock_timestamp() AS asked_at
FROM dibs.queue q LEFT JOIN dibs.queue_member m ON m.queue_id = q.id AND m.user_id = :user_id
WHERE q.id = :queue_id"""
)
"""Where a person is looked up, what is known of them, and since when the answer holds."""

SET_STANDING = sa.text(
    """
INSERT INTO dibs.queue_member AS m (queue_id, user_id, standing, left_at)
SELECT q.id, :user_id, :standing, :left_at
FROM (SELECT q.id FROM dibs.queue q
      WHERE q.id = :queue_id AND q.eligible_group IS NOT DISTINCT FROM :eligible_group FOR SHARE) q
ON CONFLICT (queue_id, user_id) DO UPDATE
SET standing = excluded.standing, changed_at = clock_timestamp(),
    left_at = greatest(m.left_at, excluded.left_at)
WHERE m.changed_at < :asked_at
RETURNING m.standing"""
).bindparams(
    sa.bindparam("queue_id", type_=_ID),
    sa.bindparam("user_id", type_=_TEXT),
    sa.bindparam("standing", type_=_TEXT),
    sa.bindparam("eligible_group", type_=_TEXT),
    sa.bindparam("left_at", type_=_TIME),
    sa.bindparam("asked_at", type_=_TIME),
)
"""What a look-up found, unless something was heard of the person since, or another group was chosen."""

VERIFIED = sa.text(
    "UPDATE dibs.queue_member SET standing = :standing, changed_at = clock_timestamp() "
    "WHERE queue_id = :queue_id AND user_id = :user_id "
    "AND standing = 'unverified' AND changed_at = :changed_at"
).bindparams(sa.bindparam("changed_at", type_=_TIME))
"""For a look-up of who somebody is, during which they may have left the channel."""

# Who locks a person in several queues does so in the order of the queues, as `next` does, and who locks
# several people in the order of their ids, as a transfer does.

# What Slack tells of a channel concerns the queues without a group. Its events may come twice and in any
# order, so each kind is put in order with the other by Slack's own times. A join that is passed over costs a
# look-up at the next claim; a leave must not be.

JOINED = sa.text(
    """
INSERT INTO dibs.queue_member AS m (queue_id, user_id, standing, joined_at)
SELECT q.id, :user_id, 'unverified', :at FROM dibs.queue q
WHERE q.workspace = :workspace AND q.channel_id = :channel_id AND q.eligible_group IS NULL
ORDER BY q.id
ON CONFLICT (queue_id, user_id) DO UPDATE
SET standing = CASE WHEN m.standing IN ('left', 'unknown') THEN 'unverified' ELSE m.standing END,
    changed_at = CASE WHEN m.standing IN ('left', 'unknown') THEN clock_timestamp() ELSE m.changed_at END,
    joined_at = greatest(m.joined_at, excluded.joined_at)
WHERE m.left_at IS NULL OR excluded.joined_at > m.left_at"""
).bindparams(sa.bindparam("at", type_=_TIME), sa.bindparam("user_id", type_=_TEXT))

LEFT = sa.text(
    """
INSERT INTO dibs.queue_member AS m (queue_id, user_id, standing, left_at)
SELECT q.id, :user_id, 'left', :at FROM dibs.queue q
WHERE q.workspace = :workspace AND q.channel_id = :channel_id AND q.eligible_group IS NULL
ORDER BY q.id
ON CONFLICT (queue_id, user_id) DO UPDATE
SET standing = CASE m.standing WHEN 'deactivated' THEN m.standing ELSE 'left' END,
    changed_at = clock_timestamp(), left_at = greatest(m.left_at, excluded.left_at)
WHERE (excluded.left_at <= m.joined_at) IS NOT TRUE"""
).bindparams(sa.bindparam("at", type_=_TIME), sa.bindparam("user_id", type_=_TEXT))

# Of a group it is only noted who must be looked up, since its events carry no lists that can be relied on.
GROUP_CHANGED = sa.text(
    """
WITH concerned AS (
    UPDATE dibs.queue SET members_tried_at = NULL, members_read_at = NULL
    WHERE workspace = :workspace AND eligible_group = :group_id
    RETURNING id
), doubted AS (
    UPDATE dibs.queue_member m SET standing = 'unknown', changed_at = clock_timestamp()
    FROM (
        SELECT d.queue_id, d.user_id FROM concerned c JOIN dibs.queue_member d ON d.queue_id = c.id
        WHERE d.standing IN ('eligible', 'unverified') AND (:everybody OR d.user_id = ANY(:removed))
        ORDER BY d.queue_id, d.user_id FOR UPDATE OF d) d
    WHERE m.queue_id = d.queue_id AND m.user_id = d.user_id
)
SELECT id FROM concerned"""
).bindparams(
    sa.bindparam("everybody", type_=sa.Boolean()), sa.bindparam("removed", type_=sa.ARRAY(sa.Text()))
)
"""The queues whose group was changed: they are read again, and who was removed is looked up first."""

ACCOUNT_CHANGED = sa.text(
    """
WITH locked AS MATERIALIZED (
    SELECT m.queue_id, m.user_id FROM dibs.queue_member m JOIN dibs.queue q ON q.id = m.queue_id
    WHERE q.workspace = :workspace AND m.user_id = :user_id AND (m.standing = 'deactivated') <> :deactivated
    ORDER BY m.queue_id FOR UPDATE OF m
)
UPDATE dibs.queue_member m
SET standing = CASE WHEN :deactivated THEN 'deactivated' ELSE 'unknown' END, changed_at = clock_timestamp()
FROM locked l WHERE m.queue_id = l.queue_id AND m.user_id = l.user_id"""
).bindparams(sa.bindparam("deactivated", type_=sa.Boolean()))
"""An account was turned off, or works again: then it is looked up before the person's next claim."""

# Channels and groups that are read whole

READ_SOON = sa.text(
    "UPDATE dibs.queue SET members_tried_at = NULL, members_read_at = NULL "
    "WHERE :every_queue OR id = ANY(:queue_ids)"
).bindparams(
    sa.bindparam("every_queue", type_=sa.Boolean()),
    sa.bindparam("queue_ids", type_=sa.ARRAY(sa.BigInteger())),
)

# The try is recorded before the channel is read, so one that cannot be read goes behind all the others.
# A queue's row is locked for moments only, such as by a new task: it is waited for, or what should be read at
# once would wait for the next turn. Whoever finds that another process has taken it leaves the rest to it.
NEXT_TO_READ = sa.text(
    """
UPDATE dibs.queue SET members_tried_at = clock_timestamp()
WHERE id = (
    SELECT q.id FROM dibs.queue q
    WHERE q.members_tried_at IS NULL
       OR q.members_tried_at < now() - make_interval(secs => :again_after)
       OR (q.members_read_at IS DISTINCT FROM q.members_tried_at
           AND q.members_tried_at < now() - make_interval(secs => :retry_after))
       OR (q.members_read_at = q.members_tried_at AND EXISTS (
           SELECT FROM dibs.queue_member m
           WHERE m.queue_id = q.id AND m.standing = 'unverified' AND m.changed_at > q.members_read_at))
    ORDER BY q.members_tried_at NULLS FIRST, q.id
    LIMIT 1 FOR NO KEY UPDATE
)
RETURNING id AS queue_id, channel_id, eligible_group, members_tried_at AS read_at"""
)
"""The queue whose channel or group should be read next: at the first time, long ago, after a failure, or when
a join was heard of that no reading has confirmed."""

# Events and settings tell of a change sooner than a reading that had begun before it.
READ_WHOLE = sa.text(
    """
WITH locked AS MATERIALIZED (
    SELECT q.id FROM dibs.queue q
    WHERE q.id = :queue_id AND q.eligible_group IS NOT DISTINCT FROM :eligible_group FOR NO KEY UPDATE
), outdated AS MATERIALIZED (
    SELECT m.queue_id, m.user_id, m.user_id = ANY(:present) AS present
    FROM locked l JOIN dibs.queue_member m ON m.queue_id = l.id
    WHERE m.changed_at < :read_at
      AND CASE WHEN m.user_id = ANY(:present) THEN m.standing IN ('left', 'unknown')
               ELSE m.standing NOT IN ('left', 'deactivated') END
    ORDER BY m.user_id FOR UPDATE OF m
), known AS (
    UPDATE dibs.queue_member m
    SET standing = CASE WHEN o.present THEN 'unverified' ELSE 'left' END,
        changed_at = CASE WHEN o.present THEN :read_at ELSE clock_timestamp() END,
        left_at = CASE WHEN o.present THEN m.left_at ELSE greatest(m.left_at, :read_at) END
    FROM outdated o
    WHERE m.queue_id = o.queue_id AND m.user_id = o.user_id
), new AS (
    INSERT INTO dibs.queue_member (queue_id, user_id, standing, changed_at)
    SELECT l.id, p.user_id, 'unverified', :read_at FROM locked l, unnest(:present) AS p (user_id)
    ON CONFLICT (queue_id, user_id) DO NOTHING
)
UPDATE dibs.queue q SET members_read_at = :read_at
FROM locked l WHERE q.id = l.id AND q.members_tried_at = :read_at"""
).bindparams(
    sa.bindparam("eligible_group", type_=_TEXT),
    sa.bindparam("queue_id", type_=_ID),
    sa.bindparam("present", type_=sa.ARRAY(sa.Text())),
    sa.bindparam("read_at", type_=_TIME),
)

# Only people whom a reading has seen in the channel since they were last heard of, and everybody in turn.
NEXT_TO_VERIFY = sa.text(
    """
UPDATE dibs.queue_member m SET tried_at = clock_timestamp()
FROM (
    SELECT m.queue_id, m.user_id, q.workspace
    FROM dibs.queue_member m JOIN dibs.queue q ON q.id = m.queue_id
    WHERE m.standing = 'unverified' AND m.changed_at <= q.members_read_at
    ORDER BY m.tried_at NULLS FIRST, m.changed_at, m.user_id
    LIMIT :most FOR UPDATE OF m SKIP LOCKED
) next
WHERE m.queue_id = next.queue_id AND m.user_id = next.user_id
RETURNING m.queue_id, m.user_id, m.changed_at, next.workspace"""
)
