"""Events that are about a queue and no task: settings that changed, a brake, a grace that was given.

Each holds a hash over itself; no chain leads from one to the next, since nothing may be locked for it.
"""

from __future__ import annotations

from dibs.domain.brakes import QueueEvent
from dibs.store.chain import event_hash

_NOTHING = {"text": "CAST(NULL AS text)", "number": "CAST(NULL AS integer)"}


def log_queue(
    step: str,
    source: str,
    kind: QueueEvent,
    *,
    op_id: str,
    detail: str = "CAST(NULL AS jsonb)",
    actor: str = "CAST(:actor AS text)",
    why: str = _NOTHING["text"],
    where: str = "true",
) -> str:
    """A step that writes one event for each row of `source`, a step with `queue_id` and `clock`.

    Everything but `kind` is SQL on its row `x`.
    """
    event = {
        "task_id": "CAST(NULL AS bigint)",
        "kind": f"'{kind}'",
        "actor_id": actor,
        "at": "x.clock",
        "version_before": _NOTHING["number"],
        "version_after": _NOTHING["number"],
        "version_seen": _NOTHING["number"],
        "op_id": op_id,
        "why": why,
        "detail": detail,
        "content": "CAST(NULL AS bytea)",
    }
    return f"""
{step} AS (
    INSERT INTO dibs.event (queue_id, kind, actor_id, at, op_id, why, detail, hash)
    SELECT x.queue_id, '{kind}', {actor}, x.clock, {op_id}, {why}, {detail},
           {event_hash(event, "CAST(NULL AS bytea)")}
    FROM {source} x
    WHERE {where}
)"""
