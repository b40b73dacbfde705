"""A bot on Socket Mode that is nothing but a WebSocket: it shows what comes, and answers as it is told."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slack_sdk import WebClient
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.playground import SlackStandIn

Json = dict[str, Any]

APP_TOKEN = "xapp-1-tiny"  # noqa: S105 - the tests' own


class RawSocket:
    """One connection. It keeps every message, and acknowledges each envelope with `answer` unless silent."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.messages: list[Json] = []
        self.answer: Json | None = None
        self.silent = False
        self.accepted = False
        self.ended = threading.Event()
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80))
        self._wire = WSConnection(ConnectionType.CLIENT)
        self._lock = threading.Lock()
        more = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        asked = Request(host=parts.netloc, target=f"{parts.path}?{parts.query}", extra_headers=more)
        self._socket.sendall(self._wire.send(asked))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def envelopes(self) -> list[Json]:
        return [message for message in self.messages if "envelope_id" in message]

    @property
    def reasons(self) -> list[str]:
        """Why Slack wanted to part."""
        return [message["reason"] for message in self.messages if message["type"] == "disconnect"]

    def say(self, text: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(self._wire.send(TextMessage(text)))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._socket.close()

    def _read(self) -> None:
        try:
            while data := self._socket.recv(65536):
                self._wire.receive_data(data)
                for event in self._wire.events():
                    self.accepted |= isinstance(event, AcceptConnection)
                    if isinstance(event, TextMessage):
                        self._take(json.loads(event.data))
                    if isinstance(event, CloseConnection):
                        return
        except OSError:
            pass
        finally:
            self.ended.set()

    def _take(self, message: Json) -> None:
        self.messages.append(message)
        if "envelope_id" in message and not self.silent:
            told = {"envelope_id": message["envelope_id"]}
            self.say(json.dumps(told | ({"payload": self.answer} if self.answer else {})))


def link(slack: SlackStandIn) -> str:
    """Ask where to connect to, as every client does."""
    client = WebClient(token=APP_TOKEN, base_url=slack.api_url)
    return str(client.apps_connections_open(app_token=APP_TOKEN)["url"])


@contextmanager
def connected(slack: SlackStandIn, number: int = 1) -> Iterator[list[RawSocket]]:
    """Yield so many connections that have been greeted."""
    sockets = [RawSocket(link(slack)) for _ in range(number)]
    try:
        slack.wait_until(lambda: all(one.messages for one in sockets))
        yield sockets
    finally:
        for one in sockets:
            one.close()
