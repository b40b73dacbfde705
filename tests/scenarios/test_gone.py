"""Recipients, owners and channels that are gone, and what supervisors and brakes did, are told of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.alerts import buttons, claim, deliver, due_again, lapse, quiet, sent_to
from tests.support.bot import Office

from dibs.playground import Channel
from dibs.service.transitions import TransitionService

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


def test_of_a_former_owner_who_is_gone_and_no_member_the_supervisors_hear_just_that(
    office: Office, alerts: Channel
) -> None:
    lapse(office, started=False)
    office.execute("DELETE FROM dibs.queue_member WHERE user_id = :amal", amal=office.id("Amal"))
    with office.slack.world.lock:
        office.people["Amal"].deleted = True
    for _ in range(3):
        deliver(office)
        due_again(office)
    [alert] = sent_to(office, alerts)
    assert f"write to <@{office.id('Amal')}> any more" in alert["text"]
    assert sent_to(office, "Sue") == []


def test_an_alert_channel_in_which_dibs_may_not_post_is_replaced_by_the_supervisors(
    office: Office, alerts: Channel
) -> None:
    lapse(office)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")
    office.slack.faults.fail_next("chat.postMessage", error="restricted_action")
    deliver(office)
    due_again(office)
    deliver(office)
    [alert] = sent_to(office, "Sue")
    assert f"<#{alerts.id}> cannot be reached" in alert["text"]
    assert sent_to(office, alerts) == []


def _gone_in_slack(office: Office) -> None:
    with office.slack.world.lock:
        for name in ("Sue", "Hana"):
            office.people[name].deleted = True


def _known_to_be_gone(office: Office) -> None:
    office.execute("UPDATE dibs.queue_member SET standing = 'deactivated' WHERE supervisor")


def _none(office: Office) -> None:
    office.execute("UPDATE dibs.queue_member SET supervisor = false")


@pytest.mark.parametrize("happens", [_gone_in_slack, _known_to_be_gone, _none])
def test_where_no_supervisor_can_be_reached_the_queues_channel_is_told_once(
    office: Office, happens: Callable[[Office], None]
) -> None:
    office.verify_members()
    office.execute(
        "UPDATE dibs.queue_member SET supervisor = true WHERE user_id = :hana", hana=office.id("Hana")
    )
    office.execute("UPDATE dibs.queue SET spike_limit = 1")
    cards = [office.add_task(), office.add_task()]
    for card in cards:
        claim(office, card)
    quiet(office)
    for number in (1, 2):
        office.end_lease(number)
    happens(office)
    office.bot.sweep.sweep_once()
    for _ in range(4):
        deliver(office)
        due_again(office)
    alert, *more = [message for message in sent_to(office, office.channel) if message["ts"] not in cards]
    assert "*Support* (SUP) is paused: 2 leases" in alert["text"]
    assert ("none of the queue's supervisors" in alert["text"]) == (happens is _gone_in_slack)
    # The only others tell of an alert that did not arrive.
    assert not [message for message in more if "is paused" in message["text"]]


def test_where_neither_alert_channel_nor_supervisor_is_left_the_queues_channel_is_told(
    office: Office, alerts: Channel
) -> None:
    office.slack.archive(alerts.id)
    with office.slack.world.lock:
        office.people["Sue"].deleted = True
    lapse(office)
    for _ in range(5):
        deliver(office)
        due_again(office)
    said = [message["text"] for message in sent_to(office, office.channel)]
    assert len([text for text in said if "needs a check before anything is repeated" in text]) == 1


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
    assert f"<@{sue}>, a supervisor, gave *SUP-1* to <@{bilal}>, so it is no longer yours." in taken["text"]
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
