"""However much waits to be sent, Dibs holds no more than it can, and stops soon."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from tests.support.bot import Office

from dibs.slack import outgoing


def test_a_backlog_has_an_end_and_what_exceeds_it_is_dropped_and_counted(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    let_go = threading.Event()
    done: list[int] = []

    def job() -> None:
        assert let_go.wait(60)
        done.append(1)

    office.wait(lambda: not office.bot.outgoing._jobs)  # noqa: SLF001
    many = outgoing._MOST_WAITING + 50  # noqa: SLF001
    for _ in range(many):
        office.bot.outgoing.submit(job)
    said = [record for record in caplog.records if "more are dropped" in record.getMessage()]
    assert len(said) == 1
    let_go.set()
    office.wait(lambda: len(done) == outgoing._MOST_WAITING)  # noqa: SLF001
    office.bot.outgoing.submit(lambda: done.append(2))
    office.wait(lambda: done[-1] == 2)
    assert "50 messages were dropped" in caplog.text


def test_a_stop_sends_what_it_can_in_a_few_seconds_and_drops_the_rest(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    done: list[int] = []

    def job() -> None:
        time.sleep(0.5)
        done.append(1)

    # All of them would take 50 seconds on the six threads.
    for _ in range(600):
        office.bot.outgoing.submit(job)
    started = time.monotonic()
    office.bot.close()
    assert time.monotonic() - started < 30
    assert 6 <= len(done) < 600
    (dropped,) = [record for record in caplog.records if "are dropped" in record.getMessage()]
    assert str(600 - len(done)) in dropped.getMessage()
