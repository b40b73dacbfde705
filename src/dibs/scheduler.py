"""Runs jobs by the clock, each in a thread of its own, and notices one that fails, hangs or is not run."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.base import BaseExecutor, run_job
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from dibs.service.telemetry import Telemetry

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_LAST_RUNS_SECONDS = 10.0
_LONGEST_DESCRIPTION = 300


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do every `seconds`. Every process does it; the database sees to it that it is safe.

    `limit_seconds` is how long a run may take, and how late it may begin, before the job is overdue.
    """

    name: str
    seconds: float
    limit_seconds: float
    run: Callable[[], object]


@dataclass(slots=True)
class _Course:
    """How a job has gone so far, in readings of the monotonic clock."""

    ended_at: float
    good_at: float
    begun_at: float | None = None
    failing: str | None = None
    failures: int = 0
    overdue: bool = False
    """Whether it is known, and was logged, that it is overdue."""


class Scheduler:
    """Runs the jobs. One that fails or hangs is logged once and named, and never stops the others.

    `clock` is monotonic, in seconds: the jobs' ages are measured by it, since the clock on the wall, by
    which APScheduler goes, can be set.
    """

    def __init__(
        self,
        jobs: list[Job],
        *,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._telemetry = telemetry or Telemetry()
        self._clock = clock
        self._lock = threading.Lock()
        now = clock()
        self._courses = {job.name: _Course(ended_at=now, good_at=now) for job in jobs}
        self._ended = False
        self._stopping = threading.Event()
        self._scheduler = _Scheduler(timezone=UTC, executors={"default": _ThreadForEachRun()})
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
        with self._lock:
            now = self._clock()
            for course in self._courses.values():
                course.ended_at = course.good_at = now
        self._scheduler.start()
        threading.Thread(target=self._watch, name="dibs-scheduler-watch", daemon=True).start()

    def stop(self) -> None:
        """Start no more jobs, and give those that run now a few seconds to finish.

        What still runs then is logged and ends with the process: every job may be cut off at any point.
        """
        self._stopping.set()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
            with self._lock:
                left = [name for name, course in self._courses.items() if course.begun_at is not None]
            if left:
                _log.warning("Dibs is stopping; these jobs have not finished: %s", ", ".join(left))

    def ages(self) -> dict[str, float]:
        """How many seconds ago each job last worked, or was first to begin."""
        with self._lock:
            now = self._clock()
            return {name: now - course.good_at for name, course in self._courses.items()}

    def overdue(self) -> list[str]:
        """The names of the jobs that have not ended, or not begun, for longer than they may."""
        with self._lock:
            now = self._clock()
            return [name for name, course in self._courses.items() if self._overdue(name, course, now)]

    def report(self) -> dict[str, dict[str, object]]:
        """How each job is: how many seconds ago it last worked, what went wrong since, if it is overdue."""
        with self._lock:
            now = self._clock()
            return {
                name: {
                    "every_seconds": self._jobs[name].seconds,
                    "last_good_seconds_ago": round(now - course.good_at, 1),
                    "failing": course.failing,
                    "overdue": self._overdue(name, course, now),
                }
                for name, course in self._courses.items()
            }

    def problems(self) -> list[str]:
        """What is wrong now, a sentence for each; empty where all is well."""
        with self._lock:
            now = self._clock()
            found = [] if self._turning else ["the scheduler has ended: no job is begun until Dibs restarts"]
            for name, course in self._courses.items():
                if overdue := self._overdue(name, course, now):
                    found.append(overdue)
                elif course.failing:
                    found.append(f"the {name} job fails: {course.failing}")
            return found

    def look(self) -> None:
        """Log, once, what has become overdue or is so no more, and have a job begun that was passed over.

        That happens where the clock on the wall was set back: the next run is then far in its future.
        """
        with self._lock:
            now = self._clock()
            passed_over = [
                name
                for name, course in self._courses.items()
                if self._tell_if_overdue(name, course, now) and course.begun_at is None
            ]
            if not self._turning and not self._ended:
                self._ended = True
                _log.error("the scheduler has ended: no job is begun until Dibs is started again")
        for name in passed_over:
            with contextlib.suppress(JobLookupError):
                self._scheduler.modify_job(name, next_run_time=datetime.now(UTC))

    @property
    def _turning(self) -> bool:
        """Whether jobs are begun, or none should be."""
        return self._stopping.is_set() or not self._scheduler.running or self._scheduler.alive

    def _tell_if_overdue(self, name: str, course: _Course, now: float) -> bool:
        said = self._overdue(name, course, now)
        if said and not course.overdue:
            _log.error("%s", said)
        elif course.overdue and not said:
            _log.warning("the %s job is no longer overdue", name)
        course.overdue = said is not None
        return course.overdue

    def _overdue(self, name: str, course: _Course, now: float) -> str | None:
        if not self._scheduler.running:
            return None
        job = self._jobs[name]
        if course.begun_at is not None:
            silent, limit, done = now - course.begun_at, job.limit_seconds, "finished"
        else:
            silent, limit, done = now - course.ended_at, job.seconds + job.limit_seconds, "begun"
        return f"the {name} job has not {done} for {silent:.0f} s" if silent > limit else None

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - whatever went wrong, the watch goes on
                _log.exception("the jobs could not be looked at")

    def _run(self, job: Job) -> None:
        with self._lock:
            self._courses[job.name].begun_at = self._clock()
        failure: Exception | None = None
        try:
            job.run()
        except Exception as error:  # noqa: BLE001 - one job that fails must not stop the others
            failure = error
        with self._lock:
            course = self._courses[job.name]
            course.begun_at, course.ended_at = None, self._clock()
            before, failures = course.failing, course.failures
            if failure is None:
                course.failing, course.failures, course.good_at = None, 0, course.ended_at
            else:
                course.failing, course.failures = _described(failure), failures + 1
        if failure is not None:
            self._telemetry.job_failed(job.name)
            if before is None:
                _log.error("the %s job failed", job.name, exc_info=failure)
        elif before is not None:
            _log.warning("the %s job works again; it had failed %d times", job.name, failures)


def _described(error: Exception) -> str:
    """What went wrong, in a line: /readyz may be open to others, and the rest is for the log alone."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:_LONGEST_DESCRIPTION]


class _Scheduler(BackgroundScheduler):  # type: ignore[misc] # APScheduler has no types
    """APScheduler's, which can say whether its thread still runs."""

    @property
    def alive(self) -> bool:
        thread: threading.Thread | None = self._thread
        return thread is not None and thread.is_alive()


class _ThreadForEachRun(BaseExecutor):  # type: ignore[misc] # APScheduler has no types
    """Runs each job in a new thread, so that jobs that hang, however many, take no thread from another.

    The threads do not keep the process alive: a job that hangs must not hold up the end of Dibs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads: set[threading.Thread] = set()

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:  # noqa: ANN401 - no types
        def run() -> None:
            try:
                events = run_job(job, "default", run_times, self._logger.name)
            finally:
                self._threads.discard(threading.current_thread())
            self._run_job_success(job.id, events)

        thread = threading.Thread(target=run, name=f"dibs-job-{job.id}", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # No thread could be had; the next run may get one.
            self._threads.discard(thread)
            raise

    def shutdown(self, wait: bool = True) -> None:  # noqa: FBT001, FBT002 - the signature is APScheduler's
        ends = time.monotonic() + _LAST_RUNS_SECONDS
        for thread in list(self._threads) if wait else ():
            thread.join(max(ends - time.monotonic(), 0))
