"""Which version a task's card shows, which one it should show, and who is sending it just now.

A card that was given up is tried again once it should show a newer version: the trouble may be over, or
have been in what was shown, and one try for each change is not for ever.

Who changes several cards in one statement locks them in the order of their tasks first, as the sweep does.
"""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.notices import Notice
from dibs.domain.transitions import EventKind
from dibs.store.columns import sql_list
from dibs.store.notices import about_queue

SENDER_SECONDS = 60
"""How long one sender has a card to itself. Longer than a delivery can take, so that an older state never
overwrites a newer one; after it, a sender that died is no obstacle."""

OUT_OF_DATE = "shown_version < wanted_version AND (disabled IS NULL OR disabled_version < wanted_version)"

REFRESH_SECONDS = 3
"""How long after a redraw of the kind of which few are allowed the next one may come."""
POSTS_IN_A_CHANNEL = 10
UPDATES = 100

_COSMETIC = sql_list((EventKind.RENEWED, EventKind.NOTED, EventKind.COMMITTED))
"""Changes that nobody waits to see on a card."""

TAKE = sa.text(
    f"""
UPDATE dibs.card
SET sender = :sender, sender_until = clock_timestamp() + interval '{SENDER_SECONDS} seconds',
    attempts = attempts + 1, overtaken = false,
    tried_since = coalesce(CASE WHEN attempts > 0 THEN tried_since END, clock_timestamp())
WHERE task_id = :task_id AND {OUT_OF_DATE}
  AND (sender IS NULL OR sender_until <= clock_timestamp())
  AND (message_ts IS NULL OR paced_until IS NULL OR paced_until <= clock_timestamp()
       OR (message_ts = :pressed_ts AND channel_id = :pressed_in))
RETURNING message_ts, attempts, tried_since"""
).bindparams(sa.bindparam("pressed_ts", type_=sa.Text()), sa.bindparam("pressed_in", type_=sa.Text()))

PACED = sa.text(
    f"""
SELECT CAST(extract(epoch FROM paced_until - clock_timestamp()) AS double precision) AS seconds
FROM dibs.card WHERE task_id = :task_id AND {OUT_OF_DATE} AND paced_until > clock_timestamp()"""
)
"""For how long a card that is out of date is still left as it is."""

SHOWN = sa.text(
    f"""
UPDATE dibs.card
SET shown_version = CASE WHEN overtaken THEN 0 ELSE :version END, message_ts = :message_ts, attempts = 0,
    sender = NULL, sender_until = NULL, disabled = NULL, disabled_version = NULL,
    next_try_at = clock_timestamp(),
    paced_until = CASE WHEN :redrawn THEN clock_timestamp() + make_interval(secs => {REFRESH_SECONDS})
                       ELSE paced_until END
WHERE task_id = :task_id AND sender = :sender
RETURNING wanted_version > shown_version AS more"""
).bindparams(sa.bindparam("redrawn", type_=sa.Boolean()))
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
), {
        about_queue(
            "alerted",
            "(SELECT t.queue_id, d.channel_id FROM disabled d JOIN dibs.task t ON t.id = d.task_id)",
            Notice.CHANNEL_GONE,
            of="x.channel_id",
            payload="jsonb_build_object('channel', x.channel_id, 'why', CAST(:reason AS text))",
            live=False,
            where=":channel_gone",
        ).strip()
    }
SELECT task_id FROM disabled"""
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

# New cards first, some of each channel, since a channel takes no more than one a second; then redraws, of
# which the workspace takes few, those of claims and the like before cosmetic ones.
DUE = sa.text(
    f"""
WITH due AS (
    SELECT c.task_id, c.next_try_at, c.message_ts IS NULL AS new,
           CASE WHEN c.message_ts IS NULL THEN c.channel_id END AS channel_id,
           t.last_kind IN ({_COSMETIC}) AS cosmetic
    FROM dibs.card c JOIN dibs.task t ON t.id = c.task_id
    WHERE {OUT_OF_DATE} AND c.next_try_at <= now() AND (c.sender IS NULL OR c.sender_until <= now())
      AND (c.message_ts IS NULL OR c.paced_until IS NULL OR c.paced_until <= now())
), placed AS (
    SELECT d.*, row_number() OVER (
        PARTITION BY d.new, d.channel_id ORDER BY d.cosmetic, d.next_try_at, d.task_id) AS place
    FROM due d
)
SELECT p.task_id, p.channel_id FROM placed p
WHERE p.place <= CASE WHEN p.new THEN {POSTS_IN_A_CHANNEL} ELSE {UPDATES} END
ORDER BY p.new DESC, p.place, p.task_id"""
)
"""`channel_id` is null for a redraw."""

# A key ends with the recipient.
_THERE = "concat(left(o.key, length(o.key) - length(o.recipient)), CAST(:alert_channel AS text))"

# The queue, its messages and its cards, in the order in which others lock them: a change of the settings has
# the queue and waits for people; a press has its person and waits for its messages; then come the cards.
# An alert that still follows its task or its queue follows it to the new alert channel, too.
POST_AGAIN = sa.text(
    f"""
WITH moved AS (
    UPDATE dibs.queue
    SET channel_id = :channel_id, alert_channel = :alert_channel,
        members_read_at = NULL, members_tried_at = NULL
    WHERE id = :queue_id
    RETURNING id
), messages AS MATERIALIZED (
    SELECT o.id, o.live AND o.recipient = q.alert_channel AND NOT EXISTS (
               SELECT FROM dibs.outbox t WHERE t.key = {_THERE} AND t.id <> o.id) AS follows
    FROM moved m JOIN dibs.queue q ON q.id = m.id JOIN dibs.outbox o ON o.queue_id = m.id
    WHERE o.live OR o.shown < o.wanted ORDER BY o.id FOR UPDATE OF o
), locked AS MATERIALIZED (
    SELECT c.task_id FROM moved m JOIN dibs.task t ON t.queue_id = m.id JOIN dibs.card c ON c.task_id = t.id
    WHERE t.state <> 'done' AND (SELECT count(*) FROM messages) >= 0
    ORDER BY c.task_id FOR UPDATE OF c
), left_behind AS (
    UPDATE dibs.outbox o SET live = false, wanted = o.shown
    FROM messages m WHERE o.id = m.id AND m.follows IS NOT TRUE
), following AS (
    UPDATE dibs.outbox o
    SET key = {_THERE}, recipient = :alert_channel, channel_id = NULL, message_ts = NULL,
        shown = 0, wanted = 1, given_up = NULL, attempts = 0, sender = NULL, sender_until = NULL,
        next_try_at = clock_timestamp()
    FROM messages m WHERE o.id = m.id AND m.follows
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
