"""Whether events are still delivered: Slack gives up on an address that hardly ever takes them."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dibs.playground.clock import Clock

WINDOW_SECONDS: Final = 3600.0
SPARED: Final = 1000
"""An app that is sent no more than so many in an hour is never switched off."""
FAILED_SHARE: Final = 0.95


class Subscriptions:
    """Counts the tries of one app's events on the stand-in's clock, and switches them off for good.

    They stay off until somebody switches them on again, as in the settings of an app.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: deque[tuple[float, bool]] = deque()
        self._lock = threading.Lock()
        self.on = True

    def count(self, *, good: bool) -> bool:
        """Count one try; return whether this was the one with which the events were switched off."""
        with self._lock:
            now = self._clock.now()
            self._tries.append((now, good))
            while self._tries[0][0] <= now - WINDOW_SECONDS:
                self._tries.popleft()
            failed = sum(not one for _, one in self._tries)
            given_up = len(self._tries) > SPARED and failed > FAILED_SHARE * len(self._tries)
            switched_off = self.on and given_up
            self.on = self.on and not given_up
            return switched_off

    def resume(self) -> None:
        """Switch the events on again, with nothing held against the address."""
        with self._lock:
            self._tries.clear()
            self.on = True
