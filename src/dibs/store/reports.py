"""How long tasks were held, and what became of their leases: read from the events of one queue and period.

The database counts; what comes back is one row for each length in whole seconds (whole minutes beyond an
hour), or for each day and kind, so that memory stays flat however many events there are.
"""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.task import ExternalAnswer, State
from dibs.domain.transitions import EventKind
from dibs.store.columns import sql_list

LONGEST_SECONDS = 31 * 24 * 60 * 60
"""What lasted longer counts as this long."""

_TAKEN = sql_list([EventKind.CLAIMED, EventKind.TRANSFERRED])
_ENDED = sql_list([EventKind.DONE, EventKind.RELEASED, EventKind.EXPIRED, EventKind.FORCE_RELEASED])
_HANDED_BACK = sql_list([EventKind.RELEASED, EventKind.FORCE_RELEASED])
_TAKEN_AWAY = sql_list([EventKind.EXPIRED, EventKind.TRANSFERRED, EventKind.FORCE_RELEASED])
_COUNTED = sql_list(
    [
        EventKind.CLAIMED,
        EventKind.STARTED,
        EventKind.RENEWED,
        EventKind.DONE,
        EventKind.RELEASED,
        EventKind.EXPIRED,
        EventKind.CHECKED,
        EventKind.TRANSFERRED,
        EventKind.FORCE_RELEASED,
    ]
)
_OF_PERIOD = "e.queue_id = :queue_id AND e.at >= :since AND e.at < :until"


def _typed(sql: str) -> sa.TextClause:
    return sa.text(sql).bindparams(
        sa.bindparam("queue_id", type_=sa.BigInteger()),
        sa.bindparam("since", type_=sa.TIMESTAMP(timezone=True)),
        sa.bindparam("until", type_=sa.TIMESTAMP(timezone=True)),
    )


PERIOD = sa.text("SELECT c - make_interval(days => :days) AS since, c AS until FROM clock_timestamp() c")
"""The period that ends now, by the database's clock."""

# A hold begins with each claim or transfer and is over with the next event that ends it, with the next hold
# of the task, or not yet. The versions put the events of one task in order, whatever the clock did.
LENGTHS = _typed(
    f"""
WITH step AS (
    SELECT e.task_id, e.kind, e.at,
           count(*) FILTER (WHERE e.kind IN ({_TAKEN}))
               OVER (PARTITION BY e.task_id ORDER BY e.version_after) AS hold
    FROM dibs.event e
    WHERE {_OF_PERIOD} AND e.kind IN ({_TAKEN}, '{EventKind.STARTED}', {_ENDED})
), hold AS (
    SELECT s.task_id, s.hold,
           min(s.at) FILTER (WHERE s.kind IN ({_TAKEN})) AS taken_at,
           min(s.at) FILTER (WHERE s.kind = '{EventKind.STARTED}') AS started_at,
           min(s.at) FILTER (WHERE s.kind IN ({_ENDED})) AS ended_at,
           bool_or(s.kind = '{EventKind.DONE}') AS done
    FROM step s WHERE s.hold > 0 GROUP BY s.task_id, s.hold
), ended AS (
    SELECT h.*, coalesce(h.ended_at, lead(h.taken_at) OVER (PARTITION BY h.task_id ORDER BY h.hold),
                         :until) AS over_at
    FROM hold h
), lasted AS (
    SELECT p.part, p.finished,
           least(greatest(extract(epoch FROM p.until - p.since), 0), {LONGEST_SECONDS}) AS seconds
    FROM ended h CROSS JOIN LATERAL (VALUES
        ('to_start', h.taken_at, coalesce(h.started_at, h.over_at), h.started_at IS NOT NULL),
        ('to_done', h.started_at, h.over_at, h.done),
        ('whole', h.taken_at, h.over_at, h.done)) AS p (part, since, until, finished)
    WHERE p.since IS NOT NULL
)
SELECT l.part, l.finished, count(*) AS number, (CASE
           WHEN l.seconds <= 3600 THEN ceil(l.seconds) ELSE 60 * ceil(l.seconds / 60) END)::integer AS length
FROM lasted l GROUP BY l.part, l.finished, length"""
)
"""How often each part of a hold lasted how many seconds; what was not finished lasted at least so long."""

_WAS_STARTED = f"""
    SELECT p.kind = '{EventKind.STARTED}' FROM dibs.event p
    WHERE p.task_id = e.task_id AND p.id < e.id AND p.kind IN ({_TAKEN}, '{EventKind.STARTED}')
    ORDER BY p.id DESC LIMIT 1"""

# A task that was lost while it was started comes back flagged, and so does one on which something outside was
# recorded since the last check; the newest event that says either decides.
_RECORDED_SINCE_CHECK = f"""
    SELECT p.kind = '{EventKind.ACTION_RECORDED}' OR r.id IS NOT NULL
    FROM dibs.event p
    LEFT JOIN dibs.release_card r ON r.task_id = p.task_id AND r.version_before = p.version_before
        AND r.external_action <> '{ExternalAnswer.NONE}'
    WHERE p.task_id = e.task_id AND p.id < e.id
      AND (p.kind IN ('{EventKind.ACTION_RECORDED}', '{EventKind.CHECKED}')
           OR (p.kind = '{EventKind.STARTED}' AND p.detail IS NOT NULL)
           OR r.id IS NOT NULL)
    ORDER BY p.id DESC LIMIT 1"""

DAYS = _typed(
    f"""
SELECT (e.at AT TIME ZONE 'UTC')::date AS day, e.kind, count(*) AS number,
       count(*) FILTER (WHERE CASE
           WHEN e.kind IN ({_HANDED_BACK}) AND c.id IS NOT NULL THEN true
           WHEN e.kind IN ({_TAKEN_AWAY})
           THEN coalesce(e.detail ->> 'former_state' = '{State.STARTED}', ({_WAS_STARTED}), false)
               OR coalesce(({_RECORDED_SINCE_CHECK}), false)
       END) AS flagged
FROM dibs.event e
LEFT JOIN dibs.release_card c ON c.task_id = e.task_id AND c.version_before = e.version_before
    AND c.external_action = '{ExternalAnswer.UNKNOWN}'
WHERE {_OF_PERIOD} AND e.kind IN ({_COUNTED})
GROUP BY 1, 2"""
)
"""How many events of each kind there were on each day in UTC, and how many left the task needing a check."""

REASONS = _typed(
    f"""
SELECT r.reason, count(*) AS number
FROM dibs.event e
JOIN dibs.release_card r ON r.task_id = e.task_id AND r.version_before = e.version_before
WHERE {_OF_PERIOD} AND e.kind IN ({_HANDED_BACK})
GROUP BY r.reason ORDER BY number DESC, r.reason"""
)
