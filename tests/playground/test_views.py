from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from slack_sdk.errors import SlackApiError
from tests.playground.raw_bot import impatient
from tests.playground.tiny_bot import button, field, plain, release_modal

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk import WebClient
    from tests.playground.raw_bot import RawBot
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import Channel, Person, SlackStandIn

Json = dict[str, Any]

ClientOf = "Callable[[SlackStandIn], WebClient]"


def refusal(call: Callable[[], object]) -> Json:
    with pytest.raises(SlackApiError) as raised:
        call()
    data = raised.value.response.data
    assert isinstance(data, dict)
    return data


def modal(*blocks: Json, **more: object) -> Json:
    shown = list(blocks) or [{"type": "section", "text": plain("hello")}]
    return {"type": "modal", "title": plain("A modal"), "submit": plain("Send"), "blocks": shown, **more}


@pytest.fixture
def trigger(slack: SlackStandIn, amal: Person) -> str:
    return slack.world.issue_trigger(amal.id)


def test_a_trigger_works_once(client: WebClient, trigger: str) -> None:
    client.views_open(trigger_id=trigger, view=modal())
    answer = refusal(lambda: client.views_open(trigger_id=trigger, view=modal()))
    assert answer["error"] == "exchanged_trigger_id"


def test_a_trigger_works_for_three_seconds(slack: SlackStandIn, client: WebClient, trigger: str) -> None:
    slack.clock.advance(3.1)
    answer = refusal(lambda: client.views_open(trigger_id=trigger, view=modal()))
    assert answer["error"] == "expired_trigger_id"


def test_a_made_up_trigger(client: WebClient) -> None:
    answer = refusal(lambda: client.views_open(trigger_id="1.2.3", view=modal()))
    assert answer["error"] == "invalid_arguments"
    assert answer["response_metadata"]["messages"] == [
        "[ERROR] invalid `trigger_id` [json-pointer:/trigger_id]"
    ]


def test_a_bad_view_is_refused_with_pointers_and_leaves_the_trigger(client: WebClient, trigger: str) -> None:
    bad = modal(field("a", "A", {"type": "plain_text_input"}), title=plain("y" * 25))
    del bad["submit"]
    answer = refusal(lambda: client.views_open(trigger_id=trigger, view=bad))
    assert answer["error"] == "invalid_arguments"
    assert answer["response_metadata"]["messages"] == [
        "[ERROR] failed to match all allowed schemas [json-pointer:/view/title]",
        "[ERROR] must be less than 25 characters [json-pointer:/view/title/text]",
        "[ERROR] missing required field: submit [json-pointer:/view]",
    ]
    client.views_open(trigger_id=trigger, view=modal())


def test_the_stack_holds_three(slack: SlackStandIn, client: WebClient, amal: Person) -> None:
    client.views_open(trigger_id=slack.world.issue_trigger(amal.id), view=modal())
    for _ in range(2):
        client.views_push(trigger_id=slack.world.issue_trigger(amal.id), view=modal())
    fourth = slack.world.issue_trigger(amal.id)
    answer = refusal(lambda: client.views_push(trigger_id=fourth, view=modal()))
    assert answer["error"] == "push_limit_reached"
    stack = slack.views(amal.id)
    assert {view["root_view_id"] for view in stack} == {stack[0]["id"]}
    assert [view["previous_view_id"] for view in stack] == [None, stack[0]["id"], stack[1]["id"]]


def test_updates_go_by_hash(slack: SlackStandIn, client: WebClient, amal: Person, trigger: str) -> None:
    view = client.views_open(trigger_id=trigger, view=modal(external_id="mine"))["view"]
    client.views_update(view_id=view["id"], hash=view["hash"], view=modal(external_id="mine"))
    update = client.views_update
    stale = refusal(lambda: update(view_id=view["id"], hash=view["hash"], view=modal()))
    assert stale["error"] == "hash_conflict"
    client.views_update(external_id="mine", view=modal(title=plain("Other")))
    assert slack.views(amal.id)[0]["title"]["text"] == "Other"
    assert refusal(lambda: update(view_id="V404", view=modal()))["error"] == "not_found"
    other = slack.world.issue_trigger(amal.id)
    client.views_open(trigger_id=other, view=modal(external_id="twice"))
    again = slack.world.issue_trigger(amal.id)
    taken = refusal(lambda: client.views_push(trigger_id=again, view=modal(external_id="twice")))
    assert taken["error"] == "duplicate_external_id"


def test_what_was_typed_stays_in_an_input_that_stays(
    slack: SlackStandIn, client: WebClient, amal: Person, support: Channel, bot: TinyBot
) -> None:
    bot.owner = amal.id
    slack.command(amal.id, support.id, "/tiny", "post")
    view = client.views_open(trigger_id=slack.world.issue_trigger(amal.id), view=release_modal())["view"]
    result = slack.submit(
        amal.id, {"reason": "other", "handoff_note/handoff_note": "mind the fee", "external_action": "none"}
    )
    assert result.errors == {"comment": "Other needs a comment."}
    assert not result.closed
    fewer = {**release_modal(), "blocks": release_modal()["blocks"][1:4]}
    client.views_update(view_id=view["id"], view=fewer)
    values = slack.views(amal.id)[0]["state"]["values"]
    assert values["handoff_note"]["handoff_note"]["value"] == "mind the fee"
    assert "external_action" not in values


def test_a_submission_closes_the_modal(
    slack: SlackStandIn, client: WebClient, amal: Person, trigger: str
) -> None:
    client.views_open(trigger_id=trigger, view=release_modal())
    values = {"reason": "shift_ending", "handoff_note": "n", "external_action": "none", "due": "2026-12-01"}
    result = slack.submit(amal.id, {**values, "people": [amal.id]})
    assert (result.status, result.closed, result.failed) == (200, True, False)
    assert slack.views(amal.id) == []


def test_slacks_own_client_complains_before_the_bot_is_asked(
    quick: SlackStandIn,
    raw: RawBot,
    client_of: Callable[[SlackStandIn], WebClient],
) -> None:
    amal = quick.add_person("Amal")
    number = {"type": "number_input", "is_decimal_allowed": False, "min_value": "1", "max_value": "9"}
    view = modal(
        field("short", "Short", {"type": "plain_text_input", "min_length": 2, "max_length": 3}),
        field("number", "Number", number),
        field("need", "Need", {"type": "plain_text_input"}),
        field("free", "Free", {"type": "plain_text_input"}, optional=True),
        field("some", "Some", {"type": "multi_users_select", "max_selected_items": 1}),
    )
    client_of(quick).views_open(trigger_id=quick.world.issue_trigger(amal.id), view=view)
    result = quick.submit(amal.id, {"short": "long", "number": "ten", "some": [amal.id, "U2"]})
    assert set(result.errors) == {"short", "number", "need", "some"}
    assert (
        quick.submit(amal.id, {"short": "y", "number": "1.5"}).errors["number"] == "Must be a whole number."
    )
    assert "9 or less" in quick.submit(amal.id, {"number": "10"}).errors["number"]
    assert "1 or more" in quick.submit(amal.id, {"number": "0"}).errors["number"]
    assert raw.requests == []
    fine = {"short": "yes", "number": "5", "need": "x", "some": []}
    assert set(quick.submit(amal.id, fine).errors) == {"some"}
    assert quick.submit(amal.id, {"some": [amal.id]}).closed
    with pytest.raises(LookupError):
        quick.submit(amal.id, {})


Opened = tuple["SlackStandIn", "RawBot", "Person"]


@pytest.fixture
def opened(
    quick: SlackStandIn,
    raw: RawBot,
    client_of: Callable[[SlackStandIn], WebClient],
) -> Opened:
    amal = quick.add_person("Amal")
    inputs = field("a", "A", {"type": "plain_text_input"}, optional=True)
    buttons = {"type": "actions", "block_id": "row", "elements": [button("More", "more")]}
    view = modal(inputs, buttons, notify_on_close=True)
    client_of(quick).views_open(trigger_id=quick.world.issue_trigger(amal.id), view=view)
    return quick, raw, amal


def test_the_bot_answers_a_submission_with_another_view(opened: Opened) -> None:
    slack, raw, amal = opened
    raw.answers.append((200, json.dumps({"response_action": "push", "view": modal()})))
    assert not slack.submit(amal.id).closed
    assert len(slack.views(amal.id)) == 2
    raw.answers.append((200, json.dumps({"response_action": "update", "view": modal(title=plain("New"))})))
    slack.submit(amal.id)
    assert [view["title"]["text"] for view in slack.views(amal.id)] == ["A modal", "New"]
    raw.answers.append((200, json.dumps({"response_action": "clear"})))
    assert slack.submit(amal.id).closed
    assert slack.views(amal.id) == []


@pytest.mark.parametrize(
    "answer",
    [
        {"response_action": "errors", "errors": {"row": "no input"}},
        {"response_action": "errors", "errors": {"nowhere": "no block"}},
        {"response_action": "errors", "errors": {}},
        {"response_action": "errors"},
        {"response_action": "explode"},
        {"response_action": "update", "view": {"type": "modal"}},
        {"response_action": "push", "view": {"type": "home", "blocks": [{"type": "divider"}]}},
        ["a list"],
    ],
)
def test_an_answer_that_slack_cannot_follow_fails_and_keeps_the_modal(opened: Opened, answer: object) -> None:
    slack, raw, amal = opened
    raw.answers.append((200, json.dumps(answer)))
    result = slack.submit(amal.id, {"a": "typed"})
    assert result.failed
    assert not result.closed
    assert result.errors == {}
    assert slack.views(amal.id)[0]["state"]["values"]["a"]["a"]["value"] == "typed"
    assert slack.failures(amal.id)


def test_a_submission_that_is_not_answered_in_time_keeps_the_modal(opened: Opened) -> None:
    slack, raw, amal = opened
    raw.held.clear()
    with impatient(slack):
        result = slack.submit(amal.id)
    assert (result.status, result.failed, len(slack.views(amal.id))) == (0, True, 1)


def test_presses_in_a_view(opened: Opened) -> None:
    slack, raw, amal = opened
    slack.press_in_view(amal.id, "more")
    payload = raw.payload()
    assert payload["container"] == {"type": "view", "view_id": slack.views(amal.id)[0]["id"]}
    assert payload["view"]["state"]["values"] == {"a": {"a": {"type": "plain_text_input", "value": None}}}
    assert "response_url" not in payload


def test_a_press_in_a_view_tells_what_was_typed_so_far(opened: Opened) -> None:
    slack, raw, amal = opened
    slack.fill_in(amal.id, {"a": "half a sen"})
    slack.press_in_view(amal.id, "more")
    assert raw.payload()["view"]["state"]["values"]["a"]["a"]["value"] == "half a sen"


def test_a_select_can_start_at_the_conversation_that_it_came_up_in(
    quick: SlackStandIn, raw: RawBot, client_of: Callable[[SlackStandIn], WebClient]
) -> None:
    amal = quick.add_person("Amal")
    channel = quick.add_channel("support", members=[amal.id])
    quick.command(amal.id, channel.id, "/tiny")
    here: Json = {"default_to_current_conversation": True}
    view = modal(
        field("one", "One", {"type": "conversations_select", **here}),
        field("many", "Many", {"type": "multi_conversations_select", **here}),
    )
    client_of(quick).views_open(trigger_id=raw.form()["trigger_id"], view=view)
    values = quick.views(amal.id)[0]["state"]["values"]
    assert values["one"]["one"]["selected_conversation"] == channel.id
    assert values["many"]["many"]["selected_conversations"] == [channel.id]


def test_closing_is_told_to_those_who_asked(opened: Opened) -> None:
    slack, raw, amal = opened
    assert slack.close_view(amal.id).closed
    assert raw.payload()["type"] == "view_closed"
    assert slack.views(amal.id) == []


def test_the_home_tab_is_asked_for_and_pressed(
    slack: SlackStandIn, client: WebClient, amal: Person, bot: TinyBot
) -> None:
    slack.open_home(amal.id)
    assert bot.events[0]["type"] == "app_home_opened"
    buttons = {"type": "actions", "elements": [button("History", "history")]}
    client.views_publish(user_id=amal.id, view={"type": "home", "blocks": [buttons]})
    assert slack.press_in_home(amal.id, "history").status == 200
