"""A bot that is nothing but HTTP: it shows what the stand-in sends, and answers anything."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.playground import SlackStandIn

Json = dict[str, Any]


@contextmanager
def impatient(slack: SlackStandIn) -> Iterator[float]:
    """Have the stand-in wait only a moment where nobody answers, in this block; yield the seconds."""
    bot = slack._bot  # noqa: SLF001 - from without it is said once, and here only what fails shall be quick
    patience, bot.answer_within = bot.answer_within, 0.2
    try:
        yield bot.answer_within
    finally:
        bot.answer_within = patience


class RawBot:
    """Records every request as it came and answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, str]] = []
        self.headers: dict[str, str] = {}
        self.held = threading.Event()
        self.held.set()
        self.awaited = 0

    def payload(self, index: int = -1) -> Json:
        loaded = json.loads(parse_qs(self.requests[index][1].decode())["payload"][0])
        assert isinstance(loaded, dict)
        return loaded

    def form(self, index: int = -1) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.requests[index][1].decode()).items()}

    @contextmanager
    def serving(self) -> Iterator[str]:
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.requests.append((dict(self.headers), body))
                if len(told.requests) == told.awaited:
                    told.held.set()
                told.held.wait(60)
                status, words = told.answers.pop(0) if told.answers else (200, "")
                self.send_response(status)
                for name, value in told.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(words.encode())

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/slack/events"
        finally:
            self.held.set()
            server.shutdown()
            thread.join()
            server.server_close()
