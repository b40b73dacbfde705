from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN, card, plain, release_modal
from tests.support.slack import request

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground import Channel, Person, SlackStandIn


def refused(call: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(SlackApiError) as raised:
        call()
    data = raised.value.response.data
    assert isinstance(data, dict)
    return data


def error(call: Callable[[], object]) -> str:
    return str(refused(call)["error"])


def test_an_unknown_method_is_refused_by_name(client: WebClient) -> None:
    answer = refused(lambda: client.api_call("pins.add", params={"channel": "C1"}))
    assert answer == {"ok": False, "error": "unknown_method", "req_method": "pins.add"}


def test_a_wrong_token_and_none(slack: SlackStandIn) -> None:
    assert error(WebClient(token=TOKEN + "x", base_url=slack.api_url).auth_test) == "invalid_auth"
    assert error(WebClient(base_url=slack.api_url).auth_test) == "not_authed"


def test_auth_test_says_whose_token_it_is(slack: SlackStandIn, client: WebClient) -> None:
    answer = client.auth_test()
    assert (answer["user_id"], answer["bot_id"], answer["team_id"]) == (
        slack.bot_user_id,
        slack.bot_id,
        slack.team_id,
    )


def test_people(slack: SlackStandIn, client: WebClient, amal: Person) -> None:
    guest = slack.add_person("Gia", team_id="T0OTHER", tz="Europe/Berlin")
    slack.deactivate(amal.id)
    assert client.users_info(user=amal.id)["user"]["deleted"] is True
    shown = client.users_info(user=guest.id)["user"]
    assert (shown["team_id"], shown["tz"], shown["is_stranger"]) == ("T0OTHER", "Europe/Berlin", True)
    assert error(lambda: client.users_info(user="U404")) == "user_not_found"
    assert {one["id"] for one in client.users_list()["members"]} == {slack.bot_user_id, amal.id, guest.id}


def test_members_come_in_pages(slack: SlackStandIn, client: WebClient) -> None:
    people = [slack.add_person(f"P{number}").id for number in range(25)]
    channel = slack.add_channel("many", members=people)
    pages = [page["members"] for page in client.conversations_members(channel=channel.id, limit=10)]
    assert [len(page) for page in pages] == [10, 10, 6]
    assert [user for page in pages for user in page] == [*people, slack.bot_user_id]
    assert error(lambda: client.conversations_members(channel=channel.id, cursor="x")) == "invalid_cursor"


def test_a_private_channel_does_not_exist_for_those_outside(slack: SlackStandIn, client: WebClient) -> None:
    hidden = slack.add_channel("hidden", bot=False, private=True)
    public = slack.add_channel("public", bot=False)
    assert error(lambda: client.conversations_info(channel=hidden.id)) == "channel_not_found"
    assert client.conversations_info(channel=public.id)["channel"]["is_member"] is False
    assert error(lambda: client.chat_postMessage(channel=public.id, text="x")) == "not_in_channel"
    assert error(lambda: client.conversations_history(channel=public.id)) == "not_in_channel"
    assert error(lambda: client.chat_postMessage(channel="C404", text="x")) == "channel_not_found"


def test_the_bots_own_conversations(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.add_channel("elsewhere", bot=False)
    assert [one["id"] for one in client.users_conversations()["channels"]] == [support.id]


def test_an_archived_channel(slack: SlackStandIn, client: WebClient, support: Channel, posted: str) -> None:
    slack.archive(support.id)
    assert error(lambda: client.chat_postMessage(channel=support.id, text="x")) == "is_archived"
    assert error(lambda: client.chat_update(channel=support.id, ts=posted, text="x")) == "is_inactive"
    user = support.members[0]
    assert error(lambda: client.chat_postEphemeral(channel=support.id, user=user, text="x")) == "is_archived"


def test_history_is_newest_first_and_tells_metadata_only_when_asked(
    slack: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    metadata = {"event_type": "alert", "event_payload": {"key": "k1"}}
    first = client.chat_postMessage(channel=support.id, text="one", metadata=metadata)["ts"]
    client.chat_postMessage(channel=support.id, text="reply", thread_ts=first)
    client.chat_postMessage(channel=support.id, text="two")
    client.chat_postEphemeral(channel=support.id, user=amal.id, text="private")
    plainly = client.conversations_history(channel=support.id)["messages"]
    assert [one["text"] for one in plainly] == ["two", "one"]
    assert "metadata" not in plainly[1]
    told = client.conversations_history(channel=support.id, include_all_metadata=True)["messages"]
    assert told[1]["metadata"] == metadata
    after = client.conversations_history(channel=support.id, oldest=first)["messages"]
    assert [one["text"] for one in after] == ["two"]
    paged = client.conversations_history(channel=support.id, limit=1)
    assert paged["has_more"]
    assert len(slack.messages(support.id)) == 3


@pytest.mark.parametrize("metadata", ['{"event_type": "x"}', "[]", "nonsense"])
def test_malformed_metadata(client: WebClient, support: Channel, metadata: str) -> None:
    sent = {"channel": support.id, "text": "x", "metadata": metadata}
    code = error(lambda: client.api_call("chat.postMessage", json=sent))
    assert code.startswith("invalid_metadata")


def test_text_limits(client: WebClient, slack: SlackStandIn, support: Channel) -> None:
    assert error(lambda: client.api_call("chat.postMessage", json={"channel": support.id})) == "no_text"
    ts = client.chat_postMessage(channel=support.id, text="y" * 40_001)["ts"]
    assert len(slack.messages(support.id)[0]["text"]) == 40_000
    client.chat_update(channel=support.id, ts=ts, text="y" * 4000)
    assert error(lambda: client.chat_update(channel=support.id, ts=ts, text="y" * 4001)) == "msg_too_long"


def test_text_without_blocks_removes_the_blocks(
    client: WebClient, slack: SlackStandIn, support: Channel, posted: str
) -> None:
    assert slack.messages(support.id)[0]["blocks"]
    client.chat_update(channel=support.id, ts=posted, text="plain now")
    message = slack.messages(support.id)[0]
    assert (message["text"], "blocks" in message, message["edited"]["user"]) == (
        "plain now",
        False,
        slack.bot_user_id,
    )


def test_only_own_and_present_messages_are_updated(
    client: WebClient, slack: SlackStandIn, support: Channel, amal: Person, posted: str
) -> None:
    theirs = slack.say(amal.id, support.id, "mine")["ts"]
    update = client.chat_update
    assert error(lambda: update(channel=support.id, ts=theirs, text="x")) == "cant_update_message"
    assert error(lambda: client.chat_delete(channel=support.id, ts=theirs)) == "cant_delete_message"
    slack.delete_message(support.id, posted)
    assert error(lambda: update(channel=support.id, ts=posted, text="x")) == "message_not_found"
    own = client.chat_postMessage(channel=support.id, text="x")["ts"]
    client.chat_delete(channel=support.id, ts=own)
    assert [one["text"] for one in slack.messages(support.id)] == ["mine"]


def test_bad_blocks_are_refused_with_a_pointer(client: WebClient, support: Channel) -> None:
    bad = [{"type": "section", "text": {"type": "mrkdwn", "text": "y" * 3001}}]
    answer = refused(lambda: client.chat_postMessage(channel=support.id, text="x", blocks=bad))
    assert answer["error"] == "invalid_blocks"
    assert answer["response_metadata"]["messages"] == [
        "[ERROR] failed to match all allowed schemas [json-pointer:/blocks/0/text]",
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
    ]
    code = error(lambda: client.chat_postMessage(channel=support.id, text="x", blocks="{"))
    assert code == "invalid_blocks_format"


def test_blocks_come_back_with_ids(client: WebClient, slack: SlackStandIn, support: Channel) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "divider"},
        {"type": "actions", "elements": [{"type": "button", "text": plain("Go")}]},
    ]
    client.chat_postMessage(channel=support.id, text="x", blocks=blocks)
    stored = slack.messages(support.id)[0]["blocks"]
    assert all(block["block_id"] for block in stored)
    assert stored[1]["elements"][0]["action_id"]
    assert "block_id" not in blocks[0]


def test_private_messages_reach_members_only_and_are_nobodys_to_update(
    client: WebClient, slack: SlackStandIn, support: Channel, amal: Person
) -> None:
    outsider = slack.add_person("Olu")
    ephemeral = client.chat_postEphemeral
    assert error(lambda: ephemeral(channel=support.id, user=outsider.id, text="x")) == "user_not_in_channel"
    ts = ephemeral(channel=support.id, user=amal.id, text="psst")["message_ts"]
    assert [one["text"] for one in slack.ephemerals(amal.id, support.id)] == ["psst"]
    assert slack.messages(support.id) == []
    assert error(lambda: client.chat_update(channel=support.id, ts=ts, text="x")) == "message_not_found"


def test_direct_messages(client: WebClient, slack: SlackStandIn, amal: Person) -> None:
    channel = client.conversations_open(users=[amal.id])["channel"]["id"]
    client.chat_postMessage(channel=channel, text="by channel")
    client.chat_postMessage(channel=amal.id, text="by person")
    assert [one["text"] for one in slack.direct_messages(amal.id)] == ["by channel", "by person"]
    robot = slack.add_person("Robot", is_bot=True)
    assert error(lambda: client.conversations_open(users=[robot.id])) == "cannot_dm_bot"
    assert error(lambda: client.conversations_open(users=["U404"])) == "user_not_found"
    slack.deactivate(amal.id)
    assert error(lambda: client.conversations_open(users=[amal.id])) == "user_disabled"
    assert client.chat_postMessage(channel=channel, text="unread")["ok"]


def test_permalinks(client: WebClient, support: Channel, posted: str) -> None:
    link = client.chat_getPermalink(channel=support.id, message_ts=posted)["permalink"]
    assert link.endswith(f"/{support.id}/p{posted.replace('.', '')}")
    assert (
        error(lambda: client.chat_getPermalink(channel=support.id, message_ts="1.2")) == "message_not_found"
    )


def test_forms_and_json_are_read_alike(slack: SlackStandIn, support: Channel) -> None:
    form = f"token={TOKEN}&channel={support.id}&text=by+form&blocks=%5B%7B%22type%22%3A%22divider%22%7D%5D"
    url = slack.api_url + "chat.postMessage"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert json.loads(request("POST", url, form.encode(), kind)[1])["ok"]
    assert slack.messages(support.id)[0]["blocks"][0]["type"] == "divider"
    broken = request("POST", url, b"{", {"Content-Type": "application/json"})
    assert json.loads(broken[1])["error"] == "invalid_json"


def test_every_call_is_logged(client: WebClient, slack: SlackStandIn, support: Channel) -> None:
    client.chat_postMessage(channel=support.id, text="hello")
    error(lambda: client.chat_update(channel=support.id, ts="1.1", text="x"))
    sent, failed = slack.calls_to("chat.postMessage")[0], slack.calls_to("chat.update")[0]
    assert (sent.params["text"], sent.response["ok"]) == ("hello", True)
    assert failed.response["error"] == "message_not_found"


def test_home_tabs(client: WebClient, slack: SlackStandIn, amal: Person) -> None:
    home = {"type": "home", "blocks": card()}
    shown = client.views_publish(user_id=amal.id, view=home)["view"]
    stale = shown["hash"]
    client.views_publish(user_id=amal.id, view=home, hash=stale)
    assert error(lambda: client.views_publish(user_id=amal.id, view=home, hash=stale)) == "hash_conflict"
    assert error(lambda: client.views_publish(user_id=amal.id, view=release_modal())) == "invalid_arguments"
    current = slack.home(amal.id)
    assert current
    assert current["id"] == shown["id"]
