"""Over Socket Mode Dibs does all that it does over HTTP, and no request of Slack's arrives there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.bot import SECRET, TOKEN, Office
from tests.support.holders import LOCK, Pressed, holder, wait_for_waiters
from tests.support.slack import request

from dibs.config import Settings
from dibs.playground import SlackStandIn
from dibs.store.engine import BACKGROUND, make_engine
from dibs.wiring import build

# The package needs it; an environment that was made before it did has everything else to test.

APP_TOKEN = "xapp-1-an-app-token"  # noqa: S105 - the tests' own
PEOPLE = ("Amal", "Bilal", "Hana", "Sue")


@contextmanager
def open_office_by_socket(database_url: str, *, threads: int) -> Iterator[Office]:
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN, app_token=APP_TOKEN) as slack:
        settings = Settings(
            slack_bot_token=TOKEN,
            slack_signing_secret=SECRET,
            slack_app_token=APP_TOKEN,
            slack_api_url=slack.api_url,
            database_url=database_url,
            port=0,
            data_dir=Path(),
            threads=threads,
        )
        bot = build(settings, database_url)
        serving = threading.Thread(target=bot.http.run)
        serving.start()
        members = {name: slack.add_person(name) for name in PEOPLE}
        channel = slack.add_channel("support", members=[person.id for person in members.values()])
        engine = make_engine(database_url, BACKGROUND, pool_size=2)
        try:
            assert bot.socket is not None
            bot.socket.connect()
            slack.wait_until(lambda: slack.sockets.connected == 1)
            yield Office(slack, bot, channel, members, engine)
        finally:
            bot.close()
            serving.join()
            engine.dispose()


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    with open_office_by_socket(database_url, threads=6) as office:
        office.make_queue()
        yield office


@pytest.fixture
def one_at_a_time(database_url: str) -> Iterator[Office]:
    """An office whose bot answers one request after the other."""
    with open_office_by_socket(database_url, threads=1) as office:
        office.make_queue()
        yield office


def test_presses_over_it_are_timed_like_those_over_http(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    url = f"http://127.0.0.1:{office.bot.http.port}/metrics"

    def timed() -> bool:
        # It is counted once the acknowledgement has left.
        return 'dibs_acknowledgement_seconds_count{kind="press"} 1.0' in request("GET", url)[1]

    office.wait(timed)


def test_the_main_job(office: Office) -> None:
    card = office.add_task()
    results = office.slack.together(
        [lambda name=name: office.press(name, card, "claim") for name in PEOPLE[:3]]  # type: ignore[misc]
    )
    assert [result.status for result in results] == [200, 200, 200]
    owner = office.name_of(office.task()["owner_id"])
    office.hears(owner, "*SUP-1* is yours")
    for name in {*PEOPLE[:3]} - {owner}:
        office.hears(name, f"<@{office.id(owner)}> has *SUP-1*")
    office.press(owner, card, "start")
    office.shows(card, "In progress")
    # A form that lacks something stays open and says so; its answer is in the acknowledgement.
    office.press(owner, card, "release")
    assert not office.submit(
        owner, {"reason": "other", "external_action": "none", "handoff_note": "x"}
    ).closed
    given = {"reason": "shift_ending", "external_action": "none", "handoff_note": "Ask the bank."}
    result = office.submit(owner, given)
    assert (result.status, result.closed) == (200, True)
    office.shows(card, "Ask the bank.")
    # So is a command's.
    assert "*SUP-1* is yours" in office.type("Hana", "next")
    assert office.kinds()[-1] == "claimed"
    left = office.slack.leave(office.id("Hana"), office.channel.id)
    assert left is not None
    assert left.status == 200
    assert office.count("queue_member", user_id=office.id("Hana"), standing="left") == 1


def test_slack_reaches_dibs_by_the_connection_alone(office: Office) -> None:
    base = f"http://127.0.0.1:{office.bot.http.port}"
    assert request("POST", f"{base}/slack/events", b"{}")[0] == 404
    assert request("GET", f"{base}/readyz")[0] == 200


@pytest.mark.parametrize("trouble", ["refresh", "cut"])
def test_the_connection_is_opened_anew(office: Office, trouble: str) -> None:
    card = office.add_task()
    getattr(office.slack.sockets, trouble)()
    office.slack.wait_until(lambda: office.slack.sockets.connected == 0)
    office.slack.wait_until(lambda: office.slack.sockets.connected == 1, timeout=60)
    office.slack.wait_until(lambda: not office.press("Amal", card, "claim").failed)
    office.hears("Amal", "*SUP-1* is yours")


def test_what_cannot_be_read_is_acknowledged_all_the_same(office: Office) -> None:
    strange: list[dict[str, Any]] = [
        {"type": "block_actions", "actions": "none"},
        {"type": "block_actions", "actions": [None], "user": 7},
        {"type": ["odd"], "view": 1},
        {"type": "event_callback", "event": {"type": ["odd"]}},
        {"type": "event_callback", "event": {"type": "nothing_known"}},
        {"type": "event_callback", "event": 7},
        {},
    ]
    for payload in strange:
        envelope = {"type": "interactive", "payload": payload, "accepts_response_payload": False}
        assert office.slack.sockets.send(envelope, 3.0, lambda: None).status == 200, payload
    assert "*SUP-1* is in the queue" in office.type("Sue", "add Something")


def test_time_that_a_request_spent_waiting_for_its_turn_counts(
    one_at_a_time: Office, database_url: str
) -> None:
    office = one_at_a_time
    office.verify_members()
    card = office.add_task()
    nina = office.slack.add_person("Nina")
    with holder(database_url) as somebody, holder(database_url) as another:
        somebody.do(LOCK, id=office.task()["id"])
        another.do("LOCK TABLE dibs.queue_member IN SHARE MODE")
        presses = [
            Pressed(lambda name=name: office.press(name, card, "claim"))  # type: ignore[misc]
            for name in PEOPLE[:3]
        ]
        wait_for_waiters(database_url)
        office.wait(lambda: office.bot.socket and office.bot.socket._unanswered == 3)  # noqa: SLF001
        joined = office.slack.join(nina.id, office.channel.id)
        results = [press.answer() for press in presses]
    assert joined is not None
    for result in (*results, joined):
        assert (result.status, result.seconds < 3) == (200, True)


def test_answers_that_are_on_their_way_go_out_before_the_connection_is_closed(
    office: Office, database_url: str
) -> None:
    card = office.add_task()
    office.verify_members()
    assert office.bot.socket is not None
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=office.task()["id"])
        pressed = Pressed(lambda: office.press("Amal", card, "claim"))
        wait_for_waiters(database_url)
        closing = Pressed(office.bot.socket.close)
        somebody.rollback()
    assert pressed.answer().status == 200
    closing.answer()
    office.slack.wait_until(lambda: office.slack.sockets.connected == 0)
    assert office.task()["owner_id"] == office.id("Amal")
