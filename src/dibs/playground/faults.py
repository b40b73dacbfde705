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
    garbage: bool = False
    cut: bool = False
    delay: float = 0.0
    times: int = 1


@dataclass(frozen=True)
class Mishap:
    """One way in which a request to the bot goes wrong on its way."""

    twice: bool = False
    late: bool = False
    lose_answer: bool = False
    times: int = 1


class Faults:
    """The faults that wait for calls of the bot, by method, and for requests to it, by what they are.

    `response_url` is a name like any method's. Requests are named as in Socket Mode (`interactive`,
    `slash_commands`, `events_api`) or by their own type, such as `block_actions` or `member_left_channel`.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Fault]] = {}
        self._mishaps: dict[str, list[Mishap]] = {}
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
        garbage: bool = False,
        cut: bool = False,
        delay: float = 0.0,
        times: int = 1,
    ) -> None:
        """Let the next calls of a method go wrong.

        `error` is Slack's code (`ratelimited` comes as HTTP 429 with Retry-After), `http_status` an answer
        that is no Slack answer, `garbage` one that cannot be read, `silence` none at all; `lose_answer` does
        the work and cuts the connection, `cut` does no work before it, and `delay` does the work after so
        many seconds.
        """
        limited = error == "ratelimited"
        fault = Fault(
            error=error,
            http_status=http_status or (429 if limited else 200),
            retry_after=retry_after or (1 if limited else None),
            silence=silence,
            lose_answer=lose_answer,
            garbage=garbage,
            cut=cut,
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

    def deliver_next(
        self,
        name: str,
        *,
        twice: bool = False,
        late: bool = False,
        lose_answer: bool = False,
        times: int = 1,
    ) -> None:
        """Let the next requests to the bot go wrong.

        `twice` delivers one again, `lose_answer` loses what the bot answered. `late` holds an event back
        until another one has arrived.
        """
        with self._lock:
            mishap = Mishap(twice=twice, late=late, lose_answer=lose_answer, times=times)
            self._mishaps.setdefault(name, []).append(mishap)

    def meet(self, kind: str, name: str) -> Mishap | None:
        """Return what this request to the bot meets, if anything waits for it."""
        with self._lock:
            for key in (name, kind):
                waiting = self._mishaps.get(key)
                if waiting:
                    mishap = waiting.pop(0)
                    if mishap.times > 1:
                        waiting.insert(0, replace(mishap, times=mishap.times - 1))
                    return mishap
        return None

    @property
    def mishaps(self) -> list[tuple[str, Mishap]]:
        """What still waits for requests to the bot, each with its name."""
        with self._lock:
            return [(name, mishap) for name, mishaps in self._mishaps.items() for mishap in mishaps]

    def clear(self) -> None:
        """Forget every fault that still waits."""
        with self._lock:
            self._waiting.clear()
            self._mishaps.clear()
