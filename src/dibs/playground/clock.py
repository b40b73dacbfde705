"""The stand-in's own time: the machine's, plus whatever it was moved on by."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Tells the time that trigger ids, response URLs and message timestamps go by."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._last_ts = 0
        self._lock = threading.Lock()
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._alarms: list[threading.Timer] = []

    @property
    def ahead(self) -> float:
        """How many seconds it was moved on by."""
        return self._ahead

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        """Move the time on, so that an expiry is seen without waiting for it.

        What falls due by that is done before this returns, the earliest first.
        """
        with self._lock:
            self._ahead += seconds
        self._do_what_is_due()

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Have something done when so much time has passed, or was moved on."""
        with self._lock:
            heapq.heappush(self._due, (self.now() + seconds, next(self._order), act))
            alarm = threading.Timer(seconds + 0.001, self._do_what_is_due)
            alarm.daemon = True
            self._alarms = [one for one in self._alarms if one.is_alive()] + [alarm]
            alarm.start()

    def forget(self) -> None:
        """Drop whatever was still to be done."""
        with self._lock:
            self._due.clear()
            for alarm in self._alarms:
                alarm.cancel()
            self._alarms.clear()

    def _do_what_is_due(self) -> None:
        while True:
            with self._lock:
                if not self._due or self._due[0][0] > self.now():
                    return
                act = heapq.heappop(self._due)[2]
            act()

    def ts(self) -> str:
        """Return a timestamp in Slack's form that was never returned before."""
        with self._lock:
            self._last_ts = max(self._last_ts + 1, int(self.now() * 1_000_000))
            seconds, micros = divmod(self._last_ts, 1_000_000)
            return f"{seconds}.{micros:06d}"
