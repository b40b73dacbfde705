"""The primary dies while people press, and its standby takes over: nobody is told what is not so."""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.bot import Office, open_office
from tests.support.embedded import on_linux
from tests.support.replicas import Pair, address, pair_of_servers

from dibs.playground import Result
from dibs.store.engine import PRESS, DatabaseUnusable, check_reachable, make_engine

pytestmark = on_linux

UNKNOWN = "We could not confirm this; look at the card before pressing again."
AWAY = "Dibs cannot reach its database just now. Nothing changed. Please press again in a moment."
PEOPLE = ("Amal", "Bilal", "Hana", "Marek", "Dana", "Omar")
TASKS = 4
ENOUGH = 60
BETWEEN_PRESSES = 0.02
TOLD_OF = {
    "claimed": re.compile(r"\*SUP-(\d+)\* is yours until|You had claimed \*SUP-(\d+)\*"),
    "renewed": re.compile(r"\*SUP-(\d+)\* stays yours until|You had renewed your lease on \*SUP-(\d+)\*"),
    "released": re.compile(r"You have handed back \*SUP-(\d+)\*"),
}
"""What a person hears of each kind of change of theirs, once."""


@pytest.fixture
def pair() -> Iterator[Pair]:
    with pair_of_servers() as pair:
        yield pair


@pytest.fixture
def office(pair: Pair) -> Iterator[Office]:
    """Six people and a queue; the bot knows both servers."""
    with open_office(pair.url, people=(*PEOPLE, "Sue")) as office:
        office.make_queue()
        office.verify_members()
        yield office


class Shift:
    """People who claim, renew and hand back the same tasks, one press after the other, until it ends."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self.cards = [office.add_task(f"Refund order {number}") for number in range(TASKS)]
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(len(PEOPLE))
        self.results: list[Result] = []
        self._working = [self._pool.submit(self._work, *who) for who in enumerate(PEOPLE)]

    def go_on(self, more: int = ENOUGH) -> None:
        """Wait until people have pressed so many times more."""
        enough = len(self.results) + more
        self._office.wait(lambda: len(self.results) >= enough)

    def end(self) -> list[Result]:
        """Have everybody stop; what came of all the presses."""
        self._ended.set()
        self._pool.shutdown()
        for working in self._working:
            working.result()
        return self.results

    def _work(self, number: int, name: str) -> None:
        for card in itertools.cycle(self.cards[number % TASKS :] + self.cards[: number % TASKS]):
            for button in ("claim", "renew", "release"):
                if self._ended.wait(BETWEEN_PRESSES):
                    return
                if button in self._office.buttons(card):
                    self._press(name, card, button)

    def _press(self, name: str, card: str, button: str) -> None:
        try:
            result = self._office.press(name, card, button)
        except LookupError:
            # Somebody else was quicker, and the card has no such button any more.
            return
        self.results.append(result)
        if self._office.slack.views(self._office.id(name)):
            self._hand_back(name)

    def _hand_back(self, name: str) -> None:
        result = self._office.submit(name, {"reason": "shift_ending"})
        self.results.append(result)
        if not result.closed:
            self._office.slack.close_view(self._office.id(name))


def _all_settled(office: Office, results: list[Result]) -> None:
    """Whoever was told that a press could not be confirmed hears what became of it."""
    unsure = sum(UNKNOWN in result.errors.values() for result in results)
    unsure += sum(office.heard(name).count(UNKNOWN) for name in PEOPLE)

    def settled() -> int:
        # As the job does every few seconds, also for a press that was lost just as the database came back.
        office.bot.outgoing.settle_once()
        return sum(words.startswith("Your press ") for name in PEOPLE for words in office.heard(name))

    office.wait(lambda: settled() == unsure, lambda: f"{unsure} were unsure, {settled()} heard more")


def _told_as_recorded(office: Office) -> None:
    """Every change that somebody was told of is there, and of every change its person was told."""

    def told() -> Counter[tuple[str, str, int]]:
        return Counter(
            (kind, office.id(name), int(found[1] or found[found.re.groups]))
            for name in PEOPLE
            for words in office.heard(name)
            for kind, pattern in TOLD_OF.items()
            if (found := pattern.search(words))
        )

    recorded = Counter(
        (row["kind"], row["actor_id"], row["number"])
        for row in office.rows(
            "SELECT e.kind, e.actor_id, t.number FROM dibs.event e JOIN dibs.task t ON t.id = e.task_id "
            "WHERE e.kind = ANY(:kinds)",
            kinds=list(TOLD_OF),
        )
    )
    office.wait(lambda: told() == recorded, lambda: f"told, not so: {told() - recorded}; {recorded - told()}")


def _never_two_owners(office: Office, number: int) -> None:
    """Read the task's history from its beginning: one owner at a time, and each change counted by one."""
    owner: str | None = None
    version = 0
    for event in _history(office, number):
        assert (event["version_before"] or 0, event["version_after"]) == (version, version + 1), event
        version += 1
        match event["kind"]:
            case "claimed":
                assert owner is None, event
                owner = event["actor_id"]
            case "renewed":
                assert owner == event["actor_id"], event
            case "released":
                assert owner == event["actor_id"], event
                owner = None
    task = office.task(number)
    assert (task["owner_id"], task["version"]) == (owner, version)


def _ends_right(office: Office, number: int, card: str) -> None:
    """The card shows the task as it stands."""
    # A sender that was cut off from the database has its card to itself for a minute, which passes.
    office.execute("UPDATE dibs.card SET sender_until = now() WHERE sender IS NOT NULL")

    def right() -> bool:
        office.bot.delivery.deliver_once()
        return f'"version":{office.task(number)["version"]}' in str(office.card(card)["blocks"])

    office.wait(right)


def _history(office: Office, number: int) -> list[dict[str, Any]]:
    return office.rows(
        "SELECT e.* FROM dibs.event e JOIN dibs.task t ON t.id = e.task_id "
        "WHERE t.number = :number AND e.kind NOT LIKE '%rejected' ORDER BY e.version_after",
        number=number,
    )


def test_presses_around_a_failover_are_answered_in_time_and_what_was_told_is_what_is_recorded(
    office: Office, pair: Pair
) -> None:
    shift = Shift(office)
    shift.go_on()
    pair.primary.kill()
    shift.go_on(len(PEOPLE) * 4)
    office.engine.dispose()
    pair.fail_over()
    before = office.count("event", kind="claimed")
    office.wait(lambda: office.count("event", kind="claimed") >= before + 10)
    results = shift.end()

    assert [result for result in results if result.status != 200 or result.seconds >= 3] == []
    assert any(words.startswith((UNKNOWN, AWAY)) for name in PEOPLE for words in office.heard(name))
    _all_settled(office, results)
    _told_as_recorded(office)
    for number in range(1, TASKS + 1):
        _never_two_owners(office, number)
    for number, card in enumerate(shift.cards, start=1):
        _ends_right(office, number, card)


def test_what_only_the_dying_primary_had_was_never_told_as_done(office: Office, pair: Pair) -> None:
    """The server commits first and waits for its standby then; told to wait no longer, it answers "done"."""
    card = office.add_task()
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
    pair.standby.kill()
    results = [office.press("Amal", card, "claim")]
    assert office.hears("Amal", "") == UNKNOWN
    # Nobody else waits for a standby that is not there.
    results += [office.press(name, card, "claim") for name in PEOPLE[1:]]
    assert max(result.seconds for result in results) < 3
    assert max(result.seconds for result in results[1:]) < 1
    for name in PEOPLE[1:]:
        assert office.hears(name, "").startswith(AWAY)
    office.bot.outgoing.settle_once()
    assert office.heard("Amal") == [UNKNOWN]

    pair.primary.kill()
    office.engine.dispose()
    pair.standby.start()
    pair.fail_over()
    told = office.hears("Amal", "Your press did not go through, and nothing changed.")
    assert office.heard("Amal") == [UNKNOWN, told]
    assert office.task()["state"] == "queued"
    assert office.kinds() == ["created", "claim_rejected"]
    office.press("Bilal", card, "claim")
    office.hears("Bilal", "*SUP-1* is yours until")


def test_what_the_standby_gets_after_all_went_through(office: Office, pair: Pair) -> None:
    card = office.add_task()
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
    pair.standby.kill()
    office.press("Amal", card, "claim")
    assert office.hears("Amal", "") == UNKNOWN
    pair.standby.start()
    office.hears("Amal", "Your press went through after all. *SUP-1* is yours until")
    assert office.kinds() == ["created", "claimed"]


def test_a_standby_decides_nothing(pair: Pair) -> None:
    engine = make_engine(address([pair.standby]), PRESS, pool_size=1)
    with pytest.raises(DatabaseUnusable, match=r"takes no writes: it is a standby.* name the primary"):
        check_reachable(engine)
    pair.primary.kill()
    pair.fail_over()
    check_reachable(engine)
    engine.dispose()
