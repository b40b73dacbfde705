"""The processes beside the one that measures: the bot, a Bolt app that only acknowledges, and Slack.

    python -m tests.benchmarks.serving bot|acks|slack   with the settings as JSON in its first line of input

Each prints its port, serves until its input ends, and tells nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from slack_bolt import Ack, App
from slack_bolt.authorization import AuthorizeResult
from tests.benchmarks.database import WORKSPACE

from dibs.config import Settings
from dibs.slack.http import SlackHttp
from dibs.wiring import build

SECRET, TOKEN = "a-signing-secret", "xoxb-a-token"
THREADS = Settings().threads
_BOT = {
    "ok": True,
    "url": "https://bench.slack.com/",
    "team_id": WORKSPACE,
    "user_id": "U0DIBS",
    "bot_id": "B0DIBS",
}


@contextlib.contextmanager
def serving(kind: str, **settings: object) -> Iterator[int]:
    """Run one of the processes meanwhile. Yields its port."""
    with subprocess.Popen(  # noqa: S603 - this very module
        [sys.executable, "-m", __spec__.name, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        port = process.stdout.readline()
        assert port, f"{kind} did not start"
        yield int(port)
        process.stdin.close()


def _serve(http: SlackHttp) -> None:
    threading.Thread(target=http.run, daemon=True).start()
    _tell_port_and_wait(http.port)


def _bot(database_url: str, slack_port: int) -> None:
    """The whole bot. Its jobs do not run: they belong to no press."""
    settings = Settings(
        slack_bot_token=TOKEN,
        slack_signing_secret=SECRET,
        slack_api_url=f"http://127.0.0.1:{slack_port}/api/",
        database_url=database_url,
        port=0,
    )
    bot = build(settings, database_url)
    _serve(bot.http)
    bot.close()


def _acks() -> None:
    """An app of one listener that only acknowledges, with the settings of Dibs' own, on the same server."""
    identity = AuthorizeResult(
        enterprise_id=None, team_id=WORKSPACE, bot_user_id="U0DIBS", bot_id="B0DIBS", bot_token=TOKEN
    )
    app = App(
        signing_secret=SECRET,
        authorize=lambda: identity,
        process_before_response=True,
        raise_error_for_unhandled_request=False,
        logger=logging.getLogger("dibs.slack.bolt"),
    )

    @app.action(re.compile("^task_"))
    def on_press(ack: Ack) -> None:
        ack()

    http = SlackHttp(app, lambda: (True, {}), host="127.0.0.1", port=0, threads=THREADS)
    _serve(http)
    http.close()


class _Slack(asyncio.Protocol):
    """Takes whatever it is sent and agrees, with as little work as possible."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, ended, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if not ended or len(body) < int(length[1] if length else 0):
            return
        answer = json.dumps(_BOT | {"ts": "1700000000.0000001"}).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer)
        )
        self._transport.close()


def _slack() -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Slack, "127.0.0.1", 0)
        await loop.run_in_executor(None, _tell_port_and_wait, server.sockets[0].getsockname()[1])

    asyncio.run(serve())


def _tell_port_and_wait(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()


def main() -> None:
    # As `dibs` sets it up on the command line.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("apscheduler", "alembic", "waitress.queue", "slack_bolt", "dibs.slack.bolt"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    settings = json.loads(sys.stdin.readline())
    kinds: dict[str, Callable[..., None]] = {"bot": _bot, "acks": _acks, "slack": _slack}
    kinds[sys.argv[1]](**settings)


if __name__ == "__main__":
    main()
