"""The acceptance tests of the handback, through the form and signed HTTP."""

from __future__ import annotations

import json

import pytest
from tests.support.bodies import interaction, submission
from tests.support.bot import Office
from tests.support.ways import at_version, claimed, started

NOTE = "Order is looked up; the bank still has to confirm."
GIVEN = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}


def _unchanged(office: Office, before: dict[str, object]) -> None:
    assert office.task() == before
    assert office.count("release_card") == 0


def test_release_by_non_owner_expect_rejection(office: Office) -> None:
    card = started(office, "Dana")
    before = office.task()
    office.press("Hana", card, "release")
    office.hears("Hana", f"<@{office.id('Dana')}> has *SUP-1* and has started", "Nothing changed.")
    assert office.slack.views(office.id("Hana")) == []
    # Nor with a form of the owner's that somebody else sends off.
    office.press("Dana", card, "release")
    form = submission(office, "Dana", GIVEN)
    form["user"]["id"] = office.id("Hana")
    answer = json.loads(office.slack.send_raw(interaction(form)).body)
    assert "Dana has SUP-1 and has started" in answer["errors"]["reason"]
    _unchanged(office, before)
    assert office.count("event", kind="release_rejected", actor_id=office.id("Hana"), why="held") == 2


def test_release_of_a_started_task_without_a_note_expect_rejection(office: Office) -> None:
    card = started(office, "Dana")
    before = office.task()
    office.press("Dana", card, "release")
    result = office.submit("Dana", GIVEN | {"handoff_note": " \n "})
    assert result.errors == {
        "handoff_note": "Started work needs a handoff note for the next owner. Nothing changed yet."
    }
    _unchanged(office, before)


def test_release_with_unknown_external_status_expect_needs_check(office: Office) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "release")
    assert office.submit("Dana", GIVEN | {"external_action": "unknown"}).closed
    task = office.task()
    assert (task["state"], task["owner_id"], task["needs_check"]) == ("queued", None, True)
    office.shows(card, "needs a check", "without knowing how it ended outside", NOTE)
    assert "Waiting for an owner" not in office.card(card)["text"]


def test_double_release_expect_one_card_and_one_state_change(office: Office) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "release")
    form = interaction(submission(office, "Dana", GIVEN))
    answers = office.slack.together([lambda: office.slack.send_raw(form) for _ in range(4)])
    assert {answer.status for answer in answers} == {200}
    assert {answer.body for answer in answers} == {""}
    assert office.count("release_card") == 1
    assert (office.task()["state"], office.task()["version"]) == ("queued", 4)
    assert office.kinds() == ["created", "claimed", "started", "released"]

    # A second form, sent off after the first: another press of the same person's.
    other = json.loads(json.dumps(submission(office, "Dana", GIVEN)))
    other["trigger_id"] = "another.trigger"
    errors = json.loads(office.slack.send_raw(interaction(other)).body)["errors"]
    assert "SUP-1 is in the queue: Dana already released it" in errors["reason"]
    assert "Nothing changed." in errors["reason"]
    assert office.count("release_card") == 1
    assert office.kinds()[-1] == "release_rejected"


@pytest.mark.parametrize(
    ("table", "columns"),
    [("release_card", "reason = 'none'"), ("event", "kind <> 'released'")],
)
def test_audit_write_failure_expect_the_release_to_roll_back(
    office: Office, table: str, columns: str
) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "record_action")
    assert office.submit("Dana", {"description": "refund 20 EUR"}).closed
    at_version(office, card, 4)
    before, events = office.task(), office.count("event")
    office.execute(f"ALTER TABLE dibs.{table} ADD CONSTRAINT broken CHECK ({columns}) NOT VALID")
    office.press("Dana", card, "release")
    result = office.submit("Dana", GIVEN | {"external_action": "completed"})
    assert "was not handed back" in result.errors["reason"]
    _unchanged(office, before)
    assert office.count("external_action", status="in_progress") == 1
    assert office.count("event", kind="released") == 0
    assert office.count("event", kind="release_rejected") == 1
    assert office.count("event") == events + 1
    assert f"owner <@{office.id('Dana')}>" in office.card(card)["text"]


def test_release_of_a_done_task_expect_rejection(office: Office) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "release")
    form = submission(office, "Dana", GIVEN)
    office.press("Dana", card, "done")
    assert office.submit("Dana", {"resolution": "Refunded."}).closed
    before = office.task()
    errors = json.loads(office.slack.send_raw(interaction(form)).body)["errors"]
    assert "SUP-1 is done, finished by Dana. Nothing changed." in errors["reason"]
    _unchanged(office, before)
    assert office.kinds()[-1] == "release_rejected"


def test_a_release_that_crosses_a_renewal_says_who_renewed(office: Office) -> None:
    card = claimed(office, "Dana")
    office.press("Dana", card, "release")
    form = submission(office, "Dana", {"reason": "shift_ending"})
    office.press("Dana", card, "renew")
    before = office.task()
    errors = json.loads(office.slack.send_raw(interaction(form)).body)["errors"]
    assert "SUP-1 is yours, claimed until" in errors["reason"]
    assert "Newest change: you renewed the lease," in errors["reason"]
    assert "Nothing changed." in errors["reason"]
    assert "Close this form and open it again from there." in errors["reason"]
    _unchanged(office, before)


def test_a_release_and_a_renewal_at_once_leave_one_change(office: Office) -> None:
    card = claimed(office, "Dana")
    office.press("Dana", card, "release")
    form = interaction(submission(office, "Dana", {"reason": "shift_ending"}))
    office.slack.together([lambda: office.slack.send_raw(form), lambda: office.press("Dana", card, "renew")])
    task = office.task()
    assert task["version"] == 3
    assert (task["state"] == "queued") == (office.count("release_card") == 1)
    assert len([kind for kind in office.kinds() if kind.endswith("_rejected")]) == 1
