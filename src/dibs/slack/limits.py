"""Slack's rate limits, kept ahead of its refusals: how often a method may be asked, and a channel written to.

Each process keeps its own count. Where several share a workspace, Slack's refusals keep them apart: what it
asks to wait is waited, for just what it was asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

IN_CHANNEL = "chat.postMessage "
"""Before the id of a channel: the limit of posts to it."""
_MOST_COUNTED = 5000


@dataclass(frozen=True, slots=True)
class _Rate:
    """At most `burst` at once, and `a_second` on and on: in any minute no more than Slack's tier allows."""

    burst: float
    a_second: float


_RATES = {
    "chat.update": _Rate(10, 40 / 60),
    "chat.postMessage": _Rate(60, 240 / 60),
    "conversations.open": _Rate(10, 40 / 60),
    "conversations.history": _Rate(10, 40 / 60),
}
_TO_A_CHANNEL = _Rate(3, 1)
"""One a second. Slack lets a short burst pass, and what is sent evenly does not arrive evenly."""


@dataclass(slots=True)
class _Count:
    left: float
    at: float


class Limits:
    """What may be asked now. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._held_until: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def counted(self) -> int:
        """How many limits are being counted now."""
        return len(self._counts)

    def take(self, names: Sequence[str]) -> float:
        """Count one request for each of these limits. Returns 0, or how many seconds to wait, uncounted."""
        with self._lock:
            now = self._clock()
            wait = max(self._wait(name, now) for name in names)
            if wait <= 0:
                for name in names:
                    if name in self._counts:
                        self._counts[name].left -= 1
            return max(wait, 0.0)

    def hold(self, name: str, seconds: float) -> float:
        """Let nothing through for so long, as Slack has asked. Returns the seconds."""
        with self._lock:
            self._held_until[name] = self._clock() + seconds
        return seconds

    def _wait(self, name: str, now: float) -> float:
        held = self._held_until.get(name, now) - now
        rate = _TO_A_CHANNEL if name.startswith(IN_CHANNEL) else _RATES.get(name)
        if rate is None:
            return held
        count = self._counts.get(name)
        if count is None:
            if len(self._counts) >= _MOST_COUNTED:
                self._forget(now)
            count = self._counts[name] = _Count(rate.burst, now)
        count.left = min(rate.burst, count.left + (now - count.at) * rate.a_second)
        count.at = now
        return max(held, (1 - count.left) / rate.a_second)

    def _forget(self, now: float) -> None:
        """Drop the channels that were not written to for a while: they may take a whole burst again."""
        quiet = [name for name, count in self._counts.items() if now - count.at > _TO_A_CHANNEL.burst]
        for name in quiet:
            if name.startswith(IN_CHANNEL):
                del self._counts[name]
                self._held_until.pop(name, None)
