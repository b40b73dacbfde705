"""Fifty people press Claim on one card at the same moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.bot import Office, open_office

from dibs.playground import Result

FIFTY = tuple(f"Person{number:02}" for number in range(1, 51))
ROUNDS = 20


@pytest.fixture
def crowd(database_url: str) -> Iterator[Office]:
    """A channel with fifty people, of whom nobody is verified yet but who the queue has heard of."""
    with open_office(database_url, people=(*FIFTY, "Sue")) as office:
        office.make_queue()
        yield office


def _claim_at_once(office: Office, card: str) -> list[Result]:
    return office.slack.together(
        [lambda name=name: office.press(name, card, "claim") for name in FIFTY]  # type: ignore[misc]
    )


def _check_round(office: Office, results: list[Result], number: int, heard_before: dict[str, int]) -> None:
    assert [result.status for result in results] == [200] * len(FIFTY)
    assert max(result.seconds for result in results) < 3
    task = office.task(number)
    assert (task["state"], task["version"]) == ("claimed", 2)
    winner = office.name_of(task["owner_id"])
    for name in FIFTY:
        office.wait(lambda name=name: len(office.heard(name)) > heard_before[name])  # type: ignore[misc]
        told = office.heard(name)[heard_before[name] :]
        assert len(told) == 1, told
        if name == winner:
            assert f"*SUP-{number}* is yours" in told[0]
        else:
            assert f"<@{task['owner_id']}> has *SUP-{number}*" in told[0]
            assert "Your claim did not change its owner; nothing changed." in told[0]
    kinds = office.kinds(number)
    assert sorted(kinds) == sorted(["created", "claimed", *["claim_rejected"] * (len(FIFTY) - 1)])


def test_fifty_claims_at_once_twenty_times_have_one_owner_each(crowd: Office) -> None:
    crowd.verify_members()
    for number in range(1, ROUNDS + 1):
        card = crowd.add_task(f"Round {number}")
        heard_before = {name: len(crowd.heard(name)) for name in FIFTY}
        _check_round(crowd, _claim_at_once(crowd, card), number, heard_before)


def test_fifty_claims_at_once_of_people_whom_nobody_has_looked_up_yet(crowd: Office) -> None:
    card = crowd.add_task()
    crowd.execute("DELETE FROM dibs.queue_member WHERE NOT supervisor")
    heard_before = {name: len(crowd.heard(name)) for name in FIFTY}
    _check_round(crowd, _claim_at_once(crowd, card), 1, heard_before)
