"""The pause of a queue's releases, and the trial that ends it."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.brakes import QueueEvent
from dibs.domain.notices import Notice
from dibs.domain.task import Reason, State
from dibs.store.members import THE_SUPERVISOR
from dibs.store.notices import about_queue
from dibs.store.queue_events import log_queue

_IDS, _ID, _TEXT = sa.ARRAY(sa.BigInteger()), sa.BigInteger(), sa.Text()

PAUSE = sa.text(
    f"""
WITH affected AS MATERIALIZED (
    SELECT DISTINCT t.queue_id FROM dibs.task t WHERE t.id = ANY(:task_ids)
), paused AS (
    INSERT INTO dibs.breaker AS b (queue_id, releases_paused_since, releases_paused_why, release_trip)
    SELECT a.queue_id, clock_timestamp(), :why, 1 FROM affected a
    ON CONFLICT (queue_id) DO UPDATE
    SET releases_paused_since = excluded.releases_paused_since,
        releases_paused_why = excluded.releases_paused_why, release_trip = b.release_trip + 1
    WHERE b.releases_paused_since IS NULL
    RETURNING b.queue_id, b.release_trip, b.releases_paused_why
), {
        about_queue(
            "alerted",
            "paused",
            Notice.RELEASES_PAUSED,
            of="x.release_trip",
            payload="jsonb_build_object('why', x.releases_paused_why)",
        ).strip()
    }
SELECT queue_id FROM paused"""
).bindparams(sa.bindparam("task_ids", type_=_IDS), sa.bindparam("why", type_=_TEXT))
"""Pause the queues of these tasks and alert their supervisors; one that is paused already stays as it is."""

TRIP = sa.text(
    "SELECT release_trip FROM dibs.breaker WHERE queue_id = :queue_id AND releases_paused_since IS NOT NULL"
).bindparams(sa.bindparam("queue_id", type_=_ID))

RESUME = sa.text(
    f"""
WITH member AS MATERIALIZED ({THE_SUPERVISOR}
), pause AS MATERIALIZED (
    SELECT b.queue_id, b.releases_paused_since AS since, b.releases_paused_why AS why FROM dibs.breaker b
    WHERE b.queue_id = :queue_id AND b.releases_paused_since IS NOT NULL AND b.release_trip = :trip
      AND EXISTS (SELECT FROM member)
    FOR UPDATE
), resumed AS (
    UPDATE dibs.breaker b SET releases_paused_since = NULL, releases_paused_why = NULL
    FROM pause p WHERE b.queue_id = p.queue_id
    RETURNING b.queue_id, clock_timestamp() AS clock, p.since, p.why
), {
        log_queue(
            "logged",
            "resumed",
            QueueEvent.RESUMED,
            op_id="CAST(:op_id AS text)",
            detail="jsonb_build_object('releases', true, 'since', x.since, 'why', x.why)",
        ).strip()
    }, alerts AS MATERIALIZED (
    SELECT o.id, x.clock FROM dibs.outbox o JOIN resumed x ON x.queue_id = o.queue_id
    WHERE o.kind = '{Notice.RELEASES_PAUSED}' AND o.live AND o.payload -> 'resumed_by' IS NULL
    ORDER BY o.id FOR UPDATE OF o
), redrawn AS (
    UPDATE dibs.outbox o
    SET wanted = o.wanted + 1, next_try_at = least(o.next_try_at, a.clock),
        payload = o.payload || jsonb_build_object('resumed_by', CAST(:actor AS text), 'resumed_at', a.clock)
    FROM alerts a WHERE o.id = a.id
)
SELECT queue_id FROM resumed"""
).bindparams(
    sa.bindparam("queue_id", type_=_ID),
    sa.bindparam("trip", type_=sa.Integer()),
    sa.bindparam("actor", type_=_TEXT),
    sa.bindparam("op_id", type_=_TEXT),
)
"""End the pause of this trip, as a supervisor; no row where that was done already.

The record says here since when releases were paused and why: when they paused, it may have been the record
that the database refused.
"""

# The steps of a trial, in a transaction that is rolled back: a release of a task of the queue as it is
# always written, so that whatever stands in the way of the next one stands in the way of this one.

LIFT_FOR_TRIAL = sa.text(
    "UPDATE dibs.breaker SET releases_paused_since = NULL, releases_paused_why = NULL "
    "WHERE queue_id = :queue_id"
).bindparams(sa.bindparam("queue_id", type_=_ID))

HOLD_FOR_TRIAL = sa.text(
    f"""
WITH chosen AS MATERIALIZED (
    SELECT t.id FROM dibs.task t WHERE t.queue_id = :queue_id
    ORDER BY t.number DESC LIMIT 1 FOR UPDATE
)
UPDATE dibs.task t
SET state = '{State.STARTED}', owner_id = :actor, lease_until = clock_timestamp() + interval '1 hour'
FROM chosen c, dibs.queue q
WHERE t.id = c.id AND q.id = t.queue_id
RETURNING t.id, t.version, coalesce(q.reasons[1], '{Reason.OTHER}') AS reason"""
).bindparams(sa.bindparam("queue_id", type_=_ID), sa.bindparam("actor", type_=_TEXT))

CHECK_WHAT_IS_DEFERRED = sa.text("SET CONSTRAINTS ALL IMMEDIATE")
