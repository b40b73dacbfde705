"""Whatever comes in changes nothing it should not, is never answered with a 5xx, and people are told."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support import bodies
from tests.support.bot import SECRET, Office, open_office
from tests.support.slack import request

from dibs.slack.ids import Action, View


@pytest.fixture
def claimed(office: Office) -> tuple[Office, str]:
    """A task that Amal has claimed, and its card."""
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    return office, card


def _everything(office: Office) -> list[dict[str, Any]]:
    return office.rows(
        "SELECT (SELECT jsonb_agg(t ORDER BY id) FROM dibs.task t) AS tasks, "
        "(SELECT count(*) FROM dibs.event) AS events, (SELECT count(*) FROM dibs.queue) AS queues, "
        "(SELECT count(*) FROM dibs.release_card) AS cards"
    )


def test_what_is_not_from_slack_is_refused(claimed: tuple[Office, str]) -> None:
    office, card = claimed
    before = _everything(office)
    body = bodies.interaction(bodies.press(office, "Bilal", card, "release"))
    office.hears("Amal", "is yours")
    calls = len(office.slack.calls_to("response_url"))
    url = office.slack.bot_url
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    stamp = str(int(time.time()))
    attempts: list[dict[str, str]] = [
        {},
        {"X-Slack-Request-Timestamp": stamp},
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": "yesterday", "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": "9" * 5000, "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=\xe9"},
        _signed(body, int(stamp) - 6 * 60),
        _signed(body, int(stamp) + 6 * 60),
        _signed(body + b"x", int(stamp)),
        _signed(body, int(stamp), secret=SECRET[::-1]),
    ]
    for headers in attempts:
        status, _ = request("POST", url, body, form | headers)
        assert 400 <= status < 500, headers
    assert _everything(office) == before
    # Nobody is told anything either: what is not from Slack names no address to write to.
    assert office.slack.calls_to("response_url")[calls:] == []


def _signed(body: bytes, at: int, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={digest}"}


DEEP = "[" * 50_000 + "]" * 50_000
UNPARSEABLE = [
    b"",
    b"payload=",
    b"payload=%7B",
    b"payload=" + DEEP.encode(),
    b"\xff\xfe\x00",
    b"a" * 100_000,
    b"&&&===",
    b"payload=1&payload=2",
]
ODD_SHAPES: list[object] = [
    None,
    1,
    1.5,
    True,
    "a text",
    [],
    [1, 2],
    [[]],
    {},
    {"type": None},
    {"type": 1},
    {"type": []},
    {"type": {"type": "block_actions"}},
    {"type": "nobody_knows"},
    {"type": "message_action"},
    {"type": "shortcut", "callback_id": "nobody_knows"},
    {"type": "block_actions"},
    {"type": "block_actions", "actions": None},
    {"type": "block_actions", "actions": []},
    {"type": "block_actions", "actions": [1]},
    {"type": "block_actions", "actions": {"action_id": "task_claim"}},
    {"type": "block_actions", "actions": [{"action_id": ["task_claim"]}]},
    {"type": "view_submission"},
    {"type": "view_submission", "view": []},
    {"type": "view_submission", "view": {"callback_id": None}},
    {"type": "view_submission", "view": {"callback_id": "nobody_knows"}},
    {"type": "view_closed", "view": {"callback_id": "release"}},
    {"type": "block_suggestion", "action_id": "reason", "value": "x"},
    {"type": "dialog_submission", "callback_id": "release", "state": "x"},
]


def test_what_is_no_request_of_slacks_is_no_failure_and_changes_nothing(office: Office) -> None:
    before = _everything(office)
    for body in UNPARSEABLE:
        answer = office.slack.send_raw(body)
        assert 400 <= answer.status < 500, (body[:200], answer)
    for value in ODD_SHAPES:
        answer = office.slack.send_raw(bodies.interaction(value))
        assert 200 <= answer.status < 500, (value, answer)
    for value in (1, [], "x", None, {"type": "event_callback"}, {"type": "event_callback", "event": 1}):
        body = json.dumps(value).encode()
        answer = office.slack.send_raw(body, {"Content-Type": "application/json"})
        assert 400 <= answer.status < 500, (body, answer)
    for garbage in (b"{", b"", b"\xff", DEEP.encode()):
        answer = office.slack.send_raw(garbage, {"Content-Type": "application/json"})
        assert 400 <= answer.status < 500, (garbage[:20], answer)
    assert _everything(office) == before


def test_slacks_own_question_for_the_address_is_answered(office: Office) -> None:
    body = json.dumps({"type": "url_verification", "token": "x", "challenge": "prove it"}).encode()
    answer = office.slack.send_raw(body, {"Content-Type": "application/json"})
    assert (answer.status, json.loads(answer.body)) == (200, {"challenge": "prove it"})


UNREADABLE_VALUES = [
    "",
    "not JSON",
    "{",
    "1",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"task":1}',
    '{"version":1}',
    '{"task":"1","version":1}',
    '{"task":1,"version":"1"}',
    '{"task":1.5,"version":1}',
    '{"task":true,"version":1}',
    '{"task":null,"version":1}',
    '{"task":[1],"version":1}',
    '{"task":{},"version":{}}',
    '{"task":' + "9" * 5000 + ',"version":1}',
    DEEP,
    None,
    7,
    ["x"],
    {"task": 1, "version": 1},
]


def test_a_button_whose_value_cannot_be_read_changes_nothing_and_says_so(claimed: tuple[Office, str]) -> None:
    office, card = claimed
    before = _everything(office)
    for number, value in enumerate(UNREADABLE_VALUES, 1):
        payload = bodies.press(office, "Amal", card, "start", value=value)
        answer = office.slack.send_raw(bodies.interaction(payload))
        assert answer.status == 200, value
        office.wait(lambda number=number: len(office.heard("Amal")) == number + 1)  # type: ignore[misc]
        assert "could not read this button, so nothing changed" in office.heard("Amal")[-1], value
    assert _everything(office) == before


NO_SUCH_TASKS = [
    '{"task":4711,"version":1}',
    '{"task":0,"version":1}',
    '{"task":-1,"version":1}',
    f'{{"task":{2**63},"version":1}}',
    f'{{"task":{2**200},"version":1}}',
]


def test_a_task_that_does_not_exist_is_said_so_for_every_button(claimed: tuple[Office, str]) -> None:
    office, card = claimed
    before = _everything(office)
    for action, value in itertools.product(Action, NO_SUCH_TASKS):
        heard = len(office.heard("Amal"))
        payload = bodies.press(office, "Amal", card, "start", value=value, action_id=action)
        assert office.slack.send_raw(bodies.interaction(payload)).status == 200
        office.wait(lambda heard=heard: len(office.heard("Amal")) > heard)  # type: ignore[misc]
        assert "There is no such task" in office.heard("Amal")[-1], value
        assert "Nothing changed." in office.heard("Amal")[-1]
    assert _everything(office) == before


def test_a_version_that_is_not_the_tasks_is_stale_for_every_button(claimed: tuple[Office, str]) -> None:
    office, card = claimed
    before = office.rows("SELECT * FROM dibs.task")
    task = before[0]["id"]
    presses = list(itertools.product(set(Action) - {Action.HISTORY}, [3, 0, -1, 2**31, 2**64]))
    for action, version in presses:
        heard = len(office.heard("Amal"))
        value = json.dumps({"task": task, "version": version})
        payload = bodies.press(office, "Amal", card, "start", value=value, action_id=action)
        assert office.slack.send_raw(bodies.interaction(payload)).status == 200
        office.wait(lambda heard=heard: len(office.heard("Amal")) > heard)  # type: ignore[misc]
        assert "Nothing changed." in office.heard("Amal")[-1], (action, version)
        assert "no such task" not in office.heard("Amal")[-1], (action, version)
    expected = [f"{action.removeprefix('task_')}_rejected" for action, _ in presses]
    assert office.kinds() == ["created", "claimed", *expected]
    assert office.rows("SELECT * FROM dibs.task") == before


def test_unknown_buttons(claimed: tuple[Office, str]) -> None:
    office, card = claimed
    before = _everything(office)
    strange = bodies.press(office, "Amal", card, "start", action_id="task_explode")
    assert office.slack.send_raw(bodies.interaction(strange)).status == 200
    office.hears("Amal", "could not read this button")
    foreign = bodies.press(office, "Amal", card, "start", action_id="somebody_elses")
    assert office.slack.send_raw(bodies.interaction(foreign)).status == 404
    assert _everything(office) == before


@pytest.mark.parametrize("button", ["claim", "history"])
def test_presses_that_lack_something(office: Office, button: str) -> None:
    card = office.add_task()
    whole = bodies.press(office, "Amal", card, button)
    odd: list[object] = [{}, None, [], 7, "x"]
    for missing in ("user", "team", "container", "channel", "trigger_id", "response_url", "message"):
        for number, spoiled in enumerate(odd):
            action = whole["actions"][0] | {"action_ts": f"{missing}.{number}"}
            payload = whole | {missing: spoiled, "actions": [action]}
            if spoiled == {}:
                del payload[missing]
            answer = office.slack.send_raw(bodies.interaction(payload))
            assert answer.status in (200, 400, 404), (missing, spoiled, answer)
    assert office.kinds().count("claimed") <= 1


@pytest.fixture
def form(claimed: tuple[Office, str]) -> tuple[Office, dict[str, Any]]:
    """The release form of Amal's task, filled in."""
    office, card = claimed
    office.press("Amal", card, "release")
    return office, bodies.submission(office, "Amal", {"reason": "shift_ending"})


METADATA = ["", "not JSON", "[]", "{}", '{"task":"1","version":2}', '{"task":1}', DEEP, None, 7, {"task": 1}]


def test_a_form_whose_metadata_cannot_be_read_changes_nothing_and_says_so(
    form: tuple[Office, dict[str, Any]],
) -> None:
    office, payload = form
    before = _everything(office)
    for metadata in METADATA:
        spoiled = payload | {"view": payload["view"] | {"private_metadata": metadata}}
        answer = office.slack.send_raw(bodies.interaction(spoiled))
        assert answer.status == 200, metadata
        assert "could not read this form, so nothing changed" in answer.body, metadata
        assert json.loads(answer.body)["errors"].keys() == {"reason"}
    assert _everything(office) == before


def test_a_form_without_state_or_with_an_odd_one_is_refused_at_an_input(
    form: tuple[Office, dict[str, Any]],
) -> None:
    office, payload = form
    task = office.task()
    odd: list[object] = [
        None, 7, [], "x", {}, {"values": None}, {"values": []}, {"values": {"reason": None}},
        {"values": {"reason": {"reason": None}}},
        {"values": {"reason": {"reason": {"selected_option": "shift_ending"}}}},
        {"values": {"reason": {"reason": {"selected_option": {"value": 7}}}}},
    ]  # fmt: skip
    for number, state in enumerate(odd):
        spoiled = payload | {
            "view": payload["view"] | {"state": state},
            "trigger_id": f"another-{number}",
        }
        answer = office.slack.send_raw(bodies.interaction(spoiled))
        assert answer.status == 200, state
        assert json.loads(answer.body)["errors"] == {"reason": "Choose a reason. Nothing changed yet."}, state
    for unknown in ("no such reason", "\x00\ud800"):
        gone = {"values": {"reason": {"reason": {"selected_option": {"value": unknown}}}}}
        spoiled = payload | {"view": payload["view"] | {"state": gone}, "trigger_id": f"with {unknown!r}"}
        answer = office.slack.send_raw(bodies.interaction(spoiled))
        assert "not in the queue's list any more" in json.loads(answer.body)["errors"]["reason"]
    assert office.task() == task
    assert office.count("release_card") == 0


def test_every_form_with_nothing_in_it(form: tuple[Office, dict[str, Any]]) -> None:
    office, payload = form
    before = office.count("queue"), office.count("task"), office.task()["state"]
    for view, blocks in itertools.product(View, (payload["view"]["blocks"], [], None, [1], "x")):
        spoiled = payload | {
            "view": payload["view"] | {"callback_id": view, "state": {"values": {}}, "blocks": blocks},
            "trigger_id": f"{view}-{json.dumps(blocks)[:20]}",
        }
        answer = office.slack.send_raw(bodies.interaction(spoiled))
        assert answer.status in (200, 400, 404), (view, blocks, answer)
    # Amal has claimed the task and not started it, so that not even Done, which asks for nothing, succeeds.
    assert (office.count("queue"), office.count("task"), office.task()["state"]) == before


HUGE = "9" * 5000


IMPOSSIBLE_NUMBERS = [
    (View.QUEUE_SETTINGS, {"name": "N", "key": "KEY", "lease_minutes": HUGE}, "lease_minutes"),
    (View.QUEUE_SETTINGS, {"name": "N", "key": "KEY", "lease_minutes": "-1"}, "lease_minutes"),
    (View.NEW_TASK, {"queue": HUGE, "title": "T"}, "queue"),
    (View.NEW_TASK, {"queue": "4711", "title": "T"}, "queue"),
    (View.NEW_TASK, {"queue": str(2**63), "title": "T"}, "queue"),
    (View.NEW_TASK, {"queue": "0", "title": "T"}, "queue"),
    (View.RESOLVE_ACTION, {"external_action": HUGE, "status": "completed"}, "external_action"),
    (View.RESOLVE_ACTION, {"external_action": str(2**63), "status": "completed"}, "external_action"),
]


def test_numbers_that_cannot_be_are_refused_at_their_input(form: tuple[Office, dict[str, Any]]) -> None:
    office, payload = form
    before = office.count("queue"), office.task()
    for view, values, at in IMPOSSIBLE_NUMBERS:
        errors = _errors_of(office, payload, view, values)
        assert errors.keys() == {at}, errors
        assert "could not confirm" not in errors[at]
        assert "database" not in errors[at], errors
        assert "othing changed" in errors[at]
    assert (office.count("queue"), office.task()) == before


def _errors_of(office: Office, payload: dict[str, Any], view: View, values: dict[str, str]) -> dict[str, str]:
    """What is said of a form that holds these values, by input."""
    state = {
        "values": {
            name: {name: {"value": value} if name in ("name", "key", "lease_minutes", "title")
                   else {"selected_option": {"value": value}}}
            for name, value in values.items()
        }
    }  # fmt: skip
    inputs = [{"type": "input", "block_id": name} for name in values]
    spoiled = payload | {
        "view": payload["view"] | {"callback_id": view, "state": state, "blocks": inputs},
        "trigger_id": f"{view}-{values}"[:80],
    }
    answer = office.slack.send_raw(bodies.interaction(spoiled))
    assert answer.status == 200
    errors: dict[str, str] = json.loads(answer.body)["errors"]
    return errors


def test_commands_that_lack_something_or_are_unknown(office: Office) -> None:
    before = _everything(office)
    for missing in ("team_id", "user_id", "trigger_id", "channel_id"):
        spoiled = bodies.command(office, "Amal", "add Something")
        del spoiled[missing]
        answer = office.slack.send_raw(urlencode(spoiled).encode())
        assert (answer.status, "could not read this command" in answer.body) == (200, True), missing
        assert "Nothing changed." in answer.body
    unknown = bodies.command(office, "Amal", "add Something", command="/somebody-elses")
    assert office.slack.send_raw(urlencode(unknown).encode()).status == 404
    assert _everything(office) == before


def test_events_that_nobody_asked_for(office: Office) -> None:
    for event in ("app_home_opened", "message", "nobody_knows"):
        told = {"type": event, "user": office.id("Amal"), "channel": office.channel.id}
        assert office.slack.tell(told).status < 500


@pytest.mark.parametrize("event", ["member_joined_channel", "member_left_channel"])
def test_events_of_members_that_lack_something(office: Office, event: str) -> None:
    office.verify_members()
    before = office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id")
    incomplete: list[dict[str, object]] = [
        {},
        {"user": office.id("Amal")},
        {"user": 7, "channel": []},
        {"user": {}, "channel": None},
    ]
    for told in incomplete:
        assert office.slack.tell({"type": event, **told}).status < 500
    assert office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id") == before


def test_a_body_that_is_too_large_is_refused(database_url: str) -> None:
    with open_office(database_url, people=("Sue",), threads=2) as office:
        answer = office.slack.send_raw(b"payload=" + b"x" * (2 * 1024 * 1024))
        assert answer.status in (0, 400, 413)
        assert office.slack.send_raw(b"").status < 500
