"""The jobs that run by the clock. This is the one place that lists them, with their intervals."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do every `seconds`. Every process does it; the database sees to it that it is safe."""

    name: str
    seconds: float
    run: Callable[[], object]


class Scheduler:
    """Runs the jobs, each on its own; one that fails is logged and named, and never stops the others."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._failing: dict[str, str] = {}
        self._last_good: dict[str, float] = {job.name: time.monotonic() for job in jobs}
        self._lock = threading.Lock()
        self._scheduler = BackgroundScheduler(timezone=UTC)
        for job in jobs:
            self._scheduler.add_job(
                self._run,
                IntervalTrigger(seconds=job.seconds, timezone=UTC),
                args=[job],
                id=job.name,
                coalesce=True,
                max_instances=1,
                # The default of one second would skip a late run without a word.
                misfire_grace_time=None,
                next_run_time=datetime.now(UTC),
            )

    def start(self) -> None:
        """Start all jobs; each runs at once for the first time."""
        self._scheduler.start()

    def stop(self) -> None:
        """Let the jobs that run now finish, and start no more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def report(self) -> dict[str, dict[str, object]]:
        """How each job is: how many seconds ago it last worked, and what went wrong since then."""
        now = time.monotonic()
        with self._lock:
            return {
                job.name: {
                    "every_seconds": job.seconds,
                    "last_good_seconds_ago": round(now - self._last_good[job.name], 1),
                    "failing": self._failing.get(job.name),
                }
                for job in self._jobs
            }

    def _run(self, job: Job) -> None:
        try:
            job.run()
        except Exception as error:  # noqa: BLE001 - one job that fails must not stop the others
            _log.exception("the job %s failed", job.name)
            with self._lock:
                self._failing[job.name] = f"{type(error).__name__}: {error}"[:300]
        else:
            with self._lock:
                self._failing.pop(job.name, None)
                self._last_good[job.name] = time.monotonic()
