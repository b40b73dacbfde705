"""A database that the first version filled comes over whole, while somebody uses it or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from tests.support.holders import holder
from tests.support.journey import together
from tests.support.store import AMAL, BILAL, SUE

from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, DatabaseUnusable, make_engine
from dibs.store.guard import Guard

FILL = """
INSERT INTO dibs.queue (workspace, key, name, channel_id, lease_seconds, last_number, created_by)
VALUES ('T0TEST', 'SUP', 'Support', 'C0SUPPORT', 1800, 4, 'U0SUE');
INSERT INTO dibs.queue_member (queue_id, user_id, standing, supervisor)
SELECT id, u, 'eligible', u = 'U0SUE' FROM dibs.queue, unnest(ARRAY['U0AMAL', 'U0BILAL', 'U0SUE']) u;
INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, version, created_by)
SELECT q.id, n, state || ' in the first version', state, owner, until, n, 'U0SUE'
FROM dibs.queue q, (VALUES (1, 'queued', NULL, NULL), (2, 'claimed', 'U0AMAL', now() + interval '1 hour'),
     (3, 'started', 'U0AMAL', now() - interval '1 minute'), (4, 'done', 'U0BILAL', NULL))
     AS t (n, state, owner, until);
INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, op_id)
SELECT t.queue_id, t.id, k.kind, 'U0AMAL', now() - make_interval(hours => 9 - k.n), k.n - 1, k.n,
       concat_ws(':', t.id, k.n)
FROM dibs.task t, (VALUES (1, 'created'), (2, 'claimed'), (3, 'started'), (4, 'done')) AS k (n, kind)
WHERE k.n <= t.version;
INSERT INTO dibs.card (task_id, channel_id, message_ts, shown_version, wanted_version)
SELECT id, 'C0SUPPORT', id || '.1', version, version FROM dibs.task"""


@pytest.fixture
def first_version(postgres_server: str) -> Iterator[str]:
    """A database as the first version left it, with a task in every state."""
    name = f"dibs_first_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(postgres_server)._replace(path=f"/{name}"))
    engine = make_engine(url, BACKGROUND, pool_size=1)
    with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA dibs"))
        command.upgrade(schema.configuration(connection), "0001")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(FILL)
    engine.dispose()
    yield url
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(first_version: str) -> Iterator[sa.Engine]:
    engine = make_engine(first_version, BACKGROUND, pool_size=4)
    yield engine
    engine.dispose()


def _rows(engine: sa.Engine, sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(sql))]


def test_what_the_first_version_left_is_kept_and_goes_on(engine: sa.Engine) -> None:
    kept = "SELECT id, state, owner_id, lease_until, version, title FROM dibs.task ORDER BY id"
    records = "SELECT id, kind, at, op_id FROM dibs.event ORDER BY id"
    before = _rows(engine, kept), _rows(engine, records)
    together([lambda: schema.upgrade(engine)] * 2)
    assert (_rows(engine, kept), _rows(engine, records)) == before
    since = """SELECT t.state, t.held_since = (SELECT max(at) FROM dibs.event
               WHERE task_id = t.id AND kind = 'claimed') FROM dibs.task t ORDER BY t.number"""
    held = [("queued", None), ("claimed", True), ("started", True), ("done", None)]
    assert _rows(engine, since) == held
    assert _rows(engine, "SELECT count(*) FROM dibs.breaker") == [(1,)]

    service = TransitionService(engine)
    queued, claimed, started, done = (int(str(row[0])) for row in before[0])
    assert [expired.task.id for expired in SweepService(Guard(engine)).sweep_once()] == [started]
    assert service.claim(queued, BILAL, 1).changed
    assert service.renew(claimed, AMAL, 2).changed
    assert service.check(started, SUE, 4).changed
    assert service.release(claimed, AMAL, 3, reason="shift_ending").changed
    assert service.claim(done, BILAL, 4).unchanged
    broken = """SELECT e.id FROM dibs.event e JOIN dibs.event b ON b.task_id = e.task_id
                AND b.version_after = e.version_before AND b.why IS NULL
                WHERE e.hash IS NOT NULL AND e.previous IS DISTINCT FROM b.hash"""
    assert _rows(engine, broken) == []


def test_an_upgrade_while_somebody_has_the_tables_gives_up_and_says_what_to_do(
    engine: sa.Engine, first_version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_WAIT_FOR_TABLES_MS", 200)
    with holder(first_version) as somebody:
        somebody.do("SELECT FROM dibs.task FOR UPDATE")
        with pytest.raises(DatabaseUnusable) as raised:
            schema.upgrade(engine)
    said = str(raised.value)
    assert "Nothing was changed" in said
    assert "Stop" in said
    assert "needs the right" not in said
    assert "\n" not in said
    with engine.connect() as connection:
        assert schema.current_version(connection) == "0001"
    schema.upgrade(engine)
    with engine.connect() as connection:
        assert schema.is_current(connection)


def test_an_upgrade_that_the_database_refuses_does_not_quote_what_people_wrote(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE dibs.task SET title = 'Refund for hunter2'"))
        connection.execute(
            sa.text("""ALTER TABLE dibs.task ADD CONSTRAINT nothing_is_updated
                                      CHECK (last_kind = 'never') NOT VALID""")
        )
    with pytest.raises(DatabaseUnusable) as raised:
        schema.upgrade(engine)
    said = str(raised.value)
    assert "nothing_is_updated" in said
    assert "hunter2" not in said
