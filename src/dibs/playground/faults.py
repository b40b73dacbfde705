"""Faults on purpose: what the next calls of a method should meet instead of a plain answer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Fault:
    """One way in which a call goes wrong."""

    error: str = ""
    http_status: int = 200
    retry_after: int | None = None
    silence: bool = False
    lose_answer: bool = False
    delay: float = 0.0
    times: int = 1


class Faults:
    """The faults that wait for calls, by method. `response_url` is a name like any method's."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Fault]] = {}
        self._lock = threading.Lock()

    def fail_next(
        self,
        method: str,
        *,
        error: str = "",
        http_status: int | None = None,
        retry_after: int | None = None,
        silence: bool = False,
        lose_answer: bool = False,
        delay: float = 0.0,
        times: int = 1,
    ) -> None:
        """Let the next calls of a method go wrong.

        `error` is Slack's code (`ratelimited` comes as HTTP 429 with Retry-After), `http_status` an answer
        that is no Slack answer, `silence` none at all; `lose_answer` does the work and cuts the connection,
        and `delay` does the work after so many seconds.
        """
        limited = error == "ratelimited"
        fault = Fault(
            error=error,
            http_status=http_status or (429 if limited else 200),
            retry_after=retry_after or (1 if limited else None),
            silence=silence,
            lose_answer=lose_answer,
            delay=delay,
            times=times,
        )
        with self._lock:
            self._waiting.setdefault(method, []).append(fault)

    def take(self, method: str) -> Fault | None:
        """Return the fault that this call meets, if one waits for it."""
        with self._lock:
            waiting = self._waiting.get(method)
            if not waiting:
                return None
            fault = waiting.pop(0)
            if fault.times > 1:
                waiting.insert(0, replace(fault, times=fault.times - 1))
            return fault

    @property
    def waiting(self) -> list[tuple[str, Fault]]:
        """The faults that still wait, each with the method that it waits for."""
        with self._lock:
            return [(method, fault) for method, faults in self._waiting.items() for fault in faults]

    def clear(self) -> None:
        """Forget every fault that still waits."""
        with self._lock:
            self._waiting.clear()
