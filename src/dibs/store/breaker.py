"""The breaker of each queue: opened by a spike of expiries or by a supervisor, closed by a supervisor.

Its row is locked by an earlier statement of the same transaction before anything is counted: two sweepers
that count in one statement would each see what the other has not committed yet, and return twice the limit.
"""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.brakes import QueueEvent
from dibs.domain.notices import Notice
from dibs.store.members import THE_SUPERVISOR
from dibs.store.notices import about_queue
from dibs.store.queue_events import log_queue

_ID, _TIME, _TEXT = sa.BigInteger(), sa.TIMESTAMP(timezone=True), sa.Text()

ADD_MISSING = sa.text(
    "INSERT INTO dibs.breaker (queue_id) VALUES (:queue_id) ON CONFLICT (queue_id) DO NOTHING"
).bindparams(sa.bindparam("queue_id", type_=_ID))
"""For a queue that was made by hand."""

HELD_UP = sa.text(
    """
SELECT q.key, b.open_since IS NOT NULL AS breaker, b.releases_paused_since IS NOT NULL AS releases,
       EXISTS (SELECT FROM dibs.clock c WHERE c.stopped_since IS NOT NULL) AS clock
FROM dibs.queue q LEFT JOIN dibs.breaker b ON b.queue_id = q.id
WHERE q.id = ANY(:queue_ids) ORDER BY q.key"""
).bindparams(sa.bindparam("queue_ids", type_=sa.ARRAY(_ID)))
"""What holds up each of these queues until a supervisor resumes it."""

LOCK_CLOSED = sa.text(
    """
SELECT b.let_through_until FROM dibs.breaker b
WHERE b.queue_id = :queue_id AND b.open_since IS NULL
FOR UPDATE SKIP LOCKED"""
).bindparams(sa.bindparam("queue_id", type_=_ID))
"""No row where the breaker is open, or where another process is sweeping this queue."""

ALL_LET_THROUGH = sa.text(
    """
UPDATE dibs.breaker b SET let_through_until = NULL
WHERE b.queue_id = :queue_id AND NOT EXISTS (
    SELECT FROM dibs.task t WHERE t.queue_id = :queue_id AND t.lease_until <= b.let_through_until)"""
).bindparams(sa.bindparam("queue_id", type_=_ID))
"""A resume lets through once: a lease that is set to have ended before it counts again after that."""

# A window that began in the future, or events in it, are left over from a clock that was wrong. Events are
# counted until this statement began, which was after the lock; now() may be from before another's commit.
_WINDOW_SINCE = """CASE WHEN b.window_started_at <= now()
             THEN greatest(b.window_started_at, now() - make_interval(mins => q.spike_minutes))
             ELSE now() - make_interval(mins => q.spike_minutes) END"""

# The share is of the leases that were held in the window, or each expiry would lower the limit of the next.
_FIGURES = f"""
    SELECT q.id AS queue_id, q.spike_limit, q.spike_share, q.spike_minutes AS minutes,
           clock_timestamp() AS clock,
           (SELECT count(*) FROM dibs.task t
            WHERE t.queue_id = q.id AND t.lease_until > coalesce(b.let_through_until, '-infinity')
              AND t.lease_until <= least(now(), CAST(:trusted_until AS timestamptz))) AS due,
           (SELECT count(*) FROM dibs.task t
            WHERE q.spike_share IS NOT NULL
              AND t.queue_id = q.id AND t.lease_until IS NOT NULL) AS held,
           (SELECT count(*) FROM dibs.event e
            WHERE e.queue_id = q.id AND e.kind = 'expired' AND e.at > {_WINDOW_SINCE}
              AND e.at <= statement_timestamp() AND e.detail -> 'let_through' IS NULL) AS expired
    FROM dibs.queue q JOIN dibs.breaker b ON b.queue_id = q.id
    WHERE q.id = :queue_id"""


def _alert(source: str, opened_by: str) -> str:
    """A step that tells whoever supervises the queue in each row of `source`, once for each trip."""
    figures = "'count', x.number, 'limit', x.most, 'minutes', x.minutes"
    return about_queue(
        "alerted",
        source,
        Notice.BREAKER_OPEN,
        of="x.trip",
        payload=f"jsonb_build_object({figures}, 'opened_by', {opened_by})",
    )


OPEN_IF_SPIKE = sa.text(
    f"""
WITH figures AS MATERIALIZED ({_FIGURES}
), judged AS MATERIALIZED (
    SELECT f.*, f.expired + f.due AS number,
           greatest(f.spike_limit, (f.held + f.expired) * f.spike_share / 100) AS most
    FROM figures f
), opened AS (
    UPDATE dibs.breaker b SET open_since = j.clock, opened_by = NULL, trip = b.trip + 1
    FROM judged j
    WHERE b.queue_id = j.queue_id AND b.open_since IS NULL AND j.number > j.most
    RETURNING b.queue_id, b.trip, j.clock, j.number, j.most, j.minutes
), {
        log_queue(
            "logged",
            "opened",
            QueueEvent.PAUSED,
            actor="CAST(NULL AS text)",
            op_id="concat_ws(':', 'breaker', x.queue_id, x.trip)",
            detail="jsonb_build_object('count', x.number, 'limit', x.most, 'minutes', x.minutes)",
        ).strip()
    }, {_alert("opened", "NULL").strip()}
SELECT j.number, j.most, j.minutes, j.most - j.expired AS room, EXISTS (SELECT FROM opened) AS opened
FROM judged j"""
).bindparams(sa.bindparam("queue_id", type_=_ID), sa.bindparam("trusted_until", type_=_TIME))
"""Count what has ended in the window and what would end now, and open the breaker if that is too much."""

_NOT_A_SUPERVISOR = "'not_a_supervisor'"
_WHO_MAY = """CASE WHEN j.refused THEN ARRAY(
           SELECT m.user_id FROM dibs.queue_member m
           WHERE m.queue_id = j.queue_id AND m.supervisor AND m.standing <> 'deactivated'
           ORDER BY m.user_id LIMIT 10) END AS supervisors"""

PAUSE = sa.text(
    f"""
WITH member AS MATERIALIZED ({THE_SUPERVISOR}
), locked AS MATERIALIZED (
    SELECT b.* FROM dibs.breaker b WHERE b.queue_id = :queue_id FOR UPDATE
), judged AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS clock, q.spike_limit AS most, q.spike_minutes AS minutes,
           (SELECT count(*) FROM dibs.task t WHERE t.queue_id = l.queue_id AND t.lease_until <= now())
           AS number,
           NOT EXISTS (SELECT FROM member) AS refused
    FROM locked l JOIN dibs.queue q ON q.id = l.queue_id
), opened AS (
    UPDATE dibs.breaker b SET open_since = j.clock, opened_by = :actor, trip = b.trip + 1
    FROM judged j WHERE b.queue_id = j.queue_id AND NOT j.refused AND j.open_since IS NULL
    RETURNING b.queue_id, b.trip, j.clock, j.number, j.most, j.minutes
), {log_queue("logged", "opened", QueueEvent.PAUSED, op_id="CAST(:op_id AS text)").strip()}, {
        log_queue(
            "rejected",
            "judged",
            QueueEvent.PAUSE_REJECTED,
            op_id="CAST(:op_id AS text)",
            why=_NOT_A_SUPERVISOR,
            where="x.refused",
        ).strip()
    }, {_alert("opened", "CAST(:actor AS text)").strip()}
SELECT j.refused, j.open_since, j.opened_by, EXISTS (SELECT FROM opened) AS changed, {_WHO_MAY}
FROM judged j"""
).bindparams(
    sa.bindparam("queue_id", type_=_ID),
    sa.bindparam("actor", type_=_TEXT),
    sa.bindparam("op_id", type_=_TEXT),
)
"""`open_since` and `opened_by` are from before."""

RESUME = sa.text(
    f"""
WITH member AS MATERIALIZED ({THE_SUPERVISOR}
), locked AS MATERIALIZED (
    SELECT b.* FROM dibs.breaker b WHERE b.queue_id = :queue_id FOR UPDATE
), stopped AS MATERIALIZED (
    SELECT c.stopped_since FROM dibs.clock c, locked l WHERE c.id = 1 FOR UPDATE OF c
), judged AS MATERIALIZED (
    SELECT l.queue_id, l.open_since, s.stopped_since, clock_timestamp() AS clock,
           NOT EXISTS (SELECT FROM member) AS refused,
           l.open_since IS NOT NULL AS breaker, s.stopped_since IS NOT NULL AS clock_stop
    FROM locked l, stopped s
), closed AS (
    UPDATE dibs.breaker b
    SET open_since = NULL, opened_by = NULL, window_started_at = j.clock,
        let_through_until = CASE
            WHEN EXISTS (SELECT FROM dibs.task t WHERE t.queue_id = j.queue_id AND t.lease_until <= j.clock)
            THEN j.clock END
    FROM judged j WHERE b.queue_id = j.queue_id AND j.breaker AND NOT j.refused
), started AS (
    UPDATE dibs.clock c SET stopped_since = NULL, jump_seconds = NULL
    FROM judged j WHERE c.id = 1 AND j.clock_stop AND NOT j.refused
), everywhere AS (
    SELECT q.id AS queue_id, j.clock, j.breaker AND q.id = j.queue_id AS breaker, j.clock_stop,
           q.id = j.queue_id AS here
    FROM judged j JOIN dibs.queue q ON q.id = j.queue_id OR j.clock_stop
    WHERE NOT j.refused AND (j.breaker OR j.clock_stop)
), {
        log_queue(
            "logged",
            "everywhere",
            QueueEvent.RESUMED,
            op_id="CASE WHEN x.here THEN CAST(:op_id AS text) "
            "ELSE concat_ws(':', CAST(:op_id AS text), x.queue_id) END",
            detail="jsonb_build_object('breaker', x.breaker, 'clock', x.clock_stop)",
        ).strip()
    }, {
        log_queue(
            "rejected",
            "judged",
            QueueEvent.RESUME_REJECTED,
            op_id="CAST(:op_id AS text)",
            why=_NOT_A_SUPERVISOR,
            where="x.refused",
        ).strip()
    }, alerts AS MATERIALIZED (
    SELECT o.id FROM judged j JOIN dibs.outbox o
        ON (j.breaker AND o.kind = '{Notice.BREAKER_OPEN}' AND o.queue_id = j.queue_id)
        OR (j.clock_stop AND o.kind = '{Notice.CLOCK_STOPPED}'
            AND CAST(o.payload ->> 'needs_resume' AS boolean))
    WHERE o.live AND o.task_id IS NULL AND NOT j.refused AND o.payload -> 'over' IS NULL
    ORDER BY o.id FOR UPDATE OF o
), redrawn AS (
    UPDATE dibs.outbox o
    SET wanted = o.wanted + 1, next_try_at = least(o.next_try_at, j.clock),
        payload = o.payload || jsonb_build_object(
            'resumed_by', CAST(:actor AS text), 'resumed_at', j.clock, 'over', j.clock)
    FROM alerts a, judged j
    WHERE o.id = a.id
)
SELECT j.refused, j.breaker AND NOT j.refused AS breaker, j.clock_stop AND NOT j.refused AS clock, {_WHO_MAY}
FROM judged j"""
).bindparams(
    sa.bindparam("queue_id", type_=_ID),
    sa.bindparam("actor", type_=_TEXT),
    sa.bindparam("op_id", type_=_TEXT),
)
"""Close the queue's breaker and lift a stop of the clock, whichever there is; what waits goes through."""

DONE_BEFORE = sa.text("SELECT kind, actor_id, detail FROM dibs.event WHERE op_id = :op_id")
