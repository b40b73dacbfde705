"""Socket Mode: Slack's requests over a connection that Dibs opens, where none can reach it from outside."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import Any

from slack_bolt import App, BoltRequest
from slack_sdk import WebClient
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from dibs.deadline import Deadline
from dibs.slack.web import FAILURES, SlackUnusable, error_of

_log = logging.getLogger(__name__)

_PING_SECONDS = 10
_OK = 200


class SlackSocket:
    """The connection. It pings, notices silence, and is opened anew when Slack closes or forgets it."""

    def __init__(self, app: App, *, app_token: str, api_url: str, threads: int) -> None:
        self._app = app
        self._last_message = time.monotonic()
        self._client = SocketModeClient(
            app_token=app_token,
            web_client=WebClient(token=app_token, base_url=api_url, retry_handlers=[]),
            ping_interval=_PING_SECONDS,
            concurrency=threads,
            on_message_listeners=[self._note_traffic],
        )
        self._client.socket_mode_request_listeners.append(self._answer)

    def connect(self) -> None:
        """Open the connection. Raises SlackUnusable where Slack does not let Dibs in."""
        try:
            self._client.connect()
        except FAILURES as error:
            self._client.close()
            raise SlackUnusable(error_of(error)) from error

    def close(self) -> None:
        """Close the connection once what has arrived is answered."""
        self._client.close()

    def report(self) -> dict[str, Any]:
        """Whether the connection stands, and how many seconds ago anything arrived on it."""
        silent = round(time.monotonic() - self._last_message, 1)
        return {"connected": self._client.is_connected(), "last_message_seconds_ago": silent}

    def _note_traffic(self, _message: str) -> None:
        self._last_message = time.monotonic()

    def _answer(self, client: BaseSocketModeClient, request: SocketModeRequest) -> None:
        """Have a request answered like one over HTTP, and acknowledge it with the answer."""
        headers: dict[str, str | Sequence[str]] | None = (
            {"x-slack-retry-num": str(request.retry_attempt)} if request.retry_attempt else None
        )
        answer = self._app.dispatch(
            BoltRequest(
                mode="socket_mode",
                body=request.payload,
                headers=headers,
                context={"deadline": Deadline.after()},
            )
        )
        if answer.status != _OK:
            _log.info("a request of the type %s is not handled: %s", request.type, answer.status)
        payload = json.loads(answer.body) if answer.body and answer.status == _OK else None
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id, payload=payload))
