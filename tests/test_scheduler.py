"""The jobs that run by the clock: what fails, hangs or is not run is told once, and stops no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from dibs.scheduler import Job, Scheduler
from dibs.service.telemetry import Telemetry

OFTEN, LIMIT = 0.02, 60.0
PATIENCE = 60


@pytest.fixture(autouse=True)
def _looked_at_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing looks at the jobs but the test."""
    monkeypatch.setattr("dibs.scheduler._LOOK_SECONDS", 3600)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def running(*jobs: Job, clock: Clock | None = None) -> Iterator[Scheduler]:
    scheduler = Scheduler(list(jobs), clock=clock or Clock())
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


def wait_until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)


def told(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "dibs.scheduler" and all(word in record.getMessage() for word in words)
    ]


def test_a_job_that_raises_is_logged_once_and_named_until_it_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs: list[bool] = []
    broken = True

    def job() -> None:
        runs.append(broken)
        if broken:
            raise ValueError("no luck\nDETAIL: a row with what a customer wrote")

    with running(Job("unlucky", OFTEN, LIMIT, job)) as scheduler:
        wait_until(lambda: len(runs) > 4)
        assert scheduler.problems() == ["the unlucky job fails: ValueError: no luck"]
        assert scheduler.report()["unlucky"]["failing"] == "ValueError: no luck"
        assert len(told(caplog, "the unlucky job failed")) == 1
        broken = False
        wait_until(lambda: not scheduler.problems())
        wait_until(lambda: not runs[-1])
    assert len(told(caplog, "the unlucky job failed")) == 1
    assert len(told(caplog, "the unlucky job works again")) == 1


def test_every_failure_is_counted() -> None:
    heard: list[str] = []
    runs: list[int] = []

    class Counting(Telemetry):
        def job_failed(self, name: str) -> None:
            heard.append(name)

    def job() -> None:
        runs.append(1)
        raise OSError

    scheduler = Scheduler([Job("unlucky", OFTEN, LIMIT, job)], telemetry=Counting())
    scheduler.start()
    wait_until(lambda: len(runs) > 2)
    scheduler.stop()
    assert heard == ["unlucky"] * len(runs)


def test_jobs_that_hang_starve_no_other_and_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, let_go, sweeps = Clock(), threading.Event(), [0]
    hung = [threading.Event() for _ in range(15)]

    def hang(begun: threading.Event) -> None:
        begun.set()
        let_go.wait(PATIENCE)

    def sweep() -> None:
        sweeps[0] += 1

    # More of them than APScheduler's own pool has threads.
    stuck = [
        Job(f"stuck{number}", OFTEN, LIMIT, lambda begun=begun: hang(begun))  # type: ignore[misc]
        for number, begun in enumerate(hung)
    ]
    with running(*stuck, Job("sweep", OFTEN, LIMIT, sweep), clock=clock) as scheduler:
        assert all(begun.wait(PATIENCE) for begun in hung)
        seen = sweeps[0]
        wait_until(lambda: sweeps[0] > seen + 2)
        assert scheduler.problems() == []
        clock.now += 95
        seen = sweeps[0]
        wait_until(lambda: sweeps[0] > seen + 1)
        scheduler.look()
        scheduler.look()
        assert "the stuck0 job has not finished for 95 s" in scheduler.problems()
        assert len(scheduler.problems()) == len(stuck)
        assert scheduler.report()["sweep"]["overdue"] is None
        assert len(told(caplog, "has not finished")) == len(stuck)
        let_go.set()
        wait_until(lambda: not scheduler.problems())
        scheduler.look()
    assert len(told(caplog, "no longer overdue")) == len(stuck)


def test_the_sweep_is_overdue_once_its_limit_has_passed_and_not_before() -> None:
    clock, let_go, begun = Clock(), threading.Event(), threading.Event()

    def sweep() -> None:
        begun.set()
        let_go.wait(PATIENCE)

    with running(Job("sweep", OFTEN, LIMIT, sweep), clock=clock) as scheduler:
        assert begun.wait(PATIENCE)
        clock.now += LIMIT
        assert scheduler.problems() == []
        clock.now += 35
        assert scheduler.problems() == ["the sweep job has not finished for 95 s"]
        assert scheduler.ages()["sweep"] == LIMIT + 35
        let_go.set()
        wait_until(lambda: scheduler.ages()["sweep"] == 0)


def test_what_is_overdue_is_logged_with_nobody_asking(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.scheduler._LOOK_SECONDS", 0.01)
    clock, let_go, begun = Clock(), threading.Event(), threading.Event()

    def sweep() -> None:
        begun.set()
        let_go.wait(PATIENCE)

    with running(Job("sweep", OFTEN, LIMIT, sweep), clock=clock):
        assert begun.wait(PATIENCE)
        clock.now += 95
        wait_until(lambda: told(caplog, "the sweep job has not finished for 95 s"))
        let_go.set()
        wait_until(lambda: told(caplog, "the sweep job is no longer overdue"))


def test_jobs_go_on_after_the_clock_on_the_wall_was_set_back(caplog: pytest.LogCaptureFixture) -> None:
    clock, runs = Clock(), [0]

    def job() -> None:
        runs[0] += 1

    with running(Job("sweep", 3600, LIMIT, job), clock=clock) as scheduler:
        wait_until(lambda: runs[0] == 1)
        wait_until(lambda: not any(one.name == "dibs-job-sweep" for one in threading.enumerate()))
        # As APScheduler sees it when an hour is lived through once more.
        scheduler._scheduler.modify_job("sweep", next_run_time=datetime.now(UTC) + timedelta(hours=2))  # noqa: SLF001
        clock.now += 3600 + LIMIT + 1
        assert scheduler.problems() == ["the sweep job has not begun for 3661 s"]
        scheduler.look()
        wait_until(lambda: runs[0] == 2)
        wait_until(lambda: scheduler.problems() == [])
    assert len(told(caplog, "has not begun for 3661 s")) == 1


# The thread dies on purpose.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_scheduler_whose_thread_has_ended_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    clock, runs = Clock(), [0]

    def job() -> None:
        runs[0] += 1

    with running(Job("sweep", 3600, LIMIT, job), clock=clock) as scheduler:
        wait_until(lambda: runs[0] == 1)
        aps = scheduler._scheduler  # noqa: SLF001
        assert scheduler.problems() == []

        def die() -> None:
            raise RuntimeError("whatever could end it")

        aps._process_jobs = die  # noqa: SLF001
        aps.wakeup()
        wait_until(scheduler.problems)
        assert scheduler.problems() == ["the scheduler has ended: no job is begun until Dibs restarts"]
        scheduler.look()
        scheduler.look()
        clock.now += 3700
        assert "the sweep job has not begun for 3700 s" in scheduler.problems()
    assert len(told(caplog, "the scheduler has ended")) == 1


def test_a_job_that_hangs_does_not_hold_up_the_stop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.scheduler._LAST_RUNS_SECONDS", 0.05)
    let_go, begun = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        let_go.wait(PATIENCE)

    with running(Job("stuck", OFTEN, LIMIT, hang)) as scheduler:
        assert begun.wait(PATIENCE)
        scheduler.stop()
        assert told(caplog, "these jobs have not finished: stuck")
        (thread,) = [one for one in threading.enumerate() if one.name == "dibs-job-stuck"]
        assert thread.daemon
        let_go.set()
        thread.join(PATIENCE)


def test_a_stop_waits_for_the_job_that_runs() -> None:
    begun, finished = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        time.sleep(0.1)
        finished.set()

    with running(Job("slow", OFTEN, LIMIT, job)) as scheduler:
        assert begun.wait(PATIENCE)
        scheduler.stop()
        assert finished.is_set()
