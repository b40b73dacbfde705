"""What went over the wire lately, in both directions, kept as it was for whoever looks behind a press."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dibs.playground.bot import FORM, Answer, Bot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dibs.playground.clock import Clock

REQUESTS_KEPT: Final = 100
CALLS_KEPT: Final = 400
WATCHED: Final = ("/api/", "/hooks/")


@dataclass(frozen=True)
class Sent:
    """One request to the bot and what it answered."""

    body: bytes
    content_type: str
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


class WatchedBot(Bot):
    """Sends like any other, and keeps what was sent and answered."""

    def __init__(self, signing_secret: str, answer_within: float, traffic: Traffic) -> None:
        super().__init__(signing_secret, answer_within)
        self._traffic = traffic

    def send(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        content_type: str = FORM,
        sign: bool = True,
    ) -> Answer:
        """Send one request and wait for its answer as long as Slack would."""
        answer = super().send(body, headers, content_type=content_type, sign=sign)
        self._traffic.sent.append(Sent(body, content_type, answer, self._traffic.clock.now()))
        return answer


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
