"""A card shows the newest state, whoever changed it and from wherever, and stands once in its channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import bodies
from tests.support.bot import SECRET, TOKEN, Office

from dibs.config import Settings
from dibs.wiring import Bot, build


def _at(office: Office, card: str, version: int) -> None:
    office.wait(
        lambda: f'"version":{version}' in str(office.card(card)["blocks"]),
        lambda: f"the card shows {office.card(card)}",
    )


def _cards(office: Office) -> list[dict[str, Any]]:
    return [message for message in office.slack.messages(office.channel.id) if "SUP-1" in message["text"]]


def _settled(office: Office) -> None:
    """Wait until no card is due and none is being sent."""

    def settled() -> bool:
        # What has to wait for Slack's limits, such as one post a second, is sent by a later run of the job.
        office.bot.delivery.deliver_once()
        return not office.rows(
            "SELECT FROM dibs.card "
            "WHERE (shown_version < wanted_version AND disabled IS NULL) OR sender IS NOT NULL"
        )

    office.slack.wait_until(settled, timeout=60)


def test_a_card_is_redrawn_after_every_change_from_whatever_surface(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")  # a press
    _at(office, card, 2)
    office.press("Amal", card, "note")
    assert office.submit("Amal", {"text": "x"}).closed  # a form
    _at(office, card, 3)
    office.end_lease()
    office.sweep()  # the sweep
    _at(office, card, 4)
    assert "*SUP-1* is yours" in office.type("Bilal", "next")  # a command
    _at(office, card, 5)
    # An operator's hand, who also says that the card is due.
    office.execute("UPDATE dibs.task SET title = 'Another title', version = version + 1")
    office.execute("UPDATE dibs.card SET wanted_version = wanted_version + 1")

    def redrawn() -> bool:
        # A card that was redrawn a moment ago is left alone for some seconds.
        office.bot.delivery.deliver_once()
        return "Another title" in office.card(card)["text"]

    office.wait(redrawn)
    _at(office, card, 6)
    assert len(_cards(office)) == 1


def test_a_press_redraws_its_card_without_the_web_api(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    before = len(office.slack.calls)
    office.press("Amal", card, "claim")
    office.hears("Amal", "is yours")
    _at(office, card, 2)
    assert {call.method for call in office.slack.calls[before:]} <= {
        "response_url", "conversations.members", "users.info"
    }  # fmt: skip


def test_a_burst_of_changes_ends_at_the_newest_and_costs_fewer_updates(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    office.slack.faults.fail_next("response_url", delay=0.4, times=2)
    office.press("Amal", card, "claim")
    before = len(office.slack.calls_to("chat.update"))
    task = office.task()
    for version in range(2, 12):
        value = f'{{"task":{task["id"]},"version":{version}}}'
        payload = bodies.press(office, "Amal", card, "history", action_id="task_renew", value=value)
        payload["response_url"] = None
        assert office.slack.send_raw(bodies.interaction(payload)).status == 200
    assert office.task()["version"] == 12
    office.bot.delivery.deliver_once()
    _at(office, card, 12)
    _settled(office)
    assert len(office.slack.calls_to("chat.update")) - before < 10


def test_a_card_that_was_deleted_by_hand_is_posted_again_once_at_the_next_change(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    _settled(office)
    office.slack.delete_message(office.channel.id, card)
    office.bot.delivery.deliver_once()
    assert _cards(office) == []
    office.end_lease()
    office.sweep()
    _settled(office)
    office.bot.delivery.deliver_once()
    (again,) = _cards(office)
    assert "Returned to the queue" in again["text"]
    office.press("Bilal", again["ts"], "claim")
    _at(office, again["ts"], 4)
    assert len(_cards(office)) == 1


def test_an_archived_channel_ends_its_delivery_and_leaves_other_queues_alone(office: Office) -> None:
    posted = office.add_task()
    _settled(office)
    office.press("Amal", posted, "claim")
    _at(office, posted, 2)
    _settled(office)
    billing = office.slack.add_channel("billing", members=[office.id("Dana"), office.id("Sue")])
    office.slack.command(office.id("Sue"), billing.id, "/queue", "create")
    assert office.submit("Sue", {"name": "Billing", "key": "BIL", "lease_minutes": "30"}).closed
    office.slack.archive(office.channel.id)
    office.type("Sue", "add SUP Posted into an archive")
    office.end_lease()
    office.bot.sweep.sweep_once()
    office.bot.delivery.deliver_once()
    _settled(office)
    disabled = office.rows(
        "SELECT t.number, c.disabled FROM dibs.card c JOIN dibs.task t ON t.id = c.task_id"
    )
    assert all(row["disabled"] for row in disabled), disabled
    tried = len(office.slack.calls_to("chat.postMessage")), len(office.slack.calls_to("chat.update"))
    office.bot.delivery.deliver_once()
    assert (
        len(office.slack.calls_to("chat.postMessage")),
        len(office.slack.calls_to("chat.update")),
    ) == tried
    office.slack.command(office.id("Sue"), billing.id, "/queue", "add An invoice")
    office.wait(lambda: [m for m in office.slack.messages(billing.id) if "BIL-1" in m["text"]])


def test_a_queue_made_before_dibs_was_invited_shows_its_cards_once_it_is(office: Office) -> None:
    channel = office.slack.add_channel("later", members=[office.id("Sue"), office.id("Dana")], bot=False)
    office.slack.command(office.id("Sue"), channel.id, "/queue", "create")
    assert office.submit("Sue", {"name": "Later", "key": "LAT", "lease_minutes": "30"}).closed
    office.hears("Sue", "invite Dibs to the channel")
    office.slack.command(office.id("Sue"), channel.id, "/queue", "add Something")
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE disabled IS NOT NULL"))
    office.slack.join(office.slack.bot_user_id, channel.id)
    office.bot.delivery.deliver_once()
    office.wait(
        lambda: len(office.slack.messages(channel.id)) == 1,
        lambda: str(office.rows("SELECT * FROM dibs.card")),
    )


def test_a_rate_limit_is_obeyed_and_not_multiplied(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    office.slack.faults.fail_next("chat.postMessage", error="ratelimited", retry_after=2)
    office.type("Sue", "add Task 2")
    office.wait(lambda: len(office.slack.calls_to("chat.postMessage")) == 2)
    office.wait(lambda: not office.rows("SELECT FROM dibs.card WHERE sender IS NOT NULL"))
    for number in range(3, 8):
        office.type("Sue", f"add Task {number}")
    for _ in range(3):
        office.bot.delivery.deliver_once()
    assert len(office.slack.calls_to("chat.postMessage")) == 2
    # Presses on a card that stands are not held up by it.
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    office.execute("UPDATE dibs.card SET next_try_at = now() WHERE message_ts IS NULL")

    def all_posted() -> bool:
        office.bot.delivery.deliver_once()
        return office.count("card", shown_version=1) == 6

    office.wait(all_posted)
    limited, next_one = office.slack.calls_to("chat.postMessage")[1:3]
    assert next_one.at - limited.at >= 2
    assert len(office.slack.messages(office.channel.id)) == 7
    assert office.slack.calls_to("conversations.history") == []


def test_a_post_whose_answer_is_lost_does_not_double_the_card(office: Office) -> None:
    office.slack.faults.fail_next("chat.postMessage", lose_answer=True)
    office.type("Sue", "add Refund order 1001")
    office.wait(lambda: _cards(office))
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE sender IS NULL AND attempts = 1"))
    office.execute("UPDATE dibs.card SET next_try_at = now()")
    office.bot.delivery.deliver_once()
    _settled(office)
    assert len(_cards(office)) == 1
    office.press("Amal", _cards(office)[0]["ts"], "claim")
    _at(office, _cards(office)[0]["ts"], 2)


@pytest.mark.parametrize("fault", ["ratelimited", "http", "fatal_error"])
def test_a_post_whose_answer_is_lost_is_not_repeated_while_the_channel_cannot_be_looked_at(
    office: Office, fault: str
) -> None:
    if fault == "http":
        office.slack.faults.fail_next("conversations.history", http_status=503)
    else:
        office.slack.faults.fail_next("conversations.history", error=fault)
    office.slack.faults.fail_next("chat.postMessage", lose_answer=True)
    office.type("Sue", "add Refund order 1001")
    office.wait(lambda: _cards(office))
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE sender IS NULL AND attempts = 1"))
    office.execute("UPDATE dibs.card SET next_try_at = now()")
    office.bot.delivery.deliver_once()
    assert len(_cards(office)) == 1

    def found() -> bool:
        office.execute("UPDATE dibs.card SET next_try_at = now()")
        office.bot.delivery.deliver_once()
        return office.count("card", shown_version=1) == 1

    office.wait(found)
    assert len(_cards(office)) == 1


def test_an_answer_url_that_is_used_up_falls_back_to_the_web_api(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    office.slack.faults.fail_next("response_url", error="used_url", http_status=404, times=2)
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    office.wait(lambda: office.slack.calls_to("chat.update"))
    office.hears("Amal", "*SUP-1* is yours")
    office.wait(lambda: office.slack.calls_to("chat.postEphemeral"))


def test_an_answer_of_which_no_word_came_back_is_not_said_twice(office: Office) -> None:
    card = office.add_task()
    _settled(office)
    # The answer arrives and so does the redrawn card; that they did is lost on the way back.
    office.slack.faults.fail_next("response_url", lose_answer=True, times=2)
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    office.hears("Amal", "*SUP-1* is yours")
    office.wait(lambda: office.slack.calls_to("chat.update"))
    _settled(office)
    assert len(office.heard("Amal")) == 1
    assert office.slack.calls_to("chat.postEphemeral") == []


def test_a_queue_in_an_archived_channel_shows_its_card_at_the_next_change_once_it_is_back(
    office: Office,
) -> None:
    card = office.add_task()
    _settled(office)
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    _settled(office)
    office.slack.archive(office.channel.id)
    office.end_lease()
    office.sweep()
    assert office.rows("SELECT disabled FROM dibs.card") == [{"disabled": "is_inactive"}]
    with office.slack.world.lock:
        office.slack.world.channels[office.channel.id].is_archived = False
    office.bot.delivery.deliver_once()
    assert '"version":2' in str(office.card(card)["blocks"])
    assert "*SUP-1* is yours" in office.type("Bilal", "next")
    _at(office, card, 4)


@pytest.mark.parametrize("error", ["edit_window_closed", "cant_update_message"])
def test_a_card_that_can_no_longer_be_changed_is_posted_anew(office: Office, error: str) -> None:
    card = office.add_task()
    _settled(office)
    office.press("Amal", card, "claim")
    _at(office, card, 2)
    _settled(office)
    office.end_lease()
    office.bot.sweep.sweep_once()
    office.slack.faults.fail_next("chat.update", error=error)
    office.bot.delivery.deliver_once()
    _settled(office)
    assert len(_cards(office)) == 2
    assert "Returned to the queue" in _cards(office)[1]["text"]


@pytest.fixture
def twin(office: Office, database_url: str) -> Iterator[Bot]:
    """A second bot on the same database."""
    settings = Settings(
        slack_bot_token=TOKEN,
        slack_signing_secret=SECRET,
        slack_api_url=office.slack.api_url,
        database_url=database_url,
        port=0,
        threads=2,
    )
    bot = build(settings, database_url)
    yield bot
    bot.close()


def test_two_bots_on_one_database_do_not_double_cards(office: Office, twin: Bot) -> None:
    for number in range(1, 11):
        office.slack.faults.fail_next("chat.postMessage", delay=0.02)
        office.type("Sue", f"add Task {number}")
        office.slack.together([office.bot.delivery.deliver_once, twin.delivery.deliver_once])
    _settled(office)
    texts = [message["text"].split("*")[1] for message in office.slack.messages(office.channel.id)]
    assert sorted(texts) == sorted(f"SUP-{number}" for number in range(1, 11))


def test_a_card_is_never_overwritten_with_an_older_state_by_another_bot(office: Office, twin: Bot) -> None:
    card = office.add_task()
    _settled(office)
    office.slack.faults.fail_next("response_url", delay=0.5, times=2)
    office.press("Amal", card, "claim")
    office.end_lease()
    office.bot.sweep.sweep_once()
    # The first bot is still sending version 2; the second must leave the card to it.
    twin.delivery.deliver_once()
    _at(office, card, 3)
    _settled(office)
    office.shows(card, "Returned to the queue")
    assert office.rows("SELECT shown_version FROM dibs.card") == [{"shown_version": 3}]
