"""The return of expired leases, queue by queue: one set-based statement for each batch."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.notices import Notice
from dibs.domain.task import State
from dibs.domain.transitions import RULES, Operation
from dibs.store.chain import event_hash
from dibs.store.columns import sql_list
from dibs.store.notices import FORMER_OWNER, follow, to_person, to_supervisors
from dibs.store.operations import TASK_COLUMNS

BATCH = 250

_RULE = RULES[Operation.EXPIRE]
_SOURCES = sql_list(_RULE.from_states)

_OP_ID = "concat_ws(':', 'sweep', {}, {})"
_DETAIL = (
    "jsonb_strip_nulls(jsonb_build_object('former_owner', {}, 'former_state', {}, "
    "'let_through', CASE WHEN :let_through THEN true END))"
)
_EVENT = {
    "task_id": "s.id",
    "kind": f"'{_RULE.event}'",
    "actor_id": "CAST(NULL AS text)",
    "at": "s.clock",
    "version_before": "s.version",
    "version_after": "s.version + 1",
    "version_seen": "CAST(NULL AS integer)",
    "op_id": _OP_ID.format("s.id", "s.version + 1"),
    "why": "CAST(NULL AS text)",
    "detail": _DETAIL.format("s.owner_id", "s.state"),
    "content": "CAST(NULL AS bytea)",
}

# The selection by now() can use the partial index on lease_until; a clock_timestamp() could use none.
# `until` is how far the process trusts the database's clock, which may jump between any two statements.
_ENDED = """t.lease_until <= least(now(), CAST(:until AS timestamptz))"""

WITH_ENDED_LEASES = sa.text(
    f"""
SELECT q.id AS queue_id, b.queue_id IS NULL AS breaker_missing
FROM dibs.queue q LEFT JOIN dibs.breaker b ON b.queue_id = q.id
CROSS JOIN LATERAL (
    SELECT FROM dibs.task t WHERE t.queue_id = q.id AND {_ENDED} ORDER BY t.lease_until LIMIT 1) ended
WHERE b.open_since IS NULL
ORDER BY q.id"""
).bindparams(sa.bindparam("until", type_=sa.TIMESTAMP(timezone=True)))
"""The queues that have something to return and may: one look into the index for each queue."""

# The UPDATE looks again at the locked row by the clock as it is then: it may have been set back meanwhile.
EXPIRE_BATCH = sa.text(
    f"""
WITH due AS MATERIALIZED (
    SELECT t.* FROM dibs.task t
    WHERE t.queue_id = :queue_id AND {_ENDED}
      AND t.lease_until > coalesce(CAST(:after AS timestamptz), '-infinity')
    ORDER BY t.lease_until, t.id
    LIMIT least({BATCH}, CAST(:most AS bigint))
    FOR UPDATE OF t SKIP LOCKED
), seen AS MATERIALIZED (
    SELECT d.*, clock_timestamp() AS clock FROM due d
), sealed AS MATERIALIZED (
    SELECT s.*, {event_hash(_EVENT, "s.head")} AS hash
    FROM seen s
    WHERE s.state IN ({_SOURCES}) AND s.lease_until <= s.clock
), expired AS (
    UPDATE dibs.task t
    SET state = '{_RULE.target}', owner_id = NULL, lease_until = NULL, held_since = NULL,
        version = s.version + 1, head = s.hash,
        started_before = s.started_before OR s.state = '{State.STARTED}',
        needs_check = s.needs_check OR s.state = '{State.STARTED}' OR s.action_recorded,
        last_kind = '{_RULE.event}', last_actor = NULL, last_at = s.clock
    FROM sealed s
    WHERE t.id = s.id AND t.version = s.version AND t.lease_until <= s.clock
    RETURNING t.*, s.owner_id AS former_owner, s.state AS former_state, s.head AS previous
), logged AS (
    INSERT INTO dibs.event
        (queue_id, task_id, kind, at, version_before, version_after, op_id, detail, previous, hash)
    SELECT e.queue_id, e.id, e.last_kind, e.last_at, e.version - 1, e.version,
           {_OP_ID.format("e.id", "e.version")}, {_DETAIL.format("e.former_owner", "e.former_state")},
           e.previous, e.head
    FROM expired e
), carded AS (
    UPDATE dibs.card c SET wanted_version = d.version, next_try_at = least(c.next_try_at, d.last_at)
    FROM (
        SELECT d.task_id, e.version, e.last_at FROM expired e JOIN dibs.card d ON d.task_id = e.id
        ORDER BY d.task_id FOR UPDATE OF d) d
    WHERE c.task_id = d.task_id
), {follow("expired").strip()}, {
        to_supervisors(
            "alerted", "expired", Notice.NEEDS_CHECK, payload=FORMER_OWNER, where="x.needs_check"
        ).strip()
    }, {
        to_person(
            "told", "expired", Notice.LEASE_ENDED, recipient="x.former_owner", payload=FORMER_OWNER
        ).strip()
    }
SELECT {", ".join(f"e.{column}" for column in TASK_COLUMNS.split(", "))}, q.key AS queue_key,
       e.former_owner, e.former_state
FROM expired e JOIN dibs.queue q ON q.id = e.queue_id"""
).bindparams(
    sa.bindparam("queue_id", type_=sa.BigInteger()),
    sa.bindparam("until", type_=sa.TIMESTAMP(timezone=True)),
    sa.bindparam("after", type_=sa.TIMESTAMP(timezone=True)),
    sa.bindparam("let_through", type_=sa.Boolean()),
)
"""Return the leases of one queue that ended after `after` and not after `until`, the oldest first.

With `let_through` the events say that a resume let them through, so that they are not counted.
"""

END_LEASES = sa.text(
    f"""
UPDATE dibs.task SET lease_until = clock_timestamp() - interval '1 second'
WHERE queue_id = :queue_id AND state IN ({_SOURCES}) AND lease_until > clock_timestamp()
RETURNING id"""
)
