from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import card
from tests.support.slack import request

from dibs.playground.manifest import ManifestRefused, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk import WebClient
    from tests.playground.raw_bot import RawBot

    from dibs.playground import Channel, Person, SlackStandIn

Json = dict[str, Any]


def manifest(
    *scopes: str,
    events: tuple[str, ...] = (),
    interactive: bool = True,
    escape: bool = False,
    home: bool = False,
) -> Json:
    return {
        "display_information": {"name": "Tiny"},
        "features": {
            "app_home": {"home_tab_enabled": home},
            "slash_commands": [{"command": "/tiny", "description": "Tiny", "should_escape": escape}],
            "shortcuts": [
                {"callback_id": "make", "name": "Make", "description": "Make one", "type": "global"},
                {"callback_id": "from_message", "name": "From", "description": "From it", "type": "message"},
            ],
        },
        "oauth_config": {"scopes": {"bot": ["commands", *scopes]}},
        "settings": {
            "event_subscriptions": {"request_url": "https://tiny.example", "bot_events": list(events)},
            "interactivity": {"is_enabled": interactive},
            "socket_mode_enabled": False,
        },
    }


def missing(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(SlackApiError) as raised:
        call()
    answer = raised.value.response
    assert answer["error"] == "missing_scope"
    return answer["needed"], answer["provided"]


# Scopes


def test_a_method_needs_its_scope(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.install(manifest("users:read"))
    post = missing(lambda: client.chat_postMessage(channel=support.id, text="x"))
    assert post == ("chat:write", "commands,users:read")
    assert client.users_info(user=support.members[0])["ok"]
    slack.install(manifest("chat:write"))
    assert client.chat_postMessage(channel=support.id, text="x")["ok"]
    assert missing(lambda: client.users_info(user=support.members[0]))[0] == "users:read"
    assert missing(client.users_list)[0] == "users:read"
    assert missing(client.usergroups_list)[0] == "usergroups:read"
    assert missing(lambda: client.usergroups_users_list(usergroup="S1"))[0] == "usergroups:read"


@pytest.mark.parametrize("method", ["chat_update", "chat_delete", "chat_postEphemeral"])
def test_everything_that_writes_needs_chat_write(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str, method: str
) -> None:
    slack.install(manifest())
    call = getattr(client, method)
    more = {"user": support.members[0]} if method == "chat_postEphemeral" else {"ts": posted}
    text = {} if method == "chat_delete" else {"text": "x"}
    assert missing(lambda: call(channel=support.id, **more, **text))[0] == "chat:write"


def test_the_scope_goes_by_the_kind_of_conversation(
    slack: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    private = slack.add_channel("private", members=[amal.id], private=True)
    slack.install(manifest("channels:read", "channels:history"))
    assert client.conversations_info(channel=support.id)["ok"]
    assert client.conversations_history(channel=support.id)["ok"]
    assert missing(lambda: client.conversations_members(channel=private.id))[0] == "groups:read"
    assert missing(lambda: client.conversations_history(channel=private.id))[0] == "groups:history"
    assert missing(lambda: client.conversations_open(users=[amal.id]))[0] == "im:write"
    kinds = "public_channel,private_channel,im"
    assert missing(lambda: client.users_conversations(types=kinds))[0] == "groups:read,im:read"
    slack.install(manifest())
    nowhere = missing(lambda: client.conversations_info(channel="C404"))[0]
    assert nowhere == "channels:read,groups:read,im:read,mpim:read"


def test_every_answer_tells_what_was_granted(slack: SlackStandIn, client: WebClient) -> None:
    slack.install(manifest("chat:write"))
    assert client.auth_test().headers["x-oauth-scopes"] == "chat:write,commands"


def test_some_methods_need_no_scope(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str, amal: Person
) -> None:
    slack.install(manifest(home=True))
    assert client.auth_test()["ok"]
    assert client.chat_getPermalink(channel=support.id, message_ts=posted)["ok"]
    assert client.views_publish(user_id=amal.id, view={"type": "home", "blocks": card()})["ok"]


def test_a_home_tab_that_is_not_enabled_takes_no_view(
    slack: SlackStandIn, client: WebClient, amal: Person
) -> None:
    slack.install(manifest())
    with pytest.raises(SlackApiError, match="not_enabled"):
        client.views_publish(user_id=amal.id, view={"type": "home", "blocks": card()})
    assert slack.home(amal.id) is None


# What a manifest must say


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda told: told["oauth_config"]["scopes"]["bot"].remove("commands"), "the scope commands"),
        (lambda told: told["oauth_config"]["scopes"]["bot"].remove("channels:read"), "member_joined_channel"),
        (lambda told: told["settings"]["event_subscriptions"].pop("request_url"), "request_url"),
        (
            lambda told: told["settings"]["event_subscriptions"]["bot_events"].append("app_home_opened"),
            "Home tab",
        ),
        (lambda told: told["features"]["shortcuts"].extend(_shortcuts(9)), "10 shortcuts"),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_refused(
    change: Callable[[Json], None], words: str
) -> None:
    told = manifest("channels:read", events=("member_joined_channel",))
    read(copy.deepcopy(told))
    change(told)
    with pytest.raises(ManifestRefused, match=words):
        read(told)


def _shortcuts(number: int) -> list[Json]:
    return [
        {"callback_id": f"more_{n}", "name": "More", "description": "More", "type": "global"}
        for n in range(number)
    ]


# Commands, presses, shortcuts and events


def test_a_command_that_is_not_registered_is_not_valid(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel]
) -> None:
    amal, channel = people
    quick.install(manifest())
    result = quick.command(amal.id, channel.id, "/other", "x")
    assert (result.failed, result.words) == (True, "/other is not a valid command.")
    assert raw.requests == []
    assert quick.ephemerals(amal.id)[0]["text"] == "/other is not a valid command."
    assert not quick.command(amal.id, channel.id, "/tiny", "x").failed
    assert raw.form()["command"] == "/tiny"


@pytest.mark.parametrize("escape", [False, True])
def test_names_in_a_command_are_ids_only_where_the_manifest_asks_for_it(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel], *, escape: bool
) -> None:
    amal, channel = people
    quick.install(manifest(escape=escape))
    quick.command(amal.id, channel.id, "/tiny", f"tell <@{amal.id}> in <#{channel.id}|support> a &lt; b")
    escaped = f"tell <@{amal.id}|amal> in <#{channel.id}|support> a &lt; b"
    assert raw.form()["text"] == (escaped if escape else "tell @Amal in #support a < b")


def test_without_interactivity_a_press_goes_nowhere(
    quick: SlackStandIn,
    raw: RawBot,
    people: tuple[Person, Channel],
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    amal, channel = people
    ts = client_of(quick).chat_postMessage(channel=channel.id, text="x", blocks=card())["ts"]
    quick.install(manifest(interactive=False))
    result = quick.press(amal.id, channel.id, ts, "claim")
    assert result.failed
    assert result.words == "This app is not configured to handle interactive responses."
    assert quick.failures(amal.id)
    assert raw.requests == []


def test_shortcuts_are_those_of_the_manifest(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel]
) -> None:
    amal, channel = people
    found = quick.install(manifest())
    assert {one.callback_id: one.on_message for one in found.shortcuts.values()} == {
        "make": False,
        "from_message": True,
    }
    said = quick.say(amal.id, channel.id, "please do")
    assert not quick.shortcut(amal.id, "make").failed
    told = raw.payload()
    assert (told["type"], told["callback_id"]) == ("shortcut", "make")
    assert not {"channel", "message", "response_url"} & told.keys()
    assert not quick.message_shortcut(amal.id, channel.id, said["ts"], "from_message").failed
    told = raw.payload()
    assert (told["type"], told["message"]["text"]) == ("message_action", "please do")
    assert (told["channel"]["id"], told["message_ts"]) == (channel.id, said["ts"])
    assert "/hooks/app/" in told["response_url"]
    with pytest.raises(LookupError, match="no such shortcut"):
        quick.shortcut(amal.id, "unknown")
    with pytest.raises(LookupError, match="no such shortcut"):
        quick.shortcut(amal.id, "from_message")
    with pytest.raises(LookupError, match="no such shortcut"):
        quick.message_shortcut(amal.id, channel.id, said["ts"], "make")


def test_events_are_told_only_to_who_subscribed(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel]
) -> None:
    amal, channel = people
    quick.install(manifest("channels:read", "channels:history", events=("message.channels",)))
    quick.leave(amal.id, channel.id)
    quick.join(amal.id, channel.id)
    assert raw.requests == []
    said = quick.say(amal.id, channel.id, f"hello <@{quick.bot_user_id}>")
    [(_, body)] = raw.requests
    event = json.loads(body)["event"]
    assert (event["type"], event["channel_type"], event["text"]) == ("message", "channel", said["text"])
    quick.delete_message(channel.id, said["ts"])
    gone = json.loads(raw.requests[-1][1])["event"]
    assert (gone["subtype"], gone["deleted_ts"]) == ("message_deleted", said["ts"])
    quick.say(amal.id, quick.add_channel("private", members=[amal.id], private=True).id, "x")
    quick.say(amal.id, quick.add_channel("elsewhere", members=[amal.id], bot=False).id, "x")
    assert len(raw.requests) == 2


def test_a_bot_that_subscribed_to_messages_hears_of_its_own(
    quick: SlackStandIn,
    raw: RawBot,
    people: tuple[Person, Channel],
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    _, channel = people
    quick.install(manifest("chat:write", "channels:history", events=("message.channels",)))
    client_of(quick).chat_postMessage(channel=channel.id, text="my own")
    quick.wait_until(lambda: raw.requests)
    event = json.loads(raw.requests[0][1])["event"]
    assert (event["text"], event["bot_id"], event["user"]) == ("my own", quick.bot_id, quick.bot_user_id)
    quick.install(manifest("chat:write"))
    client_of(quick).chat_postMessage(channel=channel.id, text="unheard")
    quick.say(people[0].id, channel.id, "unheard")
    assert len(raw.requests) == 1


def test_other_events_of_a_channel_and_of_people(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel]
) -> None:
    amal, channel = people
    scopes = ("channels:read", "users:read", "app_mentions:read")
    quick.install(manifest(*scopes, events=("channel_archive", "user_change", "app_mention")))
    quick.say(amal.id, channel.id, f"<@{quick.bot_user_id}> help")
    quick.archive(channel.id)
    quick.deactivate(amal.id)
    events = [json.loads(body)["event"] for _, body in raw.requests]
    assert [one["type"] for one in events] == ["app_mention", "channel_archive", "user_change"]
    assert events[2]["user"]["deleted"] is True


@pytest.fixture
def people(quick: SlackStandIn) -> tuple[Person, Channel]:
    amal = quick.add_person("Amal")
    return amal, quick.add_channel("support", members=[amal.id])


def test_changed_and_deleted_messages_are_told_to_who_subscribed(
    quick: SlackStandIn,
    raw: RawBot,
    people: tuple[Person, Channel],
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    amal, channel = people
    client = client_of(quick)
    quick.install(manifest("chat:write", "channels:history", events=("message.channels",)))

    def told(number: int) -> Json:
        quick.wait_until(lambda: len(raw.requests) == number)
        event = json.loads(raw.requests[-1][1])["event"]
        assert isinstance(event, dict)
        return event

    ts = client.chat_postMessage(channel=channel.id, text="one")["ts"]
    told(1)
    client.chat_update(channel=channel.id, ts=ts, text="two")
    changed = told(2)
    assert (changed["subtype"], changed["hidden"], changed["channel"]) == (
        "message_changed",
        True,
        channel.id,
    )
    assert (changed["message"]["text"], changed["previous_message"]["text"]) == ("two", "one")
    assert changed["message"]["ts"] == ts != changed["ts"]
    client.chat_delete(channel=channel.id, ts=ts)
    deleted = told(3)
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", ts)
    assert deleted["previous_message"]["text"] == "two"
    raw.answers.append((200, json.dumps({"response_type": "in_channel", "text": "aloud"})))
    quick.command(amal.id, channel.id, "/tiny")
    assert told(5)["text"] == "aloud"


def _has_heard(raw: RawBot, requests: int) -> bool:
    return len(raw.requests) == requests


def test_what_goes_through_a_response_url_is_told_to_who_subscribed(
    quick: SlackStandIn,
    raw: RawBot,
    people: tuple[Person, Channel],
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    amal, channel = people
    ts = client_of(quick).chat_postMessage(channel=channel.id, text="one", blocks=card())["ts"]
    quick.install(manifest("chat:write", "channels:history", events=("message.channels",)))
    quick.press(amal.id, channel.id, ts, "claim")
    url = raw.payload()["response_url"]
    kinds: list[str] = []
    for number, answer in enumerate(
        [{"text": "private"}, {"text": "two", "replace_original": True}, {"delete_original": True}]
    ):
        sent = request("POST", url, json.dumps(answer).encode(), {"Content-Type": "application/json"})
        assert sent[0] == 200
        quick.wait_until(partial(_has_heard, raw, 1 + number))
        kinds += [json.loads(body)["event"]["subtype"] for _, body in raw.requests[1 + len(kinds) :]]
    assert kinds == ["message_changed", "message_deleted"]


def test_nobody_who_did_not_subscribe_is_told_of_messages(
    quick: SlackStandIn,
    raw: RawBot,
    people: tuple[Person, Channel],
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    _, channel = people
    client = client_of(quick)
    for installed in (None, manifest("chat:write", "im:history", events=("message.im",))):
        if installed:
            quick.install(installed)
        ts = client.chat_postMessage(channel=channel.id, text="one")["ts"]
        client.chat_update(channel=channel.id, ts=ts, text="two")
        client.chat_delete(channel=channel.id, ts=ts)
    direct = client.chat_postMessage(channel=people[0].id, text="to one person")
    quick.wait_until(lambda: raw.requests)
    assert [json.loads(body)["event"]["channel"] for _, body in raw.requests] == [direct["channel"]]


def test_changes_of_a_user_group_are_told_to_who_subscribed(
    quick: SlackStandIn, raw: RawBot, people: tuple[Person, Channel]
) -> None:
    amal, bilal = people[0], quick.add_person("Bilal")
    quick.set_user_group(quick.add_user_group("Unheard", "unheard").id, [amal.id])
    assert raw.requests == []
    kinds = ("subteam_created", "subteam_members_changed", "subteam_updated")
    quick.install(manifest("usergroups:read", events=kinds))
    group = quick.add_user_group("Support", "support-team", [amal.id])
    quick.set_user_group(group.id, [bilal.id])
    quick.set_user_group(group.id, [bilal.id], disabled=True)
    events = [json.loads(body)["event"] for _, body in raw.requests]
    assert [one["type"] for one in events] == [*kinds, "subteam_updated"]
    created, members, updated, disabled = events
    assert (created["subteam"]["handle"], created["subteam"]["user_count"]) == ("support-team", 1)
    assert (members["subteam_id"], members["added_users"], members["removed_users"]) == (
        group.id,
        [bilal.id],
        [amal.id],
    )
    assert (members["added_users_count"], members["removed_users_count"]) == (1, 1)
    assert updated["subteam"]["users"] == [bilal.id]
    assert updated["subteam"]["date_delete"] == 0 < disabled["subteam"]["date_delete"]


def test_a_manifest_must_grant_user_groups_to_hear_of_them() -> None:
    with pytest.raises(ManifestRefused, match="usergroups:read"):
        read(manifest(events=("subteam_members_changed",)))
