"""The database freezes, stops and comes back under the presses of fifty people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import bodies
from tests.support.bot import Office, open_office
from tests.support.proxy import Fault, Proxy, proxy_before

from dibs.playground import Result
from dibs.store.embedded import EmbeddedPostgres

FIFTY = tuple(f"Person{number:02}" for number in range(1, 51))
AT_ONCE = 2.0
"""Less than the deadline, to which whoever waited for the database would have to wait."""
UNKNOWN = "We could not confirm this; look at the card before pressing again."
AWAY = "Dibs cannot reach its database just now. Nothing changed. Please press again in a moment."


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    """What stands between the bot and its database."""
    with proxy_before(database_url) as proxy:
        yield proxy


@pytest.fixture
def crowd(database_url: str, proxy: Proxy) -> Iterator[Office]:
    """Fifty people and a queue; the bot reaches its database through the proxy."""
    with open_office(database_url, people=(*FIFTY, "Sue"), bots_way=proxy.url) as office:
        office.make_queue()
        office.verify_members()
        yield office


def _press_at_once(office: Office, names: tuple[str, ...], card: str, button: str) -> list[Result]:
    return office.slack.together(
        [lambda name=name: office.press(name, card, button) for name in names]  # type: ignore[misc]
    )


def quiet(crowd: Office) -> None:
    """Wait until nothing is being sent, so that what comes next meets the fault and no message does."""
    crowd.wait(lambda: crowd.bot.outgoing.waiting == 0)


def test_fifty_presses_on_a_frozen_database_are_all_answered_in_time_and_in_truth(
    crowd: Office, proxy: Proxy
) -> None:
    card = crowd.add_task()
    as_all_see_it = crowd.card(card)
    proxy.freeze()
    results = _press_at_once(crowd, FIFTY, card, "claim")
    assert [result.status for result in results] == [200] * len(FIFTY)
    assert max(result.seconds for result in results) < 3

    # Whoever's press was under way may have claimed; for the others nothing was sent.
    for name in FIFTY:
        crowd.wait(lambda name=name: crowd.heard(name))  # type: ignore[misc]
    first_told = {name: crowd.heard(name)[0] for name in FIFTY}
    unsure = [name for name in FIFTY if first_told[name] == UNKNOWN]
    assert unsure
    for name in set(FIFTY) - set(unsure):
        assert first_told[name].startswith(AWAY)

    # After the first hang the others are told at once.
    later = crowd.press("Person01", card, "claim")
    assert (later.status, later.seconds < AT_ONCE) == (200, True)
    crowd.hears("Person01", AWAY)
    opened = crowd.press("Person01", card, "history")
    assert (opened.status, opened.seconds < AT_ONCE) == (200, True)
    crowd.hears(
        "Person01", "Dibs cannot reach its database just now. Nothing changed. Please try again in a moment."
    )
    typed = crowd.slack.command(crowd.id("Sue"), crowd.channel.id, "/queue", "add Another")
    assert typed.seconds < AT_ONCE
    assert typed.ephemeral is not None
    assert "Nothing changed." in typed.ephemeral["text"]

    proxy.thaw()
    for name in unsure:
        crowd.hears(name, "Your press")
    owner = crowd.task()["owner_id"]
    for name in unsure:
        went_through = [words for words in crowd.heard(name) if "went through after all" in words]
        assert bool(went_through) == (crowd.id(name) == owner), crowd.heard(name)
    assert crowd.count("event", kind="claimed") == (1 if owner else 0)
    # And presses work again.
    if owner is None:
        crowd.slack.press_stale(crowd.id("Person02"), as_all_see_it, "task_claim")
        crowd.hears("Person02", "*SUP-1* is yours")
    else:
        free = next(name for name in FIFTY if crowd.id(name) != owner)
        crowd.slack.press_stale(crowd.id(free), as_all_see_it, "task_claim")
        crowd.hears(free, f"<@{owner}> has *SUP-1*")


def test_a_form_that_is_sent_to_a_frozen_database_says_so_at_an_input_and_keeps_what_was_typed(
    crowd: Office, proxy: Proxy
) -> None:
    card = crowd.add_task()
    crowd.press("Person01", card, "claim")
    crowd.shows(card, "Claimed")
    crowd.press("Person01", card, "release")
    proxy.freeze()
    result = crowd.submit("Person01", {"reason": "shift_ending", "comment": "Until Monday."})
    assert (result.status, result.seconds < 3) == (200, True)
    assert result.errors == {"reason": UNKNOWN}
    assert not result.closed
    again = crowd.submit("Person01")
    assert (again.status, again.seconds < AT_ONCE) == (200, True)
    assert "Dibs cannot reach its database just now. Nothing changed." in again.errors["reason"]
    state = crowd.opened("Person01")["state"]["values"]
    assert state["comment"]["comment"]["value"] == "Until Monday."
    proxy.thaw()
    told = crowd.hears("Person01", "Your press")
    assert ("went through" in told) == (crowd.task()["state"] == "queued")
    if crowd.task()["state"] == "claimed":
        assert crowd.submit("Person01").closed
    assert crowd.task()["state"] == "queued"
    assert crowd.count("release_card") == 1


@pytest.mark.parametrize(("command", "words"), [("/queue", "add X"), ("/dibs", "queue add X")])
def test_a_command_on_a_frozen_database_says_how_to_look(
    crowd: Office, proxy: Proxy, command: str, words: str
) -> None:
    proxy.freeze()
    result = crowd.slack.command(crowd.id("Sue"), crowd.channel.id, command, words)
    assert (result.status, result.seconds < 3) == (200, True)
    told = result.ephemeral["text"] if result.ephemeral else ""
    how = f"{command} {words}".removesuffix("add X") + "list"
    assert told == f"We could not confirm this. Look at `{how}` before you type it again."
    proxy.thaw()

    def listed() -> bool:
        return "*SUP* Support" in crowd.type("Sue", how.partition(" ")[2], command)

    crowd.wait(listed)


def test_a_claim_whose_answer_is_lost_is_confirmed_at_once(crowd: Office, proxy: Proxy) -> None:
    card = crowd.add_task()
    crowd.wait(lambda: crowd.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
    quiet(crowd)
    proxy.fail_next(Fault.ANSWER_LOST)
    crowd.press("Person01", card, "claim")
    told = crowd.hears("Person01", "*SUP-1* is yours")
    assert crowd.heard("Person01") == [told]
    assert crowd.kinds() == ["created", "claimed"]


def test_a_claim_that_could_not_be_confirmed_and_was_lost_is_told_so_and_never_takes_effect(
    crowd: Office, proxy: Proxy
) -> None:
    card = crowd.add_task()
    crowd.wait(lambda: crowd.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
    quiet(crowd)
    proxy.fail_next(Fault.REQUEST_LATE, Fault.REQUEST_LATE)
    crowd.press("Person01", card, "claim")
    crowd.hears("Person01", UNKNOWN)
    crowd.bot.outgoing.settle_once()
    told = crowd.hears("Person01", "did not go through, and nothing changed")
    assert "Press again if you still want to." in told
    # What arrives at the server after all finds its operation id used.
    assert proxy.deliver_late() == 2
    assert crowd.task()["state"] == "queued"
    assert crowd.kinds() == ["created", "claim_rejected"]


def test_who_could_not_be_confirmed_hears_the_truth_also_when_the_task_has_moved_on(
    crowd: Office, proxy: Proxy
) -> None:
    card = crowd.add_task()
    crowd.wait(lambda: crowd.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
    # The claim is carried out, and neither its answer nor the second try's reaches the bot.
    quiet(crowd)
    proxy.fail_next(Fault.ANSWER_LOST, Fault.ANSWER_LOST)
    crowd.press("Person01", card, "claim")
    crowd.hears("Person01", UNKNOWN)
    crowd.end_lease()
    crowd.sweep()
    crowd.shows(card, "Waiting for an owner")
    crowd.press("Person02", card, "claim")
    crowd.hears("Person02", "*SUP-1* is yours")
    crowd.bot.outgoing.settle_once()
    told = crowd.hears("Person01", "Your press went through")
    assert "yours" not in told
    assert f"<@{crowd.id('Person02')}> has *SUP-1*" in told


def test_who_could_not_be_confirmed_and_was_refused_hears_by_whom(crowd: Office, proxy: Proxy) -> None:
    card = crowd.add_task()
    seen = bodies.press(crowd, "Person01", card, "claim")
    crowd.press("Person02", card, "claim")
    crowd.shows(card, "Claimed")
    crowd.wait(lambda: crowd.rows("SELECT FROM dibs.card WHERE shown_version = 2"))
    quiet(crowd)
    proxy.fail_next(Fault.ANSWER_LOST, Fault.ANSWER_LOST)
    crowd.slack.send_raw(bodies.interaction(seen))
    crowd.hears("Person01", UNKNOWN)
    crowd.bot.outgoing.settle_once()
    told = crowd.hears("Person01", "Your press did not go through")
    assert f"<@{crowd.id('Person02')}> has *SUP-1*" in told
    assert "Press again" not in told


def test_the_database_is_stopped_and_started_again(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, fsync=False)
    with server, open_office(server.start(), people=("Amal", "Bilal", "Sue")) as office:
        office.make_queue()
        card = office.add_task()
        office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE shown_version = 1"))
        server.stop()
        for name in ("Amal", "Bilal", "Amal"):
            result = office.press(name, card, "claim")
            assert (result.status, result.seconds < 3) == (200, True)
        for name in ("Amal", "Bilal"):
            office.hears(name, "")
            assert not [words for words in office.heard(name) if not words.startswith((UNKNOWN, AWAY))]
        server.start()
        office.engine.dispose()
        office.wait(lambda: _claimed_by(office, card) == office.id("Amal"))
        office.hears("Amal", "*SUP-1* is yours")
        assert office.task()["version"] == 2


def _claimed_by(office: Office, card: str) -> str | None:
    """The owner, after Amal has pressed once more."""
    owner: str | None = office.task()["owner_id"]
    if owner is None:
        office.press("Amal", card, "claim")
    return owner
