"""A task that needs a check: who may answer it, where, and what the answer has to say."""

from __future__ import annotations

import json

from tests.support import bodies
from tests.support.bot import Office
from tests.support.ways import at_version, flagged, with_open_action


def test_a_flagged_task_is_checked_by_its_new_owner_as_it_is_started(office: Office) -> None:
    card = flagged(office)
    office.press("Bilal", card, "claim")
    office.hears("Bilal", "It needs a check before you start.")
    at_version(office, card, 5)
    office.press("Bilal", card, "start")
    assert office.opened("Bilal")["submit"]["text"] == "Confirm and start"
    assert office.submit("Bilal", {}).errors.keys() == {"finding"}
    assert office.submit("Bilal", {"finding": "   "}).errors.keys() == {"finding"}
    assert office.task()["state"] == "claimed"
    assert office.submit("Bilal", {"finding": "Nothing was sent."}).closed
    task = office.task()
    assert (task["state"], task["needs_check"], task["version"]) == ("started", False, 6)
    (event,) = office.rows(
        "SELECT private_text FROM dibs.event WHERE kind = 'started' AND detail IS NOT NULL"
    )
    assert event["private_text"] == "Nothing was sent."
    office.wait(lambda: "check" not in office.buttons(card))
    office.press("Dana", card, "history")
    assert "Nothing was sent." in str(office.opened("Dana")["blocks"])


def test_start_opens_the_check_whatever_else_its_button_carries(office: Office) -> None:
    card = flagged(office)
    office.press("Bilal", card, "claim")
    at_version(office, card, 5)
    task = office.task()
    value = json.dumps({"task": task["id"], "version": 5})
    pressed = bodies.press(office, "Bilal", card, "start", value=value)
    assert office.slack.send_raw(bodies.interaction(pressed)).status == 200
    assert office.opened("Bilal")["callback_id"] == "check"
    assert office.submit("Bilal", {"finding": "Nothing was sent."}).closed
    assert office.kinds()[-2:] == ["claimed", "started"]


def test_a_flagged_task_is_checked_by_a_supervisor_while_it_waits(office: Office) -> None:
    card = flagged(office)
    office.press("Sue", card, "check")
    assert office.submit("Sue", {"finding": "The mail never left."}).closed
    office.hears("Sue", "Your check of *SUP-1* is recorded, and the flag is cleared.")
    office.shows(card, "Waiting for an owner")
    task = office.task()
    assert (task["state"], task["needs_check"], task["version"]) == ("queued", False, 5)


def test_a_stranger_may_not_check(office: Office) -> None:
    card = flagged(office)
    office.press("Bilal", card, "check")
    office.hears(
        "Bilal", "Only the owner of *SUP-1* or a supervisor of its queue may do this.", "Nothing changed."
    )
    assert office.slack.views(office.id("Bilal")) == []
    assert office.kinds()[-1] == "check_rejected"
    assert office.task()["needs_check"]


def test_a_check_answers_each_open_action(office: Office) -> None:
    card = with_open_action(office)
    office.end_lease()
    office.sweep()
    at_version(office, card, 5)
    office.shows(card, "`SUP-1-A1` refund 20 EUR for order 1001: *in progress*")
    (action,) = office.rows("SELECT id FROM dibs.external_action")
    answer = f"answer_{action['id']}"
    office.press("Sue", card, "check")
    assert office.submit("Sue", {"finding": "Looked."}).errors.keys() == {answer}
    assert office.submit("Sue", {"finding": "The bank has it.", answer: "completed"}).closed
    assert office.rows("SELECT status FROM dibs.external_action") == [{"status": "completed"}]
    assert not office.task()["needs_check"]


def test_an_action_that_is_recorded_while_the_check_is_open_is_not_checked_blindly(office: Office) -> None:
    card = flagged(office)
    office.press("Sue", card, "check")
    # Meanwhile Bilal claims, checks, starts, records an action and lets the lease end.
    for press, version, values in (
        ("claim", 5, None),
        ("start", 6, {"finding": "Nothing."}),
        ("record_action", 7, {"description": "refund"}),
    ):
        office.press("Bilal", card, press)
        assert values is None or office.submit("Bilal", values).closed
        at_version(office, card, version)
    office.end_lease()
    office.sweep()
    result = office.submit("Sue", {"finding": "Nothing was sent."})
    assert result.errors.keys() == {"finding"}
    assert "SUP-1 is in the queue: the sweep returned it" in result.errors["finding"]
    assert "Nothing changed." in result.errors["finding"]
    assert office.task()["needs_check"]


# --- the history, and windows that do not open
