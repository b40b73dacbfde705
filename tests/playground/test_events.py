from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.playground.raw_bot import impatient

from dibs.playground import Clock
from dibs.playground.subscriptions import SPARED, Subscriptions

if TYPE_CHECKING:
    from tests.playground.raw_bot import RawBot
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import SlackStandIn


@pytest.fixture
def membership(quick: SlackStandIn) -> tuple[str, str]:
    person = quick.add_person("Amal")
    return person.id, quick.add_channel("support", members=[person.id]).id


def tries(raw: RawBot) -> list[tuple[str | None, str | None]]:
    """The number and the reason that each request told."""
    return [
        (headers.get("X-Slack-Retry-Num"), headers.get("X-Slack-Retry-Reason")) for headers, _ in raw.requests
    ]


def test_an_event_is_tried_again_at_once_after_a_minute_and_after_five(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    raw.answers += [(500, "")] * 10
    quick.leave(*membership)
    assert tries(raw) == [(None, None), ("1", "http_error")]
    quick.clock.advance(59)
    assert len(raw.requests) == 2
    quick.clock.advance(1)
    assert tries(raw)[2:] == [("2", "http_error")]
    quick.clock.advance(239)
    assert len(raw.requests) == 3
    quick.clock.advance(1)
    assert tries(raw)[3:] == [("3", "http_error")]
    quick.clock.advance(24 * 3600)
    assert len(raw.requests) == 4
    assert len({json.loads(body)["event_id"] for _, body in raw.requests}) == 1


def test_an_event_that_was_taken_is_not_tried_again(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    raw.answers += [(500, ""), (503, ""), (200, "")]
    quick.leave(*membership)
    quick.clock.advance(3600)
    assert len(raw.requests) == 3


def test_no_retry_is_honoured(quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]) -> None:
    raw.answers += [(500, "")] * 4
    raw.headers = {"x-slack-no-retry": "1"}
    quick.leave(*membership)
    quick.clock.advance(3600)
    assert len(raw.requests) == 1


def test_the_reason_tells_silence_from_a_refusal_and_from_nobody_there(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    raw.held.clear()
    with impatient(quick):
        quick.leave(*membership)
    quick.wait_until(lambda: len(raw.requests) == 2)
    raw.held.set()
    assert tries(raw)[1] == ("1", "http_timeout")
    address, quick.bot_url = quick.bot_url, "http://127.0.0.1:1/slack/events"
    quick.clock.forget()
    quick.join(*membership)
    quick.bot_url = address
    quick.clock.advance(60)
    assert tries(raw)[-1] == ("2", "connection_failed")


def test_an_address_must_answer_a_challenge(slack: SlackStandIn, bot: TinyBot) -> None:
    assert slack.verify_url()
    slack.bot_url = slack.page_url
    assert not slack.verify_url()
    assert bot.events == []


def test_a_stopped_stand_in_sends_nothing_more(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    raw.answers += [(500, "")] * 2
    quick.leave(*membership)
    quick.stop()
    quick.clock.advance(3600)
    assert len(raw.requests) == 2


# Given up


def failing(raw: RawBot, times: int) -> None:
    raw.answers += [(500, "")] * times
    raw.headers = {"x-slack-no-retry": "1"}


def test_events_are_switched_off_where_an_address_fails_nearly_always(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    failing(raw, SPARED + 1)
    states = []
    for _ in range(SPARED + 1):
        quick.tell({"type": "team_join"})
        states.append(quick.events_on)
    assert states == [True] * SPARED + [False]
    quick.leave(*membership)
    assert len(raw.requests) == SPARED + 1
    quick.resume_events()
    quick.join(*membership)
    assert (quick.events_on, len(raw.requests)) == (True, SPARED + 2)


def test_events_stay_on_where_one_in_twenty_is_taken_or_the_failures_are_long_ago(clock: Clock) -> None:
    taken, old = Subscriptions(clock), Subscriptions(clock)
    for number in range(2 * SPARED):
        taken.count(good=number % 20 == 0)
        old.count(good=False)
        clock.advance(4)
    assert taken.on
    assert old.on


def test_presses_still_arrive_where_events_are_switched_off(
    quick: SlackStandIn, raw: RawBot, membership: tuple[str, str]
) -> None:
    for _ in range(SPARED + 1):
        quick.app.subscriptions.count(good=False)
    user, channel = membership
    assert not quick.events_on
    assert quick.command(user, channel, "/tiny").status == 200
    assert len(raw.requests) == 1


@pytest.fixture
def clock() -> Clock:
    return Clock()
