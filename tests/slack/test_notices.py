"""What Dibs says of its own accord: within Slack's limits, in plain words, and without anything private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.slack.samples import AT, action, elements_of, facts, task
from tests.slack.test_blocks import CHECKER, checker

from dibs.domain.notices import MOST_IN_A_GROUP, Letter, Notice, Settlement, is_final
from dibs.domain.queue import Facts
from dibs.domain.task import ActionStatus, State
from dibs.domain.transitions import EventKind
from dibs.playground.blockkit import check_blocks
from dibs.slack.ids import Action, QueueAction
from dibs.slack.views.card import MOST_TEXT, Message
from dibs.slack.views.notices import notice

__all__ = ["CHECKER", "checker"]

PRIVATE = "The customer's IBAN is DE00 1234"
OWNER, SUPERVISOR, CHANNEL = "U0AMAL", "U0SUE", "C0ALERTS"
UNTIL = {"until": AT.isoformat()}
PAYLOADS: dict[Notice, list[dict[str, Any]]] = {
    Notice.NEEDS_CHECK: [
        {"by": by, "kind": kind, "at": AT.isoformat(), "former_owner": OWNER, "former_state": state, **more}
        for by, kind in (
            (None, EventKind.EXPIRED), (OWNER, EventKind.RELEASED), (SUPERVISOR, EventKind.FORCE_RELEASED)
        )
        for state in (State.CLAIMED, State.STARTED)
        for more in ({}, {"instead_of": CHANNEL})
    ],
    Notice.LEASE_ENDED: [
        {"kind": EventKind.EXPIRED, "at": AT.isoformat(), "former_owner": OWNER, "former_state": state}
        for state in (State.CLAIMED, State.STARTED)
    ],
    Notice.LEASE_ENDS_SOON: [UNTIL],
    Notice.HOLD_ENDS_SOON: [UNTIL | {"owner": OWNER}],
    Notice.TRANSFERRED_AWAY: [{"by": SUPERVISOR}, {"by": SUPERVISOR, "to": OWNER}],
    Notice.TRANSFERRED_TO: [{"by": SUPERVISOR}],
    Notice.FORCE_RELEASED: [{"by": SUPERVISOR}],
    Notice.BREAKER_OPEN: [
        {"count": 12, "limit": 10, "minutes": 15, "opened_by": None},
        {"count": 2, "limit": 10, "minutes": 15, "opened_by": SUPERVISOR},
        {"count": 0, "limit": 10, "minutes": 15, "opened_by": SUPERVISOR},
        {"count": 2, "limit": 10, "minutes": 15, "resumed_by": SUPERVISOR, "resumed_at": AT.isoformat()},
    ],
    Notice.CLOCK_STOPPED: [
        {"why": why, "seconds": 61.5, "needs_resume": why == "ahead"}
        for why in ("backwards", "ahead", "apart")
    ],
    Notice.RELEASES_PAUSED: [{"why": 'new row for relation "release_card" violates <check>'}, {"why": None}],
    Notice.OWNER_GONE: [
        {"owner": OWNER, "standing": "deactivated"},
        {"owner": OWNER, "standing": "left"},
        {"owner": OWNER, "standing": "deactivated", "unsent": "lease_ended"},
    ],
    Notice.CHANNEL_GONE: [
        {"channel": "C0SUPPORT", "why": why} for why in ("is_archived", "channel_not_found")
    ],
}  # fmt: skip
OF_A_QUEUE = (Notice.BREAKER_OPEN, Notice.CLOCK_STOPPED, Notice.RELEASES_PAUSED, Notice.CHANNEL_GONE)


def tasks() -> Iterator[Facts]:
    for state in State:
        for flagged in (False, True) if state in (State.QUEUED, State.CLAIMED) else (False,):
            for status in ActionStatus:
                for owner in (OWNER, "U0BILAL"):
                    held = state is not State.QUEUED
                    yield facts(
                        task(
                            state,
                            title=PRIVATE,
                            details=PRIVATE,
                            needs_check=flagged,
                            resolution=PRIVATE if state is State.DONE else None,
                            owner_id=owner if held else None,
                            last_kind=EventKind.EXPIRED,
                        ),
                        action(1, status, PRIVATE),
                        words=PRIVATE,
                    )


def letters() -> Iterator[Letter]:
    for kind, payloads in PAYLOADS.items():
        for payload in payloads:
            for recipient in (OWNER, CHANNEL):
                letter = Letter(
                    id=2**62,
                    notice=kind,
                    key=f"{kind}:1:4:{recipient}",
                    recipient=recipient,
                    payload=payload,
                    queue_id=1,
                    queue_key="SUP",
                    queue_name="Support & <friends>",
                    queue_channel="C0SUPPORT",
                )
                if kind in OF_A_QUEUE:
                    yield letter
                    yield replace(letter, over=True)
                    continue
                for known in tasks():
                    yield replace(letter, facts=known)
                    yield replace(letter, facts=known, settled=Settlement(SUPERVISOR, AT))
                yield letter


def faults(message: Message, check: Any) -> list[str]:  # noqa: ANN401 - a module that is loaded by its path
    found = [str(fault) for fault in check_blocks(message.blocks, "message")]
    return found + list(check.check_message(message.as_payload()))


def sections(message: Message) -> list[str]:
    return [block["text"]["text"] for block in message.blocks if block["type"] == "section"]


def group(kind: Notice, number: int, **about: Any) -> list[Letter]:  # noqa: ANN401 - a letter's fields
    first = next(letter for letter in letters() if letter.notice is kind)
    return [
        replace(
            first,
            id=2**62 + n,
            facts=facts(
                task(id=n, number=2**31 - n, queue_key="ABCDEFGHIJ", needs_check=True, title=PRIVATE),
                *(action(k, ActionStatus.UNKNOWN, PRIVATE) for k in range(1, 60)),
            ),
            **about,
        )
        for n in range(1, number + 1)
    ]


def test_every_notice_in_every_state_is_one_that_slack_takes_and_its_text_says_it_all(checker: Any) -> None:  # noqa: ANN401
    seen = set()
    for letter in letters():
        message = notice([letter])
        assert faults(message, checker) == []
        assert all(said in message.text for said in sections(message))
        assert PRIVATE not in message.text + str(message.blocks)
        assert "<friends>" not in message.text
        assert set(pressable(message)) <= {*Action, QueueAction.RESUME}
        seen.add(letter.notice)
    assert seen == set(Notice)


@pytest.mark.parametrize("kind", [Notice.NEEDS_CHECK, Notice.LEASE_ENDED])
@pytest.mark.parametrize("settled", [None, Settlement(SUPERVISOR, AT)])
def test_the_largest_group_is_one_that_slack_takes(
    checker: Any,  # noqa: ANN401
    kind: Notice,
    settled: Settlement | None,
) -> None:
    message = notice(group(kind, MOST_IN_A_GROUP, settled=settled))
    assert faults(message, checker) == []
    assert len(message.text) <= MOST_TEXT
    assert PRIVATE not in message.text + str(message.blocks)
    for n in range(1, MOST_IN_A_GROUP + 1):
        assert f"*ABCDEFGHIJ-{2**31 - n}*" in message.text


def pressable(message: Message) -> list[str]:
    return [element["action_id"] for element in elements_of(message.blocks)]


def of(kind: Notice, known: Facts, *, recipient: str = OWNER) -> Letter:
    found: Sequence[Letter] = [letter for letter in letters() if letter.notice is kind]
    return replace(found[0], recipient=recipient, facts=known, settled=None)


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        (State.CLAIMED, [Action.RENEW, Action.START, Action.RELEASE, Action.HISTORY]),
        (State.STARTED, [Action.RENEW, Action.DONE, Action.RELEASE, Action.HISTORY]),
    ],
)
def test_a_reminder_offers_what_the_owner_can_do(state: State, buttons: list[Action]) -> None:
    letter = of(Notice.LEASE_ENDS_SOON, facts(task(state)))
    assert pressable(notice([letter])) == buttons
    assert not is_final(letter)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (task(State.CLAIMED, lease_until=AT + timedelta(hours=1)), "is yours until"),
        (task(State.CLAIMED, owner_id="U0BILAL"), "<@U0BILAL>'s now"),
        (task(State.QUEUED, last_kind=EventKind.EXPIRED), "ended"),
        (task(State.QUEUED, last_kind=EventKind.RELEASED), "back in the queue"),
        (task(State.DONE), "is done"),
    ],
)
def test_a_reminder_that_no_longer_matters_says_so_for_good(known: Any, said: str) -> None:  # noqa: ANN401
    letter = of(Notice.LEASE_ENDS_SOON, facts(known))
    message = notice([letter])
    assert said in message.text
    assert pressable(message) == []
    assert is_final(letter)


def test_alerts_of_brakes_say_what_is_paused_and_offer_to_resume() -> None:
    for letter in letters():
        said = notice([letter])
        resumable = letter.payload.get("needs_resume") if letter.notice is Notice.CLOCK_STOPPED else True
        if letter.notice in (Notice.BREAKER_OPEN, Notice.RELEASES_PAUSED) and not letter.over:
            assert "paused" in said.text
        if letter.notice is Notice.BREAKER_OPEN and letter.payload["count"]:
            assert all(str(letter.payload[name]) in said.text for name in ("count", "limit", "minutes"))
        if letter.notice is Notice.BREAKER_OPEN and not letter.payload["count"]:
            assert "limit" not in said.text
        if letter.notice in OF_A_QUEUE[:3]:
            expected = [QueueAction.RESUME] if resumable and not letter.over else []
            assert pressable(said) == expected
            assert is_final(letter) == letter.over
