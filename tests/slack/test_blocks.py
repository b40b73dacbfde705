"""Every card and form passes Slack's limits, whatever people have written."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.slack.samples import AT, action, all_modals, cards_in_every_state, facts, pages_of_records, task

from dibs.domain.task import ActionStatus, State
from dibs.playground.blockkit import check_blocks, check_view
from dibs.slack import text
from dibs.slack.views.card import MOST_TEXT, Message, card
from dibs.slack.views.history import history
from dibs.slack.views.lists import task_list

CHECKER = Path(__file__).parents[3] / "shared" / "slack" / "check_blocks.py"

extreme = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=300),
    st.sampled_from(
        [
            "&" * 5000, "<" * 5000, "🎉" * 4000, "\n" * 3000 + "x", "a" * 20000, "<!channel>" * 500,
            "*_~`" * 900,
            "<@U0BOT> <#C1|x> <https://evil.example|click>", "x\n> y\n```z", "\u202e" * 10, "a b " * 2000,
        ]
    ),
)  # fmt: skip
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _faults_of_message(message: Message) -> list[str]:
    found = [str(fault) for fault in check_blocks(message.blocks, "message")]
    if len(message.text) > 4000 or not message.text:
        found.append(f"a text of {len(message.text)} characters")
    return found


def _mrkdwn(value: object) -> list[str]:
    """Every formatted text in a message or a view."""
    if isinstance(value, list):
        return [found for part in value for found in _mrkdwn(part)]
    if isinstance(value, dict):
        own = [value["text"]] if value.get("type") == "mrkdwn" else []
        return own + [found for part in value.values() for found in _mrkdwn(part)]
    return []


_OURS = re.compile(r"<(@[UW][A-Z0-9]+|!date\^\d+\^[^|>]*\|[^>]*UTC|https://[^|>]*\|[^>]*|#C[A-Z0-9]+)>")


def _assert_only_our_own_marks(said: str) -> None:
    """Every angle bracket belongs to a mention, a time or a link that Dibs wrote itself."""
    rest = _OURS.sub("", said)
    assert "<" not in rest, rest
    assert ">" not in re.sub(r"^> ", "", rest, flags=re.MULTILINE), rest
    assert not re.search(r"&(?!amp;|lt;|gt;)", rest), rest[-40:]


@pytest.mark.parametrize("message", cards_in_every_state())
def test_a_card_in_every_state(message: Message) -> None:
    assert _faults_of_message(message) == []
    for said in _mrkdwn(message.blocks):
        for line in said.split("\n"):
            assert all(part in message.text for part in line.split("   ·   "))


@few
@given(
    title=extreme,
    details=extreme,
    words=extreme,
    state=st.sampled_from(State),
    flagged=st.booleans(),
    actions=st.integers(0, 120),
)
def test_a_card_with_extreme_facts(
    title: str,
    details: str,
    words: str,
    state: State,
    flagged: bool,  # noqa: FBT001
    actions: int,
) -> None:
    message = card(
        facts(
            task(
                state,
                title=title,
                details=details,
                needs_check=flagged and state is not State.DONE,
                deadline=AT,
                committed_to=AT,
                resolution=words if state is State.DONE else None,
                number=2**31 - 1,
                queue_key="ABCDEFGHIJ",
            ),
            *(action(number, ActionStatus.UNKNOWN, words) for number in range(1, actions + 1)),
            words=words,
        )
    )
    assert _faults_of_message(message) == []
    for said in [message.text, *_mrkdwn(message.blocks)]:
        _assert_only_our_own_marks(said)
    if text.length(message.text) < MOST_TEXT - 10:
        first = _mrkdwn(message.blocks)[0]
        assert first in message.text


@few
@given(words=extreme, actions=st.sampled_from([2, 39, 120]))
def test_forms_with_extreme_facts(words: str, actions: int) -> None:
    for view in all_modals(words, actions):
        assert [str(fault) for fault in check_view(view)] == [], view["callback_id"]
        assert len(json.dumps(view)) < 250_000
        for said in _mrkdwn(view):
            _assert_only_our_own_marks(said)


def test_a_history_that_is_not_whole_says_where_the_older_events_are() -> None:
    whole, cut = (str(history(task(), [], more=more)["blocks"]) for more in (False, True))
    assert "Only the newest 40 are shown. The older ones: `/audit SUP-12`" in cut
    assert "/audit" not in whole


@few
@given(title=extreme, number=st.integers(0, 40))
def test_lists_with_extreme_facts(title: str, number: int) -> None:
    message = task_list("*Your tasks*", [task(State.CLAIMED, title=title)] * number, empty="none")
    assert _faults_of_message(message) == []
    assert ("Only the first 30 are shown." in str(message.blocks)) == (number > 30)
    for said in [message.text, *_mrkdwn(message.blocks)]:
        _assert_only_our_own_marks(said)


@few
@given(words=extreme)
def test_pages_of_records_with_extreme_facts(words: str) -> None:
    for message in pages_of_records(words):
        assert _faults_of_message(message) == []
        for said in [message.text, *_mrkdwn(message.blocks)]:
            _assert_only_our_own_marks(said)


def test_a_page_of_records_says_in_its_text_all_that_it_shows() -> None:
    for message in pages_of_records("refund 20 EUR"):
        assert all(said in message.text for said in _mrkdwn(message.blocks))


@pytest.fixture(scope="module")
def checker() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    """Another's check of Slack's published limits, where it lies beside this repository."""
    if not CHECKER.exists():
        pytest.skip("there is no shared checker here")
    spec = importlib.util.spec_from_file_location("check_blocks", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXTREMES = ["refund 20 EUR", "&" * 5000, "🎉" * 4000, "\n" * 3000 + "x", "<!channel>" * 500]


def test_another_check_of_the_limits_finds_no_fault_in_cards(checker: Any) -> None:  # noqa: ANN401
    check: Callable[[dict[str, Any]], list[str]] = checker.check_message
    for message in cards_in_every_state():
        assert check(message.as_payload()) == []
    for words in EXTREMES:
        extreme_facts = facts(
            task(State.STARTED, title=words, details=words, needs_check=True),
            *(action(number, words=words) for number in range(1, 60)),
            words=words,
        )
        assert check(card(extreme_facts).as_payload()) == []
        assert [fault for page in pages_of_records(words) for fault in check(page.as_payload())] == []
        assert check(task_list("x", [task(title=words)] * 40, empty="").as_payload()) == []


def test_another_check_of_the_limits_finds_no_fault_in_forms(checker: Any) -> None:  # noqa: ANN401
    check: Callable[[dict[str, Any]], list[str]] = checker.check_view
    for words in EXTREMES:
        for view in all_modals(words, 100):
            assert check(view) == [], view["callback_id"]
