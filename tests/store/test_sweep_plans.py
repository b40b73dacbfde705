"""The sweep finds what has ended by its index, whatever else is in the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from tests.support.store import AMAL, Desk, open_desk

from dibs.store import breaker, clock
from dibs.store.sweep import EXPIRE_BATCH, WITH_ENDED_LEASES

TASKS = 20_000
TYPES = {
    "queue_id": "bigint",
    "most": "bigint",
    "until": "timestamptz",
    "after": "timestamptz",
    "trusted_until": "timestamptz",
    "let_through": "boolean",
    "outage": "double precision",
}


@pytest.fixture
def full_desk(desk: Desk) -> Desk:
    """Among many tasks that are done or waiting some are held, and three of these leases have ended."""
    desk.execute(
        "INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, created_by) "
        "SELECT :q, n, 'T', state, CASE WHEN state <> 'queued' THEN :owner END, "
        "       CASE WHEN state = 'claimed' THEN now() + (n - 31) * interval '1 second' END, :owner "
        "FROM (SELECT n, (ARRAY['claimed', 'queued', 'done', 'done', 'done', 'done', 'done', 'done', 'done', "
        "      'done'])[n % 10 + 1] AS state FROM generate_series(1, :tasks) n) mixed",
        q=desk.queue.id,
        owner=AMAL,
        tasks=TASKS,
    )
    desk.execute("ANALYZE dibs.task")
    return desk


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (WITH_ENDED_LEASES, {"until": None}),
        (EXPIRE_BATCH, {"queue_id": 1, "until": None, "after": None, "most": 250, "let_through": False}),
        (breaker.OPEN_IF_SPIKE, {"queue_id": 1, "trusted_until": None}),
    ],
)
def test_only_the_leases_that_have_ended_are_looked_at(
    full_desk: Desk, statement: sa.TextClause, values: Mapping[str, object]
) -> None:
    nodes = [node for node in plan(full_desk, statement, values) if node.get("Actual Loops")]
    scans = [node for node in nodes if node.get("Relation Name") == "task"]
    found = [node for node in nodes if node.get("Index Name") == "task_lease_idx"]
    assert found
    assert all("now()" in node["Index Cond"] for node in found)
    assert "Seq Scan" not in {node["Node Type"] for node in scans}
    looked_at = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans
    )
    assert looked_at <= 10


def test_what_is_held_up_by_a_breaker_costs_the_other_queues_nothing(full_desk: Desk) -> None:
    other = open_desk(full_desk.engine, key="OPS")
    full_desk.execute("UPDATE dibs.breaker SET open_since = now() WHERE queue_id <> :q", q=other.queue.id)
    full_desk.execute("UPDATE dibs.task SET lease_until = now() - interval '1 hour' WHERE state = 'claimed'")
    nodes = [node for node in plan(full_desk, WITH_ENDED_LEASES, {"until": None}) if node["Actual Loops"]]
    [found] = [node for node in nodes if node.get("Relation Name") == "task"]
    assert (found["Actual Rows"], found["Actual Loops"]) == (0, 1)


def test_writing_down_that_owners_can_renew_looks_at_no_task(full_desk: Desk) -> None:
    nodes = plan(full_desk, clock.BEAT, {"outage": 300})
    assert {node.get("Relation Name") for node in nodes} == {"clock", None}


def plan(desk: Desk, statement: sa.TextClause, values: Mapping[str, object]) -> list[dict[str, Any]]:
    """The nodes of the generic plan, as Dibs' connections make it, with what each of them did."""
    names = list(values)
    sql = re.sub(r"(?<![:\w]):(\w+)", lambda found: f"${names.index(found.group(1)) + 1}", statement.text)
    given = ", ".join("NULL" if value is None else str(value) for value in values.values())
    types = ", ".join(TYPES[name] for name in names)
    with desk.engine.connect() as connection:
        connection.exec_driver_sql("SET statement_timeout = '20s'")
        connection.exec_driver_sql(f"PREPARE swept ({types}) AS {sql.replace('%', '%%')}")
        explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE swept ({given})")
        nodes = list(_nodes(explained.scalar_one()[0]["Plan"]))
        connection.exec_driver_sql("DEALLOCATE swept")
        connection.exec_driver_sql("RESET statement_timeout")
    return nodes


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)
