"""Socket Mode: Slack's requests over a connection that Dibs opens, where none can reach it from outside."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from slack_bolt import App, BoltRequest, BoltResponse
from slack_sdk import WebClient
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from dibs.deadline import Deadline
from dibs.service.telemetry import Telemetry
from dibs.slack.calls import FAILURES, SlackUnusable, error_of
from dibs.slack.payloads import kind_of

_log = logging.getLogger(__name__)

_PING_SECONDS = 2
"""A connection that was cut without a word is only given up after four or five pings without an answer."""
_LAST_ANSWERS_SECONDS = 3.0
_OK = 200


class _Stamped(str):
    """A message that knows when it arrived: its deadline counts from then, and not from its turn."""

    __slots__ = ("arrived",)
    arrived: float


class _StampingClient(SocketModeClient):
    """Slack's client, which puts messages into a queue before its workers take them."""

    def enqueue_message(self, message: str) -> None:
        stamped = _Stamped(message)
        stamped.arrived = time.monotonic()
        super().enqueue_message(stamped)


class SlackSocket:
    """The connection. It pings, notices silence, and is opened anew when Slack closes or forgets it."""

    def __init__(
        self, app: App, *, app_token: str, api_url: str, threads: int, telemetry: Telemetry | None = None
    ) -> None:
        self._app = app
        self._telemetry = telemetry or Telemetry()
        self._last_message = time.monotonic()
        self._unanswered = 0
        self._changed = threading.Condition()
        self._client = _StampingClient(
            app_token=app_token,
            web_client=WebClient(token=app_token, base_url=api_url, retry_handlers=[]),
            ping_interval=_PING_SECONDS,
            concurrency=threads,
            on_message_listeners=[self._note_traffic],
        )
        # A listener of this kind is given the message itself, with its stamp.
        self._client.message_listeners.append(self._take)

    def connect(self) -> None:
        """Open the connection. Raises SlackUnusable where Slack does not let Dibs in."""
        try:
            self._client.connect()
        except FAILURES as error:
            self._client.close()
            raise SlackUnusable(error_of(error)) from error

    def close(self) -> None:
        """Close the connection once what has arrived is answered, or after three seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered <= 0, _LAST_ANSWERS_SECONDS)
        self._client.close()

    def report(self) -> dict[str, Any]:
        """Whether the connection stands, and how many seconds ago anything arrived on it."""
        silent = round(time.monotonic() - self._last_message, 1)
        return {"connected": self._client.is_connected(), "last_message_seconds_ago": silent}

    def _note_traffic(self, raw: str) -> None:
        self._last_message = time.monotonic()
        if _asks(raw):
            self._count(1)

    def _take(self, client: BaseSocketModeClient, message: dict[str, Any], raw: str | None) -> None:
        """Have a request answered like one over HTTP, and acknowledge it with the answer."""
        if raw is None or not _asks(raw):
            return
        try:
            arrived = raw.arrived if isinstance(raw, _Stamped) else time.monotonic()
            request = SocketModeRequest.from_dict(message)
            if request is not None:
                payload = self._answer(request, Deadline.after(since=arrived))
                told = SocketModeResponse(envelope_id=request.envelope_id, payload=payload)
                client.send_socket_mode_response(told)
                self._telemetry.acknowledged(kind_of(request.payload), time.monotonic() - arrived)
        except (SlackClientError, OSError) as error:
            _log.warning("a request could not be acknowledged: %s", error_of(error))
        finally:
            self._count(-1)

    def _answer(self, request: SocketModeRequest, deadline: Deadline) -> dict[str, Any] | None:
        headers: dict[str, str | Sequence[str]] | None = (
            {"x-slack-retry-num": str(request.retry_attempt)} if request.retry_attempt else None
        )
        try:
            answer = self._app.dispatch(
                BoltRequest(
                    mode="socket_mode", body=request.payload, headers=headers, context={"deadline": deadline}
                )
            )
            return _payload(answer, request.type)
        except Exception:  # noqa: BLE001 - Bolt trips over payloads of unknown shapes in many ways
            _log.info("a request of the type %s could not be read", request.type, exc_info=True)
            return None

    def _count(self, change: int) -> None:
        with self._changed:
            self._unanswered += change
            self._changed.notify_all()


def _asks(raw: str) -> bool:
    """Whether a message is a request that waits for an acknowledgement."""
    return '"envelope_id"' in raw


def _payload(answer: BoltResponse, kind: str) -> dict[str, Any] | None:
    """What an acknowledgement carries: the answer that would be the body over HTTP."""
    if answer.status != _OK:
        _log.info("a request of the type %s is not handled: %s", kind, answer.status)
        return None
    if not answer.body:
        return None
    content_type = answer.headers.get("content-type", [""])[0]
    if not content_type.startswith("application/json"):
        return {"text": answer.body}
    found: dict[str, Any] = json.loads(answer.body)
    return found
