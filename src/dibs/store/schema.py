"""The database's schema: brought up to date at start, and never by two processes at once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from dibs.deadline import Deadline
from dibs.domain.errors import Busy, Refused
from dibs.store.columns import SCHEMA
from dibs.store.engine import DatabaseUnusable
from dibs.store.errors import sorted_out
from dibs.store.guard import Guard

_MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_ADVISORY_LOCK = 0x44494253  # "DIBS"
_WAIT_FOR_OTHERS_MS = 60_000
_WAIT_FOR_TABLES_MS = 5_000
_VERSION = sa.text(f"SELECT version_num FROM {SCHEMA}.alembic_version")


def configuration(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration, in code, so that no alembic.ini stands at the top."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def current_version(connection: sa.Connection) -> str | None:
    """The revision of the database, or None where it has none yet."""
    table = connection.scalar(sa.text(f"SELECT to_regclass('{SCHEMA}.alembic_version')"))
    if table is None:
        return None
    version: str | None = connection.scalar(_VERSION)
    return version


def is_current(connection: sa.Connection) -> bool:
    """Whether the database has the schema that this program was made for."""
    return current_version(connection) == _head()


def found_current(guard: Guard, deadline: Deadline) -> bool:
    """Like `is_current`, within a deadline, however the database behaves. Raises StoreError."""
    try:
        rows = guard.run(_VERSION, {}, deadline)
    except Busy:
        raise
    except Refused:
        # There is no such table, or it may not be read.
        return False
    return bool(rows) and rows[0]["version_num"] == _head()


def upgrade(engine: sa.Engine) -> None:
    """Bring the schema up to date. Several processes may call this at once: the others wait.

    Raises DatabaseUnusable, with one line that says what to do, where the schema is newer than this
    program, or the database does not let Dibs change it.
    """
    try:
        with engine.connect() as connection:
            if is_current(connection):
                return
        with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
            connection.execute(sa.text(f"SET LOCAL lock_timeout = {_WAIT_FOR_OTHERS_MS}"))
            connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
            connection.execute(sa.text(f"SET LOCAL lock_timeout = {_WAIT_FOR_TABLES_MS}"))
            _refuse_newer(connection)
            if not is_current(connection):
                connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
                command.upgrade(configuration(connection), "head")
    except sa.exc.DBAPIError as error:
        # Not all that the database says: the rest may quote a row, and with it what people wrote.
        failure = sorted_out(error)
        said = " ".join(str(failure).split())
        advice = "Dibs needs the right to create the schema 'dibs' and to change it."
        if isinstance(failure, Busy):
            advice = (
                "Somebody uses them. Stop every other Dibs, and what else has them, and start this one again."
            )
        raise DatabaseUnusable(
            f"The database's tables could not be brought up to date: {said}. Nothing was changed. {advice}"
        ) from error


def check(engine: sa.Engine) -> None:
    """Fail where the tables in `dibs.store.tables` and the migrations have drifted apart.

    Raises alembic.util.exc.CommandError, which names the differences.
    """
    with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        # A role that is named like the schema has it on its search path, where tables lose its name.
        connection.execute(sa.text("SET LOCAL search_path = pg_catalog"))
        connection.dialect.default_schema_name = "pg_catalog"
        command.check(configuration(connection))


@cache
def _head() -> str | None:
    return ScriptDirectory.from_config(configuration()).get_current_head()


def _refuse_newer(connection: sa.Connection) -> None:
    version = current_version(connection)
    known = {script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()}
    if version is not None and version not in known:
        raise DatabaseUnusable(
            f"The database's tables are of a newer Dibs (schema {version}) than this one. "
            "Nothing was changed. Start the newer version, or give DATABASE_URL another database."
        )
