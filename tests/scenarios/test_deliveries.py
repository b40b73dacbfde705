"""Slack may deliver one press three times, in a row or at once: it changes one thing once."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from tests.support import bodies
from tests.support.bot import Office

from dibs.playground.bot import Answer

Deliver = Callable[[Office, bytes], list[Answer]]


def in_a_row(office: Office, body: bytes) -> list[Answer]:
    return [office.slack.send_raw(body) for _ in range(3)]


def at_once(office: Office, body: bytes) -> list[Answer]:
    return office.slack.together([lambda: office.slack.send_raw(body) for _ in range(3)])


both_ways = pytest.mark.parametrize("deliver", [in_a_row, at_once])


def _quiet(office: Office, name: str, answers: int) -> list[str]:
    """What a person has heard once all the answers have come."""
    office.wait(lambda: len(office.heard(name)) >= answers, lambda: str(office.heard(name)))
    return office.heard(name)


@both_ways
def test_a_claim(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    answers = deliver(office, bodies.interaction(bodies.press(office, "Amal", card, "claim")))
    assert [answer.status for answer in answers] == [200, 200, 200]
    told = _quiet(office, "Amal", 3)
    assert not [words for words in told if "nothing changed" in words.lower()]
    assert all("*SUP-1* is yours" in words for words in told)
    assert office.kinds() == ["created", "claimed"]
    assert office.task()["version"] == 2
    office.shows(card, "Claimed")


@both_ways
def test_a_press_that_is_refused(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    seen = bodies.press(office, "Bilal", card, "claim")
    office.press("Amal", card, "claim")
    deliver(office, bodies.interaction(seen))
    told = _quiet(office, "Bilal", 3)
    assert all(f"<@{office.id('Amal')}> has *SUP-1*" in words for words in told)
    # The delivery that was refused says so; the repeated ones change nothing and do not speak of it.
    assert len([words for words in told if "nothing changed" in words.lower()]) == 1
    assert office.kinds() == ["created", "claimed", "claim_rejected"]


@both_ways
def test_a_press_that_opens_a_form(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    heard = _quiet(office, "Amal", 1)
    deliver(office, bodies.interaction(bodies.press(office, "Amal", card, "release")))
    assert len(office.slack.views(office.id("Amal"))) == 1
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    office.hears("Amal", "You have handed back *SUP-1*")
    # The window is open, so no delivery may say that it was not opened or that nothing changed.
    assert len(office.heard("Amal")) == len(heard) + 1


@both_ways
def test_a_press_whose_form_would_be_refused(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    deliver(office, bodies.interaction(bodies.press(office, "Bilal", card, "release")))
    told = _quiet(office, "Bilal", 3)
    assert all(f"<@{office.id('Amal')}> has *SUP-1*" in words for words in told)
    assert len([words for words in told if "nothing changed" in words.lower()]) == 1
    assert office.kinds() == ["created", "claimed", "release_rejected"]


@both_ways
def test_a_submission(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    office.press("Amal", card, "release")
    body = bodies.interaction(bodies.submission(office, "Amal", {"reason": "shift_ending"}))
    answers = deliver(office, body)
    assert [(answer.status, answer.body) for answer in answers] == [(200, "")] * 3
    told = _quiet(office, "Amal", 4)[1:]
    assert all("You have handed back *SUP-1*" in words for words in told)
    assert office.kinds() == ["created", "claimed", "released"]
    assert office.count("release_card") == 1
    assert office.task()["version"] == 3


@both_ways
def test_a_submission_that_is_refused_stays_open_at_every_delivery(office: Office, deliver: Deliver) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    office.press("Amal", card, "release")
    office.end_lease()
    office.sweep()
    body = bodies.interaction(bodies.submission(office, "Amal", {"reason": "shift_ending"}))
    answers = deliver(office, body)
    assert all('"response_action": "errors"' in answer.body for answer in answers), answers
    assert all("the lease expired" in answer.body for answer in answers)
    assert len([answer for answer in answers if "nothing changed" in answer.body.lower()]) == 1
    assert office.kinds() == ["created", "claimed", "expired", "release_rejected"]
    assert office.count("release_card") == 0


@both_ways
def test_the_command_that_adds_a_task(office: Office, deliver: Deliver) -> None:
    answers = deliver(office, urlencode(bodies.command(office, "Sue", "add Refund order 1001")).encode())
    assert all("*SUP-1* is in the queue" in answer.body for answer in answers)
    assert office.count("task") == 1
    assert office.kinds() == ["created"]
    office.wait(lambda: office.slack.messages(office.channel.id))
    office.bot.delivery.deliver_once()
    assert len(office.slack.messages(office.channel.id)) == 1
    assert "*SUP-2*" in office.type("Sue", "add Another")


@both_ways
def test_the_command_that_takes_the_next_task(office: Office, deliver: Deliver) -> None:
    for title in ("One", "Two", "Three"):
        office.add_task(title)
    office.press("Amal", office.add_task("Four"), "claim")
    answers = deliver(office, urlencode(bodies.command(office, "Amal", "next")).encode())
    # Deliveries at once pass over the row that one of them has locked, so it need not be the first task.
    (given,) = office.rows("SELECT number FROM dibs.task WHERE state = 'claimed' AND number < 4")
    assert all(f"*SUP-{given['number']}* is yours" in answer.body for answer in answers), answers
    assert not [answer for answer in answers if "nothing changed" in answer.body.lower()]
    assert office.count("event", kind="claimed") == 2
    assert office.count("event", kind="claim_rejected") == 0
    assert office.count("task", state="queued") == 2


@both_ways
def test_the_command_that_finds_nothing_to_take(office: Office, deliver: Deliver) -> None:
    office.press("Amal", office.add_task(), "claim")
    answers = deliver(office, urlencode(bodies.command(office, "Bilal", "next")).encode())
    assert all("Nothing is waiting that you may claim." in answer.body for answer in answers), answers
    assert len([answer for answer in answers if "nothing changed" in answer.body.lower()]) == 1
    assert office.count("event", kind="claim_rejected") == 1


@both_ways
def test_the_form_that_makes_a_queue(office: Office, deliver: Deliver) -> None:
    office.type("Dana", "create")
    given = {"name": "Billing", "key": "BIL", "lease_minutes": "30"}
    body = bodies.interaction(bodies.submission(office, "Dana", given))
    answers = deliver(office, body)
    assert [(answer.status, answer.body) for answer in answers] == [(200, "")] * 3
    assert office.count("queue", key="BIL") == 1


@both_ways
def test_the_command_that_opens_a_form(office: Office, deliver: Deliver) -> None:
    answers = deliver(office, urlencode(bodies.command(office, "Dana", "create")).encode())
    assert [(answer.status, answer.body) for answer in answers] == [(200, "")] * 3
    assert len(office.slack.views(office.id("Dana"))) == 1
