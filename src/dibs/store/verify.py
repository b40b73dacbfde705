"""The records as they are verified: every hash recomputed by the database, and what fits beside it.

All of it is read in one snapshot, through a cursor of the server's, so that memory stays the same however
many there are, and what is written meanwhile disturbs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from dibs.store.chain import ERASED, WORDS_OF_TASK, digest, stored_card_hash, stored_event_hash
from dibs.store.errors import sorted_out

_ROWS_AT_A_TIME = 1000

_TASK_ERASED = f"(t.title = '{ERASED}' OR t.details = '{ERASED}')"
_RELEASED = "e.kind IN ('released', 'force_released')"


def _fits(written: str, known: str) -> str:
    """The condition that a text is what its digest says, or was erased."""
    return f"({written} IS NULL OR {written} = '{ERASED}' OR {digest(written)} IS NOT DISTINCT FROM {known})"


EVENTS = sa.text(
    f"""
SELECT t.id AS task_id, q.key || '-' || t.number AS task, t.head, t.version,
       e.id, e.kind, e.why IS NULL AS succeeded, e.previous, e.hash, e.version_after,
       e.hash IS NOT DISTINCT FROM {stored_event_hash("e")} AS hash_fits,
       e.queue_id = t.queue_id AS queue_fits,
       CASE WHEN e.kind = 'created' THEN {_TASK_ERASED}
                 OR {digest(WORDS_OF_TASK.format("t.title", "t.details"))} IS NOT DISTINCT FROM e.content
            WHEN e.kind = 'noted' THEN n.id IS NOT NULL AND {_fits("n.text", "e.content")}
            WHEN e.kind = 'action_recorded'
                THEN a.id IS NOT NULL AND {_fits("a.description", "e.content")}
            WHEN e.kind = 'done' THEN {_fits("t.resolution", "e.content")}
            WHEN {_RELEASED} THEN r.id IS NOT NULL AND r.hash IS NOT DISTINCT FROM e.content
            ELSE true END
           AND {_fits("e.private_text", "e.content")} AS content_fits,
       {_RELEASED} AS has_card,
       r.hash IS NOT DISTINCT FROM {stored_card_hash("r")}
           AND r.previous IS NOT DISTINCT FROM e.previous AS card_fits,
       {_fits("r.comment", "r.comment_digest")} AS comment_fits,
       {_fits("r.handoff_note", "r.note_digest")} AS note_fits
FROM dibs.task t
JOIN dibs.queue q ON q.id = t.queue_id
LEFT JOIN dibs.event e ON e.task_id = t.id
LEFT JOIN dibs.task_note n
    ON e.kind = 'noted' AND n.task_id = e.task_id AND n.version = e.version_after
LEFT JOIN dibs.external_action a
    ON e.kind = 'action_recorded' AND a.task_id = e.task_id AND a.version = e.version_after
LEFT JOIN dibs.release_card r
    ON {_RELEASED} AND r.task_id = e.task_id AND r.version_before = e.version_before
WHERE (CAST(:task_id AS bigint) IS NULL OR t.id = :task_id)
  AND (CAST(:queue_id AS bigint) IS NULL OR t.queue_id = :queue_id)
ORDER BY t.id, e.id"""
).bindparams(sa.bindparam("task_id", type_=sa.BigInteger()), sa.bindparam("queue_id", type_=sa.BigInteger()))
"""Every event of every task, in the order of the chains; a task without any has one row without one."""

OF_QUEUES = sa.text(
    f"""
SELECT e.id, e.kind, q.key AS queue, e.hash, e.previous IS NULL AS starts,
       e.hash IS NOT DISTINCT FROM {stored_event_hash("e")} AS hash_fits
FROM dibs.event e JOIN dibs.queue q ON q.id = e.queue_id
WHERE e.task_id IS NULL AND (CAST(:queue_id AS bigint) IS NULL OR e.queue_id = :queue_id)
ORDER BY e.id"""
).bindparams(sa.bindparam("queue_id", type_=sa.BigInteger()))
"""The events that are of no task, each of which stands for itself."""

_WITHOUT_EVENT = """
SELECT '{what}' AS what, q.key || '-' || t.number AS task, x.id
FROM dibs.{table} x
JOIN dibs.task t ON t.id = x.task_id
JOIN dibs.queue q ON q.id = t.queue_id
WHERE (CAST(:task_id AS bigint) IS NULL OR t.id = :task_id)
  AND (CAST(:queue_id AS bigint) IS NULL OR t.queue_id = :queue_id)
  AND NOT EXISTS (SELECT FROM dibs.event e WHERE e.task_id = x.task_id
                  AND e.kind IN ({kinds}) AND {told})"""
# An action's number is its reference in other systems. No hash holds it, but there is no gap in them.
_COUNTED = (
    "x.number = (SELECT count(*) FROM dibs.external_action o "
    "WHERE o.task_id = x.task_id AND o.version <= x.version)"
)


def _told(by: str, at: str) -> str:
    """That an event tells of a row of this version, and where it has a hash, by whom and when."""
    same = f"(e.actor_id, e.at) = (x.{by}, x.{at})"
    return f"e.version_after = x.version AND (e.hash IS NULL OR {same})"


_STRAYS = (
    ("release card", "release_card", "'released', 'force_released'", "e.version_after = x.version_after"),
    ("working note", "task_note", "'noted'", _told("author_id", "created_at")),
    # A release records an action itself where its answer needs one.
    (
        "external action",
        "external_action",
        "'action_recorded', 'released'",
        f"{_told('recorded_by', 'recorded_at')} AND {_COUNTED}",
    ),
)
STRAYS = sa.text(
    " UNION ALL ".join(
        f"({_WITHOUT_EVENT.format(what=what, table=table, kinds=kinds, told=told)}\nORDER BY x.id LIMIT 1)"
        for what, table, kinds, told in _STRAYS
    )
).bindparams(sa.bindparam("task_id", type_=sa.BigInteger()), sa.bindparam("queue_id", type_=sa.BigInteger()))
"""What no event tells of as it stands there, the first of each kind."""

TASKS_NAMED = sa.text(
    "SELECT t.id FROM dibs.task t JOIN dibs.queue q ON q.id = t.queue_id "
    "WHERE q.key = :key AND t.number = :number ORDER BY t.id"
)
QUEUES_NAMED = sa.text(
    "SELECT q.id, q.key FROM dibs.queue q WHERE CAST(:key AS text) IS NULL OR q.key = :key ORDER BY q.id"
).bindparams(sa.bindparam("key", type_=sa.Text()))


@contextlib.contextmanager
def snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection that sees the database as it was when this began. Raises StoreError."""
    try:
        with engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        ) as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        raise sorted_out(error) from error


@contextlib.contextmanager
def stream(
    connection: sa.Connection, statement: sa.TextClause, values: Mapping[str, object]
) -> Iterator[Iterator[sa.RowMapping]]:
    """The rows of a statement as they are read, a thousand at a time."""
    with connection.execution_options(stream_results=True, yield_per=_ROWS_AT_A_TIME).execute(
        statement, values
    ) as result:
        yield iter(result.mappings())
