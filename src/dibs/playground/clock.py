"""The stand-in's own time: the machine's, plus whatever it was moved on by."""

from __future__ import annotations

import threading
import time


class Clock:
    """Tells the time that trigger ids, response URLs and message timestamps go by."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._last_ts = 0
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        """Move the time on, so that an expiry is seen without waiting for it."""
        with self._lock:
            self._ahead += seconds

    def ts(self) -> str:
        """Return a timestamp in Slack's form that was never returned before."""
        with self._lock:
            self._last_ts = max(self._last_ts + 1, int(self.now() * 1_000_000))
            seconds, micros = divmod(self._last_ts, 1_000_000)
            return f"{seconds}.{micros:06d}"
