"""How long an answer may still take. Measured on the monotonic clock of this process."""

from __future__ import annotations

import time
from dataclasses import dataclass

PRESS_SECONDS = 2.4
"""Slack shows a failure when a press is unanswered after 3 seconds; the rest is for the way back."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float = PRESS_SECONDS, *, since: float | None = None) -> Deadline:
        """The moment `seconds` after `since`, a reading of the monotonic clock (default: now)."""
        return cls((time.monotonic() if since is None else since) + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left; zero or less once it has passed."""
        return self.at - time.monotonic()
