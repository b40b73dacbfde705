from __future__ import annotations

import http.client
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN
from tests.support.slack import request

if TYPE_CHECKING:
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import Channel, Person, SlackStandIn


def test_an_error_comes_as_often_as_asked(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", error="fatal_error", times=2)
    for _ in range(2):
        with pytest.raises(SlackApiError, match="fatal_error"):
            client.chat_postMessage(channel=support.id, text="x")
    client.chat_postMessage(channel=support.id, text="x")
    assert len(slack.messages(support.id)) == 1


def test_a_rate_limit_says_when_to_come_back(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    slack.faults.fail_next("chat.postMessage", error="ratelimited", retry_after=7)
    with pytest.raises(SlackApiError) as raised:
        client.chat_postMessage(channel=support.id, text="x")
    assert raised.value.response.status_code == 429
    assert raised.value.response.headers["Retry-After"] == "7"


def test_a_server_error(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", http_status=500)
    with pytest.raises(SlackApiError) as raised:
        client.chat_postMessage(channel=support.id, text="x")
    assert raised.value.response.status_code == 500
    assert slack.messages(support.id) == []


def test_silence(slack: SlackStandIn, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", silence=True)
    impatient = WebClient(token=TOKEN, base_url=slack.api_url, timeout=1)
    with pytest.raises(TimeoutError):
        impatient.chat_postMessage(channel=support.id, text="x")
    assert slack.messages(support.id) == []


def test_an_answer_lost_after_the_work_was_done(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.retry_handlers.clear()
    slack.faults.fail_next("chat.postMessage", lose_answer=True)
    with pytest.raises((http.client.HTTPException, OSError)):
        client.chat_postMessage(channel=support.id, text="x")
    assert len(slack.messages(support.id)) == 1


def test_a_late_answer(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", delay=0.2)
    started = time.monotonic()
    client.chat_postMessage(channel=support.id, text="x")
    assert time.monotonic() - started >= 0.2


def test_faults_can_be_forgotten(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", error="fatal_error")
    slack.faults.clear()
    client.chat_postMessage(channel=support.id, text="x")


def test_waiting_for_something_to_come_about(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    later = threading.Timer(0.05, client.chat_postMessage, kwargs={"channel": support.id, "text": "x"})
    later.start()
    slack.wait_until(lambda: slack.messages(support.id))
    later.join()
    with pytest.raises(TimeoutError):
        slack.wait_until(lambda: len(slack.messages(support.id)) > 1, timeout=0.05)


def test_garbage(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.faults.fail_next("chat.postMessage", garbage=True)
    with pytest.raises(ValueError, match="Expecting value"):
        client.chat_postMessage(channel=support.id, text="x")
    assert slack.messages(support.id) == []


def test_a_connection_cut_before_any_work_was_done(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.retry_handlers.clear()
    slack.faults.fail_next("chat.postMessage", cut=True)
    with pytest.raises((http.client.HTTPException, OSError)):
        client.chat_postMessage(channel=support.id, text="x")
    assert slack.messages(support.id) == []


# On the way to the bot


def member_events(slack: SlackStandIn, bot: TinyBot, channel: Channel, number: int) -> list[str]:
    """Let so many people join, one after the other; who the bot heard of, in its order."""
    for each in range(number):
        slack.join(slack.add_person(f"P{each}").id, channel.id)
    return [slack.world.people[event["user"]].name for event in bot.events]


def test_an_event_is_delivered_twice(slack: SlackStandIn, bot: TinyBot, support: Channel) -> None:
    slack.faults.deliver_next("events_api", twice=True)
    assert member_events(slack, bot, support, 2) == ["P0", "P0", "P1"]


def test_events_arrive_out_of_order(slack: SlackStandIn, bot: TinyBot, support: Channel) -> None:
    slack.faults.deliver_next("member_joined_channel", late=True)
    assert member_events(slack, bot, support, 3) == ["P1", "P0", "P2"]


def test_a_press_is_delivered_twice_and_answered_once(
    slack: SlackStandIn, bot: TinyBot, support: Channel, posted: str, amal: Person
) -> None:
    slack.faults.deliver_next("block_actions", twice=True)
    assert not slack.press(amal.id, support.id, posted, "claim").failed
    assert bot.owner == amal.id
    assert len(slack.calls_to("response_url")) == 2


def test_a_press_whose_answer_is_lost_has_failed_though_it_worked(
    slack: SlackStandIn, bot: TinyBot, support: Channel, posted: str, amal: Person
) -> None:
    slack.faults.deliver_next("interactive", lose_answer=True)
    assert slack.press(amal.id, support.id, posted, "claim").failed
    assert bot.owner == amal.id


# By HTTP


def control(slack: SlackStandIn, told: object = None) -> tuple[int, dict[str, Any]]:
    body = None if told is None else json.dumps(told).encode()
    kind = {"Content-Type": "application/json"}
    status, words = request(
        "GET" if body is None else "POST", f"{slack.page_url}playground/faults", body, kind
    )
    answer = json.loads(words)
    assert isinstance(answer, dict)
    return status, answer


def test_faults_are_listed_set_and_cleared_by_http(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    fault = {"method": "chat.postMessage", "error": "fatal_error", "times": 2}
    mishap = {"name": "events_api", "twice": True}
    status, shown = control(slack, {"fail_next": fault, "deliver_next": mishap})
    assert (status, shown["fail_next"], shown["deliver_next"]) == (200, [fault], [mishap])
    with pytest.raises(SlackApiError, match="fatal_error"):
        client.chat_postMessage(channel=support.id, text="x")
    assert control(slack)[1]["fail_next"] == [{"method": "chat.postMessage", "error": "fatal_error"}]
    cleared = control(slack, {"clear": True})[1]
    assert (cleared["fail_next"], cleared["deliver_next"]) == ([], [])
    client.chat_postMessage(channel=support.id, text="x")


def test_the_clock_is_shifted_by_http(slack: SlackStandIn, amal: Person, support: Channel) -> None:
    before = slack.clock.now()
    assert control(slack, {"advance": 3600})[1]["ahead"] == 3600
    assert slack.clock.now() - before >= 3600
    assert float(slack.say(amal.id, support.id, "later")["ts"]) - before >= 3600


def test_rate_limits_and_connections_by_http(slack: SlackStandIn) -> None:
    assert control(slack, {"rate_limits": True})[1]["rate_limits"] is True
    assert slack.rate_limits
    for what in ("warn", "refresh", "cut"):
        assert control(slack, {"connections": what})[0] == 200
    assert control(slack)[1]["connected"] == 0


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([], "expected one or more of fail_next"),
        ({"explode": True}, "unknown: explode"),
        ({"fail_next": {"error": "x"}}, "fail_next needs method"),
        ({"fail_next": {"method": "x", "delay": "long"}}, "no delay of that kind"),
        ({"fail_next": {"method": "x", "times": True}}, "no times of that kind"),
        ({"deliver_next": {"name": "x", "never": True}}, "no never of that kind"),
        ({"advance": "an hour"}, "a number of seconds"),
        ({"connections": "explode"}, "one of warn"),
        ({"clear": True, "advance": None}, "a number of seconds"),
    ],
)
def test_what_is_asked_for_wrongly_changes_nothing(slack: SlackStandIn, told: object, words: str) -> None:
    slack.faults.fail_next("chat.update", error="fatal_error")
    status, answer = control(slack, told)
    assert status == 400
    assert words in answer["error"]
    assert len(slack.faults.waiting) == 1
    assert slack.clock.ahead == 0


def test_another_sites_form_sets_no_faults(slack: SlackStandIn) -> None:
    url = f"{slack.page_url}playground/faults"
    assert request("POST", url, b'{"clear": true}', {"Content-Type": "text/plain"})[0] == 415
    elsewhere = {"Content-Type": "application/json", "Origin": "https://elsewhere.example"}
    assert request("POST", url, b'{"clear": true}', elsewhere)[0] == 403
