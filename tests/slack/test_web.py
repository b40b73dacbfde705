"""What is asked of Slack ends in time, obeys its limits, and is believed only where Slack has answered."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.slack.samples import facts, task
from tests.support.bot import SECRET, TOKEN
from tests.support.threads import no_threads

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.queue import Facts
from dibs.domain.task import Standing
from dibs.playground import Channel, SlackStandIn
from dibs.playground.webapi import people
from dibs.service.delivery import Delivered, GivenUp, MessageGone, TryLater
from dibs.slack.calls import Answered, SlackUnusable
from dibs.slack.web import SlackWeb

DROPS_EVERY = 0.3


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN) as slack:
        yield slack


@pytest.fixture
def web(slack: SlackStandIn) -> SlackWeb:
    return SlackWeb(TOKEN, slack.api_url)


@pytest.fixture
def channel(slack: SlackStandIn) -> Channel:
    return slack.add_channel("support", members=[])


def in_channel(channel: Channel, task_id: int = 1) -> Facts:
    return replace(facts(task(id=task_id)), channel_id=channel.id)


def soon() -> Deadline:
    return Deadline.after(60)


# In time


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of a server that answers one byte at a time and never ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def drip(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
                while not ended.wait(DROPS_EVERY):
                    connection.sendall(b" ")
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=drip, args=[connection]))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/"
    ended.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    accepting.join()
    for thread in (*threads, *_requests_under_way()):
        thread.join()
    # The client leaves what it read half of to the garbage collector, which is no later test's trouble.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _requests_under_way() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dibs-slack-call"]


def test_a_server_that_answers_drop_by_drop_holds_up_no_press(dripping: str) -> None:
    web = SlackWeb(TOKEN, dripping)
    for ask in (_open_view, _look_up_member, _look_up_standing):
        started = time.monotonic()
        ask(web, Deadline.after(1.5))
        # The server never ends, so whoever waited for it would wait on and on.
        assert time.monotonic() - started < 10


def _open_view(web: SlackWeb, deadline: Deadline) -> None:
    assert not web.open_view("trigger", {"callback_id": "release"}, deadline)


def _look_up_member(web: SlackWeb, deadline: Deadline) -> None:
    with pytest.raises(LookUpFailed):
        web.has_member("C0SUPPORT", "U0AMAL", deadline)


def _look_up_standing(web: SlackWeb, deadline: Deadline) -> None:
    with pytest.raises(LookUpFailed):
        web.standing("T0TEST", "U0AMAL", deadline)


def test_one_delivery_ends_by_its_deadline_whatever_it_takes(dripping: str) -> None:
    web = SlackWeb(TOKEN, dripping)
    deadline = Deadline.after(1.5)
    assert web.find(facts(task()), datetime.now(UTC), deadline) == TryLater()
    update = web.update(facts(task()), "1.2", dripping, Deadline.after(1.5))
    assert isinstance(update, TryLater)
    assert deadline.remaining > -2


# Channels and people


def test_a_large_channel_is_read_no_further_than_to_the_person(
    slack: SlackStandIn, web: SlackWeb, channel: Channel
) -> None:
    with slack.world.lock:
        channel.members.extend(f"U0MEMBER{number}" for number in range(2500))
    assert web.has_member(channel.id, "U0MEMBER7", soon())
    assert len(slack.calls_to("conversations.members")) == 1
    assert not web.has_member(channel.id, "U0ELSEWHERE", soon())
    assert len(slack.calls_to("conversations.members")) == 4
    assert len(web.members(channel.id, soon())) == len(channel.members)


def test_a_name_is_forgotten_after_a_while(slack: SlackStandIn) -> None:
    nina = slack.add_person("Nina")
    web, forgetful = SlackWeb(TOKEN, slack.api_url), SlackWeb(TOKEN, slack.api_url, names_last_seconds=0)
    assert web.standing(slack.world.team_id, nina.id, soon()) is Standing.ELIGIBLE
    assert web.name_of(nina.id, soon()) == web.name_of(nina.id, soon()) == "Nina"
    assert len(slack.calls_to("users.info")) == 1
    assert forgetful.name_of(nina.id, soon()) == "Nina"
    with slack.world.lock:
        nina.name = "Ninette"
    assert web.name_of(nina.id, soon()) == "Nina"
    assert forgetful.name_of(nina.id, soon()) == "Ninette"


# Cards


@pytest.mark.parametrize("told", [{}, {"tz": None, "tz_offset": None}])
def test_who_has_no_time_zone_in_slack_has_that_of_the_records(
    slack: SlackStandIn, web: SlackWeb, told: dict[str, None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nina = slack.add_person("Nina")
    monkeypatch.setattr(people, "as_json", lambda _world, person: {"id": person.id, **told})
    assert web.zone_of(nina.id, soon()) == UTC


def test_a_lost_post_is_found_behind_hundreds_of_newer_messages_and_an_older_one_is_not(
    slack: SlackStandIn, web: SlackWeb, channel: Channel
) -> None:
    posted = web.post(in_channel(channel), soon())
    assert isinstance(posted, Delivered)
    now = datetime.fromtimestamp(slack.clock.now(), UTC)
    with slack.world.lock:
        for number in range(450):
            slack.world.post(channel, slack.world.compose(text=f"Message {number}", user="U0SOMEBODY"))
    assert web.find(in_channel(channel), now, soon()) == posted
    assert len(slack.calls_to("conversations.history")) == 3
    assert web.find(in_channel(channel), now + timedelta(hours=1), soon()) == MessageGone()
    assert len(slack.calls_to("conversations.history")) == 4


def test_a_rate_limit_of_one_channel_holds_up_no_other(
    slack: SlackStandIn, web: SlackWeb, channel: Channel
) -> None:
    other = slack.add_channel("billing", members=[])
    slack.faults.fail_next("chat.postMessage", error="ratelimited", retry_after=30)
    assert web.post(in_channel(channel), soon()) == TryLater(30)
    assert isinstance(web.post(in_channel(channel), soon()), TryLater)
    assert len(slack.calls_to("chat.postMessage")) == 1
    assert isinstance(web.post(in_channel(other), soon()), Delivered)


def test_a_rate_limit_of_updates_is_the_workspaces(
    slack: SlackStandIn, web: SlackWeb, channel: Channel
) -> None:
    slack.faults.fail_next("chat.update", error="ratelimited", retry_after=30)
    for _ in range(2):
        assert isinstance(web.update(in_channel(channel), "1.2", None, soon()), TryLater)
    assert len(slack.calls_to("chat.update")) == 1


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_too_long", "is_archived", "user_disabled"])
def test_what_cannot_be_shown_is_given_up_for_this_version(
    slack: SlackStandIn, web: SlackWeb, channel: Channel, error: str
) -> None:
    slack.faults.fail_next("chat.postMessage", error=error)
    assert web.post(in_channel(channel), soon()) == GivenUp(error)


@pytest.mark.parametrize("error", ["account_inactive", "token_revoked", "invalid_auth"])
def test_a_token_that_is_refused_ends_no_card_for_good(
    slack: SlackStandIn, web: SlackWeb, channel: Channel, error: str
) -> None:
    slack.faults.fail_next("chat.postMessage", error=error)
    later = web.post(in_channel(channel), soon())
    assert isinstance(later, TryLater)
    assert later.seconds is not None
    assert later.seconds >= 60


# Answers


@pytest.mark.parametrize(("status", "answered"), [(404, Answered.REFUSED), (503, Answered.UNKNOWN)])
def test_an_answer_is_refused_only_by_slacks_own_word(
    slack: SlackStandIn, web: SlackWeb, channel: Channel, status: int, answered: Answered
) -> None:
    nina = slack.add_person("Nina")
    with slack.world.lock:
        token = slack.world.issue_response_url(nina.id, channel.id)
    url = f"{slack.api_url.removesuffix('api/')}hooks/commands/{slack.world.team_id}/{token}"
    slack.faults.fail_next("response_url", http_status=status)
    assert web.answer(url, text="x") is answered
    slack.faults.fail_next("response_url", lose_answer=True)
    assert web.answer(url, text="x") is Answered.UNKNOWN
    assert web.answer(url, text="x") is Answered.TAKEN


# Whether Slack is there


def is_there(web: SlackWeb) -> bool:
    return web.answers


@pytest.mark.parametrize(
    "fault",
    [
        {"cut": True},
        {"http_status": 503},
        {"error": "internal_error"},
        {"garbage": True},
        {"lose_answer": True},
    ],
)
def test_slack_is_away_from_a_call_without_an_answer_until_the_next_that_has_one(
    slack: SlackStandIn, web: SlackWeb, fault: dict[str, Any]
) -> None:
    assert is_there(web)
    slack.faults.fail_next("auth.test", **fault)
    with pytest.raises(SlackUnusable):
        web.auth_test()
    assert not is_there(web)
    web.probe_once()
    assert is_there(web)


@pytest.mark.parametrize("error", ["invalid_auth", "ratelimited", "channel_not_found"])
def test_a_refusal_is_an_answer(slack: SlackStandIn, web: SlackWeb, error: str) -> None:
    slack.faults.fail_next("auth.test", error=error)
    with pytest.raises(SlackUnusable):
        web.auth_test()
    assert is_there(web)


def test_requests_that_could_not_begin_for_want_of_a_thread_take_no_place_from_later_ones(
    web: SlackWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_threads(monkeypatch, "dibs-slack-call"):
        for _ in range(150):
            with pytest.raises(SlackUnusable, match="no thread was left"):
                web.auth_test()
    web.auth_test()
    assert is_there(web)


def test_slack_is_asked_for_a_sign_of_life_only_where_it_gave_none_a_moment_ago(
    slack: SlackStandIn, web: SlackWeb
) -> None:
    slack.faults.fail_next("auth.test", cut=True)
    web.probe_once()
    assert slack.faults.waiting
    with pytest.raises(SlackUnusable):
        web.auth_test()
    web.probe_once()
    assert is_there(web)
