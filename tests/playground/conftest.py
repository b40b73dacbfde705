from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from slack_sdk import WebClient
from tests.playground.tiny_bot import TOKEN, TinyBot, card, tiny_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.playground import Channel, Person, SlackStandIn


@pytest.fixture
def workspace() -> Iterator[tuple[SlackStandIn, TinyBot]]:
    with tiny_workspace() as both:
        yield both


@pytest.fixture
def slack(workspace: tuple[SlackStandIn, TinyBot]) -> SlackStandIn:
    return workspace[0]


@pytest.fixture
def bot(workspace: tuple[SlackStandIn, TinyBot]) -> TinyBot:
    return workspace[1]


@pytest.fixture
def client(slack: SlackStandIn) -> WebClient:
    return WebClient(token=TOKEN, base_url=slack.api_url)


@pytest.fixture
def client_of() -> Callable[[SlackStandIn], WebClient]:
    return lambda stand_in: WebClient(token=TOKEN, base_url=stand_in.api_url)


@pytest.fixture
def amal(slack: SlackStandIn) -> Person:
    return slack.add_person("Amal")


@pytest.fixture
def bilal(slack: SlackStandIn) -> Person:
    return slack.add_person("Bilal")


@pytest.fixture
def support(slack: SlackStandIn, amal: Person, bilal: Person) -> Channel:
    return slack.add_channel("support", members=[amal.id, bilal.id])


@pytest.fixture
def posted(client: WebClient, support: Channel) -> str:
    """The timestamp of a card that waits for somebody."""
    return str(client.chat_postMessage(channel=support.id, text="TINY-1", blocks=card())["ts"])
