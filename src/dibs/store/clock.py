"""The database's clock: read, stopped for every process, and the grace that follows an outage."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.brakes import QueueEvent
from dibs.domain.clock import Fault
from dibs.domain.notices import Notice
from dibs.store.cards import redraw
from dibs.store.notices import follow, recipients
from dibs.store.queue_events import log_queue

READ = sa.text(
    """
SELECT clock_timestamp() AS clock, c.swept_at, c.stopped_since, c.jump_seconds, c.trip
FROM dibs.clock c WHERE c.id = 1"""
)

# A supervisor of several queues is told once; an alert is filed under the first of the queues.
_EVERYBODY = f"""
    SELECT DISTINCT ON (r.recipient) q.id AS queue_id, r.recipient
    FROM dibs.queue q CROSS JOIN LATERAL ({recipients("q.id")}) r
    ORDER BY r.recipient, q.id"""

STOP = sa.text(
    f"""
WITH locked AS MATERIALIZED (
    SELECT c.* FROM dibs.clock c WHERE c.id = 1 FOR UPDATE
), stopped AS (
    UPDATE dibs.clock c
    SET stopped_since = clock_timestamp(), jump_seconds = :seconds, trip = l.trip + 1
    FROM locked l
    WHERE c.id = l.id AND l.stopped_since IS NULL AND l.trip = :trip
    RETURNING c.trip, c.stopped_since AS clock
), everywhere AS (
    SELECT q.id AS queue_id, s.trip, s.clock FROM stopped s CROSS JOIN dibs.queue q
), {
        log_queue(
            "logged",
            "everywhere",
            QueueEvent.PAUSED,
            actor="CAST(NULL AS text)",
            op_id="concat_ws(':', 'clock', x.trip, x.queue_id)",
            detail="jsonb_build_object('clock', true, 'seconds', CAST(:seconds AS double precision))",
        ).strip()
    }
INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload, live)
SELECT e.queue_id, concat_ws(':', '{Notice.CLOCK_STOPPED}', e.queue_id, s.trip, e.recipient),
       '{Notice.CLOCK_STOPPED}', e.recipient,
       jsonb_build_object('why', '{Fault.AHEAD}', 'needs_resume', true,
                          'seconds', CAST(:seconds AS double precision)),
       true
FROM stopped s CROSS JOIN ({_EVERYBODY}) e
ON CONFLICT (key) DO NOTHING"""
).bindparams(sa.bindparam("seconds", type_=sa.Double()), sa.bindparam("trip", type_=sa.Integer()))
"""Stop the sweep of every process until a supervisor resumes it, unless one has done so since `trip`."""

LOCK = sa.text("SELECT FROM dibs.clock WHERE id = 1 FOR UPDATE")
"""Before TELL, in the same transaction: what it looks for would be counted before another has written it."""

# Also one that was deleted by hand or could not be sent: who has it is not told of the same trouble again.
_STANDING = """o.task_id IS NULL AND o.payload -> 'over' IS NULL
      AND NOT CAST(o.payload ->> 'needs_resume' AS boolean)"""

TELL = sa.text(
    f"""
INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload, live)
SELECT e.queue_id,
       concat_ws(':', '{Notice.CLOCK_STOPPED}', e.queue_id,
                 CAST(:why AS text) || '-' || CAST(extract(epoch FROM c.clock) AS bigint), e.recipient),
       '{Notice.CLOCK_STOPPED}', e.recipient,
       jsonb_build_object('why', CAST(:why AS text), 'needs_resume', false,
                          'seconds', CAST(:seconds AS double precision)),
       true
FROM ({_EVERYBODY}) e CROSS JOIN (SELECT clock_timestamp() AS clock OFFSET 0) c
WHERE NOT EXISTS (
    SELECT FROM dibs.outbox o
    WHERE o.kind = '{Notice.CLOCK_STOPPED}' AND o.recipient = e.recipient AND {_STANDING})
ON CONFLICT (key) DO NOTHING"""
).bindparams(sa.bindparam("why", type_=sa.Text()), sa.bindparam("seconds", type_=sa.Double()))
"""Alert the supervisors that the sweep holds still, each of them who has not been told of it yet."""

OVER = sa.text(
    f"""
WITH locked AS MATERIALIZED (
    SELECT o.id FROM dibs.outbox o WHERE o.kind = '{Notice.CLOCK_STOPPED}' AND {_STANDING}
    ORDER BY o.id FOR UPDATE
)
UPDATE dibs.outbox o
SET payload = o.payload || jsonb_build_object('over', clock_timestamp()),
    wanted = o.wanted + CASE WHEN o.live THEN 1 ELSE 0 END,
    next_try_at = least(o.next_try_at, clock_timestamp())
FROM locked l WHERE o.id = l.id"""
)
"""Have the alerts drawn anew, since the sweep has gone on by itself."""

# A process that finds the row locked leaves it to the one that is at it.
_JUDGED = """
WITH locked AS MATERIALIZED (
    SELECT c.id, c.swept_at FROM dibs.clock c WHERE c.id = 1 FOR UPDATE SKIP LOCKED
), seen AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS clock FROM locked l
), judged AS MATERIALIZED (
    SELECT s.*, coalesce(s.swept_at < s.clock - make_interval(secs => :outage), false) AS away FROM seen s
)"""

BEAT = sa.text(
    f"""{_JUDGED}, beaten AS (
    UPDATE dibs.clock c SET swept_at = j.clock FROM judged j WHERE c.id = j.id AND NOT j.away
)
SELECT j.away FROM judged j"""
).bindparams(sa.bindparam("outage", type_=sa.Double()))
"""Write down that owners can renew now, unless nobody has done so for longer than `outage`."""

GRACE = sa.text(
    f"""{_JUDGED}, ended AS (
    UPDATE dibs.clock c SET swept_at = j.clock
    FROM judged j WHERE c.id = j.id AND j.away
    RETURNING j.clock, j.clock + make_interval(secs => :grace) AS until,
              CAST(extract(epoch FROM j.clock - j.swept_at) AS bigint) AS silent
), graced AS (
    UPDATE dibs.task t SET lease_until = e.until
    FROM ended e WHERE t.lease_until < e.until
    RETURNING t.id, t.queue_id, e.clock AS last_at
), queues AS MATERIALIZED (
    SELECT g.queue_id, e.clock, e.until, e.silent, count(*) AS number
    FROM graced g CROSS JOIN ended e GROUP BY g.queue_id, e.clock, e.until, e.silent
), {
        log_queue(
            "logged",
            "queues",
            QueueEvent.GRACED,
            actor="CAST(NULL AS text)",
            op_id="concat_ws(':', 'grace', x.queue_id, extract(epoch FROM x.clock))",
            detail="jsonb_build_object('until', x.until, 'leases', x.number, 'silent_seconds', x.silent)",
        ).strip()
    }, {redraw("graced").strip()}, {follow("graced").strip()}
SELECT e.silent, (SELECT count(*) FROM graced) AS number FROM ended e"""
).bindparams(sa.bindparam("outage", type_=sa.Double()), sa.bindparam("grace", type_=sa.Double()))
"""Have every lease that would end within the grace end with it, once after each outage, in one statement.

Versions stay, or every button would be out of date.
"""
