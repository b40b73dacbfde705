"""Messages to people, written in the same statement as what they tell of."""

from __future__ import annotations

from dibs.domain.notices import Notice

FORMER_OWNER = """jsonb_build_object(
               'by', x.last_actor, 'kind', x.last_kind, 'at', x.last_at,
               'former_owner', x.former_owner, 'former_state', x.former_state)"""
"""What an alert says of the change that it is about, with `x` as in `to_supervisors`."""


def recipients(queue_id: str) -> str:
    """The SQL of where the alerts of a queue go: its alert channel, or else each of its supervisors.

    Where it has none who could read them they go to its own channel, rather than to nobody.
    """
    return f"""
        SELECT q.alert_channel AS recipient FROM dibs.queue q
        WHERE q.id = {queue_id} AND q.alert_channel IS NOT NULL
        UNION ALL
        SELECT m.user_id FROM dibs.queue q JOIN dibs.queue_member m ON m.queue_id = q.id
        WHERE q.id = {queue_id} AND q.alert_channel IS NULL AND m.supervisor
          AND m.standing <> 'deactivated'
        UNION ALL
        SELECT q.channel_id FROM dibs.queue q
        WHERE q.id = {queue_id} AND q.alert_channel IS NULL AND NOT EXISTS (
            SELECT FROM dibs.queue_member m
            WHERE m.queue_id = q.id AND m.supervisor AND m.standing <> 'deactivated')"""


def to_supervisors(step: str, source: str, notice: Notice, *, payload: str, where: str = "true") -> str:
    """A step that alerts the supervisors of each task in `source`, a step with the changed task's columns.

    `payload` and `where` are SQL on its row `x`. The message follows its task until that is settled.
    """
    return f"""
{step} AS (
    INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live)
    SELECT x.queue_id, x.id, concat_ws(':', '{notice}', x.id, x.version, r.recipient), '{notice}',
           r.recipient, {payload}, true
    FROM {source} x CROSS JOIN LATERAL ({recipients("x.queue_id")}) r
    WHERE {where}
    ON CONFLICT (key) DO NOTHING
)"""


def about_queue(
    step: str, source: str, notice: Notice, *, of: str, payload: str, live: bool = True, where: str = "true"
) -> str:
    """A step that alerts the supervisors of each queue in `source`, once for each value of `of`.

    `of`, `payload` and `where` are SQL on its row `x`, which has the queue's id. Where it is `live`, whoever
    changes what it tells has the message drawn anew.
    """
    return f"""
{step} AS (
    INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload, live)
    SELECT x.queue_id, concat_ws(':', '{notice}', x.queue_id, {of}, r.recipient), '{notice}', r.recipient,
           {payload}, {str(live).lower()}
    FROM {source} x CROSS JOIN LATERAL ({recipients("x.queue_id")}) r
    WHERE {where}
    ON CONFLICT (key) DO NOTHING
)"""


def to_person(step: str, source: str, notice: Notice, *, recipient: str, payload: str) -> str:
    """A step that tells one person of each task in `source` what happened to it, once."""
    return f"""
{step} AS (
    INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload)
    SELECT x.queue_id, x.id, concat_ws(':', '{notice}', x.id, x.version, {recipient}), '{notice}',
           {recipient}, {payload}
    FROM {source} x
    WHERE {recipient} IS NOT NULL
    ON CONFLICT (key) DO NOTHING
)"""


def follow(source: str) -> str:
    """A step that has the messages drawn anew which follow a task that changed."""
    # Locked in the order of their ids, as senders lock them: else each could wait for the other.
    return f"""
follows AS MATERIALIZED (
    SELECT o.id, x.last_at FROM dibs.outbox o JOIN {source} x ON o.task_id = x.id
    WHERE o.live ORDER BY o.id FOR UPDATE OF o
), followed AS (
    UPDATE dibs.outbox o
    SET wanted = o.wanted + 1, next_try_at = least(o.next_try_at, f.last_at)
    FROM follows f WHERE o.id = f.id
)"""
