"""A process of its own that delivers what is due, and ends itself with SIGKILL at a step of the delivery."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.support.bot import TOKEN

from dibs.service.delivery import DeliveryService
from dibs.service.notices import NoticeService
from dibs.service.queries import TaskQueries
from dibs.service.steps import Passing, Step
from dibs.slack.notices import SlackNotices
from dibs.slack.web import SlackWeb
from dibs.store.engine import BACKGROUND, make_engine
from dibs.store.guard import Guard

PATIENCE = 60.0


def deliver_until(what: str, step: Step, database_url: str, api_url: str) -> int:
    """Deliver cards or notices in another process that is killed at `step`. Returns how it ended."""
    command = [sys.executable, "-m", __name__, what, step, database_url, api_url]
    return subprocess.run(command, timeout=PATIENCE, check=False, capture_output=True).returncode  # noqa: S603 - our own


def _service(what: str, guard: Guard, web: SlackWeb, passing: Passing) -> DeliveryService | NoticeService:
    queries = TaskQueries(guard)
    if what == "cards":
        return DeliveryService(guard, queries, web, passing=passing)
    return NoticeService(guard, queries, SlackNotices(web.sending), passing=passing)


def main(what: str, fatal: str, database_url: str, api_url: str) -> None:
    def passing(step: Step) -> None:
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    guard = Guard(make_engine(database_url, BACKGROUND, pool_size=2))
    _service(what, guard, SlackWeb(TOKEN, api_url), passing).deliver_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
