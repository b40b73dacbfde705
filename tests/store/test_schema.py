"""The schema is brought up to date once, whoever starts first, and in one line it is said where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy as sa
from alembic.util.exc import CommandError
from tests.support.holders import Pressed, holder, wait_for_waiters
from tests.support.journey import together
from tests.support.store import AMAL, open_desk

from dibs.service.transitions import TransitionService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, DatabaseUnusable, make_engine
from dibs.store.tables import metadata

ADVISORY_LOCK = 0x44494253

BOT = """
import sys
from dibs.store import schema
from dibs.store.engine import BACKGROUND, make_engine

engine = make_engine(sys.argv[1], BACKGROUND, pool_size=1)
print("ready", flush=True)
sys.stdin.readline()
schema.upgrade(engine)
with engine.connect() as connection:
    print(schema.is_current(connection))
"""


@pytest.fixture
def empty_url(postgres_server: str) -> Iterator[str]:
    """A database that Dibs has never seen."""
    name = f"dibs_empty_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield urlunsplit(urlsplit(postgres_server)._replace(path=f"/{name}"))
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def engine_on(url: str) -> Iterator[sa.Engine]:
    engine = make_engine(url, BACKGROUND, pool_size=4)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def newcomer(url: str) -> Iterator[str]:
    """A role that may log in and nothing else."""
    name = f"newcomer_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'newcomer'")
        try:
            mark = "&" if urlsplit(url).query else "?"
            yield f"{url}{mark}user={name}&password=newcomer"
        finally:
            admin.execute(f"DROP ROLE {name}")


def one_line(raised: pytest.ExceptionInfo[DatabaseUnusable]) -> str:
    line = str(raised.value)
    assert line
    assert "\n" not in line
    return line


def test_an_empty_database_becomes_usable(empty_url: str) -> None:
    with engine_on(empty_url) as engine:
        with engine.connect() as connection:
            assert schema.current_version(connection) is None
            assert not schema.is_current(connection)
        schema.upgrade(engine)
        with engine.connect() as connection:
            assert schema.is_current(connection)
        desk = open_desk(engine)
        assert TransitionService(engine).claim(desk.task().id, AMAL, 1).changed


def test_a_second_upgrade_touches_nothing(empty_url: str) -> None:
    with engine_on(empty_url) as engine:
        schema.upgrade(engine)
        desk = open_desk(engine)
        task = desk.task()
        schema.upgrade(engine)
        assert desk.row_of(task)["version"] == 1


def test_eight_processes_at_once_upgrade_once(empty_url: str) -> None:
    # Each says that it is there, and waits for the word to go.
    bots = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", BOT, empty_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    for bot in bots:
        assert bot.stdout is not None
        assert bot.stdout.readline() == "ready\n"
    for bot in bots:
        assert bot.stdin is not None
        bot.stdin.write("go\n")
        bot.stdin.flush()
    said = [bot.communicate(timeout=100)[0] for bot in bots]
    assert said == ["True\n"] * 8
    assert [bot.returncode for bot in bots] == [0] * 8
    with engine_on(empty_url) as engine, engine.connect() as connection:
        assert schema.is_current(connection)
        assert connection.scalar(sa.text("SELECT count(*) FROM dibs.alembic_version")) == 1


def test_threads_at_once_upgrade_once(empty_url: str) -> None:
    with engine_on(empty_url) as engine:
        together([lambda: schema.upgrade(engine)] * 4)
        with engine.connect() as connection:
            assert schema.is_current(connection)


def test_who_starts_second_waits_for_the_first(empty_url: str) -> None:
    """Longer than a press would wait: the time-outs of statements do not end an upgrade."""
    with engine_on(empty_url) as engine, holder(empty_url) as first:
        first.do("SELECT pg_advisory_xact_lock(%(key)s)", key=ADVISORY_LOCK)
        second = Pressed(lambda: schema.upgrade(engine))
        wait_for_waiters(empty_url)
        first.do("SELECT pg_sleep(%(longer)s)", longer=BACKGROUND.lock_ms / 1000 + 0.3)
        assert not second.answered
        first.rollback()
        second.answer()
        with engine.connect() as connection:
            assert schema.is_current(connection)


def test_a_newer_schema_is_refused_in_one_line_and_left_alone(empty_url: str) -> None:
    with engine_on(empty_url) as engine:
        schema.upgrade(engine)
        with psycopg.connect(empty_url, autocommit=True) as newer:
            newer.execute("UPDATE dibs.alembic_version SET version_num = '9999'")
        with pytest.raises(DatabaseUnusable) as raised:
            schema.upgrade(engine)
        assert "9999" in one_line(raised)
        with engine.connect() as connection:
            assert schema.current_version(connection) == "9999"
            assert not schema.is_current(connection)


def test_a_role_that_may_not_create_the_schema_is_told_so_in_one_line(empty_url: str) -> None:
    with newcomer(empty_url) as url, engine_on(url) as engine:
        with pytest.raises(DatabaseUnusable) as raised:
            schema.upgrade(engine)
        assert "permission denied" in one_line(raised)


def test_a_role_that_may_not_read_the_tables_is_told_so_in_one_line(database_url: str) -> None:
    with newcomer(database_url) as url, engine_on(url) as engine:
        with pytest.raises(DatabaseUnusable) as raised:
            schema.upgrade(engine)
        assert "permission denied" in one_line(raised)


def test_a_failed_upgrade_leaves_nothing_behind(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA dibs")
        # In the way of the last of the tables.
        admin.execute("CREATE TABLE dibs.task_note (id int)")
    with engine_on(empty_url) as engine:
        with pytest.raises(DatabaseUnusable) as raised:
            schema.upgrade(engine)
        assert "task_note" in one_line(raised)
        with engine.connect() as connection:
            assert schema.current_version(connection) is None
            tables = connection.scalars(
                sa.text("SELECT tablename FROM pg_tables WHERE schemaname = 'dibs'")
            ).all()
            assert tables == ["task_note"]


def test_tables_and_migrations_agree(engine: sa.Engine) -> None:
    schema.check(engine)


def test_tables_and_migrations_that_drift_apart_are_noticed(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(sa.text("ALTER TABLE dibs.task ADD COLUMN colour text"))
    with pytest.raises(CommandError, match="colour"):
        schema.check(engine)


def test_the_named_constraints_of_the_tables_are_those_of_the_database(engine: sa.Engine) -> None:
    """Alembic does not compare CHECK constraints, so they are compared here."""
    described = {
        str(constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, sa.CheckConstraint)
    }
    with engine.connect() as connection:
        present = connection.scalars(
            sa.text(
                "SELECT conname FROM pg_constraint "
                "WHERE contype = 'c' AND connamespace = CAST('dibs' AS regnamespace)"
            )
        ).all()
    assert sorted(described) == sorted(present)
