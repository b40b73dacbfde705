"""A task that needs a check: why, what was recorded and by whom, until somebody has looked."""

from __future__ import annotations

from tests.support.bot import Office
from tests.support.ways import at_version, claimed, started

NOTE = "The send timed out."


def _recorded(office: Office, name: str, card: str, what: str, version: int) -> None:
    office.press(name, card, "record_action")
    assert office.submit(name, {"description": what}).closed
    at_version(office, card, version)


def test_an_external_action_has_one_reference_whoever_owns_the_task(office: Office) -> None:
    card = started(office, "Hana")
    office.press("Hana", card, "record_action")
    assert "It is recorded as `SUP-1-A1`: use that as the reference" in str(office.opened("Hana")["blocks"])
    assert office.submit("Hana", {"description": "refund 20 EUR"}).closed
    office.hears("Hana", "Recorded on *SUP-1* as `SUP-1-A1`.", "use `SUP-1-A1` as the reference there")
    at_version(office, card, 4)
    office.end_lease()
    office.sweep()
    office.shows(
        card,
        f"The lease of <@{office.id('Hana')}> ended",
        "after work had begun",
        f"`SUP-1-A1` refund 20 EUR: *in progress*, recorded by <@{office.id('Hana')}>",
    )
    at_version(office, card, 5)
    office.press("Marek", card, "claim")
    at_version(office, card, 6)
    office.shows(card, f"The lease of <@{office.id('Hana')}> ended", "`SUP-1-A1` refund 20 EUR")

    office.press("Marek", card, "start")
    view = office.opened("Marek")
    assert view["callback_id"] == "check"
    (answer,) = [block for block in view["blocks"] if str(block["block_id"]).startswith("answer_")]
    assert answer["label"]["text"] == "SUP-1-A1: refund 20 EUR"
    found = {answer["block_id"]: "not_completed", "finding": "The bank knows of no refund."}
    assert office.submit("Marek", found).closed
    at_version(office, card, 7)
    assert (office.task()["state"], office.task()["needs_check"]) == ("started", False)
    assert office.kinds()[-2:] == ["claimed", "started"]
    _recorded(office, "Marek", card, "refund 20 EUR again", 8)
    office.hears("Marek", "as `SUP-1-A2`")

    office.press("Marek", card, "history")
    story = [
        block["text"]["text"] for block in office.opened("Marek")["blocks"] if block["type"] == "section"
    ]
    assert "recorded an external action" in story[1]
    assert "`SUP-1-A2` refund 20 EUR again" in story[1]
    assert "`SUP-1-A1` refund 20 EUR: *not completed*" in story[2]
    assert "_Found_\n> The bank knows of no refund." in story[2]
    assert "`SUP-1-A1` refund 20 EUR" in story[5]


def test_a_flagged_task_that_is_released_unchecked_stays_flagged_and_still_says_why(office: Office) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "release")
    given = {"reason": "missing_information", "handoff_note": NOTE, "external_action": "unknown"}
    assert office.submit("Dana", given).closed
    why = f"<@{office.id('Dana')}> handed it back", "without knowing how it ended outside"
    office.shows(card, *why, "recorded by", NOTE)
    at_version(office, card, 4)
    office.press("Hana", card, "claim")
    at_version(office, card, 5)
    office.press("Hana", card, "release")
    assert "it stays flagged for the next owner" in str(office.opened("Hana")["blocks"])
    assert office.submit("Hana", {"reason": "shift_ending", "external_action": "unknown"}).closed
    at_version(office, card, 6)
    assert office.task()["needs_check"] is True
    office.shows(card, "needs a check", f"<@{office.id('Hana')}> handed it back")


def test_a_supervisor_checks_a_flagged_task_while_it_waits(office: Office) -> None:
    card = started(office, "Dana")
    _recorded(office, "Dana", card, "refund 20 EUR", 4)
    office.end_lease()
    office.sweep()
    at_version(office, card, 5)
    office.press("Sue", card, "check")
    (answer,) = [b for b in office.opened("Sue")["blocks"] if str(b["block_id"]).startswith("answer_")]
    assert office.submit("Sue", {answer["block_id"]: "completed", "finding": "The bank has it."}).closed
    at_version(office, card, 6)
    assert (office.task()["state"], office.task()["needs_check"]) == ("queued", False)
    office.shows(card, "Waiting for an owner")
    assert "Needs a check" not in office.card(card)["text"]


def test_what_a_supervisor_took_away_says_who_took_it_and_from_whom(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET supervisor_operations = true")
    card = started(office, "Dana")
    office.press("Sue", card, "history")
    office.slack.press_in_view(office.id("Sue"), "supervise_force_release")
    assert office.submit("Sue", {"reason": "shift_ending"}).closed
    dana, sue = office.id("Dana"), office.id("Sue")
    office.shows(card, f"<@{sue}> took it from <@{dana}>", "after work had begun")
    office.shows(card, f"*Taken from* <@{dana}> by <@{sue}>, as a supervisor: My shift is ending")


def test_a_card_with_many_actions_shows_the_open_ones_first(office: Office) -> None:
    card = claimed(office, "Dana")
    office.execute(
        "INSERT INTO dibs.external_action (task_id, number, version, description, status, recorded_by, "
        "answered_by) SELECT t.id, n, 1, 'mail ' || n, CASE WHEN n > 20 THEN 'unknown' ELSE 'completed' END, "
        ":by, :by FROM dibs.task t, generate_series(1, 22) n",
        by=office.id("Dana"),
    )
    office.execute("UPDATE dibs.task SET needs_check = true")
    office.press("Dana", card, "renew")
    office.shows(card, "`SUP-1-A21` mail 21: *unknown*", "`SUP-1-A1` mail 1: *completed*", "and 14 more")
    assert "`SUP-1-A7`" not in office.card(card)["text"]
