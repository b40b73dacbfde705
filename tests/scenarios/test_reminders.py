"""Owners hear before a lease ends, can act right there, and the reminder goes when it no longer matters."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.bot import Office, another_bot

from dibs.playground import Result
from dibs.store.reminders import LEASE_ENDS_SOON


def hold(office: Office, *, started: bool = False, minutes: float = 5.5) -> str:
    """Have Amal hold a task whose lease ends in some minutes, as an operator's SQL may set it."""
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.wait(lambda: "start" in office.buttons(card))
    if started:
        office.press("Amal", card, "start")
        office.wait(lambda: "done" in office.buttons(card))
    move_end(office, minutes)
    return card


def move_end(office: Office, minutes: float) -> None:
    office.execute(
        "UPDATE dibs.task SET lease_until = clock_timestamp() + make_interval(secs => :seconds)",
        seconds=minutes * 60,
    )


def remind(office: Office) -> int:
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    written = office.bot.reminders.remind_once()
    office.bot.notices.deliver_once()
    return written


def told(office: Office, name: str = "Amal") -> list[dict[str, Any]]:
    return office.slack.direct_messages(office.id(name))


def buttons(message: dict[str, Any]) -> list[str]:
    return [e["action_id"] for b in message["blocks"] if b["type"] == "actions" for e in b["elements"]]


def press(office: Office, button: str, name: str = "Amal") -> Result:
    """Press a button on the newest direct message."""
    world = office.slack.world
    [channel] = [c.id for c in world.channels.values() if c.is_im and office.id(name) in c.members]
    return office.slack.press(office.id(name), channel, told(office, name)[-1]["ts"], f"task_{button}")


def test_an_owner_is_reminded_once_before_the_lease_ends(office: Office) -> None:
    hold(office)
    assert [remind(office) for _ in range(3)] == [1, 0, 0]
    [reminder] = told(office)
    assert "Your lease on *SUP-1* ends" in reminder["text"]
    assert "Refund" not in str(reminder)
    assert buttons(reminder) == ["task_renew", "task_start", "task_release", "task_history"]


def test_started_work_is_reminded_of_its_check_and_offers_done(office: Office) -> None:
    hold(office, started=True)
    remind(office)
    [reminder] = told(office)
    assert "somebody must check what happened outside" in reminder["text"]
    assert buttons(reminder)[1] == "task_done"


@pytest.mark.parametrize("minutes", [7.0, 29.0, -0.1])
def test_nobody_is_reminded_too_early_or_too_late(office: Office, minutes: float) -> None:
    hold(office, minutes=minutes)
    assert remind(office) == 0


def test_very_short_leases_are_not_reminded_of(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET lease_seconds = 600")
    hold(office, minutes=1)
    assert remind(office) == 0


def test_renew_pressed_on_the_reminder_renews_and_withdraws_it(office: Office) -> None:
    card = hold(office)
    remind(office)
    assert press(office, "renew").status == 200
    office.hears("Amal", "*SUP-1* stays yours")
    office.wait(lambda: "is yours until" in told(office)[0]["text"])
    [reminder] = told(office)
    assert buttons(reminder) == []
    office.wait(lambda: office.count("outbox", live=True) == 0)
    assert '"version":3' in str(office.card(card)["blocks"])
    assert "lease until" in office.card(card)["text"]


def test_release_and_start_and_done_work_from_the_reminder(office: Office) -> None:
    hold(office)
    remind(office)
    press(office, "start")
    office.wait(lambda: "task_done" in buttons(told(office)[0]))
    press(office, "done")
    assert office.submit("Amal", {"resolution": "x"}).closed
    office.wait(lambda: "is done" in told(office)[0]["text"])
    assert buttons(told(office)[0]) == []
    assert office.task()["state"] == "done"


def _renewed(office: Office, card: str) -> None:
    office.press("Amal", card, "renew")


def _released(office: Office, card: str) -> None:
    office.press("Amal", card, "release")
    assert office.submit("Amal", {"reason": "shift_ending"}).closed


def _expired(office: Office, _: str) -> None:
    office.end_lease()
    office.sweep()


def _moved(office: Office, _: str) -> None:
    move_end(office, 25)
    office.bot.reminders.remind_once()


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (_renewed, "is yours until"),
        (_released, "is back in the queue"),
        (_expired, "ended"),
        (_moved, "is yours until"),
    ],
)
def test_a_reminder_is_withdrawn_when_it_no_longer_matters(
    office: Office, happens: Callable[[Office, str], None], said: str
) -> None:
    card = hold(office)
    remind(office)
    happens(office, card)
    office.bot.notices.deliver_once()
    office.wait(lambda: said in told(office)[0]["text"], lambda: told(office)[0]["text"])
    assert buttons(told(office)[0]) == []


@pytest.mark.parametrize("happens", [_renewed, _moved])
def test_a_reminder_that_is_overtaken_before_it_is_sent_is_not_sent(
    office: Office, happens: Callable[[Office, str], None]
) -> None:
    card = hold(office)
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    assert office.bot.reminders.remind_once() == 1
    happens(office, card)
    office.bot.notices.deliver_once()
    office.wait(lambda: office.count("outbox", given_up="no longer matters") == 1)
    assert told(office) == []


def test_a_lease_that_was_renewed_is_reminded_of_again_before_its_new_end(office: Office) -> None:
    card = hold(office)
    remind(office)
    office.press("Amal", card, "renew")
    move_end(office, 3)
    remind(office)
    office.wait(lambda: len(told(office)) == 2)
    assert ["Your lease" in message["text"] for message in told(office)] == [False, True]


def test_several_processes_write_each_reminder_once(office: Office, database_url: str) -> None:
    hold(office)
    office.add_task()
    office.execute(
        "UPDATE dibs.task SET state = 'claimed', owner_id = :bilal, held_since = clock_timestamp(), "
        "lease_until = clock_timestamp() + interval '4 minutes' WHERE number = 2",
        bilal=office.id("Bilal"),
    )
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    with another_bot(office, database_url) as other, ThreadPoolExecutor(6) as threads:
        runs = [threads.submit(bot.reminders.remind_once) for bot in (office.bot, other) * 3]
        assert sum(run.result() for run in runs) == 2
        sent = [threads.submit(bot.notices.deliver_once) for bot in (office.bot, other) * 3]
        assert [run.result() for run in sent]
    assert (len(told(office)), len(told(office, "Bilal"))) == (1, 1)


# Long holders


def test_near_the_longest_hold_owner_and_supervisors_hear_of_it_once(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET longest_hold_seconds = 7200")
    hold(office, minutes=30)
    office.execute("UPDATE dibs.task SET held_since = clock_timestamp() - interval '100 minutes'")
    assert [remind(office) for _ in range(2)] == [2, 0]
    [to_owner] = told(office)
    assert "cannot be renewed beyond that" in to_owner["text"]
    assert buttons(to_owner) == ["task_start", "task_release", "task_history"]
    [to_supervisor] = told(office, "Sue")
    assert f"<@{office.id('Amal')}> has had *SUP-1* for long" in to_supervisor["text"]
    assert buttons(to_supervisor) == ["task_history"]
    press(office, "release")
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    office.wait(lambda: "back in the queue" in told(office)[0]["text"])
    office.wait(lambda: "back in the queue" in told(office, "Sue")[0]["text"])


def test_a_lease_that_cannot_be_renewed_any_more_offers_no_renewal(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET longest_hold_seconds = 7200")
    hold(office, minutes=4)
    office.execute("UPDATE dibs.task SET held_since = lease_until - interval '7200 seconds'")
    remind(office)
    [last] = [message for message in told(office) if "Your lease" in message["text"]]
    assert "cannot be renewed" in last["text"]
    assert "task_renew" not in buttons(last)


def test_a_run_looks_only_at_the_leases_that_end_soon(office: Office) -> None:
    office.execute(
        "INSERT INTO dibs.task (queue_id, number, title, state, owner_id, lease_until, created_by) "
        "SELECT 1, n, 'x', 'claimed', 'U0X', clock_timestamp() + interval '20 minutes', 'U0X' "
        "FROM generate_series(1, 5000) n"
    )
    office.execute(
        "UPDATE dibs.task SET lease_until = clock_timestamp() + interval '1 minute' WHERE number <= 3"
    )
    office.execute("VACUUM ANALYZE dibs.task")
    plan = str(office.rows(f"EXPLAIN {LEASE_ENDS_SOON.text}", queue_ids=[1], leads=[360.0]))
    assert "task_lease_idx" in plan
    assert "Seq Scan on task" not in plan
    assert office.bot.reminders.remind_once() == 3
