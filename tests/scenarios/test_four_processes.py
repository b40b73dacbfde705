"""Four processes sweep and deliver on one database under load: each expiry once, each alert once."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.bot import Office
from tests.support.worker import workers

from dibs.service.transitions import TransitionService
from dibs.store.engine import PRESS, make_engine

PROCESSES, TASKS, LOAD_SECONDS = 4, 12, 8.0
"""Long enough for hundreds of expiries."""


def _keys(messages: list[dict[str, Any]]) -> Counter[str]:
    """How often each notice stands in a channel, by the keys that the messages carry."""
    return Counter(
        key
        for message in messages
        for key in ((message.get("metadata") or {}).get("event_payload") or {}).get("keys", [])
    )


def _work(office: Office, service: TransitionService, task_id: int, until: float) -> int:
    """Claim, start, and let the lease lapse, check, and again. Returns how often it was started."""
    owner, supervisor, started = office.id("Amal"), office.id("Sue"), 0
    while time.monotonic() < until:
        [row] = office.rows("SELECT version, state, needs_check FROM dibs.task WHERE id = :id", id=task_id)
        match row["state"]:
            case "queued" if row["needs_check"]:
                service.check(task_id, supervisor, row["version"], finding="x")
            case "queued":
                service.claim(task_id, owner, row["version"])
            case "claimed":
                started += service.start(task_id, owner, row["version"]).changed
            case _:
                office.execute(
                    "UPDATE dibs.task SET lease_until = now() WHERE id = :id AND state = 'started'",
                    id=task_id,
                )
                time.sleep(0.02)
    return started


def test_each_expiry_and_each_alert_happens_once_and_no_card_is_lost(
    office: Office, database_url: str
) -> None:
    alerts = office.slack.add_channel("alerts", members=[office.id("Sue")])
    office.execute("UPDATE dibs.queue SET alert_channel = :channel, spike_limit = 1000000", channel=alerts.id)
    office.verify_members()
    tasks = []
    for number in range(TASKS):
        added = office.bot.queues.add_task(1, "Refund", office.id("Sue"), op_id=f"add-{number}")
        assert added is not None
        tasks.append(added.task.id)
    engine = make_engine(database_url, PRESS, pool_size=8)
    service = TransitionService(engine)
    with workers(PROCESSES, database_url, office.slack.api_url):
        until = time.monotonic() + LOAD_SECONDS
        with ThreadPoolExecutor(4) as threads:
            runs = [threads.submit(_work, office, service, task, until) for task in tasks]
            started = sum(run.result() for run in runs)

        # The requests of a minute are soon used up; let the others have what is left.
        def settled() -> bool:
            return not office.rows(
                "SELECT FROM dibs.outbox WHERE message_ts IS NULL AND given_up IS NULL "
                "UNION ALL SELECT FROM dibs.card WHERE message_ts IS NULL"
            )

        office.slack.wait_until(settled, timeout=120)
    engine.dispose()
    expiries = office.rows(
        "SELECT task_id, version_after FROM dibs.event WHERE kind = 'expired' ORDER BY task_id, version_after"
    )
    assert started > 0
    assert len(expiries) == len({(row["task_id"], row["version_after"]) for row in expiries})
    assert started - TASKS <= len(expiries) <= started
    alerted = {f"needs_check:{row['task_id']}:{row['version_after']}:{alerts.id}" for row in expiries}
    assert _keys(office.slack.messages(alerts.id)) == Counter(alerted)
    told = {f"lease_ended:{row['task_id']}:{row['version_after']}:{office.id('Amal')}" for row in expiries}
    heard = _keys(office.slack.direct_messages(office.id("Amal")))
    assert Counter({key: times for key, times in heard.items() if "soon" not in key}) == Counter(told)
    # The last redraws may still have waited for their turn when the processes ended.
    office.execute(
        "UPDATE dibs.card SET paced_until = NULL, next_try_at = now() WHERE shown_version < wanted_version"
    )
    while office.bot.delivery.deliver_once():
        pass
    versions = {row["id"]: row["version"] for row in office.rows("SELECT id, version FROM dibs.task")}
    for message in office.slack.messages(office.channel.id):
        shown = json.loads(message["blocks"][-1]["elements"][0]["value"])
        assert shown["version"] == versions[shown["task"]]
    names = Counter(message["text"].split("*")[1] for message in office.slack.messages(office.channel.id))
    assert names == Counter(f"SUP-{number}" for number in range(1, TASKS + 1))
    assert office.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [
        {"deadlocks": 0}
    ]
