"""The ways to the bot: signed HTTP, or the connections of Socket Mode, whichever the app uses."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from dibs.playground.bot import FORM, JSON, Answer, wait_for_the_others
from dibs.playground.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.bot import Bot
    from dibs.playground.sockets import Sockets

Json = dict[str, Any]

INTERACTIVE: Final = "interactive"
COMMANDS: Final = "slash_commands"
EVENTS: Final = "events_api"
ANSWERED_IN_THE_ENVELOPE: Final = frozenset({"view_submission", "block_suggestion"})


class Delivery:
    """Sends what people do and what happens, and brings back what the bot answered."""

    def __init__(self, bot: Bot, sockets: Sockets, by_socket: Callable[[], bool]) -> None:
        self.faults = Faults()
        self._bot = bot
        self._sockets = sockets
        self._by_socket = by_socket
        self._held: list[Callable[[], Answer]] = []
        self._lock = threading.Lock()

    def interaction(self, payload: Json) -> Answer:
        """Send a press, a submission or a shortcut."""
        kind = str(payload["type"])

        def send() -> Answer:
            if self._by_socket():
                return self._envelope(INTERACTIVE, payload, accepts=kind in ANSWERED_IN_THE_ENVELOPE)
            body = urlencode({"payload": json.dumps(payload)}).encode()
            return self._bot.send(body, content_type=FORM)

        return self._send(INTERACTIVE, kind, send)

    def command(self, form: Json) -> Answer:
        """Send a slash command."""

        def send() -> Answer:
            if self._by_socket():
                return self._envelope(COMMANDS, form, accepts=True)
            return self._bot.send(urlencode(form).encode(), content_type=FORM)

        return self._send(COMMANDS, str(form["command"]), send)

    def event(self, body: Json, attempt: int, reason: str) -> Answer:
        """Send an event, for the first time or, with the reason for it, again."""

        def send() -> Answer:
            if self._by_socket():
                again = {"retry_attempt": attempt, "retry_reason": reason}
                return self._envelope(EVENTS, body, accepts=False, **again)
            headers = {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason} if attempt else {}
            return self._bot.send(json.dumps(body).encode(), headers, content_type=JSON)

        return self._send(EVENTS, str(body["event"]["type"]), send)

    @property
    def there(self) -> bool:
        """Whether there is anywhere to send to."""
        return self._by_socket() or bool(self._bot.url)

    def _send(self, kind: str, name: str, send: Callable[[], Answer]) -> Answer:
        """Send a request, and let happen to it what was asked for on purpose."""
        mishap = self.faults.meet(kind, name)
        if mishap and mishap.late and kind == EVENTS:
            with self._lock:
                self._held.append(send)
            # Whoever waits is told that all went well, since it is only a matter of time.
            return Answer(200, 0.0)
        answer = send()
        if mishap and mishap.twice:
            send()
        if kind == EVENTS:
            self._catch_up()
        return Answer(0, answer.seconds) if mishap and mishap.lose_answer else answer

    def _catch_up(self) -> None:
        """Send the events that were held back until another one had arrived."""
        with self._lock:
            held, self._held = self._held, []
        for send in held:
            send()

    def _envelope(self, kind: str, payload: Json, *, accepts: bool, **beside: object) -> Answer:
        envelope = {"type": kind, "payload": payload, "accepts_response_payload": accepts, **beside}
        return self._sockets.send(envelope, self._bot.answer_within, wait_for_the_others)
