"""What waits to be sent, and which queues are stopped, in one cheap statement."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.store.cards import OUT_OF_DATE

MOST_COUNTED = 10_000

# What was tried in vain waits since its first try, however far its next one is put off.
_SINCE = "CASE WHEN attempts > 0 THEN least(tried_since, next_try_at) ELSE next_try_at END AS since"

# Both counts read the partial index of what is due, and no further than the limit.
BACKLOG = sa.text(
    f"""
WITH cards AS MATERIALIZED (
    SELECT {_SINCE}
    FROM dibs.card
    WHERE {OUT_OF_DATE} AND (next_try_at <= now() OR attempts > 0)
    LIMIT {MOST_COUNTED}
), messages AS MATERIALIZED (
    SELECT {_SINCE}
    FROM dibs.outbox
    WHERE shown < wanted AND given_up IS NULL AND (next_try_at <= now() OR attempts > 0)
    LIMIT {MOST_COUNTED}
), stopped AS (
    SELECT q.key, bool_or(b.open_since IS NOT NULL) AS breaker_open,
           bool_or(b.releases_paused_since IS NOT NULL) AS releases_paused
    FROM dibs.queue q LEFT JOIN dibs.breaker b ON b.queue_id = q.id GROUP BY q.key
)
SELECT (SELECT count(*) FROM cards) AS cards_due,
       (SELECT extract(epoch FROM now() - min(since))::float FROM cards) AS oldest_card_seconds,
       (SELECT count(*) FROM messages) AS messages_due,
       (SELECT extract(epoch FROM now() - min(since))::float FROM messages) AS oldest_message_seconds,
       (SELECT coalesce(jsonb_object_agg(key, breaker_open), '{{}}') FROM stopped) AS breakers_open,
       (SELECT coalesce(jsonb_object_agg(key, releases_paused), '{{}}') FROM stopped) AS releases_paused,
       EXISTS (SELECT FROM dibs.clock WHERE stopped_since IS NOT NULL) AS clock_stopped"""
)
"""Counts stop at MOST_COUNTED; the ages are None where nothing waits."""
