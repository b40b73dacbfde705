"""A process of its own that sweeps, reminds and delivers over and over, as a bot's jobs do."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.support.bot import TOKEN

from dibs.domain.errors import StoreError
from dibs.service.delivery import DeliveryService
from dibs.service.notices import NoticeService
from dibs.service.queries import TaskQueries
from dibs.service.reminders import ReminderService
from dibs.service.sweep import SweepService
from dibs.slack.notices import SlackNotices
from dibs.slack.web import SlackWeb
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard

PATIENCE = 60.0


@contextmanager
def workers(number: int, database_url: str, api_url: str) -> Iterator[None]:
    """Let so many processes work until the block ends; each must then end well by itself."""
    command = [sys.executable, "-m", __name__, database_url, api_url]
    with ExitStack() as stack:
        at_work = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
            )
            for _ in range(number)
        ]
        for process in at_work:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
        yield
        ends = [process.communicate(timeout=PATIENCE) for process in at_work]
        assert [process.returncode for process in at_work] == [0] * number, ends


def main(database_url: str, api_url: str) -> None:
    """Work until the standard input ends. What the store could not do in time is done by the next round."""
    guard = Guard(make_engine(database_url, BACKGROUND, pool_size=6))
    queries, web = TaskQueries(guard), SlackWeb(TOKEN, api_url)
    ending = threading.Event()
    jobs: list[Callable[[], object]] = [
        SweepService(guard).sweep_once,
        ReminderService(guard).remind_once,
        DeliveryService(guard, queries, web).deliver_once,
        NoticeService(guard, queries, SlackNotices(web.sending)).deliver_once,
    ]

    def over_and_over(job: Callable[[], object]) -> None:
        while not ending.wait(0.05):
            try:
                job()
            except StoreError as error:
                sys.stderr.write(f"{job}: {error}\n")

    threads = [threading.Thread(target=over_and_over, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    sys.stdout.write("at work\n")
    sys.stdout.flush()
    sys.stdin.read()
    ending.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
