"""Dibs does its main job with no more than each of its manifests grants it and tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.bot import SECRET, TOKEN, Office, open_office

from dibs.config import Settings
from dibs.playground import SlackStandIn
from dibs.playground.limits import BURST
from dibs.store.engine import BACKGROUND, make_engine
from dibs.wiring import build

MANIFESTS = Path(__file__).parents[2] / "manifests"
PEOPLE = ("Amal", "Bilal", "Sue")


def manifest(name: str) -> dict[str, Any]:
    told = json.loads((MANIFESTS / name).read_text())
    assert isinstance(told, dict)
    return told


def lives_through_its_main_job(office: Office) -> None:
    office.make_queue()
    card = office.add_task()
    as_drawn = office.card(card)
    assert not office.press("Amal", card, "claim").failed
    assert not office.slack.press_stale(
        office.id("Bilal"), as_drawn, "task_claim", channel_id=office.channel.id
    ).failed
    office.hears("Bilal", f"<@{office.id('Amal')}>")
    office.wait(lambda: "start" in office.buttons(card))
    assert not office.press("Amal", card, "start").failed
    office.wait(lambda: "done" in office.buttons(card))
    office.press("Amal", card, "release")
    assert office.submit("Amal", {"reason": "other", "external_action": "none"}).errors
    values = {"reason": "shift_ending", "handoff_note": "Half way.", "external_action": "none"}
    assert office.submit("Amal", values).closed
    office.wait(lambda: "claim" in office.buttons(card))
    newcomer = office.slack.add_person("Noor")
    joined = office.slack.join(newcomer.id, office.channel.id)
    assert joined
    assert joined.status == 200
    office.people["Noor"] = newcomer
    office.press("Noor", card, "claim")
    assert office.task()["owner_id"] == newcomer.id
    office.end_lease()
    office.sweep()
    assert office.task()["state"] == "queued"
    refused = [one for one in office.slack.calls if not one.response.get("ok", True)]
    assert refused == []


def test_over_http(database_url: str) -> None:
    with open_office(database_url, people=PEOPLE, threads=6) as office:
        office.slack.install(manifest("slack-http.json"))
        lives_through_its_main_job(office)


def test_within_slacks_rate_limits(database_url: str) -> None:
    with open_office(database_url, people=PEOPLE, threads=6) as office:
        office.slack.rate_limits = True
        office.make_queue()
        number = BURST + 2
        for each in range(number):
            office.type("Sue", f"add Task {each}")

        def posted() -> bool:
            office.bot.delivery.deliver_once()
            return len(office.slack.messages(office.channel.id)) == number

        office.wait(posted)
        limited = [one.method for one in office.slack.calls if one.response.get("error") == "ratelimited"]
        assert not limited
        names = [message["text"].split("*")[1] for message in office.slack.messages(office.channel.id)]
        assert sorted(names) == [f"SUP-{each + 1}" for each in range(number)]


def test_over_socket_mode(database_url: str) -> None:
    with office_on_socket(database_url) as office:
        office.slack.install(manifest("slack-socket.json"))
        assert office.bot.socket
        office.bot.socket.connect()
        # The bot may know that it is connected a moment before Slack counts the connection.
        office.wait(lambda: office.slack.sockets.connected == 1)
        lives_through_its_main_job(office)
        assert office.slack.sockets.connected == 1
        assert office.slack.bot_url == ""


@contextmanager
def office_on_socket(database_url: str) -> Iterator[Office]:
    app_token = f"xapp-{TOKEN}"
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN, app_token=app_token) as slack:
        settings = Settings(
            slack_bot_token=TOKEN,
            slack_app_token=app_token,
            slack_api_url=slack.api_url,
            database_url=database_url,
            port=0,
            data_dir=Path(),
            threads=6,
        )
        bot = build(settings, settings.database_url)
        serving = threading.Thread(target=bot.http.run)
        serving.start()
        people = {name: slack.add_person(name) for name in PEOPLE}
        channel = slack.add_channel("support", members=[person.id for person in people.values()])
        engine = make_engine(database_url, BACKGROUND, pool_size=2)
        try:
            yield Office(slack, bot, channel, people, engine)
        finally:
            bot.close()
            serving.join()
            engine.dispose()
