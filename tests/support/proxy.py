"""A TCP proxy before PostgreSQL that freezes, cuts, and loses requests and answers when it is told to.

It knows one thing of the protocol: a connection is ready for statements once the server has said so, and
a statement's answer is whole when the server says it again. A fault never hits a log-in, of which the
first statement is a part: it gives the session Dibs' settings.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

_READY = b"Z\x00\x00\x00\x05I"
_PATIENCE = 60.0


class Fault(Enum):
    """What becomes of the next statement that a client sends."""

    REQUEST_LOST = auto()
    """The connection is cut before the server has got it."""
    REQUEST_LATE = auto()
    """The connection is cut for the client; the server gets the statement when `deliver_late` is called."""
    ANSWER_LOST = auto()
    """The server carries it out and answers; the connection is cut before the client gets the answer."""


class _Link:
    """One client's connection and its twin at the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._steps_of_log_in = 2
        self._loses_answer = False
        self._late: bytes | None = None
        self._answered = threading.Event()
        self._threads = [
            threading.Thread(target=pump, daemon=True) for pump in (self._requests, self._answers)
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def cut(self, *, server_too: bool = True) -> None:
        _shut(self._client)
        if server_too:
            _shut(self._server)

    def end(self) -> None:
        self.cut()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._client.close()
        self._server.close()

    def deliver_late(self) -> bool:
        """Whether there was something to deliver; returns once the server has answered it."""
        if self._late is None:
            return False
        self._answered.clear()
        self._server.sendall(self._late)
        self._late = None
        assert self._answered.wait(_PATIENCE), "the server never answered what came late"
        return True

    def _requests(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(1 << 16):
                self._proxy.wait_while_frozen()
                fault = self._proxy.next_fault() if not self._steps_of_log_in else None
                if fault is Fault.REQUEST_LOST:
                    self.cut()
                    return
                if fault is Fault.REQUEST_LATE:
                    self._late = data
                    self.cut(server_too=False)
                    return
                self._loses_answer = fault is Fault.ANSWER_LOST
                self._server.sendall(data)
            self._server.shutdown(socket.SHUT_WR)

    def _answers(self) -> None:
        with contextlib.suppress(OSError):
            tail = b""
            while data := self._server.recv(1 << 16):
                self._proxy.wait_while_frozen()
                tail = (tail + data)[-len(_READY) :]
                whole = tail == _READY
                if whole:
                    self._steps_of_log_in = max(self._steps_of_log_in - 1, 0)
                    self._answered.set()
                if not self._loses_answer:
                    with contextlib.suppress(OSError):
                        self._client.sendall(data)
                elif whole:
                    self.cut()
        # A server that has gone away takes its client with it.
        _shut(self._client)


class Proxy:
    """Stands before the server at `url`; `proxy.url` is the same database through the proxy."""

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url)
        self._host, self._port = str(given.pop("host")), int(given.pop("port", None) or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = "postgresql://?" + urlencode(
            {**given, "host": "127.0.0.1", "port": self.port, "sslmode": "disable"}
        )
        self._flowing = threading.Event()
        self._flowing.set()
        self._faults: deque[Fault] = deque()
        self._links: list[_Link] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def freeze(self) -> None:
        """Pass nothing on any more, neither on connections that exist nor on new ones."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Pass everything on, also what has piled up."""
        self._flowing.set()

    def fail_next(self, *faults: Fault) -> None:
        """Let the next statements, one after the other, meet these faults."""
        self._faults.extend(faults)

    @property
    def faults_left(self) -> int:
        return len(self._faults)

    def cut_all(self) -> None:
        """Cut every connection that exists. Those that are opened because of it are not among them."""
        for link in tuple(self._links):
            link.cut()

    def deliver_late(self) -> int:
        """Let the server have, and answer, every statement that was held back; how many there were."""
        return sum(link.deliver_late() for link in self._links)

    def wait_while_frozen(self) -> None:
        self._flowing.wait(_PATIENCE)

    def next_fault(self) -> Fault | None:
        return self._faults.popleft() if self._faults else None

    def refuse(self) -> None:
        """Take no new connections any more."""
        _shut(self._listener)
        self._acceptor.join(_PATIENCE)
        self._listener.close()

    def close(self) -> None:
        self.thaw()
        self.refuse()
        for link in self._links:
            link.end()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    server = self._connect()
                except OSError:
                    client.close()
                    continue
                link = _Link(self, client, server)
                self._links.append(link)
                link.begin()

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port), timeout=None)
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy_before(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()


def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
