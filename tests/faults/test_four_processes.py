"""Four processes sweep and deliver on one database while people press: everything happens once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.bot import Office, open_office
from tests.support.programs import programs

from dibs.playground import Channel

RETURNS = 120
"""So many leases end before the people stop."""
TASKS = 24
BETWEEN_PRESSES = 0.05
PEOPLE = ("Amal", "Bilal", "Hana", "Marek")
ENOUGH_WITHIN, SETTLED_WITHIN = 100.0, 170.0


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    """With few threads, or the four processes would need more connections than the server gives."""
    with open_office(database_url, people=(*PEOPLE, "Dana", "Sue"), threads=4) as office:
        office.make_queue()
        yield office


@pytest.fixture
def alerts(office: Office) -> Channel:
    return office.slack.add_channel("alerts", members=[office.id("Sue")])


@pytest.fixture
def busy_office(office: Office, alerts: Channel, database_url: str, tmp_path: Path) -> Iterator[Office]:
    """A queue of which very many leases may end, and three processes beside this one that look after it."""
    office.execute("UPDATE dibs.queue SET spike_limit = 100000, alert_channel = :channel", channel=alerts.id)
    with programs(3, office.slack, database_url, tmp_path, DIBS_SWEEP_SECONDS="0.2"):
        office.bot.scheduler.start()
        yield office
    logged = "".join(log.read_text() for log in sorted(tmp_path.glob("*.log")))
    assert "Traceback" not in logged, logged[-4000:]


def test_each_lease_ends_once_each_alert_comes_once_and_every_card_ends_right(
    busy_office: Office, alerts: Channel
) -> None:
    office = busy_office
    cards = [office.add_task(f"Refund order {number}") for number in range(TASKS)]
    enough = threading.Event()
    pressed = Counter[str]()
    counting = threading.Lock()

    def work(name: str) -> None:
        chance = random.Random(name)  # noqa: S311 - the same presses each time
        while not enough.is_set():
            card = chance.choice(cards)
            button = chance.choice(
                [each for each in office.buttons(card) if each in ("claim", "start", "renew")]
            )
            # The card may be drawn anew, without this button, between the look and the press.
            with suppress(LookupError):
                assert office.press(name, card, button).status == 200
                with counting:
                    pressed[button] += 1
            time.sleep(BETWEEN_PRESSES)

    def let_leases_end() -> None:
        end = time.monotonic() + ENOUGH_WITHIN
        try:
            while office.count("event", kind="expired") < RETURNS:
                assert time.monotonic() < end, pressed
                office.execute(
                    "UPDATE dibs.task SET lease_until = clock_timestamp() "
                    "WHERE lease_until IS NOT NULL AND random() < 0.4"
                )
                time.sleep(0.3)
        finally:
            enough.set()

    with ThreadPoolExecutor(len(PEOPLE) + 1) as threads:
        jobs = [threads.submit(work, name) for name in PEOPLE] + [threads.submit(let_leases_end)]
        for job in jobs:
            job.result()
    office.execute("UPDATE dibs.task SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL")
    office.slack.wait_until(lambda: _at_rest(office), SETTLED_WITHIN)

    returned = office.count("event", kind="expired")
    assert returned >= RETURNS, pressed
    # Between two returns of a task somebody had it, and every change of it is counted in its version.
    assert not office.rows(
        "SELECT * FROM (SELECT task_id, kind, lag(kind) OVER (PARTITION BY task_id ORDER BY id) AS before "
        "FROM dibs.event WHERE why IS NULL AND task_id IS NOT NULL) e "
        "WHERE kind = 'expired' AND before NOT IN ('claimed', 'started', 'renewed')"
    )
    assert not office.rows(
        "SELECT t.id FROM dibs.task t JOIN dibs.event e ON e.task_id = t.id AND e.why IS NULL "
        "GROUP BY t.id HAVING t.version <> count(*)"
    )
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert office.rows(deadlocks) == [{"deadlocks": 0}]
    told = Counter(
        key
        for message in (*office.slack.messages(alerts.id), *_direct_messages(office))
        for key in ((message.get("metadata") or {}).get("event_payload") or {}).get("keys", ())
    )
    assert told == Counter(row["key"] for row in office.rows("SELECT key FROM dibs.outbox"))
    shown = office.slack.messages(office.channel.id)
    assert [message["ts"] for message in shown] == cards
    assert all(
        "Back in the queue" in card["text"] or "Waiting for an owner" in card["text"] for card in shown
    )


def _direct_messages(office: Office) -> Iterator[dict[str, object]]:
    for name in (*PEOPLE, "Sue", "Dana"):
        yield from office.slack.direct_messages(office.id(name))


def _at_rest(office: Office) -> bool:
    return not office.rows(
        "SELECT 1 FROM dibs.task WHERE lease_until IS NOT NULL "
        "UNION ALL SELECT 1 FROM dibs.card WHERE shown_version < wanted_version "
        "UNION ALL SELECT 1 FROM dibs.outbox WHERE shown < wanted"
    )
