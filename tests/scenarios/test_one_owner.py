"""Amal and Bilal, and Hana and Marek, as the two documents tell it, through signed HTTP."""

from __future__ import annotations

from tests.support.bot import Office


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
