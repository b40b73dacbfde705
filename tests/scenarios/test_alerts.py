"""What Dibs says of its own accord arrives once, whatever happens on the way, and shows the newest truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.bot import Office, another_bot

from dibs.playground import Channel
from dibs.service.transitions import TransitionService
from dibs.wiring import Bot

Message = dict[str, Any]


@pytest.fixture
def alerts(office: Office) -> Channel:
    """The queue's alert channel, with its supervisor in it."""
    channel = office.slack.add_channel("alerts", members=[office.id("Sue")])
    office.execute("UPDATE dibs.queue SET alert_channel = :channel", channel=channel.id)
    return channel


@pytest.fixture
def second_bot(office: Office, database_url: str) -> Iterator[Bot]:
    with another_bot(office, database_url) as bot:
        yield bot


def lapse(office: Office, *, started: bool = True, number: int = 1, by: str = "Amal") -> None:
    """Let a new task's lease run out, and have the sweep return it. Nothing is sent yet."""
    card = office.add_task()
    claim(office, card, by=by)
    if started:
        office.press(by, card, "start")
    quiet(office)
    office.end_lease(number)
    office.bot.sweep.sweep_once()


def quiet(office: Office) -> None:
    """Wait until all that presses caused is sent, so that a test alone sends what comes next."""
    office.wait(lambda: office.bot.outgoing.waiting == 0)


def lapse_together(office: Office, tasks: int) -> None:
    """Let several tasks that were started lapse, and one sweep return them all."""
    for _ in range(tasks):
        card = office.add_task()
        claim(office, card)
        office.press("Amal", card, "start")
    quiet(office)
    for number in range(1, tasks + 1):
        office.end_lease(number)
    office.bot.sweep.sweep_once()


def card_of(office: Office, number: int = 1) -> str:
    """The task's card, up to date."""

    def up_to_date() -> bool:
        # A card that was redrawn a moment ago is left alone for some seconds.
        office.bot.delivery.deliver_once()
        return not office.rows("SELECT FROM dibs.card WHERE shown_version < wanted_version")

    office.wait(up_to_date)
    [ts] = [m["ts"] for m in office.slack.messages(office.channel.id) if f"*SUP-{number}*" in m["text"]]
    return str(ts)


def claim(office: Office, card: str, *, by: str = "Amal") -> None:
    office.press(by, card, "claim")
    office.wait(lambda: "start" in office.buttons(card))


def sent_to(office: Office, where: Channel | str) -> list[Message]:
    """The messages in a channel, or to a person, oldest first."""
    if isinstance(where, str):
        return office.slack.direct_messages(office.id(where))
    return office.slack.messages(where.id)


def buttons(message: Message) -> list[str]:
    return [
        element["action_id"]
        for block in message["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def due_again(office: Office) -> None:
    """Let the time pass until what failed is tried again."""
    office.execute(
        "UPDATE dibs.outbox SET next_try_at = clock_timestamp() - interval '1 second', "
        "sender_until = sender_until - interval '1 hour'"
    )


def deliver(office: Office) -> None:
    office.bot.notices.deliver_once()


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


@pytest.mark.parametrize(
    "fault", [{"cut": True}, {"error": "internal_error"}, {"http_status": 503}, {"error": "fatal_error"}]
)
def test_a_post_that_failed_is_tried_again_within_ten_seconds(
    office: Office, alerts: Channel, fault: dict[str, Any]
) -> None:
    lapse(office, started=True)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    for _ in range(4):
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


# Recipients that are gone


def _archived(_: Office, alerts: Channel) -> None:
    alerts.is_archived = True


def _without_dibs(office: Office, alerts: Channel) -> None:
    alerts.members.remove(office.slack.bot_user_id)


def _deleted(office: Office, alerts: Channel) -> None:
    del office.slack.world.channels[alerts.id]


@pytest.mark.parametrize("happens", [_archived, _without_dibs, _deleted])
def test_an_alert_channel_that_is_gone_is_replaced_by_the_supervisors(
    office: Office, alerts: Channel, happens: Callable[[Office, Channel], None]
) -> None:
    with office.slack.world.lock:
        happens(office, alerts)
    lapse(office)
    deliver(office)
    due_again(office)
    deliver(office)
    [alert] = sent_to(office, "Sue")
    assert "*SUP-1* needs a check" in alert["text"]
    assert f"<#{alerts.id}> cannot be reached" in alert["text"]
    [row] = office.rows("SELECT given_up, live FROM dibs.outbox WHERE recipient = :c", c=alerts.id)
    assert row["given_up"] in ("is_archived", "not_in_channel", "channel_not_found")
    assert not row["live"]


def test_of_a_former_owner_who_is_gone_the_supervisors_hear(office: Office, alerts: Channel) -> None:
    lapse(office, started=False)
    with office.slack.world.lock:
        office.people["Amal"].deleted = True
    deliver(office)
    due_again(office)
    deliver(office)
    [alert] = sent_to(office, alerts)
    assert f"write to <@{office.id('Amal')}> any more" in alert["text"]
    assert "*SUP-1*" in alert["text"]
    assert office.count("outbox", given_up="user_disabled") == 1


def test_a_supervisor_who_is_gone_holds_up_no_other(office: Office) -> None:
    office.verify_members()
    office.execute(
        "UPDATE dibs.queue_member SET supervisor = true WHERE user_id = :hana", hana=office.id("Hana")
    )
    with office.slack.world.lock:
        office.people["Hana"].deleted = True
    lapse(office)
    deliver(office)
    deliver(office)
    told = [message["text"] for message in sent_to(office, "Sue")]
    assert len(told) == 2
    assert "needs a check" in told[0]
    assert f"write to <@{office.id('Hana')}> any more" in told[1]


# Owners and channels that are gone


def test_of_an_owner_who_leaves_the_supervisors_hear_once_until_the_task_is_in_other_hands(
    office: Office, alerts: Channel
) -> None:
    card = office.add_task()
    claim(office, card)
    quiet(office)
    office.slack.leave(office.id("Amal"), office.channel.id)
    for _ in range(2):
        office.bot.reminders.report_owners_gone()
        deliver(office)
    [alert] = sent_to(office, alerts)
    assert f"<@{office.id('Amal')}> may no longer claim in this queue, and still has *SUP-1*" in alert["text"]
    office.press("Amal", card, "renew")
    quiet(office)
    office.bot.reminders.report_owners_gone()
    deliver(office)
    assert len(sent_to(office, alerts)) == 1
    office.press("Amal", card, "release")
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    office.wait(lambda: "is back in the queue" in sent_to(office, alerts)[0]["text"])
    office.wait(lambda: office.count("outbox", live=True) == 0)


def test_of_a_deactivated_owner_the_supervisors_hear(office: Office, alerts: Channel) -> None:
    claim(office, office.add_task())
    office.execute(
        "UPDATE dibs.queue_member SET standing = 'deactivated' WHERE user_id = :amal", amal=office.id("Amal")
    )
    assert office.bot.reminders.report_owners_gone() == 1
    deliver(office)
    [alert] = sent_to(office, alerts)
    assert "has no active account any more, and still has *SUP-1*" in alert["text"]


def test_an_archived_channel_is_reported_once_and_leaves_every_other_queue_alone(
    office: Office, alerts: Channel
) -> None:
    cards = [office.add_task(), office.add_task()]
    other = office.slack.add_channel("billing", members=[office.id("Sue"), office.id("Amal")])
    office.slack.command(office.id("Sue"), other.id, "/queue", "create")
    assert office.submit("Sue", {"name": "Billing", "key": "BIL", "lease_minutes": "30"}).closed
    office.slack.archive(office.channel.id)
    office.slack.command(office.id("Sue"), other.id, "/queue", "add Pay")
    office.wait(lambda: office.slack.messages(other.id))
    office.execute("UPDATE dibs.task SET version = version + 1")
    office.execute("UPDATE dibs.card SET wanted_version = wanted_version + 1")
    for _ in range(2):
        office.bot.delivery.deliver_once()
        deliver(office)
    [alert] = sent_to(office, alerts)
    assert f"<#{office.channel.id}> of *Support* (SUP) is archived" in alert["text"]
    [pay] = office.slack.messages(other.id)
    office.slack.press(office.id("Amal"), other.id, pay["ts"], "task_claim")
    office.wait(lambda: "Claimed" in office.slack.messages(other.id)[0]["text"])
    # It is back: what was given up is sent, once Slack says so.
    with office.slack.world.lock:
        office.channel.is_archived = False
    office.slack.tell({"type": "channel_unarchive", "channel": office.channel.id, "user": office.id("Sue")})
    office.wait(
        lambda: (
            office.count("card", disabled=None) == 3
            and not office.rows("SELECT FROM dibs.card WHERE shown_version < wanted_version")
        )
    )
    assert len(office.slack.messages(office.channel.id)) == len(cards)


# What supervisors did


def test_both_owners_of_a_transferred_task_hear_of_it_and_so_does_who_lost_one(
    office: Office, alerts: Channel
) -> None:
    office.verify_members()
    office.execute("UPDATE dibs.queue SET supervisor_operations = true")
    claim(office, office.add_task())
    quiet(office)
    service, sue, bilal = TransitionService(office.engine), office.id("Sue"), office.id("Bilal")
    assert service.transfer(1, sue, 2, bilal, reason="Their shift ended early.").changed
    deliver(office)
    [taken], [given] = sent_to(office, "Amal"), sent_to(office, "Bilal")
    assert f"<@{sue}>, a supervisor, gave *SUP-1* to somebody else" in taken["text"]
    assert f"<@{sue}>, a supervisor, gave you *SUP-1*. It is yours until" in given["text"]
    assert service.start(1, bilal, 3).changed
    assert service.force_release(1, sue, 4, reason="shift_ending").changed
    deliver(office)
    assert f"<@{sue}>, a supervisor, returned *SUP-1* to the queue" in sent_to(office, "Bilal")[1]["text"]
    [alert] = sent_to(office, alerts)
    assert f"<@{sue}> returned it to the queue as a supervisor" in alert["text"]
    assert f"<@{bilal}> had started it" in alert["text"]
    assert "shift ended early" not in f"{taken}{given}{alert}"


# Brakes


def test_a_spike_is_told_once_with_its_figures_and_the_alert_says_who_resumed(
    office: Office, alerts: Channel
) -> None:
    office.execute("UPDATE dibs.queue SET spike_limit = 2, spike_minutes = 15")
    for _ in range(3):
        claim(office, office.add_task())
    quiet(office)
    for number in (1, 2, 3):
        office.end_lease(number)
    for _ in range(2):
        office.bot.sweep.sweep_once()
        deliver(office)
    [alert] = sent_to(office, alerts)
    for words in ("*Support* (SUP) is paused", "3 leases", "the limit is 2 within 15 minutes"):
        assert words in alert["text"]
    assert buttons(alert) == ["queue_resume"]
    office.type("Sue", "resume")
    office.wait(lambda: f"was resumed by <@{office.id('Sue')}>" in sent_to(office, alerts)[0]["text"])
    [resumed] = sent_to(office, alerts)
    assert buttons(resumed) == []
