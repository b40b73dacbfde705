"""Reading the records: a page of events at a time, by an index, however many there are."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from dibs.domain.audit import Record, ReleaseCard, Topic
from dibs.domain.queue import Event
from dibs.store.tasks import EVENT_ACTIONS, as_event_actions

# A task's own events are in the order of their ids, since each is written under the task's lock.
_OF_TASK = """
    SELECT e.id, e.at FROM dibs.event e
    WHERE e.task_id = :subject AND e.id {beyond} :id AND e.at >= :since
    ORDER BY e.id {order} LIMIT {most}"""
_BY_TIME = """
    SELECT e.id, e.at FROM dibs.event e
    WHERE {whose} AND (e.at, e.id) {beyond} (:at, :id) AND e.at >= :since
    ORDER BY e.at {order}, e.id {order} LIMIT {most}"""
_OF_QUEUE = "e.queue_id = :subject"
_OF_PERSON = tuple(
    f"{whose} = :subject AND e.queue_id = ANY(:queue_ids)"
    for whose in ("e.actor_id", "(e.detail ->> 'former_owner')", "(e.detail ->> 'to')")
)

_WITH_WORDS = f"""
SELECT e.id, e.kind, e.actor_id, e.at, e.version_before, e.version_after, e.version_seen, e.why, e.detail,
       e.op_id, e.hash, q.key AS queue_key, t.number, t.title,
       coalesce(n.text, a.description, r.comment, e.private_text) AS text,
       CASE WHEN e.kind = 'done' THEN t.resolution END AS resolution, {EVENT_ACTIONS} AS actions,
       r.previous_owner, r.state_at_release, r.reason, r.comment, r.handoff_note, r.external_action,
       r.forced_by
FROM picked p
JOIN dibs.event e ON e.id = p.id
JOIN dibs.queue q ON q.id = e.queue_id
LEFT JOIN dibs.task t ON t.id = e.task_id
LEFT JOIN dibs.task_note n
    ON e.kind = 'noted' AND n.task_id = e.task_id AND n.version = e.version_after
LEFT JOIN dibs.external_action a
    ON e.kind = 'action_recorded' AND a.task_id = e.task_id AND a.version = e.version_after
LEFT JOIN dibs.release_card r
    ON e.kind IN ('released', 'force_released')
    AND r.task_id = e.task_id AND r.version_before = e.version_before
ORDER BY {{by}}"""


_TYPES: dict[Topic, dict[str, sa.types.TypeEngine[Any]]] = {
    topic: {
        "subject": sa.Text() if topic is Topic.PERSON else sa.BigInteger(),
        "id": sa.BigInteger(),
        "since": sa.TIMESTAMP(timezone=True),
        **({} if topic is Topic.TASK else {"at": sa.TIMESTAMP(timezone=True)}),
        **({"queue_ids": sa.ARRAY(sa.BigInteger())} if topic is Topic.PERSON else {}),
    }
    for topic in Topic
}
TAKES = {topic: tuple(types) for topic, types in _TYPES.items()}
"""The parameters of `page`."""


@cache
def page(topic: Topic, most: int, *, newer: bool) -> sa.TextClause:
    """The statement for the next events beyond a place, the nearest first, `most` at the most.

    The number stands in the statement itself: of a parameter the planner knows nothing, and took so many rows
    for likely that it read the whole table.

    It reads no more rows than it returns, but for a task's events that are older than `since`, and a person's
    in other queues.
    """
    beyond, order = (">", "ASC") if newer else ("<", "DESC")
    by = f"p.at {order}, p.id {order}"
    if topic is Topic.TASK:
        by = f"p.id {order}"
        picked = _OF_TASK.format(beyond=beyond, order=order, most=most)
    elif topic is Topic.QUEUE:
        picked = _BY_TIME.format(whose=_OF_QUEUE, beyond=beyond, order=order, most=most)
    else:
        each = [_BY_TIME.format(whose=whose, beyond=beyond, order=order, most=most) for whose in _OF_PERSON]
        merged = " UNION ".join(f"({one})" for one in each)
        picked = f"SELECT p.id, p.at FROM ({merged}) p ORDER BY {by} LIMIT {most}"
    statement = sa.text(f"WITH picked AS MATERIALIZED ({picked}\n){_WITH_WORDS.format(by=by)}")
    return statement.bindparams(*(sa.bindparam(name, type_=_TYPES[topic][name]) for name in TAKES[topic]))


def as_record(row: sa.RowMapping) -> Record:
    """The Record in a row of `page`."""
    return Record(
        id=row["id"],
        queue_key=row["queue_key"],
        number=row["number"],
        title=row["title"],
        op_id=row["op_id"],
        hash=row["hash"],
        event=Event(
            kind=row["kind"],
            actor_id=row["actor_id"],
            at=row["at"],
            version_before=row["version_before"],
            version_after=row["version_after"],
            version_seen=row["version_seen"],
            why=row["why"],
            detail=row["detail"],
            text=row["text"],
            handoff_note=row["handoff_note"],
            resolution=row["resolution"],
            actions=as_event_actions(row["actions"]),
        ),
        card=None
        if row["previous_owner"] is None
        else ReleaseCard(
            previous_owner=row["previous_owner"],
            state_at_release=row["state_at_release"],
            version_before=row["version_before"],
            version_after=row["version_after"],
            reason=row["reason"],
            comment=row["comment"],
            handoff_note=row["handoff_note"],
            external_action=row["external_action"],
            forced_by=row["forced_by"],
        ),
    )
