"""Socket Mode: the connections that the bot opens, and the envelopes that go over them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import time
from concurrent.futures import CancelledError, Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from dibs.playground.bot import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.clock import Clock

Json = dict[str, Any]

MOST_CONNECTIONS: Final = 10
TICKET_SECONDS: Final = 30.0
LASTS_SECONDS: Final = 18_060
LASTS_SECONDS_WHEN_DEBUGGED: Final = 360
HOST_NAME: Final = "applink-playground"


@dataclass
class Connection:
    """One open connection and the event loop that serves it."""

    socket: WebSocket
    loop: asyncio.AbstractEventLoop
    waiting: dict[str, Future[Json]] = field(default_factory=dict)

    def say(self, message: Json) -> None:
        """Send a message, from any thread."""
        with contextlib.suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(self.tell(message), self.loop)

    async def tell(self, message: Json) -> None:
        """Send a message, from the event loop; a connection that has just gone takes none."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await self.socket.send_text(json.dumps(message))

    async def close(self) -> None:
        """Close the connection properly."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await self.socket.close()


class Sockets:
    """Up to ten connections of one app; each envelope goes to exactly one of them, in turn."""

    def __init__(
        self,
        app_id: str,
        clock: Clock,
        cut: Callable[[tuple[str, int]], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._app_id = app_id
        self._clock = clock
        self._cut = cut
        self._changed = changed
        self._tickets: dict[str, float] = {}
        self._open: list[Connection] = []
        self._next = 0
        self._lock = threading.Lock()

    def routes(self) -> list[WebSocketRoute]:
        """Return the address that apps.connections.open leads to."""
        return [WebSocketRoute("/link/", self._serve)]

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def ticket(self) -> str:
        """Hand out a ticket: it lets one connection in, and soon no longer."""
        with self._lock:
            ticket = secrets.token_urlsafe(16)
            self._tickets[ticket] = self._clock.now()
            return ticket

    # Serving a connection, in the event loop

    async def _serve(self, socket: WebSocket) -> None:
        issued = self._tickets.pop(socket.query_params.get("ticket", ""), 0.0)
        if self._clock.now() - issued > TICKET_SECONDS:
            await socket.close()
            return
        await socket.accept()
        connection = Connection(socket, asyncio.get_running_loop())
        with self._lock:
            full = len(self._open) >= MOST_CONNECTIONS
            if not full:
                self._open.append(connection)
        if full:
            await connection.tell(self._parting("too_many_websockets") | {"num_connections": self.connected})
            await connection.close()
            return
        try:
            lasts = (
                LASTS_SECONDS_WHEN_DEBUGGED if "debug_reconnects" in socket.query_params else LASTS_SECONDS
            )
            self._changed()
            await connection.tell(self._hello(lasts))
            while True:
                _take(connection, await socket.receive_text())
        except (WebSocketDisconnect, KeyError):
            # A KeyError is a message of bytes, which Slack does not read either.
            pass
        finally:
            self._gone(connection)

    def _hello(self, lasts: int) -> Json:
        return {
            "type": "hello",
            "num_connections": self.connected,
            "debug_info": {"host": HOST_NAME, "build_number": 10, "approximate_connection_time": lasts},
            "connection_info": {"app_id": self._app_id},
        }

    def _parting(self, reason: str) -> Json:
        return {
            "type": "disconnect",
            "reason": reason,
            "debug_info": {"host": HOST_NAME},
            "connection_info": {"app_id": self._app_id},
        }

    def _gone(self, connection: Connection) -> None:
        with self._lock:
            if connection in self._open:
                self._open.remove(connection)
            waiting = list(connection.waiting.values())
        for answer in waiting:
            answer.cancel()
        self._changed()

    # Sending an envelope, from the thread of whoever acts

    def send(self, envelope: Json, within: float, before: Callable[[], None]) -> Answer:
        """Send one envelope over one connection and wait for its acknowledgement.

        `before` is called when all is ready to go, so that several can leave at the same moment.
        """
        started = time.perf_counter()
        envelope_id = secrets.token_hex(16)
        answer: Future[Json] = Future()
        connection = self._one(envelope_id, answer)
        if connection is None:
            return Answer(0, 0.0)
        before()
        started = time.perf_counter()
        connection.say({"envelope_id": envelope_id, **envelope})
        try:
            acknowledged = answer.result(within)
        except TimeoutError:
            return Answer(0, time.perf_counter() - started, timed_out=True)
        except CancelledError:
            # The connection has ended, so nobody can acknowledge any more.
            return Answer(0, time.perf_counter() - started)
        finally:
            connection.waiting.pop(envelope_id, None)
        payload = acknowledged.get("payload")
        body = json.dumps(payload) if payload and envelope["accepts_response_payload"] else ""
        return Answer(200, time.perf_counter() - started, body)

    def _one(self, envelope_id: str, answer: Future[Json]) -> Connection | None:
        """Return an open connection, on which `answer` is awaited before it can have ended."""
        with self._lock:
            if not self._open:
                return None
            self._next += 1
            connection = self._open[self._next % len(self._open)]
            connection.waiting[envelope_id] = answer
            return connection

    # What Slack does to connections, and what a bad network does

    def warn(self) -> None:
        """Announce to every connection that it will be closed in about ten seconds."""
        self._part("warning")

    def refresh(self) -> None:
        """Ask every connection to come anew, and close it."""
        self._part("refresh_requested", close=True)

    def disable(self) -> None:
        """Close every connection because Socket Mode was turned off."""
        self._part("link_disabled", close=True)

    def cut(self) -> None:
        """Cut every connection without a word, as a bad network does."""
        for connection in self._all():
            client = connection.socket.client
            if client is not None:
                connection.loop.call_soon_threadsafe(self._cut, (client.host, client.port))

    def _part(self, reason: str, *, close: bool = False) -> None:
        async def parted(connection: Connection) -> None:
            await connection.tell(self._parting(reason))
            if close:
                await connection.close()

        for connection in self._all():
            if close:
                self._gone(connection)
            asyncio.run_coroutine_threadsafe(parted(connection), connection.loop)

    def _all(self) -> list[Connection]:
        with self._lock:
            return list(self._open)


def _take(connection: Connection, text: str) -> None:
    """Take what the bot sent: an acknowledgement names the envelope that it answers."""
    try:
        told = json.loads(text)
    except ValueError:
        return
    answer = connection.waiting.get(str(told.get("envelope_id"))) if isinstance(told, dict) else None
    if answer is not None:
        # It may have come twice, or just as the connection was given up.
        with contextlib.suppress(InvalidStateError):
            answer.set_result(told)
