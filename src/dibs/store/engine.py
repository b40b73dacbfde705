"""Connections to PostgreSQL: the primary only, autocommit at READ COMMITTED, time-outs on the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dibs.deadline import Deadline

LOWEST_SERVER_VERSION = 140000


class DatabaseUnusable(Exception):
    """The database cannot be used. The message is one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What the server itself enforces, in milliseconds.

    Waiting behind another press is no refusal, so the wait for a lock is never under a second.
    """

    lock_ms: int
    statement_ms: int
    idle_in_transaction_ms: int


PRESS = Timeouts(lock_ms=1_200, statement_ms=1_700, idle_in_transaction_ms=3_000)
"""Within the deadline of a press, so that the server has given up before Slack does."""
BACKGROUND = Timeouts(lock_ms=3_000, statement_ms=15_000, idle_in_transaction_ms=15_000)
UNHURRIED = Timeouts(lock_ms=10_000, statement_ms=0, idle_in_transaction_ms=0)
"""For who sits before a command line, waits as long as it takes, and can end it."""

POOL_WAIT_SECONDS = 0.4
CONNECT_SECONDS = 2
"""For each host; psycopg takes no less."""

connect_by: ContextVar[Deadline | None] = ContextVar("connect_by", default=None)
"""Until when a connection that is opened here must stand, however many hosts are tried for it."""


def conninfo(url: str, timeouts: Timeouts, *, name: str) -> str:
    """The libpq connection string for `url` with Dibs' settings added; the person's own options stay.

    Raises DatabaseUnusable where `url` is no libpq URI.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What libpq says of it quotes the address, and with it the password.
        raise DatabaseUnusable(
            "DATABASE_URL is not a PostgreSQL address. It looks like "
            "postgresql://user:password@host:5432/database (with a % in the password written as %25)."
        ) from None
    settings = {
        "lock_timeout": timeouts.lock_ms,
        "statement_timeout": timeouts.statement_ms,
        "idle_in_transaction_session_timeout": timeouts.idle_in_transaction_ms,
        "default_transaction_isolation": r"read\ committed",
        # Every statement finds its rows by key, so one plan serves all values and is made once.
        "plan_cache_mode": "force_generic_plan",
    }
    options = " ".join(f"-c {setting}={value}" for setting, value in settings.items())
    ours = {
        "application_name": name,
        "connect_timeout": CONNECT_SECONDS,
        "target_session_attrs": "read-write",
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    merged: dict[str, Any] = {**ours, **given, "options": f"{given.get('options') or ''} {options}".strip()}
    return make_conninfo("", **{key: value for key, value in merged.items() if value is not None})


def make_engine(url: str, timeouts: Timeouts, *, pool_size: int, name: str = "dibs") -> sa.Engine:
    """An engine whose statements commit one by one. Nothing connects before its first use.

    Raises DatabaseUnusable where `url` is no libpq URI.
    """
    address = conninfo(url, timeouts, name=name)

    def connect() -> psycopg.Connection:
        deadline = connect_by.get()
        if deadline is None:
            return psycopg.connect(address, autocommit=True)
        return _within(deadline, lambda: psycopg.connect(address, autocommit=True))

    return sa.create_engine(
        "postgresql+psycopg://",
        creator=connect,
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        pool_use_lifo=True,
    )


def _within(deadline: Deadline, connect: Callable[[], psycopg.Connection]) -> psycopg.Connection:
    """The connection, if it stands before the deadline; one that comes later is closed again."""
    opened: Future[psycopg.Connection] = Future()

    def run() -> None:
        try:
            connection = connect()
        except psycopg.Error as error:
            if opened.set_running_or_notify_cancel():
                opened.set_exception(error)
        else:
            if opened.set_running_or_notify_cancel():
                opened.set_result(connection)
            else:
                connection.close()

    threading.Thread(target=run, name="dibs-database-connect", daemon=True).start()
    try:
        return opened.result(max(deadline.remaining, 0))
    except TimeoutError:
        if opened.cancel():
            raise psycopg.OperationalError("no connection stood in time") from None
        return opened.result()


def check_reachable(engine: sa.Engine) -> None:
    """See that the server answers, is a primary and is not too old.

    Raises DatabaseUnusable with one line that says what to do.
    """
    try:
        with engine.connect() as connection:
            version = connection.scalar(sa.text("SELECT current_setting('server_version_num')::int"))
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        said = " ".join(str(cause).split())
        raise DatabaseUnusable(
            f"The database at DATABASE_URL could not be reached: {said}. "
            "Check the address, the password and that the server is running."
        ) from error
    if version is None or version < LOWEST_SERVER_VERSION:
        raise DatabaseUnusable(
            f"The database is PostgreSQL {(version or 0) // 10000}; Dibs needs version 14 or later."
        )
