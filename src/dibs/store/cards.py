"""Which version a task's card shows, which one it should show, and who is sending it just now."""

from __future__ import annotations

import sqlalchemy as sa

SENDER_SECONDS = 30
"""How long one sender has a card to itself. Longer than a message can take, so that an older state never
overwrites a newer one; after it, a sender that died is no obstacle."""

TAKE = sa.text(
    f"""
UPDATE dibs.card
SET sender = :sender, sender_until = clock_timestamp() + interval '{SENDER_SECONDS} seconds',
    attempts = attempts + 1
WHERE task_id = :task_id AND disabled IS NULL AND shown_version < wanted_version
  AND (sender IS NULL OR sender_until <= clock_timestamp())
RETURNING message_ts, attempts"""
)

SHOWN = sa.text(
    """
UPDATE dibs.card
SET shown_version = :version, message_ts = :message_ts, attempts = 0,
    sender = NULL, sender_until = NULL, next_try_at = clock_timestamp()
WHERE task_id = :task_id AND sender = :sender
RETURNING wanted_version > shown_version AS more"""
)

GONE = sa.text("UPDATE dibs.card SET message_ts = NULL WHERE task_id = :task_id AND sender = :sender")

TRY_LATER = sa.text(
    """
UPDATE dibs.card
SET sender = NULL, sender_until = NULL, attempts = :attempts,
    next_try_at = clock_timestamp() + make_interval(secs => :seconds)
WHERE task_id = :task_id AND sender = :sender"""
)

DISABLE = sa.text(
    """
UPDATE dibs.card SET sender = NULL, sender_until = NULL, disabled = :reason
WHERE task_id = :task_id AND sender = :sender"""
)

ENABLE = sa.text(
    """
UPDATE dibs.card SET disabled = NULL, attempts = 0, next_try_at = clock_timestamp()
WHERE channel_id = :channel_id AND disabled IS NOT NULL"""
)

DUE = sa.text(
    """
SELECT task_id FROM dibs.card
WHERE shown_version < wanted_version AND disabled IS NULL AND next_try_at <= now()
  AND (sender IS NULL OR sender_until <= now())
ORDER BY next_try_at, task_id LIMIT :most"""
)

POST_AGAIN = sa.text(
    """
WITH moved AS (
    UPDATE dibs.queue SET channel_id = :channel_id, members_read_at = NULL WHERE id = :queue_id
)
UPDATE dibs.card c
SET message_ts = NULL, shown_version = 0, attempts = 0, sender = NULL, sender_until = NULL, disabled = NULL,
    channel_id = :channel_id, next_try_at = clock_timestamp()
FROM dibs.task t
WHERE t.id = c.task_id AND t.queue_id = :queue_id AND t.state <> 'done'"""
)

WHERE_SHOWN = sa.text("SELECT channel_id, message_ts FROM dibs.card WHERE task_id = :task_id")
