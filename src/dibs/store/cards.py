"""Which version a task's card shows, which one it should show, and who is sending it just now.

A card that was given up is tried again once it should show a newer version: the trouble may be over, or
have been in what was shown, and one try for each change is not for ever.

Who changes several cards in one statement locks them in the order of their tasks first, as the sweep does.
"""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.notices import Notice
from dibs.store.notices import recipients

SENDER_SECONDS = 60
"""How long one sender has a card to itself. Longer than a delivery can take, so that an older state never
overwrites a newer one; after it, a sender that died is no obstacle."""

OUT_OF_DATE = "shown_version < wanted_version AND (disabled IS NULL OR disabled_version < wanted_version)"

TAKE = sa.text(
    f"""
UPDATE dibs.card
SET sender = :sender, sender_until = clock_timestamp() + interval '{SENDER_SECONDS} seconds',
    attempts = attempts + 1, overtaken = false,
    tried_since = coalesce(CASE WHEN attempts > 0 THEN tried_since END, clock_timestamp())
WHERE task_id = :task_id AND {OUT_OF_DATE}
  AND (sender IS NULL OR sender_until <= clock_timestamp())
RETURNING message_ts, attempts, tried_since"""
)

SHOWN = sa.text(
    """
UPDATE dibs.card
SET shown_version = CASE WHEN overtaken THEN 0 ELSE :version END, message_ts = :message_ts, attempts = 0,
    sender = NULL, sender_until = NULL, disabled = NULL, disabled_version = NULL,
    next_try_at = clock_timestamp()
WHERE task_id = :task_id AND sender = :sender
RETURNING wanted_version > shown_version AS more"""
)
"""No row is returned where the sender no longer had the card."""

OVERTAKEN = sa.text(
    """
UPDATE dibs.card
SET shown_version = 0, overtaken = true, next_try_at = clock_timestamp(),
    message_ts = coalesce(message_ts, :message_ts)
WHERE task_id = :task_id AND channel_id = :channel_id"""
).bindparams(sa.bindparam("message_ts", type_=sa.Text()))
"""A sender that had lost the card may have drawn an older state over a newer one: the newest is sent again,
also by whoever is sending now."""

GONE = sa.text("UPDATE dibs.card SET message_ts = NULL WHERE task_id = :task_id AND sender = :sender")

TRY_LATER = sa.text(
    """
UPDATE dibs.card
SET sender = NULL, sender_until = NULL, attempts = :attempts,
    next_try_at = clock_timestamp() + make_interval(secs => :seconds)
WHERE task_id = :task_id AND sender = :sender
RETURNING task_id"""
)

DISABLE = sa.text(
    f"""
WITH disabled AS (
    UPDATE dibs.card
    SET sender = NULL, sender_until = NULL, attempts = :attempts, disabled = :reason,
        disabled_version = :version
    WHERE task_id = :task_id AND sender = :sender
    RETURNING task_id, channel_id
)
INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload)
SELECT t.queue_id, concat_ws(':', '{Notice.CHANNEL_GONE}', t.queue_id, d.channel_id, r.recipient),
       '{Notice.CHANNEL_GONE}', r.recipient,
       jsonb_build_object('channel', d.channel_id, 'why', CAST(:reason AS text))
FROM disabled d JOIN dibs.task t ON t.id = d.task_id
CROSS JOIN LATERAL ({recipients("t.queue_id")}) r
WHERE :channel_gone
ON CONFLICT (key) DO NOTHING"""
).bindparams(sa.bindparam("reason", type_=sa.Text()), sa.bindparam("channel_gone", type_=sa.Boolean()))
"""Where the channel cannot be reached, the supervisors hear of it once, whatever number of cards it has."""

ENABLE = sa.text(
    """
WITH locked AS MATERIALIZED (
    SELECT c.task_id FROM dibs.card c
    WHERE c.channel_id = :channel_id AND c.disabled IS NOT NULL ORDER BY c.task_id FOR UPDATE
)
UPDATE dibs.card c SET disabled = NULL, disabled_version = NULL, next_try_at = clock_timestamp()
FROM locked l WHERE c.task_id = l.task_id"""
)

DUE = sa.text(
    f"""
SELECT task_id FROM dibs.card
WHERE {OUT_OF_DATE} AND next_try_at <= now() AND (sender IS NULL OR sender_until <= now())
ORDER BY next_try_at, task_id LIMIT :most"""
)

# The queue, its messages and its cards, in the order in which others lock them: a change of the settings has
# the queue and waits for people; a press has its person and waits for its messages; then come the cards.
POST_AGAIN = sa.text(
    """
WITH moved AS (
    UPDATE dibs.queue
    SET channel_id = :channel_id, alert_channel = :alert_channel,
        members_read_at = NULL, members_tried_at = NULL
    WHERE id = :queue_id
    RETURNING id
), messages AS MATERIALIZED (
    SELECT o.id FROM moved m JOIN dibs.outbox o ON o.queue_id = m.id
    WHERE o.live OR o.shown < o.wanted ORDER BY o.id FOR UPDATE OF o
), locked AS MATERIALIZED (
    SELECT c.task_id FROM moved m JOIN dibs.task t ON t.queue_id = m.id JOIN dibs.card c ON c.task_id = t.id
    WHERE t.state <> 'done' AND (SELECT count(*) FROM messages) >= 0
    ORDER BY c.task_id FOR UPDATE OF c
), left_behind AS (
    UPDATE dibs.outbox o SET live = false, wanted = o.shown FROM messages m WHERE o.id = m.id
)
UPDATE dibs.card c
SET message_ts = NULL, shown_version = 0, attempts = 0, sender = NULL, sender_until = NULL,
    disabled = NULL, disabled_version = NULL, channel_id = :channel_id, next_try_at = clock_timestamp()
FROM locked l WHERE c.task_id = l.task_id"""
)

WHERE_SHOWN = sa.text("SELECT channel_id, message_ts FROM dibs.card WHERE task_id = :task_id")


def redraw(source: str) -> str:
    """A step that has the cards of the tasks in `source` drawn anew, whose version is the same as before.

    Also by whoever is sending one now, who may have read the task before.
    """
    return f"""
redrawn AS (
    UPDATE dibs.card c
    SET shown_version = 0, overtaken = true, next_try_at = least(c.next_try_at, clock_timestamp())
    FROM (
        SELECT d.task_id FROM {source} x JOIN dibs.card d ON d.task_id = x.id
        ORDER BY d.task_id FOR UPDATE OF d) d
    WHERE c.task_id = d.task_id
)"""
