"""Signed presses over kept-alive connections, written before the clock starts."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlencode

from slack_sdk.signature import SignatureVerifier
from tests.benchmarks.database import AMAL, CHANNEL, WORKSPACE
from tests.benchmarks.figures import Run
from tests.benchmarks.serving import SECRET

from dibs.slack.http import EVENTS_PATH
from dibs.slack.ids import Action

_SECONDS = 10


def claim_press(task_id: int, slack_port: int) -> bytes:
    """The request that Slack sends when Amal presses Claim on the card of a task as it was added."""
    ts = f"1700000000.{task_id:07}"
    value = json.dumps({"task": task_id, "version": 1}, separators=(",", ":"))
    words = {"type": "plain_text", "text": "Claim", "emoji": True}
    claim = {
        "type": "button",
        "action_id": Action.CLAIM,
        "text": words,
        "value": value,
        "style": "primary",
        "accessibility_label": f"Claim SUP-{task_id}",
    }
    history = {**claim, "action_id": Action.HISTORY, "accessibility_label": f"History SUP-{task_id}"}
    said = f"*SUP-{task_id}*  Refund order {task_id}\nWaiting for an owner"
    payload: dict[str, object] = {
        "type": "block_actions",
        "user": {"id": AMAL, "username": "amal", "name": "amal", "team_id": WORKSPACE},
        "api_app_id": "A0DIBS",
        "token": "legacy",
        "team": {"id": WORKSPACE, "domain": "bench"},
        "enterprise": None,
        "is_enterprise_install": False,
        "container": {
            "type": "message",
            "message_ts": ts,
            "channel_id": CHANNEL,
            "is_ephemeral": False,
        },
        "trigger_id": f"1.2.{task_id}",
        "channel": {"id": CHANNEL, "name": "support"},
        "message": {
            "user": "U0DIBS",
            "type": "message",
            "ts": ts,
            "bot_id": "B0DIBS",
            "app_id": "A0DIBS",
            "text": said,
            "team": WORKSPACE,
            "blocks": [
                {"type": "section", "block_id": "a", "text": {"type": "mrkdwn", "text": said}},
                {"type": "actions", "block_id": f"task_{task_id}", "elements": [claim, history]},
            ],
        },
        "state": {"values": {}},
        "response_url": f"http://127.0.0.1:{slack_port}/actions/{task_id}",
        "actions": [{**claim, "block_id": f"task_{task_id}", "action_ts": f"1700000001.{task_id:07}"}],
    }
    body = urlencode({"payload": json.dumps(payload)})
    signed_at = str(int(time.time()))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=signed_at, body=body)
    head = (
        f"POST {EVENTS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Slackbot 1.0\r\nAccept: */*\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"X-Slack-Request-Timestamp: {signed_at}\r\nX-Slack-Signature: {signature}\r\n\r\n"
    )
    return (head + body).encode()


def press_all(port: int, presses: Sequence[bytes], *, clients: int, warm_up: int, pause: float = 0.0) -> Run:
    """Send the presses from `clients` connections, each one press after another, `pause` seconds apart.

    The first `warm_up` of each client are left out.
    """
    times: list[list[float]] = [[] for _ in range(clients)]
    failures: list[BaseException] = []
    together = threading.Barrier(clients)

    def press(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port), _SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            together.wait(_SECONDS)
            for request in presses[number::clients]:
                begun = time.perf_counter()
                connection.sendall(request)
                _expect_success(connection)
                times[number].append(time.perf_counter() - begun)
                if pause:
                    time.sleep(pause)

    def guarded(number: int) -> None:
        try:
            press(number)
        except (OSError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Run([one for own in times for one in own[warm_up:]], clients)


def _expect_success(connection: socket.socket) -> None:
    """Read an answer that is known to have an empty body."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        received = connection.recv(4096)
        assert received, "the server closed the connection"
        answer += received
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert b"Content-Length: 0\r\n" in answer, answer
