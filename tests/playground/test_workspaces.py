from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from tests.playground.tiny_bot import TOKEN, card
from tests.support.slack import request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.playground.raw_bot import RawBot

    from dibs.playground import Channel, Person, SlackStandIn

ELSE = f"{TOKEN}-else"
BACK = "https://dibs.example.com/slack/oauth_redirect"


def error(call: Callable[[], object]) -> str:
    with pytest.raises(SlackApiError) as raised:
        call()
    return str(raised.value.response["error"])


# User groups, guests and strangers


def test_user_groups(slack: SlackStandIn, client: WebClient, amal: Person, bilal: Person) -> None:
    group = slack.add_user_group("Support", "support-team", [amal.id])
    [shown] = client.usergroups_list(include_users=True, include_count=True)["usergroups"]
    assert (shown["id"], shown["handle"], shown["users"], shown["user_count"]) == (
        group.id,
        "support-team",
        [amal.id],
        1,
    )
    assert "users" not in client.usergroups_list()["usergroups"][0]
    slack.set_user_group(group.id, [amal.id, bilal.id])
    assert client.usergroups_users_list(usergroup=group.id)["users"] == [amal.id, bilal.id]
    slack.set_user_group(group.id, [], disabled=True)
    assert client.usergroups_list()["usergroups"] == []
    assert client.usergroups_list(include_disabled=True)["usergroups"][0]["date_delete"] > 0
    assert error(lambda: client.usergroups_users_list(usergroup=group.id)) == "no_such_subteam"
    assert error(lambda: client.usergroups_users_list(usergroup="S404")) == "no_such_subteam"


def test_guests(slack: SlackStandIn, client: WebClient) -> None:
    def shown(person: Person) -> tuple[bool, bool]:
        user = client.users_info(user=person.id)["user"]
        return user["is_restricted"], user["is_ultra_restricted"]

    assert shown(slack.add_person("Full")) == (False, False)
    assert shown(slack.add_person("Guest", is_restricted=True)) == (True, False)
    assert shown(slack.add_person("Single", is_ultra_restricted=True)) == (True, True)


def test_somebody_of_another_workspace_in_a_shared_channel(quick: SlackStandIn, raw: RawBot) -> None:
    client = WebClient(token=TOKEN, base_url=quick.api_url)
    stranger = quick.add_person("Str", team_id="T0OTHER")
    channel = quick.add_channel("shared", members=[stranger.id], shared_with=["T0OTHER"])
    shown = client.conversations_info(channel=channel.id)["channel"]
    assert (shown["is_ext_shared"], shown["shared_team_ids"]) == (True, [quick.team_id, "T0OTHER"])
    assert client.users_info(user=stranger.id)["user"]["is_stranger"] is True
    ts = client.chat_postMessage(channel=channel.id, text="x", blocks=card())["ts"]
    quick.press(stranger.id, channel.id, ts, "claim")
    pressed = raw.payload()
    assert (pressed["user"]["team_id"], pressed["team"]["id"]) == ("T0OTHER", quick.team_id)
    quick.leave(stranger.id, channel.id)
    left = json.loads(raw.requests[-1][1])
    assert (left["is_ext_shared_channel"], left["event"]["team"]) == (True, "T0OTHER")


# A second workspace


def test_a_second_workspace_has_its_own_people_channels_and_token(
    quick: SlackStandIn, raw: RawBot, client_of: Callable[[SlackStandIn], WebClient]
) -> None:
    here, there = client_of(quick), WebClient(token=ELSE, base_url=quick.api_url)
    amal = quick.add_person("Amal")
    quick.add_channel("support", members=[amal.id])
    other = quick.add_workspace("Elsewhere", bot_token=ELSE)
    else_amal = other.add_person("Amal")
    channel = other.add_channel("support", members=[else_amal.id])
    assert amal.id != else_amal.id
    assert there.auth_test()["team_id"] == other.team_id != quick.team_id
    assert there.auth_test()["user_id"] == other.bot_user_id != quick.bot_user_id
    assert error(lambda: here.chat_postMessage(channel=channel.id, text="x")) == "channel_not_found"
    assert error(lambda: here.users_info(user=else_amal.id)) == "user_not_found"
    ts = there.chat_postMessage(channel=channel.id, text="x", blocks=card())["ts"]
    other.press(else_amal.id, channel.id, ts, "claim")
    pressed = raw.payload()
    assert (pressed["team"]["id"], pressed["api_app_id"]) == (other.team_id, quick.app_id)
    told = json.dumps({"text": "in the other one", "response_type": "in_channel"}).encode()
    kind = {"Content-Type": "application/json"}
    assert request("POST", pressed["response_url"], told, kind) == (200, "ok")
    assert [one["text"] for one in other.messages(channel.id)] == ["x", "in the other one"]
    wrong = pressed["response_url"].replace(other.team_id, quick.team_id)
    assert request("POST", wrong, told, kind)[0] == 404
    assert request("POST", pressed["response_url"].replace(other.team_id, "T404"), told, kind)[0] == 404
    other.leave(else_amal.id, channel.id)
    left = json.loads(raw.requests[-1][1])
    assert (left["team_id"], left["authorizations"][0]["user_id"]) == (other.team_id, other.bot_user_id)
    assert [call.method for call in other.calls_to("chat.postMessage")] == ["chat.postMessage"]


def test_workspaces_whose_ids_would_be_the_same_are_refused(quick: SlackStandIn) -> None:
    with pytest.raises(ValueError, match="T0PLAY already"):
        quick.add_workspace("Playtime")


def test_where_the_app_is_not_installed_it_is_not_there(quick: SlackStandIn, raw: RawBot) -> None:
    other = quick.add_workspace("Elsewhere")
    amal = other.add_person("Amal")
    channel = other.add_channel("support", members=[amal.id])
    assert other.command(amal.id, channel.id, "/tiny").words == "/tiny is not a valid command."
    other.leave(amal.id, channel.id)
    assert raw.requests == []


# The installation


def asked(slack: SlackStandIn, **more: str) -> dict[str, str]:
    told = {"client_id": slack.client_id, "scope": "chat:write,users:read", "state": "s t", **more}
    return {"redirect_uri": BACK, **told}


def answered(slack: SlackStandIn, told: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Press a button on the installation page; the status and what the app's address is told."""
    parts = urlsplit(slack.authorize_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=60)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", parts.path, urlencode(told), kind)
    response = connection.getresponse()
    response.read()
    connection.close()
    where = response.getheader("Location", "")
    assert not where or where.startswith(BACK)
    return response.status, {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}


def exchange(slack: SlackStandIn, code: str, **more: str) -> WebClient:
    told = {"client_id": slack.client_id, "client_secret": slack.client_secret, "code": code, **more}
    answer = WebClient(base_url=slack.api_url).oauth_v2_access(**{"redirect_uri": BACK, **told})
    assert answer["token_type"] == "bot"  # noqa: S105 - Slack's word for the kind
    return WebClient(token=answer["access_token"], base_url=slack.api_url)


def test_the_app_is_installed_by_an_administrator(slack: SlackStandIn) -> None:
    other = slack.add_workspace("Elsewhere")
    boss = other.add_person("Boss")
    status, page = request("GET", f"{slack.authorize_url}?{urlencode(asked(slack))}")
    assert status == 200
    assert "chat:write" in page
    assert "Elsewhere" in page
    status, back = answered(slack, asked(slack, team=other.team_id, answer="allow"))
    assert (status, back["state"]) == (302, "s t")
    client = exchange(slack, back["code"])
    assert client.auth_test()["team_id"] == other.team_id
    assert client.users_info(user=boss.id)["ok"]
    assert error(client.usergroups_list) == "missing_scope"


def test_whoever_cancels_sends_the_app_a_refusal(slack: SlackStandIn) -> None:
    status, back = answered(slack, asked(slack, answer="cancel"))
    assert (status, back) == (302, {"error": "access_denied", "state": "s t"})


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"client_id": "1.2"}, "invalid_client_id"),
        ({"redirect_uri": "javascript:alert(1)"}, "bad_redirect_uri"),
        ({"scope": ""}, "invalid_scope"),
    ],
)
def test_a_page_that_cannot_be_shown_says_why(slack: SlackStandIn, wrong: dict[str, str], code: str) -> None:
    told = asked(slack, answer="allow") | wrong
    assert code in request("GET", f"{slack.authorize_url}?{urlencode(told)}")[1]
    assert answered(slack, told)[0] == 400


def test_what_the_app_asks_for_cannot_break_the_page(slack: SlackStandIn) -> None:
    told = asked(slack, scope='<script>"', state='"><b>')
    page = request("GET", f"{slack.authorize_url}?{urlencode(told)}")[1]
    assert "<script>" not in page
    assert "<b>" not in page


def test_a_manifest_says_where_to_return_to_and_what_may_be_asked_for(slack: SlackStandIn) -> None:
    slack.install(
        {
            "display_information": {"name": "Tiny"},
            "oauth_config": {"scopes": {"bot": ["chat:write"]}, "redirect_urls": [BACK]},
        }
    )
    assert answered(slack, asked(slack, scope="chat:write", answer="allow"))[0] == 302
    assert answered(slack, asked(slack, scope="users:read", answer="allow"))[0] == 400
    elsewhere = asked(slack, scope="chat:write", redirect_uri="https://elsewhere.example", answer="allow")
    assert answered(slack, elsewhere)[0] == 400


def test_a_code_is_exchanged_once_and_in_time(slack: SlackStandIn) -> None:
    def code() -> str:
        return answered(slack, asked(slack, answer="allow"))[1]["code"]

    used, late = code(), code()
    assert error(lambda: exchange(slack, used, client_id="1.2")) == "invalid_client_id"
    assert error(lambda: exchange(slack, used, client_secret=TOKEN)) == "bad_client_secret"
    assert (
        error(lambda: exchange(slack, used, redirect_uri="https://elsewhere.example")) == "bad_redirect_uri"
    )
    assert error(lambda: exchange(slack, "unknown")) == "invalid_code"
    exchange(slack, used)
    assert error(lambda: exchange(slack, used)) == "code_already_used"
    slack.clock.advance(601)
    assert error(lambda: exchange(slack, late)) == "invalid_code"


# The end of an installation


def kinds(raw: RawBot) -> list[str]:
    return [json.loads(body)["event"]["type"] for _, body in raw.requests]


def test_a_revoked_token_is_of_no_use_and_the_app_hears_of_it(
    quick: SlackStandIn, raw: RawBot, client_of: Callable[[SlackStandIn], WebClient]
) -> None:
    client = client_of(quick)
    channel = quick.add_channel("support")
    assert client.auth_revoke(test=True)["revoked"] is False
    assert client.auth_test()["ok"]
    assert client.auth_revoke()["revoked"] is True
    assert error(client.auth_test) == "account_inactive"
    quick.wait_until(lambda: raw.requests)
    assert kinds(raw) == ["tokens_revoked"]
    told = json.loads(raw.requests[0][1])["event"]
    assert told["tokens"] == {"oauth": [], "bot": [quick.bot_user_id]}
    assert channel.members == []


def test_an_administrator_removes_the_app(quick: SlackStandIn, raw: RawBot) -> None:
    other = quick.add_workspace("Elsewhere", bot_token=ELSE)
    quick.uninstall(other)
    quick.wait_until(lambda: len(raw.requests) == 2)
    assert sorted(kinds(raw)) == ["app_uninstalled", "tokens_revoked"]
    assert {json.loads(body)["team_id"] for _, body in raw.requests} == {other.team_id}
    assert error(WebClient(token=ELSE, base_url=quick.api_url).auth_test) == "account_inactive"
    assert WebClient(token=TOKEN, base_url=quick.api_url).auth_test()["ok"]


def test_a_card_of_an_app_that_is_gone_leads_nowhere(
    slack: SlackStandIn, support: Channel, posted: str, amal: Person
) -> None:
    slack.uninstall()
    assert slack.press(amal.id, support.id, posted, "claim").failed
