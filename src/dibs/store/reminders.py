"""Reminders to owners, for the leases that end soon and for nothing else; and owners who are gone."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from dibs.domain.notices import Notice
from dibs.domain.task import Standing
from dibs.store.notices import recipients

LEASES = sa.text("SELECT id AS queue_id, lease_seconds, longest_hold_seconds FROM dibs.queue ORDER BY id")

_KEY = "concat_ws(':', '{kind}', t.id, CAST(floor(extract(epoch FROM {end})) AS bigint), {recipient})"
_LEASE_KEY = _KEY.format(kind=Notice.LEASE_ENDS_SOON, end="t.lease_until", recipient="t.owner_id")
_HOLD_KEY = _KEY.format(kind=Notice.HOLD_ENDS_SOON, end="h.ends", recipient="r.recipient")

_QUEUES: tuple[sa.BindParameter[Any], ...] = (
    sa.bindparam("queue_ids", type_=sa.ARRAY(sa.BigInteger())),
    sa.bindparam("leads", type_=sa.ARRAY(sa.Double())),
)

# For each queue one short range of the index on queue_id and lease_until, however many tasks there are.
LEASE_ENDS_SOON = sa.text(
    f"""
INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
SELECT t.queue_id, t.id, {_LEASE_KEY}, '{Notice.LEASE_ENDS_SOON}', t.owner_id,
       jsonb_build_object('until', t.lease_until, 'last', coalesce(
           t.lease_until >= t.held_since + make_interval(secs => q.longest_hold_seconds), false)), true
FROM unnest(:queue_ids, :leads) AS w (queue_id, lead)
CROSS JOIN LATERAL (
    SELECT t.* FROM dibs.task t
    WHERE t.queue_id = w.queue_id AND t.lease_until > now()
      AND t.lease_until <= now() + make_interval(secs => w.lead)
) t
JOIN dibs.queue q ON q.id = t.queue_id
WHERE NOT EXISTS (SELECT FROM dibs.outbox o WHERE o.key = {_LEASE_KEY})
ON CONFLICT (key) DO NOTHING
RETURNING id"""
).bindparams(*_QUEUES)
"""One reminder for each end of a lease, as it stands now: an operator may have moved it."""

HOLD_ENDS_SOON = sa.text(
    f"""
INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
SELECT t.queue_id, t.id, {_HOLD_KEY}, '{Notice.HOLD_ENDS_SOON}', r.recipient,
       jsonb_build_object('until', h.ends, 'owner', t.owner_id), true
FROM unnest(:queue_ids, :leads) AS w (queue_id, lead)
JOIN dibs.queue q ON q.id = w.queue_id
JOIN dibs.task t ON t.queue_id = w.queue_id AND t.lease_until IS NOT NULL
CROSS JOIN LATERAL (
    SELECT t.held_since + make_interval(secs => q.longest_hold_seconds) AS ends
) h
CROSS JOIN LATERAL (
    SELECT t.owner_id AS recipient
    UNION
    SELECT s.recipient FROM ({recipients("t.queue_id")}) s
) r
WHERE h.ends > now() AND h.ends <= now() + make_interval(secs => w.lead)
  AND NOT EXISTS (SELECT FROM dibs.outbox o WHERE o.key = {_HOLD_KEY})
ON CONFLICT (key) DO NOTHING
RETURNING id"""
).bindparams(*_QUEUES)

MOVED = sa.text(
    f"""
WITH moved AS MATERIALIZED (
    SELECT o.id FROM dibs.outbox o JOIN dibs.task t ON t.id = o.task_id
    WHERE o.live AND o.kind = '{Notice.LEASE_ENDS_SOON}' AND o.shown >= o.wanted
      AND t.lease_until <> CAST(o.payload ->> 'until' AS timestamptz)
    ORDER BY o.id FOR UPDATE OF o
)
UPDATE dibs.outbox o SET wanted = o.wanted + 1, next_try_at = clock_timestamp()
FROM moved m WHERE o.id = m.id"""
)
"""Has the reminders drawn anew whose lease an operator's hand has moved, which changes no version."""

OWNERS_GONE = sa.text(
    f"""
INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
SELECT t.queue_id, t.id, concat_ws(':', '{Notice.OWNER_GONE}', t.id, t.version, r.recipient),
       '{Notice.OWNER_GONE}', r.recipient,
       jsonb_build_object('owner', t.owner_id, 'standing', m.standing), true
FROM dibs.task t
JOIN dibs.queue_member m ON m.queue_id = t.queue_id AND m.user_id = t.owner_id
CROSS JOIN LATERAL ({recipients("t.queue_id")}) r
WHERE t.lease_until IS NOT NULL AND m.standing IN ('{Standing.LEFT}', '{Standing.DEACTIVATED}')
  AND r.recipient <> t.owner_id
  AND NOT EXISTS (
      SELECT FROM dibs.outbox o
      WHERE o.task_id = t.id AND o.live AND o.kind = '{Notice.OWNER_GONE}' AND o.recipient = r.recipient
        AND o.payload ->> 'owner' = t.owner_id)
ON CONFLICT (key) DO NOTHING
RETURNING id"""
)
"""Looks at every task that is held: a claim may have come while its owner left, by whichever way that was
found out. An alert that stands is not repeated while the same owner has the task."""
