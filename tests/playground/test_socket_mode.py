from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

# The package needs it; an environment that was made before it did has everything else to test.
from tests.playground.raw_bot import impatient
from tests.playground.raw_socket import APP_TOKEN, RawSocket, connected, link
from tests.playground.tiny_bot import SECRET, TOKEN, TinyBot, card, release_modal
from tests.support.slack import request

from dibs.playground import SlackStandIn
from dibs.playground.sockets import MOST_CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slack_sdk.socket_mode.client import BaseSocketModeClient
    from slack_sdk.socket_mode.request import SocketModeRequest

    from dibs.playground import Channel, Person


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    """A stand-in that waits for an acknowledgement as long as a busy machine may take."""
    with SlackStandIn(
        signing_secret=SECRET, bot_token=TOKEN, app_token=APP_TOKEN, answer_within=60
    ) as stand_in:
        yield stand_in


@pytest.fixture
def socket(slack: SlackStandIn) -> Iterator[RawSocket]:
    with connected(slack) as sockets:
        yield sockets[0]


def refused(client: WebClient) -> str:
    with pytest.raises(SlackApiError) as raised:
        client.apps_connections_open(app_token=str(client.token))
    return str(raised.value.response["error"])


# Opening a connection


def test_only_the_apps_own_token_opens_a_connection(slack: SlackStandIn) -> None:
    assert refused(WebClient(token=TOKEN, base_url=slack.api_url)) == "not_allowed_token_type"
    assert refused(WebClient(token=f"{APP_TOKEN}x", base_url=slack.api_url)) == "invalid_auth"
    with pytest.raises(SlackApiError, match="not_allowed_token_type"):
        WebClient(token=APP_TOKEN, base_url=slack.api_url).auth_test()


def test_the_apps_own_token_comes_in_the_header_only(slack: SlackStandIn) -> None:
    url, kind = f"{slack.api_url}apps.connections.open", "application/x-www-form-urlencoded"
    answer = request("POST", url, f"token={APP_TOKEN}".encode(), {"Content-Type": kind})[1]
    assert json.loads(answer) == {"ok": False, "error": "not_authed"}


def test_a_connection_is_asked_for_by_post_only(slack: SlackStandIn) -> None:
    token = {"Authorization": f"Bearer {APP_TOKEN}"}
    url = f"{slack.api_url}apps.connections.open"
    assert json.loads(request("GET", url, headers=token)[1]) == {"ok": False, "error": "insecure_request"}
    assert json.loads(request("POST", url, headers=token)[1])["ok"]


def test_a_ticket_lets_one_connection_in_and_soon_none(slack: SlackStandIn) -> None:
    url, late = link(slack), link(slack)
    first, again, unknown = RawSocket(url), RawSocket(url), RawSocket(url + "&ticket=none")
    slack.wait_until(lambda: first.messages)
    slack.clock.advance(60)
    too_late = RawSocket(late)
    for one in (again, unknown, too_late):
        assert one.ended.wait(30)
        assert not one.accepted
    assert slack.sockets.connected == 1
    for one in (first, again, unknown, too_late):
        one.close()


def test_another_sites_page_gets_no_connection(slack: SlackStandIn) -> None:
    for headers in ({"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        socket = RawSocket(link(slack), headers)
        assert socket.ended.wait(30)
        assert not socket.accepted
        socket.close()


def test_a_connection_is_greeted(slack: SlackStandIn, socket: RawSocket) -> None:
    [hello] = socket.messages
    assert (hello["type"], hello["num_connections"]) == ("hello", slack.sockets.connected)
    assert hello["connection_info"] == {"app_id": slack.app_id}
    assert hello["debug_info"]["approximate_connection_time"] > 3600


def test_a_connection_under_debug_lasts_six_minutes(slack: SlackStandIn) -> None:
    socket = RawSocket(f"{link(slack)}&debug_reconnects=true")
    slack.wait_until(lambda: socket.messages)
    assert socket.messages[0]["debug_info"]["approximate_connection_time"] == 360
    socket.close()


def test_an_eleventh_connection_is_turned_away(slack: SlackStandIn) -> None:
    with connected(slack, MOST_CONNECTIONS), connected(slack) as [late]:
        assert late.ended.wait(30)
        assert [one["type"] for one in late.messages] == ["disconnect"]
        assert late.reasons == ["too_many_websockets"]
        assert slack.sockets.connected == MOST_CONNECTIONS


# Envelopes


@pytest.fixture
def person(slack: SlackStandIn) -> Person:
    return slack.add_person("Amal")


@pytest.fixture
def channel(slack: SlackStandIn, person: Person) -> Channel:
    return slack.add_channel("support", members=[person.id])


@pytest.fixture
def posted(slack: SlackStandIn, channel: Channel) -> str:
    client = WebClient(token=TOKEN, base_url=slack.api_url)
    return str(client.chat_postMessage(channel=channel.id, text="TINY-1", blocks=card())["ts"])


def test_a_press_comes_in_an_envelope_and_its_acknowledgement_is_its_answer(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    result = slack.press(person.id, channel.id, posted, "claim")
    assert (result.status, result.failed) == (200, False)
    [envelope] = socket.envelopes
    assert (envelope["type"], envelope["accepts_response_payload"]) == ("interactive", False)
    assert envelope["payload"]["type"] == "block_actions"
    assert envelope["payload"]["actions"][0]["action_id"] == "claim"


def test_a_command_is_answered_in_the_acknowledgement(
    slack: SlackStandIn, person: Person, channel: Channel, socket: RawSocket
) -> None:
    socket.answer = {"text": "heard"}
    result = slack.command(person.id, channel.id, "/tiny", "hello")
    assert result.ephemeral
    assert result.ephemeral["text"] == "heard"
    envelope = socket.envelopes[0]
    assert (envelope["type"], envelope["accepts_response_payload"]) == ("slash_commands", True)
    assert (envelope["payload"]["command"], envelope["payload"]["text"]) == ("/tiny", "hello")


def test_a_submission_is_answered_in_the_acknowledgement(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    slack.press(person.id, channel.id, posted, "claim")
    trigger = socket.envelopes[0]["payload"]["trigger_id"]
    WebClient(token=TOKEN, base_url=slack.api_url).views_open(trigger_id=trigger, view=release_modal())
    values = {"reason": "shift_ending", "handoff_note": "x", "external_action": "none"}
    socket.answer = {"response_action": "errors", "errors": {"comment": "Say more."}}
    assert slack.submit(person.id, values).errors == {"comment": "Say more."}
    assert socket.envelopes[-1]["accepts_response_payload"] is True
    socket.answer = None
    assert slack.submit(person.id).closed


def test_a_payload_where_none_is_accepted_is_passed_over(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    socket.answer = {"text": "nobody reads this"}
    assert slack.press(person.id, channel.id, posted, "claim").body == ""


def test_an_event_tells_which_try_it_is(
    slack: SlackStandIn, person: Person, channel: Channel, socket: RawSocket
) -> None:
    socket.silent = True
    with impatient(slack):
        slack.leave(person.id, channel.id)
    slack.wait_until(lambda: len(socket.envelopes) == 2)
    socket.silent = False
    slack.clock.advance(60)
    tries = [(one["type"], one["retry_attempt"], one["retry_reason"]) for one in socket.envelopes]
    assert tries == [
        ("events_api", 0, ""),
        ("events_api", 1, "http_timeout"),
        ("events_api", 2, "http_timeout"),
    ]
    assert len({one["payload"]["event_id"] for one in socket.envelopes}) == 1


def test_each_envelope_goes_to_one_connection(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str
) -> None:
    with connected(slack, 3) as sockets:
        for _ in range(6):
            assert slack.press(person.id, channel.id, posted, "claim").status == 200
        assert [len(one.envelopes) for one in sockets] == [2, 2, 2]


def test_what_is_not_acknowledged_in_time_has_failed(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    socket.silent = True
    with impatient(slack) as moment:
        result = slack.press(person.id, channel.id, posted, "claim")
        assert result.failed
        assert result.seconds >= moment
        assert [mark.action_id for mark in slack.failures(person.id)] == ["claim"]
        said = slack.command(person.id, channel.id, "/tiny")
    assert said.words == '/tiny failed with the error "operation_timeout"'


def test_without_a_connection_nothing_arrives(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str
) -> None:
    assert slack.press(person.id, channel.id, posted, "claim").failed
    said = slack.command(person.id, channel.id, "/tiny")
    assert said.words == '/tiny failed with the error "dispatch_failed"'


def test_presses_at_the_same_moment_go_over_one_connection_together(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    results = slack.together([lambda: slack.press(person.id, channel.id, posted, "claim")] * 5)
    assert [result.status for result in results] == [200] * 5
    assert len(socket.envelopes) == 5


# What Slack does to connections


def test_a_refreshed_connection_is_asked_to_come_anew_and_closed(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    slack.sockets.warn()
    assert slack.press(person.id, channel.id, posted, "claim").status == 200
    slack.sockets.refresh()
    assert socket.ended.wait(30)
    assert socket.reasons == ["warning", "refresh_requested"]
    assert slack.sockets.connected == 0


def test_turning_socket_mode_off_ends_it(slack: SlackStandIn, socket: RawSocket) -> None:
    slack.socket_mode = False
    assert socket.ended.wait(30)
    assert socket.reasons == ["link_disabled"]
    assert refused(WebClient(token=APP_TOKEN, base_url=slack.api_url)) == "socket_mode_disabled"


def test_a_connection_is_cut_without_a_word(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    slack.sockets.cut()
    assert socket.ended.wait(30)
    assert socket.reasons == []
    slack.wait_until(lambda: slack.sockets.connected == 0)
    assert slack.press(person.id, channel.id, posted, "claim").failed


def test_a_press_on_a_connection_that_ends_has_failed(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    socket.silent = True

    def cut_once_it_came() -> None:
        slack.wait_until(lambda: socket.envelopes)
        slack.sockets.cut()

    later = threading.Thread(target=cut_once_it_came)
    later.start()
    result = slack.press(person.id, channel.id, posted, "claim")
    later.join()
    assert result.failed
    assert result.seconds < 60


def test_garbage_from_the_bot_is_passed_over(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str, socket: RawSocket
) -> None:
    for text in ("nonsense", "[]", json.dumps({"envelope_id": "none"})):
        socket.say(text)
    assert slack.press(person.id, channel.id, posted, "claim").status == 200


# Slack's own clients


def test_slack_sdks_builtin_client_works_unchanged_and_comes_back(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str
) -> None:
    client = SocketModeClient(APP_TOKEN, web_client=WebClient(base_url=slack.api_url), ping_interval=1)
    heard: list[str] = []

    def take(client: BaseSocketModeClient, told: SocketModeRequest) -> None:
        heard.append(told.type)
        client.send_socket_mode_response(SocketModeResponse(told.envelope_id))

    client.socket_mode_request_listeners.append(take)
    client.connect()
    try:
        slack.wait_until(lambda: slack.sockets.connected == 1)
        assert slack.press(person.id, channel.id, posted, "claim").status == 200
        for trouble in (slack.sockets.refresh, slack.sockets.cut):
            trouble()
            slack.wait_until(lambda: slack.sockets.connected == 0)
            slack.wait_until(lambda: slack.sockets.connected == 1, timeout=60)
            slack.wait_until(lambda: not slack.press(person.id, channel.id, posted, "claim").failed)
        assert set(heard) == {"interactive"}
    finally:
        client.close()


def test_bolts_socket_mode_handler_works_unchanged(
    slack: SlackStandIn, person: Person, channel: Channel, posted: str
) -> None:
    bot = TinyBot(WebClient(token=TOKEN, base_url=slack.api_url))
    handler = SocketModeHandler(bot.app, APP_TOKEN)
    handler.connect()  # type: ignore[no-untyped-call]
    try:
        slack.wait_until(lambda: slack.sockets.connected == 1)
        pressed = slack.press(person.id, channel.id, posted, "claim")
        assert (pressed.status, bot.owner) == (200, person.id)
        assert "Owner" in slack.messages(channel.id)[0]["blocks"][0]["text"]["text"]
        said = slack.command(person.id, channel.id, "/tiny", "hello")
        assert said.ephemeral
        assert said.ephemeral["text"] == "You said hello"
        slack.press(person.id, channel.id, posted, "release")
        values = {"reason": "other", "handoff_note": "x", "external_action": "none"}
        assert slack.submit(person.id, values).errors == {"comment": "Other needs a comment."}
        joined = slack.join(slack.add_person("Noor").id, channel.id)
        assert joined
        assert joined.status == 200
        assert bot.events[0]["type"] == "member_joined_channel"
        # Bolt acknowledges nothing that it does not handle.
        with impatient(slack):
            assert slack.command(person.id, channel.id, "/unknown").failed
    finally:
        handler.close()  # type: ignore[no-untyped-call]
    slack.wait_until(lambda: slack.sockets.connected == 0)
