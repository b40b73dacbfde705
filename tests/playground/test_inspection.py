from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from tests.playground.tiny_bot import SECRET, TOKEN
from tests.support.slack import request

from dibs.playground.inspection import HIDDEN, LONGEST_TEXT, tidy

if TYPE_CHECKING:
    from slack_sdk import WebClient

    from dibs.playground import Channel, Person, SlackStandIn

Json = dict[str, Any]


def behind(slack: SlackStandIn, number: int = -1) -> tuple[int, Json, str]:
    presses = json.loads(request("GET", f"{slack.page_url}page/state")[1])["presses"]
    status, words = request("GET", f"{slack.page_url}page/press?name={quote(presses[number]['name'])}")
    return status, json.loads(words), words


def test_a_press_shows_its_request_its_answer_and_the_calls_that_followed(
    slack: SlackStandIn, amal: Person, support: Channel, posted: str
) -> None:
    slack.press(amal.id, support.id, posted, "claim")
    status, told, words = behind(slack)
    assert status == 200
    assert (told["who"], told["what"]) == ("Amal", "Claim")
    [sent] = told["requests"]
    assert sent["status"] == 200
    assert sent["body"]["actions"][0]["action_id"] == "claim"
    [call] = told["calls"]
    assert (call["method"], call["status"], call["answer"]) == ("response_url", 200, "ok")
    assert call["body"]["text"] == "TINY-1 claimed"
    assert call["after"] >= 0
    for secret in (SECRET, TOKEN, "legacy-verification-token", *slack.world.response_urls):
        assert secret not in words


def test_presses_at_the_same_moment_are_told_apart(
    slack: SlackStandIn, amal: Person, bilal: Person, support: Channel, posted: str
) -> None:
    slack.together([partial(slack.press, who.id, support.id, posted, "claim") for who in (amal, bilal)])
    answers = {}
    for number in (-1, -2):
        told = behind(slack, number)[1]
        assert len(told["requests"]) == 1
        assert told["requests"][0]["body"]["user"]["name"] == told["who"].lower()
        [call] = told["calls"]
        answers[told["who"]] = call["body"]["text"]
    assert sorted(text == "TINY-1 claimed" for text in answers.values()) == [False, True]


def test_what_a_modal_and_a_command_did_is_shown_too(
    slack: SlackStandIn, client: WebClient, amal: Person, support: Channel, posted: str
) -> None:
    slack.press(amal.id, support.id, posted, "claim")
    slack.press(amal.id, support.id, posted, "release")
    told = behind(slack)[1]
    assert [call["method"] for call in told["calls"]] == ["views.open"]
    assert told["calls"][0]["answer"]["ok"] is True
    slack.command(amal.id, support.id, "/tiny", "hello")
    told = behind(slack)[1]
    assert told["requests"][0]["answer"] == "You said hello"
    assert told["calls"] == []
    client.chat_postMessage(channel=support.id, text="long after nobody pressed")


def test_an_answer_that_was_lost_is_shown_as_none(
    slack: SlackStandIn, amal: Person, support: Channel, posted: str
) -> None:
    slack.faults.fail_next("response_url", http_status=500)
    slack.press(amal.id, support.id, posted, "claim")
    assert behind(slack)[1]["calls"][0]["status"] == 500


def test_a_press_that_is_forgotten_is_not_found(slack: SlackStandIn) -> None:
    assert request("GET", f"{slack.page_url}page/press?name=1-Amal")[0] == 404


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            {"token": "a", "client_secret": "b", "text": "c"},
            {"token": HIDDEN, "client_secret": HIDDEN, "text": "c"},
        ),
        ("Bearer xoxb-12-ab.cd and xapp-1-A-2", f"Bearer {HIDDEN} and {HIDDEN}"),
        ({"a": ["xoxp-1"]}, {"a": [HIDDEN]}),
        ("http://127.0.0.1:1/hooks/actions/T0/ab-c_d", f"http://127.0.0.1:1/hooks/actions/T0/{HIDDEN}"),
        ("x" * (LONGEST_TEXT + 1), "x" * LONGEST_TEXT + "…"),
        (7, 7),
    ],
)
def test_secrets_are_hidden_and_long_values_cut(value: object, shown: object) -> None:
    assert tidy(value) == shown


def test_every_delivery_is_shown_and_so_is_an_answer_that_never_arrived(
    slack: SlackStandIn, amal: Person, support: Channel, posted: str
) -> None:
    slack.faults.deliver_next("interactive", twice=True, lose_answer=True)
    slack.press(amal.id, support.id, posted, "claim")
    told = behind(slack)[1]
    assert [sent["status"] for sent in told["requests"]] == [200, 200]
    assert "did not answer" in told["words"] or "went wrong" in told["words"]
