from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from slack_sdk import WebClient
from tests.playground.raw_bot import RawBot
from tests.playground.tiny_bot import SECRET, TOKEN, TinyBot, card, tiny_workspace

from dibs.playground import SlackStandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.playground import Channel, Person


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
def raw() -> RawBot:
    return RawBot()


@pytest.fixture
def quick(raw: RawBot) -> Iterator[SlackStandIn]:
    """A stand-in in front of a bot that records. It waits for answers as long as a busy machine may take."""
    stand_in = SlackStandIn(signing_secret=SECRET, bot_token=TOKEN, answer_within=60)
    with stand_in, raw.serving() as address:
        stand_in.bot_url = address
        yield stand_in


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
