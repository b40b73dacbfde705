"""What went over the wire lately, in both directions, kept as it was for whoever looks behind a press."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dibs.playground.bot import Answer, Bot
    from dibs.playground.clock import Clock
    from dibs.playground.sockets import Sockets

Json = dict[str, Any]

REQUESTS_KEPT: Final = 100
CALLS_KEPT: Final = 400
WATCHED: Final = ("/api/", "/hooks/")


@dataclass(frozen=True)
class Sent:
    """One request to the bot and what it answered."""

    payload: Json
    by_socket: bool
    answer: Answer
    ended: float

    @property
    def started(self) -> float:
        """When the last byte of the request left."""
        return self.ended - self.answer.seconds


@dataclass
class Came:
    """One request of the bot and what it was answered; status 0 while there is no answer."""

    path: str
    query: bytes
    content_type: str
    at: float
    body: bytes = b""
    status: int = 0
    answer: bytes = b""
    seconds: float = 0.0


class Traffic:
    """The last requests to the bot and of the bot, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sent: deque[Sent] = deque(maxlen=REQUESTS_KEPT)
        self.came: deque[Came] = deque(maxlen=CALLS_KEPT)


class WatchedDelivery(Delivery):
    """Sends like any other, over either way, and keeps what was sent and answered."""

    def __init__(self, bot: Bot, sockets: Sockets, by_socket: Callable[[], bool], traffic: Traffic) -> None:
        super().__init__(bot, sockets, by_socket)
        self._traffic = traffic
        self._telling = threading.local()

    def interaction(self, payload: Json) -> Answer:
        """Send a press, a submission or a shortcut."""
        self._telling.payload = payload
        return super().interaction(payload)

    def command(self, form: Json) -> Answer:
        """Send a slash command."""
        self._telling.payload = form
        return super().command(form)

    def event(self, body: Json, attempt: int, reason: str) -> Answer:
        """Send an event, for the first time or, with the reason for it, again."""
        self._telling.payload = body
        return super().event(body, attempt, reason)

    def _send(self, kind: str, name: str, send: Callable[[], Answer]) -> Answer:
        """Keep every delivery, also those that are there on purpose or come later."""
        payload: Json = self._telling.payload

        def kept() -> Answer:
            answer = send()
            self._traffic.sent.append(Sent(payload, self._by_socket(), answer, self._traffic.clock.now()))
            return answer

        return super()._send(kind, name, kept)


class WatchedCalls:
    """Passes every request on, and keeps those that the bot makes."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or not scope["path"].startswith(WATCHED):
            await self._app(scope, receive, send)
            return
        kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
        came = Came(scope["path"], scope["query_string"], kind, self._traffic.clock.now())
        self._traffic.came.append(came)
        started = time.perf_counter()

        async def receiving() -> Message:
            message = await receive()
            came.body += message.get("body", b"")
            return message

        async def sending(message: Message) -> None:
            came.status = message.get("status", came.status)
            came.answer += message.get("body", b"")
            came.seconds = time.perf_counter() - started
            await send(message)

        await self._app(scope, receiving, sending)
