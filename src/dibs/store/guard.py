"""Statements within a deadline, however the database behaves.

Three things together keep every press under Slack's 3 seconds (design.md, section 2):

- the server's own time-outs end what merely waits, with a definite answer;
- a watchdog cancels what outlasts a press that had waited for its turn, and closes the socket of a server
  that answers nothing at all, since a client that only stops waiting still hangs in its clean-up;
- after one hang further presses are told so at once, until a probe has worked again; otherwise fifty
  presses on a few threads queue up behind each other past the 3 seconds.

Where the primary waits for a standby (synchronous_standby_names), what no standby has confirmed in time is
told as not confirmed, and is no change until one does.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import psycopg
import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.errors import AlreadyDone, Busy, Lost, NothingSent, Refused
from dibs.store.engine import connect_by, hang_up
from dibs.store.errors import sorted_out

_log = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_IDLE_SECONDS = 2.0
_CANCEL_AHEAD_SECONDS = 0.35
_PROBE_EVERY_SECONDS = 0.25
_PROBE_SECONDS = 1.0
_LAST_PROBE_SECONDS = 5.0
_PROBE = sa.text("SELECT pg_logical_emit_message(true, 'dibs', 'probe')")
"""A write that nobody sees, which is confirmed like any other."""
_WAITS_FOR_STANDBYS = "SyncRepWaitForLSN"
"""The server's function that warns where it was told to wait no longer; its words are in many languages."""
_ENOUGH_TO_BEGIN_SECONDS = 0.45
_ENOUGH_TO_TRY_AGAIN_SECONDS = 0.6
_DEADLOCK = "40P01"

T = TypeVar("T")
Row = sa.RowMapping
Parameters = Mapping[str, Any]
Run = Callable[[sa.Executable, Parameters], Sequence[Row]]
"""Runs a statement with its parameters and returns its rows."""


class Guard:
    """Runs statements on `engine`, nearly all of them singly. One guard for each engine, shared by all."""

    def __init__(self, engine: sa.Engine) -> None:
        # One statement is one transaction, whatever the engine's own setting is.
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._watchdog = _Watchdog()
        self._lock = threading.Lock()
        self._away = False
        self._prober: threading.Thread | None = None
        self.closed = False
        self._when_back: list[Callable[[], None]] = []

    @property
    def away(self) -> bool:
        """Whether the database hung or could not be reached, and no probe has worked since."""
        return self._away

    def close(self) -> None:
        """Stop looking for a database that is away. What runs now still ends by its deadline."""
        self.closed = True
        if self._prober is not None and self._prober is not threading.current_thread():
            # A connection that came back after the engine was disposed of would stay open.
            self._prober.join(_LAST_PROBE_SECONDS)

    def call_when_back(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, in a thread of the guard's, each time the database answers again."""
        self._when_back.append(callback)

    def open_connections(self, number: int) -> None:
        """Open connections ahead of the first presses, so that no press has to wait for one.

        Raises sqlalchemy.exc.DBAPIError where the database does not let them in.
        """
        with contextlib.ExitStack() as opened:
            for _ in range(number):
                opened.enter_context(self._engine.connect())

    def run(self, statement: sa.Executable, parameters: Parameters, deadline: Deadline) -> Sequence[Row]:
        """Run one statement in autocommit and return its rows.

        Raises NothingSent, Busy, Refused or Lost (see `dibs.domain.errors`), always before the deadline
        and the watchdog's tick are over.
        """
        self._begin(deadline)
        with self._connection(deadline) as connection, self._within(connection, deadline):
            return _rows_of(connection, statement, parameters)

    def transact(self, work: Callable[[Run], T], deadline: Deadline) -> T:
        """Run several short statements in one transaction; `work` gets what runs each of them.

        What `work` returns is returned once it is committed. Where it raises, everything is rolled back and
        the error goes on; a failure of the database is raised as by `run`.
        """
        self._begin(deadline)
        with self._connection(deadline) as connection, self._within(connection, deadline):
            connection.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                return work(lambda statement, parameters: _rows_of(connection, statement, parameters))

    def _begin(self, deadline: Deadline) -> None:
        if self._away:
            raise NothingSent("the database did not answer a moment ago")
        if deadline.remaining < _ENOUGH_TO_BEGIN_SECONDS:
            raise NothingSent("no time was left to ask the database")

    @contextlib.contextmanager
    def _within(self, connection: sa.Connection, deadline: Deadline) -> Iterator[None]:
        """Have what is asked of `connection` end by the deadline, and its failures sorted."""
        hung = False
        with self._watchdog.watching(connection, deadline) as watch:
            try:
                yield
            except UnicodeEncodeError as error:
                raise Refused(f"a text cannot be sent to the database: {error.reason}") from None
            except sa.exc.DBAPIError as error:
                hung = watch.fired
                failure = sorted_out(error)
                if isinstance(failure, Lost):
                    connection.invalidate(error)
                if type(failure) is Refused:
                    # People are told to tell who runs Dibs, who finds here what it was.
                    _log.error(
                        "the database refused a statement (%s, %s): %s",
                        failure.sqlstate,
                        failure.table,
                        failure,
                    )
                # Not from it: its traceback in a log would quote what people wrote.
                raise failure from None
            except _UnreadableError as error:
                hung = watch.fired
                connection.invalidate(error)
                # What was carried out and only cannot be read was not refused.
                raise Lost(str(error)) from error
            else:
                hung = watch.unreplicated
                if hung:
                    # A failover now would lose it, and a later answer of a standby makes it good.
                    raise Lost("the standbys have not confirmed it")
            finally:
                if hung:
                    self._went_away()

    def run_once(self, statement: sa.Executable, parameters: Parameters, deadline: Deadline) -> Sequence[Row]:
        """Like `run`, and once more if it was ended in a deadlock, or on a new connection if it was lost.

        Only for statements that cannot take effect twice: reads, and writes whose operation id is unique.
        After a lost connection neither NothingSent nor a refusal means that nothing happened: they become
        Lost.
        """
        try:
            return self.run(statement, parameters, deadline)
        except Busy as busy:
            # All was rolled back, and the other one has gone on.
            if busy.sqlstate != _DEADLOCK or deadline.remaining < _ENOUGH_TO_TRY_AGAIN_SECONDS:
                raise
            return self.run(statement, parameters, deadline)
        except Lost as first:
            if self._away or deadline.remaining < _ENOUGH_TO_TRY_AGAIN_SECONDS:
                raise
            try:
                return self.run(statement, parameters, deadline)
            except AlreadyDone as found:
                found.of_this_try = True
                raise
            except (NothingSent, Refused) as second:
                raise Lost(str(second)) from first

    @contextlib.contextmanager
    def _connection(self, deadline: Deadline) -> Iterator[sa.Connection]:
        within = connect_by.set(deadline)
        try:
            connection = self._engine.connect()
        except sa.exc.TimeoutError as error:
            raise NothingSent("every connection to the database is in use") from error
        except sa.exc.DBAPIError as error:
            self._went_away()
            raise NothingSent(str(error.orig)) from error
        finally:
            connect_by.reset(within)
        with connection:
            yield connection

    def _went_away(self) -> None:
        with self._lock:
            if self._away:
                return
            prober = threading.Thread(
                target=_probe_until_back, args=[weakref.ref(self)], name="dibs-database-probe", daemon=True
            )
            try:
                prober.start()
            except RuntimeError as error:
                # Nobody would find out that it is back: each press asks for itself.
                _log.error("the database does not answer, and nobody can look for it: %s", error)
                return
            self._prober = prober
            self._away = True
            _log.warning("the database does not answer; presses are told so until it does")

    def came_back(self) -> None:
        """Let presses through again, and tell who asked to be told."""
        with self._lock:
            self._away = False
        _log.warning("the database answers again")
        for callback in self._when_back:
            callback()

    def probe(self) -> bool:
        """Whether the database writes now, and its standbys confirm it where they should, within a second."""
        try:
            with self._engine.connect() as connection:
                with self._watchdog.watching(connection, Deadline.after(_PROBE_SECONDS)) as watch:
                    try:
                        connection.execute(_PROBE)
                    except sa.exc.DBAPIError as error:
                        connection.invalidate(error)
                        return False
                return not watch.unreplicated
        except (sa.exc.DBAPIError, sa.exc.TimeoutError):
            return False


class _UnreadableError(Exception):
    """The statement was carried out; its rows could not be read."""


def _rows_of(connection: sa.Connection, statement: sa.Executable, parameters: Parameters) -> Sequence[Row]:
    result = connection.execute(statement, parameters)
    try:
        return result.mappings().all() if result.returns_rows else ()
    except sa.exc.DBAPIError as error:
        raise _UnreadableError(str(error.orig)) from error


def _probe_until_back(reference: weakref.ref[Guard]) -> None:
    """Probe until the database answers, or until nobody would use it any more."""
    while (guard := reference()) is not None and not guard.closed:
        try:
            answers = guard.probe()
        except Exception:  # noqa: BLE001 - whatever went wrong, a probe that ends would leave it away for ever
            _log.exception("the database could not be probed")
            answers = False
        if answers:
            guard.came_back()
            return
        del guard
        time.sleep(_PROBE_EVERY_SECONDS)


class _Watch:
    """One statement that must be over by its deadline."""

    def __init__(self, connection: psycopg.Connection, deadline: Deadline) -> None:
        self.connection = connection
        self.descriptor = connection.fileno()
        self.deadline = deadline
        self.cancelled = False
        self.fired = False
        self.unreplicated = False
        """Whether the server answered that it has it, while the standbys that it waits for had not."""

    def hear(self, said: psycopg.errors.Diagnostic) -> None:
        # A server that is asked to cancel while it waits for its standbys has committed already. It says so
        # in a warning, and then answers as if all were well.
        if said.source_function == _WAITS_FOR_STANDBYS:
            self.unreplicated = True

    def look(self, now: float) -> None:
        if not self.cancelled and now >= self.deadline.at - _CANCEL_AHEAD_SECONDS:
            self.cancelled = True
            # A cancel is a connection of its own, which a frozen server does not answer either. Where no
            # thread can be had for it, the socket is closed at the deadline.
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._cancel, name="dibs-database-cancel", daemon=True).start()
        if not self.fired and now >= self.deadline.at:
            self.fire()

    def _cancel(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=_CANCEL_AHEAD_SECONDS)

    def fire(self) -> None:
        self.fired = True
        hang_up(self.descriptor)


class _Watchdog:
    """Ends statements by their deadline.

    Shortly before it the server is asked to cancel, which a server that merely waits for a lock answers at
    once and definitely. Only the socket of one that does not answer is closed, and only that one is away.
    Its thread looks every now and then, so that a statement wakes nobody; it ends when nothing is asked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[_Watch] = set()
        self._running = False

    @contextlib.contextmanager
    def watching(self, connection: sa.Connection, deadline: Deadline) -> Iterator[_Watch]:
        watch = _Watch(cast(psycopg.Connection, connection.connection.driver_connection), deadline)
        with self._lock:
            if not self._running:
                try:
                    threading.Thread(target=self._watch, name="dibs-database-watchdog", daemon=True).start()
                except RuntimeError as error:
                    raise NothingSent("no thread was left to watch the database") from error
                self._running = True
            self._watches.add(watch)
        watch.connection.add_notice_handler(watch.hear)
        try:
            yield watch
        finally:
            watch.connection.remove_notice_handler(watch.hear)
            with self._lock:
                self._watches.discard(watch)

    def _watch(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(_TICK_SECONDS)
            with self._lock:
                now = time.monotonic()
                if self._watches:
                    idle_since = now
                elif now - idle_since > _IDLE_SECONDS:
                    self._running = False
                    return
                for watch in self._watches:
                    watch.look(now)
