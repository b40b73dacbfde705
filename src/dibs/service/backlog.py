"""How much waits to be sent, for who watches over Dibs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.store.backlog import BACKLOG
from dibs.store.guard import Guard

READ_SECONDS = 1.0
_LASTS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is due, with the age of the oldest in seconds, and what is stopped, by the keys of the queues."""

    cards_due: int
    oldest_card_seconds: float
    messages_due: int
    oldest_message_seconds: float
    breakers_open: Mapping[str, bool]
    releases_paused: Mapping[str, bool]
    clock_stopped: bool


class BacklogReader:
    """Reads the backlog. Several who ask at once cost one statement."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._newest: Backlog | None = None
        self._read_at = 0.0

    @property
    def database_away(self) -> bool:
        """Whether the database did not answer a moment ago."""
        return self._guard.away

    def read(self) -> Backlog | None:
        """The backlog, at most a second old; None where the database does not tell it within a second."""
        with self._lock:
            if self._newest is None or time.monotonic() - self._read_at > _LASTS_SECONDS:
                self._newest = self._read()
                self._read_at = time.monotonic()
            return self._newest

    def _read(self) -> Backlog | None:
        try:
            row = self._guard.run(BACKLOG, {}, Deadline.after(READ_SECONDS))[0]
        except StoreError:
            return None
        return Backlog(
            cards_due=row["cards_due"],
            oldest_card_seconds=max(row["oldest_card_seconds"] or 0.0, 0.0),
            messages_due=row["messages_due"],
            oldest_message_seconds=max(row["oldest_message_seconds"] or 0.0, 0.0),
            breakers_open=row["breakers_open"],
            releases_paused=row["releases_paused"],
            clock_stopped=row["clock_stopped"],
        )
