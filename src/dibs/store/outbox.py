"""Which messages are due, who is sending them just now, and what came of it.

A parcel is what goes into one message: one row; or all rows that share a message which stands already; or
several rows of one kind for one recipient that are due together. Its lead, the row with the lowest id, holds
the fence of a message that stands; every row of a new one does. Rows are locked in the order of their ids.
"""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.notices import FEWEST_IN_A_GROUP, GROUPED, MOST_IN_A_GROUP, TO_ONE_PERSON, Notice
from dibs.store.columns import sql_list
from dibs.store.notices import recipients

SENDER_SECONDS = 7
"""How long one sender has a parcel to itself. Longer than a delivery can take, and short enough that what a
sender left that died is tried again within ten seconds."""
_LOOK_AT = 250

_DUE = "{0}.shown < {0}.wanted AND {0}.given_up IS NULL AND {0}.next_try_at <= now()"
_FREE = "({0}.sender IS NULL OR {0}.sender_until <= clock_timestamp())"

TAKE = sa.text(
    f"""
WITH due AS MATERIALIZED (
    SELECT o.id, o.channel_id, o.message_ts FROM dibs.outbox o
    WHERE {_DUE.format("o")} AND {_FREE.format("o")}
    ORDER BY o.next_try_at, o.id LIMIT {_LOOK_AT}
), lead AS MATERIALIZED (
    SELECT l.* FROM dibs.outbox l
    WHERE l.id = ANY(ARRAY(
            SELECT coalesce((SELECT min(m.id) FROM dibs.outbox m
                             WHERE m.channel_id = d.channel_id AND m.message_ts = d.message_ts), d.id)
            FROM due d))
      AND {_FREE.format("l")} AND l.given_up IS NULL
      AND (l.shown < l.wanted OR EXISTS (
          SELECT FROM dibs.outbox m
          WHERE m.channel_id = l.channel_id AND m.message_ts = l.message_ts AND {_DUE.format("m")}
            AND m.id <> l.id))
    ORDER BY l.next_try_at, l.id LIMIT 1
    FOR UPDATE SKIP LOCKED
), mates AS MATERIALIZED (
    SELECT o.id FROM dibs.outbox o JOIN lead l
        ON o.queue_id = l.queue_id AND o.kind = l.kind AND o.recipient = l.recipient AND o.id <> l.id
    WHERE l.message_ts IS NULL AND o.message_ts IS NULL AND o.kind IN ({sql_list(sorted(GROUPED))})
      AND (o.attempts > 0) = (l.attempts > 0) AND {_DUE.format("o")} AND {_FREE.format("o")}
    ORDER BY o.id LIMIT {MOST_IN_A_GROUP - 1}
    FOR UPDATE OF o SKIP LOCKED
), taken AS (
    UPDATE dibs.outbox o
    SET sender = :sender, sender_until = clock_timestamp() + interval '{SENDER_SECONDS} seconds',
        attempts = o.attempts + 1,
        tried_since = coalesce(CASE WHEN o.attempts > 0 THEN o.tried_since END, clock_timestamp())
    WHERE o.id IN (SELECT l.id FROM lead l
                   UNION ALL
                   SELECT m.id FROM mates m WHERE (SELECT count(*) FROM mates) >= {FEWEST_IN_A_GROUP - 1})
    RETURNING o.id, o.key, o.recipient, o.channel_id, o.message_ts, o.attempts, o.tried_since
)
SELECT t.* FROM taken t
UNION ALL
SELECT o.id, o.key, o.recipient, o.channel_id, o.message_ts, o.attempts, o.tried_since
FROM dibs.outbox o JOIN taken t
    ON o.channel_id = t.channel_id AND o.message_ts = t.message_ts AND o.id <> t.id
ORDER BY id"""
)
"""The parcel that is due first and that nobody else has, its lead first; no row where nothing is due."""

_VERSION = f"CASE WHEN o.kind = '{Notice.NEEDS_CHECK}' THEN CAST(split_part(o.key, ':', 3) AS integer) END"
_TRIP = "split_part(o.key, ':', 3)"

# A flag is cleared only by a check, or by a start that confirmed it.
LETTERS = sa.text(
    f"""
SELECT o.id, o.kind, o.key, o.recipient, o.payload, o.wanted, o.task_id, o.queue_id, q.key AS queue_key,
       q.name AS queue_name, q.channel_id AS queue_channel, s.actor_id AS settled_by, s.at AS settled_at,
       o.payload -> 'resumed_by' IS NOT NULL OR CASE o.kind
           WHEN '{Notice.BREAKER_OPEN}'
               THEN (b.open_since IS NOT NULL AND CAST(b.trip AS text) = {_TRIP}) IS NOT TRUE
           WHEN '{Notice.RELEASES_PAUSED}'
               THEN (b.releases_paused_since IS NOT NULL AND CAST(b.release_trip AS text) = {_TRIP})
                   IS NOT TRUE
           WHEN '{Notice.CLOCK_STOPPED}' THEN o.payload -> 'over' IS NOT NULL
           ELSE false
       END AS over
FROM dibs.outbox o
JOIN dibs.queue q ON q.id = o.queue_id
LEFT JOIN dibs.breaker b ON b.queue_id = o.queue_id
LEFT JOIN LATERAL (
    SELECT e.actor_id, e.at FROM dibs.event e
    WHERE e.task_id = o.task_id AND e.kind IN ('checked', 'started') AND e.version_after > {_VERSION}
    ORDER BY e.id LIMIT 1
) s ON true
WHERE o.id = ANY(:ids)
ORDER BY o.id"""
).bindparams(sa.bindparam("ids", type_=sa.ARRAY(sa.BigInteger())))
"""What the messages of a parcel are drawn from, their tasks apart."""

_MINE = """
WITH locked AS MATERIALIZED (
    SELECT o.* FROM dibs.outbox o WHERE o.id = ANY(:ids) ORDER BY o.id FOR UPDATE
), mine AS MATERIALIZED (
    SELECT l.* FROM locked l WHERE EXISTS (SELECT FROM locked f WHERE f.id = :lead AND f.sender = :sender)
)"""

_PARCEL = (sa.bindparam("ids", type_=sa.ARRAY(sa.BigInteger())), sa.bindparam("lead", type_=sa.BigInteger()))

SHOWN = sa.text(
    f"""{_MINE}
UPDATE dibs.outbox o
SET shown = d.wanted, live = o.live AND NOT d.final, channel_id = :channel_id, message_ts = :message_ts,
    sent_at = coalesce(o.sent_at, clock_timestamp()), attempts = 0, sender = NULL, sender_until = NULL,
    next_try_at = clock_timestamp()
FROM mine m JOIN jsonb_to_recordset(CAST(:drawn AS jsonb)) AS d (id bigint, wanted integer, final boolean)
    ON d.id = m.id
WHERE o.id = m.id
RETURNING o.id"""
).bindparams(*_PARCEL)
"""No row is returned where the sender no longer had the parcel."""

OVERTAKEN = sa.text(
    """
WITH locked AS MATERIALIZED (
    SELECT o.id FROM dibs.outbox o
    WHERE o.id = ANY(:ids) AND o.message_ts IS NOT NULL ORDER BY o.id FOR UPDATE
)
UPDATE dibs.outbox o SET wanted = o.wanted + 1, next_try_at = clock_timestamp()
FROM locked l WHERE o.id = l.id"""
).bindparams(_PARCEL[0])
"""A sender that had lost the parcel may have drawn an older state over a newer one: it is drawn once more."""

FOUND = sa.text(
    """
WITH locked AS MATERIALIZED (
    SELECT o.id FROM dibs.outbox o
    WHERE o.key = ANY(:keys) AND o.message_ts IS NULL AND o.given_up IS NULL ORDER BY o.id FOR UPDATE
)
UPDATE dibs.outbox o
SET channel_id = :channel_id, message_ts = :message_ts, sent_at = clock_timestamp(), attempts = 0,
    shown = CASE o.wanted WHEN 1 THEN 1 ELSE o.shown END, sender = NULL, sender_until = NULL,
    next_try_at = clock_timestamp()
FROM locked l WHERE o.id = l.id
RETURNING o.id"""
).bindparams(sa.bindparam("keys", type_=sa.ARRAY(sa.Text())))
"""A post whose answer was lost is there after all, with the notices that it carries. Where something has
changed since, it is drawn anew."""

TRY_LATER = sa.text(
    f"""{_MINE}
UPDATE dibs.outbox o
SET sender = NULL, sender_until = NULL, attempts = :attempts,
    next_try_at = clock_timestamp() + make_interval(secs => :seconds)
FROM mine m WHERE o.id = m.id"""
).bindparams(*_PARCEL)

GONE = sa.text(
    f"""{_MINE}
UPDATE dibs.outbox o
SET shown = o.wanted, live = false, attempts = 0, sender = NULL, sender_until = NULL
FROM mine m WHERE o.id = m.id"""
).bindparams(*_PARCEL)
"""Somebody deleted the message. It was seen, and is not posted again."""

# An owner need not be a member of the queue any more.
_OWNERS = f"""(e.kind IN ({sql_list(sorted(TO_ONE_PERSON))})
        OR e.payload ->> 'owner' IS NOT DISTINCT FROM e.recipient)"""
_PERSON = f"({_OWNERS} OR EXISTS (SELECT FROM dibs.queue_member m WHERE m.user_id = e.recipient))"
_FOR = "concat(left(e.key, length(e.key) - length(e.recipient)), {})"

# The others who supervise have their own copies of an alert to one of them; they hear that it did not arrive.
# Where nobody is left who does, the queue's channel is told: an alert must not end unread.
GIVE_UP = sa.text(
    f"""{_MINE}, ended AS (
    UPDATE dibs.outbox o
    SET given_up = :reason, live = false, sender = NULL, sender_until = NULL
    FROM mine m WHERE o.id = m.id
    RETURNING o.*
), passed_on AS (
    INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
    SELECT e.queue_id, e.task_id, {_FOR.format("s.user_id")}, e.kind, s.user_id,
           e.payload || jsonb_build_object('instead_of', e.recipient), m.live
    FROM ended e JOIN mine m ON m.id = e.id
    JOIN dibs.queue_member s ON s.queue_id = e.queue_id AND s.supervisor AND s.standing <> 'deactivated'
    WHERE :gone AND e.message_ts IS NULL AND NOT {_PERSON}
    ON CONFLICT (key) DO NOTHING
), told_in_the_channel AS (
    INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
    SELECT e.queue_id, e.task_id, {_FOR.format("q.channel_id")}, e.kind, q.channel_id,
           e.payload || jsonb_build_object('instead_of', e.recipient), m.live
    FROM ended e JOIN mine m ON m.id = e.id JOIN dibs.queue q ON q.id = e.queue_id
    WHERE :gone AND e.message_ts IS NULL AND NOT {_OWNERS} AND NOT EXISTS (
        SELECT FROM dibs.queue_member s LEFT JOIN dibs.outbox o ON o.key = {_FOR.format("s.user_id")}
        WHERE s.queue_id = e.queue_id AND s.supervisor AND s.standing <> 'deactivated'
          AND s.user_id <> e.recipient AND o.given_up IS NULL)
    ON CONFLICT (key) DO NOTHING
)
INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
SELECT e.queue_id, e.task_id, concat_ws(':', '{Notice.OWNER_GONE}', e.key, r.recipient),
       '{Notice.OWNER_GONE}', r.recipient,
       jsonb_build_object('owner', e.recipient, 'standing', 'deactivated', 'unsent', e.kind), false
FROM ended e CROSS JOIN LATERAL ({recipients("e.queue_id")}) r
WHERE :gone AND e.message_ts IS NULL AND e.kind <> '{Notice.OWNER_GONE}' AND {_PERSON}
  AND r.recipient <> e.recipient
ON CONFLICT (key) DO NOTHING"""
).bindparams(*_PARCEL, sa.bindparam("gone", type_=sa.Boolean()))
"""Ends the messages of a parcel. What was for a channel that is gone goes to each supervisor instead, and to
the queue's channel where none of them is left; of a person who is gone the supervisors hear."""

FORGET_OLD = sa.text(
    f"""
WITH oldest AS MATERIALIZED (
    SELECT o.* FROM dibs.outbox o ORDER BY o.id LIMIT 5000
), over AS MATERIALIZED (
    SELECT o.id FROM oldest o
    WHERE o.created_at < now() - make_interval(days => :days) AND NOT o.live
      AND (o.given_up IS NOT NULL OR o.shown >= o.wanted) AND o.kind <> '{Notice.CHANNEL_GONE}'
)
DELETE FROM dibs.outbox o USING over v WHERE o.id = v.id
RETURNING o.id"""
)
"""Drops the oldest messages that are over, some at a time. Whoever follows its task stays, and so does what
was told of a channel, which is told once and for all."""
