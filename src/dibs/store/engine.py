"""Connections to PostgreSQL: the primary only, autocommit at READ COMMITTED, time-outs on the server."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dibs.deadline import Deadline

LOWEST_SERVER_VERSION = 140000
_KEEPS_ANY_TEXT = frozenset({"UTF8", "SQL_ASCII"})


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

_SET: LiteralString = (
    "SELECT set_config(s.name, s.value, false) FROM unnest(%s::text[], %s::text[]) s (name, value)"
)

_NO_ADDRESS = (
    "DATABASE_URL is not a PostgreSQL address. It looks like postgresql://user:password@host:5432/database "
    "(with a % in the password written as %25, and an @ as %40)."
)

_TAKES_NO_WRITES = "session is read-only"
"""What libpq says, in no other language, of a server that is no primary."""

_SHARED_BY_STATEMENT = "statement pooling mode"
"""What PgBouncer says where it shares sessions even by statement."""
_SHARED = (
    "DATABASE_URL leads to a pooler whose sessions are shared, and Dibs needs one of its own for each "
    "connection. Set pool_mode = session for this database in PgBouncer, or the like in another pooler, or "
    "let DATABASE_URL name the server itself."
)

connect_by: ContextVar[Deadline | None] = ContextVar("connect_by", default=None)
"""Until when a connection that is opened here must stand, however many hosts are tried for it."""


def settings_of(timeouts: Timeouts) -> dict[str, str]:
    """What each session of Dibs is set to."""
    return {
        "lock_timeout": str(timeouts.lock_ms),
        "statement_timeout": str(timeouts.statement_ms),
        "idle_in_transaction_session_timeout": str(timeouts.idle_in_transaction_ms),
        "default_transaction_isolation": "read committed",
        # The driver reads times in no other style, and every time is in UTC.
        "datestyle": "ISO",
        "timezone": "UTC",
        # Every statement finds its rows by key, so one plan serves all values and is made once.
        "plan_cache_mode": "force_generic_plan",
    }


def conninfo(url: str, *, name: str) -> str:
    """The libpq connection string for `url` with Dibs' parameters added; the person's own stay.

    Raises DatabaseUnusable where `url` is no libpq URI.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What libpq says of it quotes the address, and with it the password.
        raise DatabaseUnusable(_NO_ADDRESS) from None
    # libpq ends the password at its first @, and every failure would quote the rest of it as the host. A host
    # that begins with an @ or a slash is a socket of this machine.
    hosts = str(given.get("host") or "").split(",")
    if any("@" in host and not host.startswith(("/", "@")) for host in hosts):
        raise DatabaseUnusable(_NO_ADDRESS)
    ours = {
        "application_name": name,
        # In some others the driver gives no text but bytes.
        "client_encoding": "UTF8",
        "connect_timeout": CONNECT_SECONDS,
        "target_session_attrs": "read-write",
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    merged: dict[str, Any] = {**ours, **given}
    return make_conninfo("", **{key: value for key, value in merged.items() if value is not None})


class _Way:
    """The way to the primary: opens connections, first to the host that was the primary last.

    A host that answers nothing costs its whole time-out; after a failover that would be nearly all of the
    time that each press has, for as long as the machine is down.
    """

    def __init__(self, address: str, settings: Mapping[str, str]) -> None:
        self._address = address
        self._settings = settings

    def open(self) -> psycopg.Connection:
        connection = psycopg.connect(self._address, autocommit=True)
        self._address = _first(self._address, connection.info)
        # By a statement, since poolers refuse settings in the start packet, or drop them without a word.
        with _hung_up_on(connection, CONNECT_SECONDS):
            names, values = list(self._settings), list(self._settings.values())
            connection.execute(_SET, (names, values))
        return connection


def _first(address: str, found: psycopg.ConnectionInfo) -> str:
    """The same address with the host that was found to be the primary before the others."""
    parameters = conninfo_to_dict(address)
    lists = {
        key: str(parameters[key]).split(",") for key in ("host", "hostaddr", "port") if parameters.get(key)
    }
    number = max((len(values) for values in lists.values()), default=1)
    ports = lists.get("port", ["5432"])
    hosts = lists.get("host") or lists.get("hostaddr") or [""]
    for place in range(1, number):
        port = ports[place % len(ports)] or "5432"
        if (hosts[place % len(hosts)], port) == (found.host, str(found.port)):
            turned = {
                key: ",".join([values[place], *values[:place], *values[place + 1 :]])
                for key, values in lists.items()
                if len(values) == number
            }
            return make_conninfo(address, **turned)
    return address


@contextlib.contextmanager
def _hung_up_on(connection: psycopg.Connection, seconds: float) -> Iterator[None]:
    """Close the connection if what is done with it fails, or takes longer than this."""
    ends = threading.Timer(seconds, hang_up, [connection.fileno()])
    ends.daemon = True
    ends.start()
    try:
        yield
    except psycopg.Error:
        connection.close()
        raise
    finally:
        ends.cancel()


def hang_up(descriptor: int) -> None:
    """End the conversation on a socket, so that whoever waits for an answer there waits no more."""
    # A duplicate, so that closing our object leaves the connection's own descriptor to its owner.
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connected:
        connected.shutdown(socket.SHUT_RDWR)


def make_engine(url: str, timeouts: Timeouts, *, pool_size: int, name: str = "dibs") -> sa.Engine:
    """An engine whose statements commit one by one. Nothing connects before its first use.

    Raises DatabaseUnusable where `url` is no libpq URI.
    """
    way = _Way(conninfo(url, name=name), settings_of(timeouts))

    def connect() -> psycopg.Connection:
        deadline = connect_by.get()
        return way.open() if deadline is None else _within(deadline, way.open)

    return sa.create_engine(
        "postgresql+psycopg://",
        creator=connect,
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        pool_use_lifo=True,
        # What people wrote must not come into a log with an error.
        hide_parameters=True,
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
    """See that the server answers, is a primary, is not too old and keeps any text.

    Raises DatabaseUnusable with one line that says what to do.
    """
    try:
        with engine.connect() as connection:
            version, encoding = connection.execute(
                sa.text(
                    "SELECT CAST(current_setting('server_version_num') AS integer), "
                    "current_setting('server_encoding')"
                )
            ).one()
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        said = " ".join(str(cause).split())
        if _TAKES_NO_WRITES in said:
            raise DatabaseUnusable(
                "The database at DATABASE_URL takes no writes: it is a standby, or set to be read-only. Dibs "
                "decides on the primary only: name the primary in DATABASE_URL, or all hosts that may be it."
            ) from error
        if _SHARED_BY_STATEMENT in said:
            raise DatabaseUnusable(_SHARED) from error
        raise DatabaseUnusable(
            f"The database at DATABASE_URL could not be reached: {said}. "
            "Check the address, the password and that the server is running."
        ) from error
    if version < LOWEST_SERVER_VERSION:
        raise DatabaseUnusable(
            f"The database is PostgreSQL {version // 10000}; Dibs needs version 14 or later."
        )
    if encoding not in _KEEPS_ANY_TEXT:
        raise DatabaseUnusable(
            f"The database at DATABASE_URL is encoded as {encoding}, which cannot keep all that people "
            "write. Create one with ENCODING 'UTF8' TEMPLATE template0, and name it in DATABASE_URL."
        )


def check_sessions(engine: sa.Engine) -> None:
    """See that each connection has a session of its own, and no pooler shares sessions by transaction.

    Settings and prepared statements would be those of whoever used a session last. Needs two connections
    of `engine`. Raises DatabaseUnusable with one line that says what to do.
    """
    asked = sa.text("SELECT pg_backend_pid()")
    with engine.connect() as one, engine.connect() as other:
        first, second = ([connection.scalar(asked) for connection in (one, other)] for _ in range(2))
    if first != second or len(set(first)) == 1:
        raise DatabaseUnusable(_SHARED)
