"""What is gone, closed or out of reach by the time the bot comes back to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN, release_modal
from tests.support.slack import request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.playground.raw_bot import RawBot

    from dibs.playground import Channel, Person, SlackStandIn

JSON = {"Content-Type": "application/json"}


def error(call: Callable[[], object]) -> str:
    with pytest.raises(SlackApiError) as raised:
        call()
    return str(raised.value.response["error"])


def test_private_messages_and_open_modals_are_gone_after_a_reload(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str, amal: Person, bilal: Person
) -> None:
    for person in (amal, bilal):
        client.chat_postEphemeral(channel=support.id, user=person.id, text="psst")
    slack.press(amal.id, support.id, posted, "claim")
    slack.press(amal.id, support.id, posted, "release")
    [view] = slack.views(amal.id)
    slack.reload(amal.id)
    assert (slack.ephemerals(amal.id), slack.views(amal.id)) == ([], [])
    assert len(slack.ephemerals(bilal.id)) == 1
    assert len(slack.messages(support.id)) == 1
    assert error(lambda: client.views_update(view_id=view["id"], view=release_modal())) == "not_found"


def test_a_private_message_that_was_reloaded_away_cannot_be_replaced(
    quick: SlackStandIn, raw: RawBot
) -> None:
    client = WebClient(token=TOKEN, base_url=quick.api_url)
    amal = quick.add_person("Amal")
    channel = quick.add_channel("support", members=[amal.id])
    button = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "go"}
    blocks = [{"type": "actions", "elements": [button]}]
    client.chat_postEphemeral(channel=channel.id, user=amal.id, text="psst", blocks=blocks)
    quick.press(amal.id, channel.id, quick.ephemerals(amal.id)[0]["ts"], "go")
    quick.reload(amal.id)
    told = json.dumps({"text": "now", "replace_original": True}).encode()
    assert request("POST", raw.payload()["response_url"], told, JSON)[0] == 404


def test_a_bot_that_was_removed_from_a_channel_is_outside(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str, amal: Person
) -> None:
    private = slack.add_channel("private", members=[amal.id], private=True)
    for channel in (support, private):
        slack.leave(slack.bot_user_id, channel.id)
    assert error(lambda: client.chat_postMessage(channel=support.id, text="x")) == "not_in_channel"
    ephemeral = client.chat_postEphemeral
    assert error(lambda: ephemeral(channel=support.id, user=amal.id, text="x")) == "not_in_channel"
    assert error(lambda: client.conversations_history(channel=support.id)) == "not_in_channel"
    assert error(lambda: client.chat_postMessage(channel=private.id, text="x")) == "channel_not_found"
    assert error(lambda: client.conversations_members(channel=private.id)) == "channel_not_found"
    assert posted


def test_a_bot_that_was_removed_hears_of_itself_only_and_of_nobody_after(
    quick: SlackStandIn, raw: RawBot
) -> None:
    amal = quick.add_person("Amal")
    public = quick.add_channel("public", members=[amal.id])
    private = quick.add_channel("private", members=[amal.id], private=True)
    events = ["channel_left", "group_left", "member_left_channel"]
    quick.install(
        {
            "display_information": {"name": "Tiny"},
            "oauth_config": {"scopes": {"bot": ["channels:read", "groups:read"]}},
            "settings": {"event_subscriptions": {"request_url": "https://x.example", "bot_events": events}},
        }
    )
    for channel in (public, private):
        quick.leave(quick.bot_user_id, channel.id)
        quick.leave(amal.id, channel.id)
    told = [json.loads(body)["event"] for _, body in raw.requests]
    assert [(one["type"], one["channel"]) for one in told] == [
        ("channel_left", public.id),
        ("group_left", private.id),
    ]


def test_a_deleted_message_is_not_found(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str, amal: Person
) -> None:
    slack.delete_message(support.id, posted)
    update, delete = client.chat_update, client.chat_delete
    assert error(lambda: update(channel=support.id, ts=posted, text="x")) == "message_not_found"
    assert error(lambda: delete(channel=support.id, ts=posted)) == "message_not_found"
    with pytest.raises(LookupError):
        slack.press(amal.id, support.id, posted, "claim")


def test_a_deactivated_person_is_still_known_and_what_is_written_to_them_is_read_by_nobody(
    slack: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    slack.deactivate(amal.id)
    assert client.users_info(user=amal.id)["user"]["deleted"] is True
    assert error(lambda: client.conversations_open(users=[amal.id])) == "user_disabled"
    assert client.chat_postMessage(channel=amal.id, text="x")["ok"]
    assert amal.id in client.conversations_members(channel=support.id)["members"]
