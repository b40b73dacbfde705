from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from slack_sdk.errors import SlackApiError
from tests.playground.test_install import manifest, missing
from tests.playground.tiny_bot import card

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk import WebClient
    from tests.playground.raw_bot import RawBot
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import Person, SlackStandIn


def error(call: Callable[[], object]) -> str:
    with pytest.raises(SlackApiError) as raised:
        call()
    return str(raised.value.response["error"])


@pytest.fixture
def direct(client: WebClient, amal: Person) -> str:
    """The direct message between the bot and Amal."""
    return str(client.conversations_open(users=[amal.id])["channel"]["id"])


def test_a_direct_message_is_opened_once(client: WebClient, amal: Person, direct: str) -> None:
    again = client.conversations_open(users=[amal.id], return_im=True)
    assert (again["channel"]["id"], again["channel"]["user"]) == (direct, amal.id)
    assert (again["already_open"], again["no_op"]) == (True, True)


def test_a_press_in_a_direct_message_is_answered_in_it(
    slack: SlackStandIn, bot: TinyBot, client: WebClient, amal: Person, direct: str
) -> None:
    ts = client.chat_postMessage(channel=amal.id, text="TINY-1", blocks=card())["ts"]
    assert not slack.press(amal.id, direct, ts, "claim").failed
    assert bot.owner == amal.id
    [message] = slack.direct_messages(amal.id)
    assert message["text"] == "TINY-1 claimed"
    assert not slack.press_stale(amal.id, {**message, "blocks": _ids(card())}, "claim").failed
    [private] = slack.ephemerals(amal.id, direct)
    assert "changed nothing" in private["text"]


def _ids(blocks: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{"block_id": f"b{number}", **block} for number, block in enumerate(blocks)]


def test_a_press_in_a_direct_message_says_where_it_was(
    quick: SlackStandIn, raw: RawBot, client_of: Callable[[SlackStandIn], WebClient]
) -> None:
    amal = quick.add_person("Amal")
    told = client_of(quick).chat_postMessage(channel=amal.id, text="TINY-1", blocks=card())
    quick.press(amal.id, told["channel"], told["ts"], "claim")
    payload = raw.payload()
    assert payload["channel"] == {"id": told["channel"], "name": "directmessage"}
    assert payload["container"]["channel_id"] == told["channel"]
    assert "/hooks/actions/" in payload["response_url"]


def test_a_direct_message_is_updated_and_deleted_by_its_channel(
    slack: SlackStandIn, client: WebClient, amal: Person
) -> None:
    told = client.chat_postMessage(channel=amal.id, text="one")
    where = {"channel": told["channel"], "ts": told["ts"]}
    client.chat_update(**where, text="two")
    assert [one["text"] for one in slack.direct_messages(amal.id)] == ["two"]
    assert error(lambda: client.chat_update(channel=amal.id, ts=told["ts"], text="x")) == "channel_not_found"
    client.chat_delete(**where)
    assert slack.direct_messages(amal.id) == []
    assert error(lambda: client.chat_update(**where, text="x")) == "message_not_found"


def test_a_direct_messages_history_tells_metadata_and_needs_its_own_scope(
    slack: SlackStandIn, client: WebClient, amal: Person, direct: str
) -> None:
    metadata = {"event_type": "alert", "event_payload": {"key": "k1"}}
    client.chat_postMessage(channel=amal.id, text="one", metadata=metadata)
    [found] = client.conversations_history(channel=direct, include_all_metadata=True)["messages"]
    assert found["metadata"] == metadata
    slack.install(manifest("chat:write", "channels:history", "groups:history"))
    assert missing(lambda: client.conversations_history(channel=direct))[0] == "im:history"
    slack.install(manifest("im:history"))
    assert client.conversations_history(channel=direct)["messages"]


def test_what_is_written_to_one_person_is_seen_by_nobody_else(
    slack: SlackStandIn, client: WebClient, amal: Person, bilal: Person
) -> None:
    client.chat_postMessage(channel=amal.id, text="for Amal")
    assert slack.direct_messages(bilal.id) == []
