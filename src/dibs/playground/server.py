"""The stand-in's own HTTP server: uvicorn in a thread, on loopback only."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST: Final = "127.0.0.1"
START_WITHIN: Final = 10.0
STOP_WITHIN: Final = 5.0
TICK: Final = 0.1
SOCKET_PING_SECONDS: Final = 10.0


class Connections:
    """The open connections by the client's address, so that one can be cut on purpose."""

    def __init__(self) -> None:
        self._transports: dict[tuple[str, int], asyncio.Transport] = {}

    def opened(self, transport: asyncio.Transport) -> None:
        """Remember a connection."""
        self._transports[transport.get_extra_info("peername")[:2]] = transport

    def closed(self, transport: asyncio.Transport) -> None:
        """Forget a connection."""
        self._transports = {key: one for key, one in self._transports.items() if one is not transport}

    def cut(self, client: tuple[str, int]) -> None:
        """Close a client's connection without an answer."""
        transport = self._transports.get(client)
        if transport is not None:
            transport.abort()


class _Uvicorn(uvicorn.Server):
    """Ends when it is told to, not at its next look around a tenth of a second later."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        tick = 0
        while not self._end.is_set() and not await self.on_tick(tick):
            tick += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), TICK)

    def end(self) -> None:
        """Stop, from whichever thread."""
        self.should_exit = True
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)


class Server:
    """Starts and stops the application in a thread of its own."""

    def __init__(self, app: ASGIApp, connections: Connections, port: int, *, sockets: bool = False) -> None:
        self._app = app
        self._sockets = sockets
        self._connections = connections
        self._port = port
        self._uvicorn: _Uvicorn | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that the server listens on, once it was started."""
        return self._port

    def start(self) -> None:
        """Listen; return when requests are taken."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self._port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            http=_remembering(self._connections),
            ws=_remembering_sockets(self._connections) if self._sockets else "none",
            ws_ping_interval=SOCKET_PING_SECONDS,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=1,
            backlog=512,
        )
        self._uvicorn = _Uvicorn(config)
        self._thread = threading.Thread(target=self._run, args=(self._uvicorn, listener), daemon=True)
        self._thread.start()
        self._wait_until_started(self._uvicorn, self._thread)

    def _run(self, server: uvicorn.Server, listener: socket.socket) -> None:
        try:
            server.run(sockets=[listener])
        finally:
            listener.close()

    def _wait_until_started(self, server: uvicorn.Server, thread: threading.Thread) -> None:
        waited = threading.Event()
        for _ in range(int(START_WITHIN / 0.005)):
            if server.started:
                return
            if not thread.is_alive():
                break
            waited.wait(0.005)
        msg = "the stand-in for Slack did not start"
        raise RuntimeError(msg)

    def stop(self) -> None:
        """Stop listening and wait until the thread has ended."""
        if self._uvicorn and self._thread:
            self._uvicorn.end()
            self._thread.join(STOP_WITHIN)
        self._uvicorn = self._thread = None


def _remembering(connections: Connections) -> type[H11Protocol]:
    class Remembering(H11Protocol):
        """Tells of each connection as it opens and closes."""

        def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvicorn's and asyncio's types differ
            super().connection_made(transport)
            connections.opened(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self.transport)
            super().connection_lost(exc)

    return Remembering


def _remembering_sockets(connections: Connections) -> type[asyncio.Protocol]:
    # Only Socket Mode needs this library, so nobody waits for it otherwise.
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol  # noqa: PLC0415 - see above

    class Remembering(WSProtocol):
        """Takes a connection over from HTTP, and tells when it has closed."""

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self.transport)
            super().connection_lost(exc)

    return Remembering
