from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN

from dibs.playground.limits import BURST, METHOD_TIERS, TIERS
from dibs.playground.webapi import APP_METHODS, METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk import WebClient

    from dibs.playground import Channel, Person, SlackStandIn

TIERS_ELSEWHERE = Path(__file__).parents[3] / "shared" / "slack" / "method_tiers.json"


def limited(call: Callable[[], object]) -> int:
    """The seconds that a refused call is told to wait."""
    with pytest.raises(SlackApiError) as raised:
        call()
    response = raised.value.response
    assert (response.status_code, response["error"]) == (429, "ratelimited")
    return int(response.headers["Retry-After"])


@pytest.fixture
def strict(slack: SlackStandIn, support: Channel) -> SlackStandIn:
    assert support.id in slack.world.channels
    slack.rate_limits = True
    return slack


def test_one_message_a_second_in_a_channel_after_a_short_burst(
    strict: SlackStandIn, client: WebClient, support: Channel
) -> None:
    for _ in range(BURST):
        client.chat_postMessage(channel=support.id, text="x")
    assert limited(lambda: client.chat_postMessage(channel=support.id, text="x")) == 1
    assert len(strict.messages(support.id)) == BURST
    strict.clock.advance(1)
    client.chat_postMessage(channel=support.id, text="x")
    assert limited(lambda: client.chat_postMessage(channel=support.id, text="x")) == 1
    other = strict.add_channel("other")
    client.chat_postMessage(channel=other.id, text="x")


def test_a_direct_message_is_one_place_by_either_of_its_names(
    strict: SlackStandIn, client: WebClient, amal: Person
) -> None:
    direct = strict.world.direct_channel(amal.id).id
    for number in range(BURST):
        client.chat_postMessage(channel=amal.id if number % 2 else direct, text="x")
    assert limited(lambda: client.chat_postMessage(channel=amal.id, text="x")) == 1
    assert limited(lambda: client.chat_postMessage(channel=direct, text="x")) == 1


def test_a_tier_is_counted_by_the_minute_for_each_method(
    strict: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    for _ in range(TIERS["Tier3"]):
        client.conversations_info(channel=support.id)
    strict.clock.advance(20)
    assert 38 <= limited(lambda: client.conversations_info(channel=support.id)) <= 40
    client.users_info(user=amal.id)
    strict.clock.advance(40)
    client.conversations_info(channel=support.id)


def test_each_tier_has_its_number(
    strict: SlackStandIn, client: WebClient, support: Channel, posted: str
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "Tier2": client.usergroups_list,
        "Tier3": lambda: client.chat_update(channel=support.id, ts=posted, text="x"),
        "Tier4": lambda: client.conversations_members(channel=support.id),
    }
    for tier, call in calls.items():
        for _ in range(TIERS[tier]):
            call()
        assert 55 <= limited(call) <= 60
    assert strict.rate_limits


def test_workspaces_are_counted_apart(strict: SlackStandIn, client: WebClient) -> None:
    for _ in range(TIERS["Tier2"]):
        client.users_list()
    limited(client.users_list)
    strict.add_workspace("Elsewhere", bot_token=f"{TOKEN}-else")
    client.token = f"{TOKEN}-else"
    client.users_list()


def test_nothing_is_counted_unless_asked_for(slack: SlackStandIn, client: WebClient) -> None:
    assert slack.rate_limits is False
    for _ in range(TIERS["Tier2"] + 1):
        client.users_list()


def test_every_method_has_a_tier() -> None:
    assert METHOD_TIERS.keys() == {*METHODS, *APP_METHODS}
    assert set(METHOD_TIERS.values()) <= TIERS.keys()


@pytest.mark.skipif(not TIERS_ELSEWHERE.exists(), reason="nothing to compare with is here")
def test_the_tiers_are_slacks() -> None:
    theirs = json.loads(TIERS_ELSEWHERE.read_text())
    assert {name: theirs.get(name) for name in METHOD_TIERS} == METHOD_TIERS
