from __future__ import annotations

import http.client
import threading
import time
from typing import TYPE_CHECKING

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN

if TYPE_CHECKING:
    from dibs.playground import Channel, SlackStandIn


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
