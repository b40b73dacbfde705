"""The way to the bot: signed requests over real HTTP, sent from the thread of whoever acts."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Outcome = TypeVar("Outcome")

ANSWER_WITHIN: Final = 3.0
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"

_thread = threading.local()


@dataclass(frozen=True)
class Answer:
    """What the bot answered; status 0 when no answer came in time or none could be had."""

    status: int
    seconds: float
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timed_out: bool = False

    @property
    def good(self) -> bool:
        """Whether Slack would take this as an acknowledgement."""
        return http.client.OK <= self.status < http.client.MULTIPLE_CHOICES


class Bot:
    """Where the bot listens, and the secret that its requests are signed with."""

    def __init__(self, signing_secret: str, answer_within: float = ANSWER_WITHIN) -> None:
        self.url = ""
        self.signing_secret = signing_secret
        self.answer_within = answer_within

    def send(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        content_type: str = FORM,
        sign: bool = True,
    ) -> Answer:
        """Send one request and wait for its answer as long as Slack would."""
        if not self.url:
            msg = "nobody has said where the bot listens: set bot_url"
            raise RuntimeError(msg)
        sent = {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            **self._signature(body, sign=sign),
        }
        sent |= headers or {}
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=self.answer_within)
        started = time.perf_counter()
        try:
            connection.putrequest("POST", parts.path or "/")
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body[:-1])
            wait_for_the_others()
            started = time.perf_counter()
            connection.send(body[-1:])
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return Answer(0, time.perf_counter() - started, timed_out=isinstance(error, TimeoutError))
        finally:
            connection.close()
        return Answer(response.status, time.perf_counter() - started, text, dict(response.getheaders()))

    def _signature(self, body: bytes, *, sign: bool) -> dict[str, str]:
        if not sign:
            return {}
        stamp = str(int(time.time()))
        digest = hmac.new(self.signing_secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256)
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest.hexdigest()}"}


def together(acts: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """Carry out acts in threads of their own so that their requests reach the bot at the same moment.

    Each request is sent but for its last byte; when all have come that far the last bytes follow. So none
    can be answered before every one of them is on its way.
    """
    gate = threading.Barrier(len(acts))
    with ThreadPoolExecutor(len(acts)) as pool:
        waiting = [pool.submit(_at_the_gate, gate, act) for act in acts]
    return [one.result() for one in waiting]


def _at_the_gate(gate: threading.Barrier, act: Callable[[], Outcome]) -> Outcome:
    _thread.gate = gate
    try:
        return act()
    finally:
        if _thread.gate is not None:
            # This act never sent anything, so the others must not wait for it.
            gate.abort()
        _thread.gate = None


def wait_for_the_others() -> None:
    """Hold on until everyone who acts together with this thread has come as far."""
    gate: threading.Barrier | None = getattr(_thread, "gate", None)
    if gate is not None:
        _thread.gate = None
        with contextlib.suppress(threading.BrokenBarrierError):
            gate.wait(timeout=ANSWER_WITHIN)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let what is sent in this block go at once, though the thread acts together with others."""
    gate = getattr(_thread, "gate", None)
    _thread.gate = None
    try:
        yield
    finally:
        _thread.gate = gate
