"""A supervisor pauses a queue, and lets it go on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support import bodies
from tests.support.bot import Office

from dibs.slack.ids import QueueAction


def test_a_supervisor_pauses_a_queue_and_resumes_it(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    assert "is paused: no task returns" in office.type("Sue", "pause")
    office.end_lease()
    office.sweep()
    assert office.task()["state"] == "claimed"
    assert "is paused already" in office.type("Sue", "pause SUP")
    said = office.type("Sue", "resume")
    assert "*SUP* goes on" in said
    assert "those that waited return when Dibs looks for them next" in said
    office.sweep()
    assert office.task()["state"] == "queued"
    assert "Nothing was paused in *SUP*, so nothing changed." in office.type("Sue", "resume")


def test_the_list_says_what_is_paused_and_how_it_goes_on(office: Office) -> None:
    assert "paused" not in office.type("Amal", "list")
    office.type("Sue", "pause")
    told = office.type("Amal", "queue list", "/dibs")
    assert "*SUP* is paused: a task whose lease has ended stays with its owner" in told
    assert "A supervisor lets it go on with `/dibs queue resume SUP`." in told
    assert "Type `/dibs queue add` and a title to add a task." in told
    office.add_task()
    office.execute("UPDATE dibs.clock SET stopped_since = clock_timestamp(), jump_seconds = 90, trip = 1")
    office.execute(
        "UPDATE dibs.breaker SET releases_paused_since = clock_timestamp(), releases_paused_why = 'event'"
    )
    told = office.type("Amal", "list")
    for words in ("stays with its owner", "no lease ends, in any queue", "no task can be handed back"):
        assert words in told
    office.type("Sue", "resume")
    assert "paused" not in office.type("Amal", "list")


def test_everybody_else_hears_who_may(office: Office) -> None:
    for command in ("pause", "resume"):
        told = office.type("Amal", command)
        assert f"Only supervisors of *SUP* may {command} it: <@{office.id('Sue')}>. Nothing changed." in told
    assert office.rows("SELECT open_since FROM dibs.breaker") == [{"open_since": None}]


def test_a_spike_pauses_the_queue_until_a_supervisor_resumes_it(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET spike_limit = 1")
    for number in (1, 2):
        office.press("Amal", office.add_task(), "claim")
        office.end_lease(number)
    office.sweep()
    assert [office.task(number)["state"] for number in (1, 2)] == ["claimed", "claimed"]
    assert "goes on" in office.type("Sue", "queue resume sup", "/dibs")
    office.sweep()
    assert [office.task(number)["state"] for number in (1, 2)] == ["queued", "queued"]


def test_an_unknown_or_unclear_queue_is_named_and_nothing_changes(office: Office) -> None:
    assert "There is no queue “OPS”. Nothing changed. This channel has `SUP`." in office.type(
        "Sue", "pause OPS"
    )
    office.make_queue(key="BIL")
    told = office.type("Sue", "pause")
    assert "several queues: `SUP`, `BIL`. Nothing changed. Say which: `/queue pause SUP`" in told
    assert office.count("breaker", open_since=None) == 2


def alert_of(office: Office, *words: str) -> dict[str, Any]:
    """The direct message to the supervisor about a brake, once it says these words."""

    def found() -> list[dict[str, Any]]:
        office.bot.notices.deliver_once()
        messages = office.slack.direct_messages(office.id("Sue"))
        return [message for message in messages if all(word in message["text"] for word in words)]

    office.wait(found, lambda: str(office.slack.direct_messages(office.id("Sue"))))
    [alert] = found()
    return alert


def press_resume(office: Office, name: str, alert: dict[str, Any], *, deliveries: int = 1) -> list[str]:
    """Press the button on the alert, and return what was answered."""
    heard = len(office.heard(name))
    where = "SELECT channel_id FROM dibs.outbox WHERE message_ts = :ts"
    # It stands in Slack a moment before it is written down that it does.
    office.wait(lambda: office.rows(where, ts=alert["ts"]))
    [sent] = office.rows(where, ts=alert["ts"])
    office.slack.press(
        office.id(name), sent["channel_id"], alert["ts"], QueueAction.RESUME, deliveries=deliveries
    )
    office.wait(lambda: len(office.heard(name)) == heard + deliveries, lambda: str(office.heard(name)))
    return office.heard(name)[heard:]


def test_the_button_on_the_alert_resumes_and_the_alert_says_so(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.type("Sue", "pause")
    office.end_lease()
    [told] = press_resume(office, "Sue", alert_of(office, ":octagonal_sign:"))
    assert "*SUP* goes on" in told
    office.sweep()
    assert office.task()["state"] == "queued"
    alert_of(office, "*Support* (SUP) was resumed by", office.id("Sue"))


def test_a_button_that_arrives_twice_says_the_same_twice_and_acts_once(office: Office) -> None:
    office.type("Sue", "pause")
    first, second = press_resume(office, "Sue", alert_of(office, ":octagonal_sign:"), deliveries=2)
    assert "*SUP* goes on" in first
    assert "*SUP* goes on" in second
    assert "This was answered before." in first + second
    assert office.count("event", kind="resumed") == 1


def test_the_button_of_a_clock_that_jumped_lets_leases_end_again_in_every_queue(office: Office) -> None:
    office.make_queue(key="BIL")
    office.execute("UPDATE dibs.clock SET stopped_since = clock_timestamp(), jump_seconds = 90, trip = 1")
    office.execute(
        "INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload, live) "
        "SELECT id, 'clock_stopped:1:1:x', 'clock_stopped', :sue, CAST(:payload AS jsonb), true "
        "FROM dibs.queue WHERE key = 'SUP'",
        sue=office.id("Sue"),
        payload=json.dumps({"why": "ahead", "seconds": 90, "needs_resume": True}),
    )
    [told] = press_resume(office, "Sue", alert_of(office, ":octagonal_sign:"))
    assert "leases end again in every queue" in told
    assert office.rows("SELECT stopped_since FROM dibs.clock") == [{"stopped_since": None}]
    alert_of(office, "Leases end again", office.id("Sue"))


@pytest.mark.parametrize("value", ["", "{}", '{"queue": 99}', '{"queue": "1"}', '{"queue": -1}', "[", "null"])
def test_a_button_that_names_no_queue_changes_nothing(office: Office, value: str) -> None:
    card = office.add_task()
    office.type("Sue", "pause")
    pressed = bodies.press(office, "Sue", card, "history", action_id=QueueAction.RESUME, value=value)
    assert office.slack.send_raw(bodies.interaction(pressed)).status == 200
    office.wait(lambda: office.heard("Sue"))
    assert office.count("event", kind="resumed") == 0


def test_the_record_of_the_queue_says_who_paused_it_why_and_who_let_it_go_on(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET spike_limit = 1")
    for number in (1, 2):
        office.press("Amal", office.add_task(), "claim")
        office.end_lease(number)
    office.type("Amal", "pause")
    office.sweep()
    office.type("Sue", "resume")
    office.execute("UPDATE dibs.clock SET swept_at = clock_timestamp() - interval '20 minutes'")
    office.sweep()
    told = office.type("Sue", "SUP", "/audit")
    for words in (
        "tried to pause, which changed nothing: only supervisors of the queue may",
        "the sweep paused the return of tasks",
        "2 leases would have ended, and the limit is 1 within 10 minutes.",
        f"<@{office.id('Sue')}> let the queue go on",
        "Tasks whose lease has ended return to the queue again",
        "the sweep gave the leases more time",
        "For 20 minutes. 2 leases now last until",
    ):
        assert words in told, told


def test_a_resume_says_where_no_lease_ends_all_the_same(office: Office) -> None:
    office.execute("UPDATE dibs.clock SET swept_at = clock_timestamp() + interval '1 hour'")
    office.sweep()
    told = office.type("Sue", "resume")
    assert "No lease ends just now" in told
    assert "goes on by itself" in told
    office.type("Sue", "pause")
    told = office.type("Sue", "resume")
    assert "*SUP* goes on" in told
    assert "No lease ends just now" in told


# An outage


def draw_again(office: Office) -> None:
    """Have the only card sent, as any call to Slack would do to find out whether it answers."""
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    office.execute("UPDATE dibs.card SET shown_version = 0, next_try_at = clock_timestamp(), attempts = 0")
    office.bot.delivery.deliver_once()


def test_after_slack_was_away_the_leases_last_a_while_longer_and_the_cards_say_so(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "lease until")
    before = office.card(card)["text"]
    # Whoever still has the card would leave the fault to the next one who draws it.
    office.wait(lambda: not office.rows("SELECT FROM dibs.card WHERE sender IS NOT NULL"))
    # Slack answers nothing for twenty minutes, in which the lease runs out.
    office.slack.faults.fail_next("chat.update", cut=True)
    draw_again(office)
    office.end_lease()
    office.execute("UPDATE dibs.clock SET swept_at = clock_timestamp() - interval '20 minutes'")
    office.bot.sweep.sweep_once()
    assert office.task()["state"] == "claimed"
    draw_again(office)
    office.sweep()
    task = office.task()
    assert (task["state"], task["version"]) == ("claimed", 2)
    until = int(task["lease_until"].timestamp())
    office.shows(card, f"<!date^{until}^")
    assert office.card(card)["text"] != before
    # The button that the owner saw all the time still works.
    office.press("Amal", card, "renew")
    office.hears("Amal", "*SUP-1* stays yours until")
