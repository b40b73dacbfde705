"""HTTP: one threaded production server that takes Slack's requests and tells how Dibs is."""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from slack_bolt import App, BoltRequest
from waitress import create_server
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import BaseWSGIServer
from waitress.wasyncore import close_all

from dibs.deadline import Deadline
from dibs.service.telemetry import Telemetry
from dibs.slack.payloads import kind_of

_log = logging.getLogger(__name__)

EVENTS_PATH, ALIVE_PATH, READY_PATH, METRICS_PATH = "/slack/events", "/healthz", "/readyz", "/metrics"
_MOST_CONNECTIONS = 500
_LAST_ANSWERS_SECONDS = 3
_LARGEST_BODY = 1024 * 1024
_LONGEST_STAMP = 12
_ARRIVED = "X_DIBS_ARRIVED"
_FORWARDED = "X_DIBS_FORWARDED"
_SAID_BY_PROXIES = (
    "FORWARDED",
    "VIA",
    "X_FORWARDED_FOR",
    "X_FORWARDED_HOST",
    "X_FORWARDED_PROTO",
    "X_REAL_IP",
)

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]
Readiness = Callable[[], tuple[bool, dict[str, Any]]]
Scrape = Callable[[], tuple[bytes, str]]
"""The metrics as they stand, and their content type."""


class _StampedRequest(HTTPRequestParser):  # type: ignore[misc] # waitress has no types
    """A request that knows when it arrived, since its deadline counts from then and not from its turn."""

    def __init__(self, adjustments: Any) -> None:  # noqa: ANN401 - waitress has no types
        super().__init__(adjustments)
        self.arrived = time.monotonic()

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        self.headers[_ARRIVED] = repr(self.arrived)
        # The server takes these headers away before the application could see them.
        self.headers[_FORWARDED] = "yes" if any(name in self.headers for name in _SAID_BY_PROXIES) else ""
        return consumed


class _StampingChannel(HTTPChannel):  # type: ignore[misc] # waitress has no types
    parser_class = _StampedRequest


class SlackHttp:
    """The WSGI application, and the server that runs it in `threads` threads.

    Without an `app` it only tells how Dibs is: over Socket Mode no request of Slack's arrives here.
    What `scrape` gives is for this machine only, since this port may be open to all the world.
    """

    def __init__(
        self,
        app: App | None,
        readiness: Readiness,
        *,
        host: str,
        port: int,
        threads: int,
        scrape: Scrape | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._app = app
        self._readiness = readiness
        self._scrape = scrape
        self._telemetry = telemetry or Telemetry()
        self._sockets: dict[int, object] = {}
        # Raises OSError where the address cannot be used.
        self._server = create_server(
            self.answer,
            map=self._sockets,
            host=host,
            port=port,
            threads=threads,
            max_request_body_size=_LARGEST_BODY,
            ident=None,
            clear_untrusted_proxy_headers=True,
            connection_limit=_MOST_CONNECTIONS,
            asyncore_use_poll=True,
        )
        self._listening = [s for s in self._sockets.values() if isinstance(s, BaseWSGIServer)]
        for listening in self._listening:
            listening.channel_class = _StampingChannel
        self._running = self._closed = False

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._listening[0].effective_port)

    def run(self) -> None:
        """Serve until `close`."""
        self._running = True
        self._server.run()

    def close(self) -> None:
        """Stop taking requests; those that are being answered still are. The second time it does nothing."""
        if self._closed:
            return
        self._closed = True
        for listening in self._listening:
            listening.task_dispatcher.shutdown(cancel_pending=False, timeout=_LAST_ANSWERS_SECONDS)
        if self._running:
            # The thread that waits for the sockets closes them, connections that are kept open included,
            # or it would wait for those, and for a second in any case.
            wakes = self._listening[0].trigger
            # It may be awake already for somebody else's sake: it must not close what wakes it until that is
            # done with, or the wake-up goes to a file that is closed, or to another that has its number now.
            with wakes.lock:
                wakes.thunks.append(self._close_sockets)
                wakes.pull_trigger()
        else:
            self._close_sockets()

    def _close_sockets(self) -> None:
        close_all(self._sockets, ignore_all=True)

    def answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = self._answer(environ, start_response)
        # What follows the headers of an answer to HEAD would be taken for the next answer.
        return () if environ["REQUEST_METHOD"] == "HEAD" else body

    def _answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if path == EVENTS_PATH and self._app is not None:
            if method != "POST":
                return _plain(
                    start_response, HTTPStatus.METHOD_NOT_ALLOWED, "Slack sends POST requests here."
                )
            return self._slack(self._app, environ, start_response)
        if path == ALIVE_PATH and method in ("GET", "HEAD"):
            return _plain(start_response, HTTPStatus.OK, "alive")
        if path == READY_PATH and method in ("GET", "HEAD"):
            ready, details = self._readiness()
            status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
            return _respond(start_response, status, "application/json", json.dumps(details))
        if path == METRICS_PATH and method in ("GET", "HEAD") and self._scrape and _from_here(environ):
            body, content_type = self._scrape()
            return _respond(start_response, HTTPStatus.OK, content_type, body)
        return _plain(start_response, HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _slack(self, app: App, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        arrived = float(environ.get(f"HTTP_{_ARRIVED}") or time.monotonic())
        headers = {
            key[len("HTTP_") :].replace("_", "-").lower(): value
            for key, value in environ.items()
            if key.startswith("HTTP_")
        }
        headers["content-type"] = environ.get("CONTENT_TYPE", "")
        if not _could_be_signed(headers):
            self._count("not_taken", arrived)
            return _plain(start_response, HTTPStatus.UNAUTHORIZED, "This request is not signed by Slack.")
        try:
            body = environ["wsgi.input"].read().decode("utf-8")
            request = BoltRequest(
                body=body,
                query=environ.get("QUERY_STRING", ""),
                headers=headers,
                context={"deadline": Deadline.after(since=arrived)},
            )
            answer = app.dispatch(request)
        except Exception:  # noqa: BLE001 - Bolt trips over payloads of unknown shapes in many ways
            _log.info("a request could not be read", exc_info=True)
            self._count("not_taken", arrived)
            return _plain(start_response, HTTPStatus.BAD_REQUEST, "This request cannot be read.")
        self._count(kind_of(request.body) if answer.status == HTTPStatus.OK else "not_taken", arrived)
        content_type = answer.headers.get("content-type", ["text/plain;charset=utf-8"])[0]
        return _respond(start_response, HTTPStatus(answer.status), content_type, answer.body)

    def _count(self, kind: str, arrived: float) -> None:
        self._telemetry.acknowledged(kind, time.monotonic() - arrived)


def _from_here(environ: Environ) -> bool:
    """Whether a request comes from this machine itself, and not through something that passes it on."""
    try:
        peer = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = peer.ipv4_mapped if isinstance(peer, ipaddress.IPv6Address) else None
    return (mapped or peer).is_loopback and not environ.get(f"HTTP_{_FORWARDED}")


def _could_be_signed(headers: Mapping[str, str]) -> bool:
    """Whether the signature can be checked at all: Bolt raises over a time that is no number.

    What it raises there would be taken for a listener's failure, and the body be believed.
    """
    stamp = headers.get("x-slack-request-timestamp", "")
    in_form = stamp.isascii() and stamp.isdigit() and len(stamp) <= _LONGEST_STAMP
    return in_form and headers.get("x-slack-signature", "").isascii()


def _plain(start_response: StartResponse, status: HTTPStatus, said: str) -> Iterable[bytes]:
    return _respond(start_response, status, "text/plain; charset=utf-8", said)


def _respond(
    start_response: StartResponse, status: HTTPStatus, content_type: str, body: str | bytes
) -> Iterable[bytes]:
    payload = body.encode("utf-8") if isinstance(body, str) else body
    headers = [("Content-Type", content_type), ("Content-Length", str(len(payload)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [payload]
