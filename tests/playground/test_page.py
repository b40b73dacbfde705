from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.playground.tiny_bot import release_modal
from tests.support.slack import request

from dibs.playground import Lever, Step, Where
from dibs.playground.page import POLL_SECONDS

if TYPE_CHECKING:
    from slack_sdk import WebClient
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import Channel, Person, SlackStandIn

Json = dict[str, Any]

JSON = {"Content-Type": "application/json"}


def act(slack: SlackStandIn, *acts: Json) -> tuple[int, Json]:
    body = json.dumps({"acts": list(acts)}).encode()
    status, words = request("POST", f"{slack.page_url}page/act", body, JSON)
    return status, json.loads(words)


def state(slack: SlackStandIn, left: str, since: object = "") -> tuple[int, str]:
    return request("GET", f"{slack.page_url}page/state?left={left}&since={since}")


@pytest.mark.parametrize("path", ["", "static/app.js", "static/page.css", "page/state"])
def test_the_page_is_served_from_the_package(slack: SlackStandIn, path: str) -> None:
    assert request("GET", slack.page_url + path)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "playground.localhost.evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["", "page/state", "page/press", "page/act", "api/auth.test"])
def test_another_sites_page_cannot_drive_it(slack: SlackStandIn, path: str, headers: dict[str, str]) -> None:
    method = "POST" if path == "page/act" else "GET"
    assert request(method, slack.page_url + path, b"{}", headers)[0] == 403


def test_a_foreign_name_that_leads_here_is_refused(slack: SlackStandIn) -> None:
    port = urlsplit(slack.page_url).port
    for headers in ({"Host": f"evil.example:{port}"}, {"Origin": f"http://evil.example:{port}"}):
        assert request("GET", slack.page_url, None, headers)[0] == 403


def test_its_own_page_can(slack: SlackStandIn) -> None:
    port = urlsplit(slack.page_url).port
    for name in ("127.0.0.1", "localhost", "[::1]"):
        own = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}", "Sec-Fetch-Site": "same-origin"}
        assert request("GET", slack.page_url, None, own)[0] == 200


def test_a_link_on_another_site_opens_the_page_but_no_frame_does(slack: SlackStandIn) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert request("GET", slack.page_url, None, link)[0] == 200
    assert request("GET", slack.page_url, None, link | {"Sec-Fetch-Dest": "iframe"})[0] == 403
    assert request("GET", slack.page_url + "page/state", None, link)[0] == 403


def test_it_listens_on_loopback_only(slack: SlackStandIn) -> None:
    page = urlsplit(slack.page_url)
    assert page.hostname == "127.0.0.1"
    # Whatever listens on every address of the machine answers here, too.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", page.port), timeout=60):  # noqa: PT011 - refused or no such address
        pass


def test_a_form_of_another_site_is_no_act(slack: SlackStandIn) -> None:
    plain_text = {"Content-Type": "text/plain"}
    assert request("POST", f"{slack.page_url}page/act", b'{"acts": []}', plain_text)[0] == 415


def test_a_pane_shows_what_one_person_sees(
    slack: SlackStandIn, client: WebClient, amal: Person, bilal: Person, support: Channel, posted: str
) -> None:
    client.chat_postEphemeral(channel=support.id, user=amal.id, text="for Amal")
    seen = [
        [
            message["text"]
            for message in json.loads(state(slack, f"{who.id},{support.id}")[1])["panes"]["left"]["messages"]
        ]
        for who in (amal, bilal)
    ]
    assert posted
    assert seen == [["TINY-1", "for Amal"], ["TINY-1"]]


def test_a_page_shows_no_private_message_from_before_it_was_loaded(
    slack: SlackStandIn, client: WebClient, amal: Person, support: Channel, posted: str
) -> None:
    client.chat_postEphemeral(channel=support.id, user=amal.id, text="before")
    where = f"{amal.id},{support.id}"
    opened = json.loads(state(slack, where)[1])["now"]
    client.chat_postEphemeral(channel=support.id, user=amal.id, text="after")
    left = json.loads(state(slack, f"{where}&opened={opened}")[1])["panes"]["left"]
    assert posted
    assert [message["text"] for message in left["messages"]] == ["TINY-1", "after"]


def test_news_arrives_while_the_page_waits(
    slack: SlackStandIn, client: WebClient, amal: Person, support: Channel
) -> None:
    before = json.loads(state(slack, f"{amal.id},{support.id}")[1])
    later = threading.Timer(0.1, client.chat_postMessage, kwargs={"channel": support.id, "text": "news"})
    started = time.monotonic()
    later.start()
    after = json.loads(state(slack, f"{amal.id},{support.id}", before["version"])[1])
    later.join()
    assert 0.05 < time.monotonic() - started < POLL_SECONDS
    assert after["panes"]["left"]["messages"][0]["text"] == "news"


def test_two_presses_go_out_together(
    slack: SlackStandIn, bot: TinyBot, amal: Person, bilal: Person, support: Channel, posted: str
) -> None:
    press = {
        "kind": "press",
        "channel": support.id,
        "ts": posted,
        "block_id": "buttons",
        "action_id": "claim",
    }
    status, told = act(slack, {**press, "user": amal.id}, {**press, "user": bilal.id})
    assert status == 200
    assert [result["status"] for result in told["results"]] == [200, 200]
    loser = bilal if bot.owner == amal.id else amal
    assert len(slack.ephemerals(loser.id)) == 1
    presses = json.loads(state(slack, "")[1])["presses"]
    assert {(press["who"], press["what"], press["status"]) for press in presses} == {
        ("Amal", "Claim", 200),
        ("Bilal", "Claim", 200),
    }


def test_of_two_acts_one_may_be_impossible(
    slack: SlackStandIn, bot: TinyBot, amal: Person, bilal: Person, support: Channel, posted: str
) -> None:
    press = {"kind": "press", "channel": support.id, "ts": posted, "action_id": "claim"}
    status, told = act(slack, {**press, "user": amal.id}, {**press, "user": bilal.id, "action_id": "gone"})
    assert (status, bot.owner) == (200, amal.id)
    assert told["results"][0]["status"] == 200
    assert "'gone'" in told["results"][1]["error"]


def test_writing_commands_and_words(slack: SlackStandIn, amal: Person, support: Channel) -> None:
    place = {"kind": "write", "user": amal.id, "channel": support.id}
    act(slack, {**place, "text": "/tiny hello"})
    act(slack, {**place, "text": "1 < 2"})
    assert slack.ephemerals(amal.id)[0]["text"] == "You said hello"
    act(slack, {**place, "text": "@amal, look in #support, not a@amal"})
    assert [one["text"] for one in slack.messages(support.id)] == [
        "1 &lt; 2",
        f"<@{amal.id}>, look in <#{support.id}|support>, not a@amal",
    ]
    act(slack, {"kind": "dismiss", "user": amal.id, "ts": slack.ephemerals(amal.id)[0]["ts"]})
    assert slack.ephemerals(amal.id) == []


def test_a_modal_is_filled_in_and_left_from_the_page(
    slack: SlackStandIn, amal: Person, client: WebClient
) -> None:
    client.views_open(trigger_id=slack.world.issue_trigger(amal.id), view=release_modal())
    result = act(slack, {"kind": "submit", "user": amal.id, "values": {"handoff_note": "x"}})[1]["results"][0]
    assert set(result["errors"]) == {"reason", "external_action"}
    assert act(slack, {"kind": "close", "user": amal.id})[1]["results"][0]["closed"]
    assert act(slack, {"kind": "close", "user": amal.id})[0] == 409


@pytest.mark.parametrize("acts", [[], [{}], [{"kind": "fly"}], ["x"], [{"kind": "close"}] * 3, "x"], ids=str)
def test_nonsense_is_refused(slack: SlackStandIn, acts: object) -> None:
    body = json.dumps({"acts": acts}).encode()
    assert request("POST", f"{slack.page_url}page/act", body, JSON)[0] in (400, 409)
    assert request("POST", f"{slack.page_url}page/act", b"{", JSON)[0] == 400


def test_a_step_of_the_tour_ticks_itself_off_once_it_is_seen(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    def done() -> list[bool]:
        return [step["done"] for step in json.loads(state(slack, "")[1])["tour"]]

    def step(where: Where, *words: str) -> Step:
        return Step(title="T", do="D", see="S", where=where, words=words)

    client.chat_postMessage(channel=support.id, text="done yesterday")
    slack.tour.begin([step(Where.MESSAGE, "done"), step(Where.PRIVATE, "done"), step(Where.PRESS, "/tiny")])
    assert done() == [False, False, False]
    client.chat_postMessage(channel=support.id, text="undone")
    assert done() == [True, False, False]
    slack.command(support.members[0], support.id, "/tiny", "is done")
    assert done() == [True, True, True]
    act(slack, {"kind": "begin_tour"})
    assert done() == [False, False, False]


def test_a_modal_may_be_what_a_step_waits_for(slack: SlackStandIn, client: WebClient, amal: Person) -> None:
    slack.tour.begin([Step(title="T", do="D", see="S", where=Where.MODAL, words=("Release", "TINY"))])
    client.views_open(trigger_id=slack.world.issue_trigger(amal.id), view=release_modal())
    assert json.loads(state(slack, "")[1])["tour"][0]["done"]


def test_levers_are_offered_and_pulled(slack: SlackStandIn) -> None:
    pulled: list[str] = []

    def now() -> str:
        pulled.append("now")
        return "It is done."

    def stuck() -> str:
        raise RuntimeError("it is stuck")

    slack.levers = [Lever("Now", "At once.", now), Lever("Never", "", stuck)]
    offered = json.loads(state(slack, "")[1])["levers"]
    assert offered[0] == {"label": "Now", "explanation": "At once."}
    assert act(slack, {"kind": "pull_lever", "label": "Now"}) == (200, {"results": [{"said": "It is done."}]})
    assert pulled == ["now"]
    assert act(slack, {"kind": "pull_lever", "label": "Never"})[1]["results"] == [{"error": "it is stuck"}]
    assert act(slack, {"kind": "pull_lever", "label": "Gone"})[0] == 409


def test_what_the_app_names_is_offered(slack: SlackStandIn) -> None:
    manifest = json.loads(Path("manifests/slack-http.json").read_text(encoding="utf-8"))
    slack.commands = [("/queue next", "the next one")]
    slack.install(manifest)
    offered = json.loads(state(slack, "")[1])
    named = [one["command"] for one in manifest["features"]["slash_commands"]]
    assert [name.strip() for name, _ in offered["commands"]] == ["/queue next", *named]
    assert all(words for _, words in offered["commands"])
    shortcuts = [one["callback_id"] for one in manifest["features"].get("shortcuts", [])]
    assert [one["callback_id"] for one in offered["shortcuts"]] == shortcuts
