"""The ways to the bot: signed HTTP, or the connections of Socket Mode, whichever the app uses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from dibs.playground.bot import FORM, JSON, Answer, wait_for_the_others

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.bot import Bot
    from dibs.playground.sockets import Sockets

Json = dict[str, Any]

ANSWERED_IN_THE_ENVELOPE = frozenset({"view_submission", "block_suggestion"})


class Delivery:
    """Sends what people do and what happens, and brings back what the bot answered."""

    def __init__(self, bot: Bot, sockets: Sockets, by_socket: Callable[[], bool]) -> None:
        self._bot = bot
        self._sockets = sockets
        self._by_socket = by_socket

    def interaction(self, payload: Json) -> Answer:
        """Send a press, a submission or a shortcut."""
        if self._by_socket():
            accepts = payload["type"] in ANSWERED_IN_THE_ENVELOPE
            return self._envelope("interactive", payload, accepts=accepts)
        return self._bot.send(urlencode({"payload": json.dumps(payload)}).encode(), content_type=FORM)

    def command(self, form: Json) -> Answer:
        """Send a slash command."""
        if self._by_socket():
            return self._envelope("slash_commands", form, accepts=True)
        return self._bot.send(urlencode(form).encode(), content_type=FORM)

    def event(self, body: Json, attempt: int, reason: str) -> Answer:
        """Send an event, for the first time or, with the reason for it, again."""
        if self._by_socket():
            again = {"retry_attempt": attempt, "retry_reason": reason}
            return self._envelope("events_api", body, accepts=False, **again)
        headers = {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason} if attempt else {}
        return self._bot.send(json.dumps(body).encode(), headers, content_type=JSON)

    @property
    def there(self) -> bool:
        """Whether there is anywhere to send to."""
        return self._by_socket() or bool(self._bot.url)

    def _envelope(self, kind: str, payload: Json, *, accepts: bool, **beside: object) -> Answer:
        envelope = {"type": kind, "payload": payload, "accepts_response_payload": accepts, **beside}
        return self._sockets.send(envelope, self._bot.answer_within, wait_for_the_others)
