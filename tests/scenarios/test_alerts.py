"""What Dibs says of its own accord arrives once, whatever happens on the way, and shows the newest truth."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.alerts import (
    buttons,
    card_of,
    claim,
    deliver,
    due_again,
    lapse,
    lapse_together,
    quiet,
    sent_to,
)
from tests.support.bot import Office, another_bot

from dibs.playground import Channel
from dibs.wiring import Bot


@pytest.fixture
def second_bot(office: Office, database_url: str) -> Iterator[Bot]:
    with another_bot(office, database_url) as bot:
        yield bot


# Once


def test_after_an_expiry_supervisors_and_the_former_owner_hear_of_it_once(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    deliver(office)
    [alert] = sent_to(office, alerts)
    for words in ("*SUP-1* needs a check", f"<@{office.id('Amal')}>", "No external action was recorded"):
        assert words in alert["text"]
    assert "Refund" not in str(alert["blocks"])
    assert buttons(alert) == ["task_check", "task_history"]
    [told] = sent_to(office, "Amal")
    for words in ("Your lease on *SUP-1* ended", f"<#{office.channel.id}>", "flagged"):
        assert words in told["text"]
    for _ in range(2):
        office.bot.sweep.sweep_once()
        due_again(office)
        deliver(office)
    assert (len(sent_to(office, alerts)), len(sent_to(office, "Amal"))) == (1, 1)


def test_a_claim_that_lapsed_before_it_was_started_alerts_nobody_but_its_owner(
    office: Office, alerts: Channel
) -> None:
    lapse(office, started=False)
    deliver(office)
    assert sent_to(office, alerts) == []
    [told] = sent_to(office, "Amal")
    assert "claim it again" in told["text"]
    assert "flagged" not in told["text"]


def test_a_release_of_which_the_outcome_is_unknown_alerts_at_once(office: Office, alerts: Channel) -> None:
    card = office.add_task()
    claim(office, card)
    office.press("Amal", card, "start")
    office.wait(lambda: "done" in office.buttons(card))
    office.press("Amal", card, "release")
    filled = {"reason": "shift_ending", "handoff_note": "x", "external_action": "unknown"}
    assert office.submit("Amal", filled).closed
    office.wait(lambda: sent_to(office, alerts))
    [alert] = sent_to(office, alerts)
    assert "handed it back" in alert["text"]
    assert "`SUP-1-A1` *unknown*" in alert["text"]


def test_without_an_alert_channel_each_supervisor_is_told_directly(office: Office) -> None:
    office.execute(
        "UPDATE dibs.queue_member SET supervisor = true WHERE user_id = :hana", hana=office.id("Hana")
    )
    office.verify_members()
    office.execute(
        "UPDATE dibs.queue_member SET supervisor = true WHERE user_id = :hana", hana=office.id("Hana")
    )
    lapse(office)
    deliver(office)
    for name in ("Sue", "Hana"):
        [alert] = sent_to(office, name)
        assert "*SUP-1* needs a check" in alert["text"]


# Whatever happens on the way


@pytest.mark.parametrize("how", ["lose_answer", "garbage"])
def test_a_post_whose_answer_was_lost_is_found_and_not_repeated(
    office: Office, alerts: Channel, how: str
) -> None:
    lapse(office)
    for _ in range(2):
        office.slack.faults.fail_next(
            "chat.postMessage", lose_answer=how == "lose_answer", garbage=how == "garbage"
        )
    deliver(office)
    posts = len(office.slack.calls_to("chat.postMessage"))
    due_again(office)
    deliver(office)
    due_again(office)
    deliver(office)
    assert (len(sent_to(office, alerts)), len(sent_to(office, "Amal"))) == (1, 1)
    if how == "lose_answer":
        assert len(office.slack.calls_to("chat.postMessage")) == posts
    assert office.count("outbox", message_ts=None) == 0


def test_a_look_up_that_brings_garbage_does_not_say_that_the_post_is_missing(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    office.slack.faults.fail_next("chat.postMessage", lose_answer=True, times=2)
    deliver(office)
    due_again(office)
    office.slack.faults.fail_next("conversations.history", garbage=True, times=2)
    deliver(office)
    due_again(office)
    deliver(office)
    assert (len(sent_to(office, alerts)), len(sent_to(office, "Amal"))) == (1, 1)
    assert office.count("outbox", message_ts=None) == 0


@pytest.mark.parametrize(
    "fault", [{"cut": True}, {"error": "internal_error"}, {"http_status": 503}, {"error": "fatal_error"}]
)
def test_a_post_that_failed_is_tried_again_within_ten_seconds(
    office: Office, alerts: Channel, fault: dict[str, Any]
) -> None:
    lapse(office, started=True)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    for _ in range(2):
        office.slack.faults.fail_next("chat.postMessage", **fault)
        deliver(office)
        [row] = office.rows(
            "SELECT extract(epoch FROM next_try_at - clock_timestamp()) AS wait FROM dibs.outbox"
        )
        # The job looks every two seconds.
        assert 0 < row["wait"] <= 8
        due_again(office)
    deliver(office)
    assert len(sent_to(office, alerts)) == 1


def test_nothing_is_repeated_while_it_cannot_be_told_whether_it_arrived(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    office.slack.faults.fail_next("chat.postMessage", lose_answer=True)
    deliver(office)
    office.slack.faults.fail_next("conversations.history", error="internal_error", times=3)
    for _ in range(3):
        due_again(office)
        deliver(office)
    assert len(office.slack.calls_to("chat.postMessage")) == 2  # with the card's own
    due_again(office)
    deliver(office)
    assert len(sent_to(office, alerts)) == 1
    assert office.count("outbox", message_ts=None) == 0


def test_a_rate_limit_is_obeyed_and_needs_no_look_up(office: Office, alerts: Channel) -> None:
    lapse(office)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    office.slack.faults.fail_next("chat.postMessage", error="ratelimited", retry_after=1)
    deliver(office)
    due_again(office)
    deliver(office)
    assert sent_to(office, alerts) == []
    assert len(office.slack.calls_to("chat.postMessage")) == 2

    def arrived() -> bool:
        due_again(office)
        deliver(office)
        return len(sent_to(office, alerts)) == 1

    office.wait(arrived)
    assert office.slack.calls_to("conversations.history") == []


def test_several_processes_at_once_post_each_alert_once(
    office: Office, alerts: Channel, second_bot: Bot
) -> None:
    lapse_together(office, 3)
    services = (office.bot.notices, second_bot.notices) * 3
    with ThreadPoolExecutor(len(services)) as threads:
        for delivered in [threads.submit(service.deliver_once) for service in services]:
            delivered.result()
    named = [
        name for name in ("SUP-1", "SUP-2", "SUP-3") for m in sent_to(office, alerts) if name in m["text"]
    ]
    assert named == ["SUP-1", "SUP-2", "SUP-3"]
    assert len(sent_to(office, "Amal")) == 3
    assert office.count("outbox", message_ts=None) == 0


# The newest truth


def test_an_alert_follows_its_task_until_it_is_checked(office: Office, alerts: Channel) -> None:
    lapse(office)
    deliver(office)
    [alert] = sent_to(office, alerts)
    card = card_of(office)
    office.press("Bilal", card, "claim")
    claimed = f"<@{office.id('Bilal')}> has claimed it, and must check"
    office.wait(lambda: claimed in sent_to(office, alerts)[0]["text"])
    office.slack.press(office.id("Sue"), alerts.id, alert["ts"], "task_check")
    assert office.opened("Sue")["callback_id"] == "check"
    assert office.submit("Sue", {"finding": "The bank says no."}).closed
    office.hears("Sue", "Your check of *SUP-1* is recorded")
    checked = f"*SUP-1* was checked by <@{office.id('Sue')}>"
    office.wait(lambda: checked in sent_to(office, alerts)[0]["text"])
    [final] = sent_to(office, alerts)
    assert final["ts"] == alert["ts"]
    assert buttons(final) == ["task_history"]
    assert "bank" not in str(final["blocks"])
    # It is final: what happens to the task later is another matter.
    quiet(office)
    updates = len(office.slack.calls_to("chat.update"))
    office.press("Bilal", card, "renew")
    office.shows(card, "lease until")
    due_again(office)
    deliver(office)
    assert [call.params["channel"] for call in office.slack.calls_to("chat.update")[updates:]].count(
        alerts.id
    ) == 0


def test_an_alert_that_still_matters_goes_where_its_queue_goes(office: Office, alerts: Channel) -> None:
    lapse(office)
    deliver(office)
    [before] = sent_to(office, alerts)
    elsewhere = office.slack.add_channel(
        "elsewhere", members=[person.id for person in office.people.values()]
    )
    queue = office.bot.queues.by_key(office.slack.team_id, "SUP")
    assert queue is not None
    office.bot.delivery.post_again(queue.id, office.channel.id, alert_channel=elsewhere.id)
    deliver(office)
    [alert] = sent_to(office, elsewhere)
    assert alert["text"] == before["text"]
    office.slack.press(office.id("Sue"), elsewhere.id, alert["ts"], "task_check")
    assert office.submit("Sue", {"finding": "The bank says no."}).closed
    office.wait(lambda: "was checked by" in sent_to(office, elsewhere)[0]["text"])
    assert sent_to(office, alerts) == [before]
    # What is over goes nowhere.
    quiet(office)
    office.bot.delivery.post_again(queue.id, office.channel.id, alert_channel=alerts.id)
    deliver(office)
    assert sent_to(office, alerts) == [before]
    assert len(sent_to(office, elsewhere)) == 1


def test_a_press_on_an_alert_redraws_the_card_and_not_the_alert_in_its_place(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    deliver(office)
    office.bot.delivery.deliver_once()
    [alert] = sent_to(office, alerts)
    office.slack.press(office.id("Sue"), alerts.id, alert["ts"], "task_history")
    assert office.opened("Sue")["callback_id"] == "history"
    office.slack.press(office.id("Sue"), alerts.id, alert["ts"], "task_check")
    assert office.submit("Sue", {"finding": "It was not sent."}).closed
    card = card_of(office)
    office.wait(lambda: "check" not in office.buttons(card))
    office.wait(lambda: "was checked by" in sent_to(office, alerts)[0]["text"])
    assert "Claim" not in str(sent_to(office, alerts)[0]["blocks"])


def test_a_refusal_on_an_alert_leads_to_the_card_and_not_back_to_the_alert(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    deliver(office)
    card = card_of(office)
    [alert] = sent_to(office, alerts)
    office.slack.press(office.id("Bilal"), alerts.id, alert["ts"], "task_check")
    told = office.hears("Bilal", "Nothing changed.")
    assert f"/archives/{office.channel.id}/p{card.replace('.', '')}|The current card" in told


def test_an_alert_that_was_deleted_by_hand_is_not_posted_again(office: Office, alerts: Channel) -> None:
    lapse(office)
    deliver(office)
    with office.slack.world.lock:
        alerts.messages.clear()
    office.press("Bilal", card_of(office), "claim")
    office.wait(lambda: office.count("outbox", live=True) == 0)
    deliver(office)
    assert sent_to(office, alerts) == []


# Many at once


def test_many_alerts_for_one_recipient_make_one_message_that_is_redrawn_whole(
    office: Office, alerts: Channel
) -> None:
    lapse_together(office, 5)
    deliver(office)
    [alert] = sent_to(office, alerts)
    assert "*5 of 5 tasks*" in alert["text"]
    for number in range(1, 6):
        assert f"*SUP-{number}*" in alert["text"]
    assert buttons(alert) == ["task_check", "task_history"] * 5
    [told] = sent_to(office, "Amal")
    assert "*5 tasks*" in told["text"]
    deliver(office)
    sue = office.id("Sue")
    third = [b for b in alert["blocks"] if b["type"] == "actions"][2]["block_id"]
    office.slack.press(sue, alerts.id, alert["ts"], "task_check", block_id=third)
    assert "SUP-3" in str(office.opened("Sue"))
    assert office.submit("Sue", {"finding": "It was not sent."}).closed
    office.wait(lambda: "*4 of 5 tasks*" in sent_to(office, alerts)[0]["text"])
    [redrawn] = sent_to(office, alerts)
    assert f"*SUP-3* was <@{office.id('Amal')}>'s: checked by <@{sue}>" in redrawn["text"]
    assert buttons(redrawn).count("task_check") == 4
    assert len(sent_to(office, "Amal")) == 1


def test_a_group_whose_answer_was_lost_is_found_whole(office: Office, alerts: Channel) -> None:
    lapse_together(office, 5)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    office.slack.faults.fail_next("chat.postMessage", lose_answer=True)
    deliver(office)
    due_again(office)
    deliver(office)
    assert len(sent_to(office, alerts)) == 1
    assert office.count("outbox", message_ts=sent_to(office, alerts)[0]["ts"]) == 5
