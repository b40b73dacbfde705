"""Amal and Bilal, and Hana and Marek, as the two articles tell it, through signed HTTP."""

from __future__ import annotations

import pytest
from tests.support.bot import Office
from tests.support.holders import LOCK, Pressed, holder, wait_for_waiters

ANOTHER_CLAIM = (
    "UPDATE dibs.task SET state = 'claimed', owner_id = %(owner)s, version = version + 1, "
    "lease_until = clock_timestamp() + interval '30 minutes', "
    "last_kind = 'claimed', last_actor = %(owner)s, last_at = clock_timestamp() WHERE id = %(id)s"
)


def test_t1_two_claims_at_once_have_one_owner_and_the_loser_hears_who(office: Office) -> None:
    card = office.add_task()
    results = office.slack.together(
        [lambda: office.press("Amal", card, "claim"), lambda: office.press("Bilal", card, "claim")]
    )
    assert [result.status for result in results] == [200, 200]
    task = office.task()
    assert (task["state"], task["version"]) == ("claimed", 2)
    winner = office.name_of(task["owner_id"])
    loser = "Bilal" if winner == "Amal" else "Amal"
    office.hears(winner, "SUP-1", "is yours")
    office.hears(loser, f"<@{office.id(winner)}> has *SUP-1*", "nothing changed")
    office.shows(card, f"owner <@{office.id(winner)}>")
    assert office.kinds() == ["created", "claimed", "claim_rejected"]

    office.press(winner, card, "start")
    assert office.task()["version"] == 3
    office.hears(winner, "You have started")


def test_the_worked_example_of_claim_and_lease(office: Office) -> None:
    t1 = office.add_task("T1")
    as_bilal_sees_it = office.card(t1)
    office.press("Amal", t1, "claim")
    assert (office.task(1)["owner_id"], office.task(1)["version"]) == (office.id("Amal"), 2)
    office.slack.press_stale(office.id("Bilal"), as_bilal_sees_it, "task_claim")
    office.hears("Bilal", f"<@{office.id('Amal')}> has *SUP-1*", "Your claim did not change its owner")
    rejected = office.rows("SELECT * FROM dibs.event WHERE kind = 'claim_rejected'")
    assert [(row["actor_id"], row["version_seen"], row["why"]) for row in rejected] == [
        (office.id("Bilal"), 1, "held")
    ]
    office.shows(t1, "Claimed")
    office.press("Amal", t1, "start")
    assert (office.task(1)["state"], office.task(1)["version"]) == ("started", 3)

    t2 = office.add_task("T2")
    office.press("Amal", t2, "claim")
    office.shows(t2, "Claimed")
    as_amal_left_it = office.card(t2)
    office.press("Amal", t2, "start")
    assert office.task(2)["version"] == 3
    office.end_lease(2)
    office.sweep()
    back = office.task(2)
    assert (back["state"], back["owner_id"], back["needs_check"], back["version"]) == (
        "queued",
        None,
        True,
        4,
    )
    office.shows(t2, "needs a check", "because the lease expired")
    office.press("Bilal", t2, "claim")
    assert (office.task(2)["owner_id"], office.task(2)["version"]) == (office.id("Bilal"), 5)

    office.press("Bilal", t2, "history")
    reviewed = str(office.opened("Bilal")["blocks"])
    assert "the sweep returned it to the queue, because the lease expired" in reviewed
    assert f"It was <@{office.id('Amal')}>'s." in reviewed
    office.slack.close_view(office.id("Bilal"))

    office.slack.press_stale(office.id("Amal"), as_amal_left_it, "task_start")
    office.hears("Amal", f"<@{office.id('Bilal')}> has *SUP-2*", "Nothing changed.")
    assert (office.task(2)["owner_id"], office.task(2)["version"]) == (office.id("Bilal"), 5)

    office.shows(t2, "Claimed")
    office.press("Bilal", t2, "start")
    assert office.submit("Bilal", {"finding": "Nothing was sent; the log is empty."}).closed
    proceeds = office.task(2)
    assert (proceeds["state"], proceeds["needs_check"], proceeds["version"]) == ("started", False, 6)

    # 2 tasks, 2 claim winners, 1 claim rejected, 1 lease expiry, 1 needs_check.
    assert office.count("task") == 2
    winners = office.rows("SELECT DISTINCT actor_id FROM dibs.event WHERE kind = 'claimed'")
    assert len(winners) == 2
    assert office.count("event", kind="claim_rejected") == 1
    assert office.count("event", kind="expired") == 1
    assert office.count("event", kind="start_rejected") == 1
    assert office.kinds(2) == [
        "created",
        "claimed",
        "started",
        "expired",
        "claimed",
        "start_rejected",
        "started",
    ]


def test_q52_a_stale_claim_names_the_owner_and_the_handback_keeps_the_work(office: Office) -> None:
    card = office.add_task("Q-52: is the new valve safe with steam?")
    as_both_loaded_it = office.card(card)
    office.press("Hana", card, "claim")
    office.hears("Hana", "*SUP-1* is yours")
    office.slack.press_stale(office.id("Marek"), as_both_loaded_it, "task_claim")
    told = office.hears("Marek", f"<@{office.id('Hana')}> has *SUP-1*")
    assert "Your claim did not change its owner" in told
    assert f"/archives/{office.channel.id}/p{card.replace('.', '')}|The current card" in told
    assert not [words for words in office.heard("Marek") if "is yours" in words]
    office.shows(card, f"owner <@{office.id('Hana')}>")
    assert f"<@{office.id('Hana')}>" in str(
        office.slack.command(office.id("Marek"), office.channel.id, "/queue", "list").ephemeral
    )
    # The attempt is recorded without the request's contents.
    (attempt,) = office.rows("SELECT * FROM dibs.event WHERE kind = 'claim_rejected'")
    assert attempt["actor_id"] == office.id("Marek")
    assert "valve" not in str(attempt)

    office.press("Hana", card, "note")
    assert office.submit("Hana", {"text": "The data sheet says 140 °C at most."}).closed
    office.shows(card, "Claimed")
    office.wait(lambda: '"version":3' in str(office.card(card)))
    office.press("Hana", card, "release")
    assert office.submit(
        "Hana", {"reason": "other", "comment": "Needs the product specialist's next review session."}
    ).closed
    office.hears("Hana", "You have handed back *SUP-1*")
    office.shows(card, "Waiting for an owner", "Needs the product specialist's next review session.")
    task = office.task()
    assert (task["state"], task["owner_id"], task["version"]) == ("queued", None, 4)

    office.press("Marek", card, "history")
    history = str(office.opened("Marek")["blocks"])
    assert "Needs the product specialist" in history
    assert "The data sheet says 140 °C at most." in history
    assert "wrote a working note" in history
    assert office.task()["resolution"] is None
    office.slack.close_view(office.id("Marek"))
    office.press("Marek", card, "claim")
    office.hears("Marek", "*SUP-1* is yours")
    office.shows(card, f"owner <@{office.id('Marek')}>")
    assert office.task()["owner_id"] == office.id("Marek")
    assert office.kinds() == ["created", "claimed", "claim_rejected", "noted", "released", "claimed"]
    assert office.count("release_card", previous_owner=office.id("Hana"), reason="other") == 1


def test_q53_is_a_third_reviewers_and_nobody_takes_it_over(office: Office) -> None:
    card = office.add_task("Q-53")
    as_all_loaded_it = office.card(card)
    office.press("Dana", card, "claim")
    office.shows(card, "Claimed")
    before = office.task()
    for name in ("Hana", "Marek"):
        # The stale page, and the claim that is sent directly with the newest version.
        office.slack.press_stale(office.id(name), as_all_loaded_it, "task_claim")
        current = as_all_loaded_it | {
            "blocks": _with_value(as_all_loaded_it["blocks"], f'{{"task":{before["id"]},"version":2}}')
        }
        office.slack.press_stale(office.id(name), current, "task_claim")
        office.hears(name, f"<@{office.id('Dana')}> has *SUP-1*")
        assert not [words for words in office.heard(name) if "is yours" in words]
    assert office.task() == before
    assert office.count("event", kind="claim_rejected") == 4


@pytest.mark.parametrize("first", ["Hana", "Marek"])
def test_both_claims_overlap_while_the_first_ones_transaction_is_open(
    office: Office, database_url: str, first: str
) -> None:
    second = "Marek" if first == "Hana" else "Hana"
    card = office.add_task()
    task = office.task()
    with holder(database_url) as theirs:
        theirs.do(LOCK, id=task["id"])
        one = Pressed(lambda: office.press(first, card, "claim"))
        wait_for_waiters(database_url, 1)
        other = Pressed(lambda: office.press(second, card, "claim"))
        # Both requests are in the service, and neither has been answered.
        wait_for_waiters(database_url, 2)
        assert not one.answered
        assert not other.answered
        theirs.rollback()
        assert (one.answer().status, other.answer().status) == (200, 200)
    after = office.task()
    assert (after["owner_id"], after["version"]) == (office.id(first), 2)
    office.hears(first, "*SUP-1* is yours")
    office.hears(second, f"<@{office.id(first)}> has *SUP-1*", "Your claim did not change its owner")
    assert office.kinds() == ["created", "claimed", "claim_rejected"]
    office.shows(card, f"owner <@{office.id(first)}>")


@pytest.mark.parametrize("first", ["Hana", "Marek"])
def test_a_claim_that_waits_behind_an_open_claim_finds_its_owner_after_the_commit(
    office: Office, database_url: str, first: str
) -> None:
    second = "Marek" if first == "Hana" else "Hana"
    card = office.add_task()
    task = office.task()
    with holder(database_url) as theirs:
        theirs.do(ANOTHER_CLAIM, id=task["id"], owner=office.id(first))
        waiting = Pressed(lambda: office.press(second, card, "claim"))
        wait_for_waiters(database_url, 1)
        assert not waiting.answered
        theirs.commit()
        assert waiting.answer().status == 200
    after = office.task()
    assert (after["owner_id"], after["version"]) == (office.id(first), 2)
    office.hears(second, f"<@{office.id(first)}> has *SUP-1*", "Your claim did not change its owner")


def test_a_claim_that_waits_behind_a_claim_that_is_rolled_back_succeeds(
    office: Office, database_url: str
) -> None:
    card = office.add_task()
    task = office.task()
    with holder(database_url) as theirs:
        theirs.do(ANOTHER_CLAIM, id=task["id"], owner=office.id("Hana"))
        waiting = Pressed(lambda: office.press("Marek", card, "claim"))
        wait_for_waiters(database_url, 1)
        theirs.rollback()
        assert waiting.answer().status == 200
    office.hears("Marek", "*SUP-1* is yours")
    assert office.task()["owner_id"] == office.id("Marek")


def _with_value(blocks: list[dict[str, object]], value: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for block in blocks:
        elements = block.get("elements")
        if block["type"] == "actions" and isinstance(elements, list):
            found.append(block | {"elements": [element | {"value": value} for element in elements]})
        else:
            found.append(block)
    return found
