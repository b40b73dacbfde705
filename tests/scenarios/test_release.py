"""Handing a task back: every precondition, refused at the input it is about, with what was typed kept."""

from __future__ import annotations

import pytest
from tests.support.bot import Office

NOTE = "Order is looked up; the bank still has to confirm."


def _at(office: Office, card: str, version: int) -> None:
    office.wait(lambda: f'"version":{version}' in str(office.card(card)["blocks"]))


def _claimed(office: Office, title: str = "Refund order 1001") -> str:
    card = office.add_task(title)
    office.press("Dana", card, "claim")
    _at(office, card, 2)
    return card


def _started(office: Office, title: str = "Refund order 1001") -> str:
    card = _claimed(office, title)
    office.press("Dana", card, "start")
    _at(office, card, 3)
    return card


def _typed(office: Office) -> dict[str, object]:
    values = office.opened("Dana")["state"]["values"]
    return {
        name: (state[name].get("selected_option") or {}).get("value") or state[name].get("value")
        for name, state in values.items()
    }


def test_the_worked_example_of_release_and_audit_card(office: Office) -> None:
    t1, t2, t3 = _claimed(office, "T1"), _started(office, "T2"), _started(office, "T3")
    old_tab = office.card(t1)

    office.press("Dana", t1, "release")
    assert office.submit("Dana", {"reason": "out_of_scope"}).closed
    assert (office.task(1)["state"], office.task(1)["needs_check"]) == ("queued", False)

    office.press("Dana", t2, "release")
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "completed"}
    assert office.submit("Dana", given).closed
    task = office.task(2)
    assert (task["state"], task["needs_check"], task["started_before"]) == ("queued", False, True)
    office.shows(t2, NOTE, "Started before", "My shift is ending")

    office.press("Dana", t3, "release")
    given = {
        "reason": "missing_information",
        "handoff_note": "The send timed out.",
        "external_action": "unknown",
    }
    assert office.submit("Dana", given).closed
    assert (office.task(3)["state"], office.task(3)["needs_check"]) == ("queued", True)
    office.hears("Dana", "You have handed back *SUP-3*.", "a person checks before anything is repeated")
    office.shows(t3, "needs a check")

    office.slack.press_stale(office.id("Dana"), old_tab, "task_release")
    office.hears(
        "Dana", f"*SUP-1* is in the queue: <@{office.id('Dana')}> already released it", "Nothing changed."
    )

    # 3 tasks, 3 audit cards, 2 queued, 1 needs_check, 1 stale request rejected without a new card.
    assert office.count("task") == 3
    assert office.count("release_card") == 3
    assert office.count("task", state="queued", needs_check=False) == 2
    assert office.count("task", state="queued", needs_check=True) == 1
    assert office.count("event", kind="release_rejected") == 1
    cards = office.rows("SELECT * FROM dibs.release_card ORDER BY id")
    assert [
        (c["previous_owner"], c["state_at_release"], c["version_before"], c["version_after"], c["reason"],
         c["handoff_note"], c["external_action"])
        for c in cards
    ] == [
        (office.id("Dana"), "claimed", 2, 3, "out_of_scope", None, None),
        (office.id("Dana"), "started", 3, 4, "shift_ending", NOTE, "completed"),
        (office.id("Dana"), "started", 3, 4, "missing_information", "The send timed out.", "unknown"),
    ]  # fmt: skip


def test_a_claimed_task_needs_a_reason_and_no_note(office: Office) -> None:
    card = _claimed(office)
    office.press("Dana", card, "release")
    inputs = {
        block["block_id"]: block for block in office.opened("Dana")["blocks"] if block["type"] == "input"
    }
    assert inputs.keys() == {"reason", "comment", "handoff_note"}
    assert inputs["handoff_note"]["optional"]
    assert office.submit("Dana", {}).errors.keys() == {"reason"}
    assert office.submit("Dana", {"reason": "missing_information"}).closed
    assert office.count("release_card", state_at_release="claimed") == 1


def test_another_reason_needs_the_comment(office: Office) -> None:
    card = _claimed(office)
    office.press("Dana", card, "release")
    result = office.submit("Dana", {"reason": "other", "handoff_note": NOTE})
    assert result.errors == {"comment": "Say in a few words what the other reason is. Nothing changed yet."}
    assert _typed(office) == {"reason": "other", "comment": None, "handoff_note": NOTE}
    assert office.task()["state"] == "claimed"
    assert office.submit("Dana", {"comment": "The printer is on fire."}).closed
    office.shows(card, "Another reason", "The printer is on fire.", NOTE)


@pytest.mark.parametrize("blank", [None, "   ", "\n"])
def test_started_work_needs_a_handoff_note(office: Office, blank: str | None) -> None:
    card = _started(office)
    office.press("Dana", card, "release")
    given = {"reason": "shift_ending", "comment": "Until Monday.", "external_action": "none"}
    result = office.submit("Dana", given | ({"handoff_note": blank} if blank else {}))
    assert result.errors.keys() == {"handoff_note"}
    assert _typed(office)["comment"] == "Until Monday."
    assert office.task()["state"] == "started"
    assert office.submit("Dana", {"handoff_note": NOTE}).closed
    assert office.count("release_card", handoff_note=NOTE, external_action="none") == 1
    assert not office.task()["needs_check"]


def test_started_work_must_say_what_was_done_outside_and_nothing_is_preselected(office: Office) -> None:
    card = _started(office)
    office.press("Dana", card, "release")
    assert _typed(office)["external_action"] is None
    result = office.submit("Dana", {"reason": "shift_ending", "handoff_note": NOTE})
    assert result.errors.keys() == {"external_action"}
    assert office.task()["state"] == "started"
    assert office.count("release_card") == 0


@pytest.mark.parametrize(
    ("answer", "needs_check"), [("completed", False), ("not_completed", False), ("unknown", True)]
)
def test_the_answer_goes_to_every_open_action(office: Office, answer: str, needs_check: bool) -> None:  # noqa: FBT001
    card = _started(office)
    for version, what in ((4, "refund 20 EUR"), (5, "mail <https://x|y>")):
        office.press("Dana", card, "record_action")
        assert office.submit("Dana", {"description": what}).closed
        _at(office, card, version)
    office.press("Dana", card, "release")
    named, shown = office.opened("Dana")["blocks"][-2:]
    assert "`SUP-1-A1` refund 20 EUR: *in progress*" in named["text"]["text"]
    assert "`SUP-1-A2` mail &lt;https://x|y&gt;: *in progress*" in named["text"]["text"]
    assert "The answer goes to all of them." in shown["hint"]["text"]
    options = [option["value"] for option in shown["element"]["options"]]
    assert options == ["completed", "not_completed", "unknown"]
    given = {"reason": "needs_specialist", "handoff_note": NOTE, "external_action": answer}
    assert office.submit("Dana", given).closed
    assert office.count("external_action", status=answer) == 2
    assert office.task()["needs_check"] is needs_check


def test_an_action_that_nobody_recorded_is_recorded_by_the_release(office: Office) -> None:
    card = _started(office)
    office.press("Dana", card, "release")
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "unknown"}
    assert office.submit("Dana", given).closed
    assert office.count("external_action", status="unknown") == 1
    office.shows(card, "`SUP-1-A1`", "*unknown*")


def test_a_task_that_was_requeued_while_the_form_was_open(office: Office) -> None:
    card = _started(office)
    office.press("Dana", card, "release")
    office.end_lease()
    office.sweep()
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}
    result = office.submit("Dana", given)
    assert not result.closed
    (said,) = result.errors.values()
    assert "SUP-1 is in the queue: the sweep returned it" in said
    assert "because the lease expired" in said
    assert "Nothing changed." in said
    assert "<" not in said
    assert _typed(office)["handoff_note"] == NOTE
    assert office.count("release_card") == 0
    assert office.kinds()[-1] == "release_rejected"


def test_a_task_that_somebody_else_took_while_the_form_was_open(office: Office) -> None:
    card = _claimed(office)
    office.press("Dana", card, "release")
    office.end_lease()
    office.sweep()
    _at(office, card, 3)
    office.press("Hana", card, "claim")
    result = office.submit("Dana", {"reason": "shift_ending"})
    assert result.errors.keys() == {"reason"}
    assert "Hana has SUP-1 until" in result.errors["reason"]
    assert "Nothing changed." in result.errors["reason"]
    assert office.task()["owner_id"] == office.id("Hana")


def test_a_task_that_was_released_from_another_device_while_the_form_was_open(office: Office) -> None:
    card = _claimed(office)
    seen = office.card(card)
    office.press("Dana", card, "release")
    assert office.submit("Dana", {"reason": "shift_ending"}).closed
    office.slack.press_stale(office.id("Dana"), seen, "task_release")
    office.hears("Dana", "already released it", "Nothing changed.")
    assert office.count("release_card") == 1


def test_a_task_that_was_only_renewed_while_the_form_was_open_says_that_it_is_still_yours(
    office: Office,
) -> None:
    card = _claimed(office)
    office.press("Dana", card, "release")
    office.press("Dana", card, "renew")
    result = office.submit("Dana", {"reason": "shift_ending"})
    (said,) = result.errors.values()
    assert "SUP-1 is yours, claimed until" in said
    assert "Nothing changed." in said
    assert "Use the current card." in said


def test_the_reasons_are_the_queues_own_as_they_stand_at_the_write(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET reasons = ARRAY['Waiting for the bank', 'shift_ending']")
    card = _claimed(office)
    office.press("Dana", card, "release")
    reason = next(b for b in office.opened("Dana")["blocks"] if b.get("block_id") == "reason")
    assert [option["value"] for option in reason["element"]["options"]] == [
        "Waiting for the bank",
        "shift_ending",
    ]
    office.execute("UPDATE dibs.queue SET reasons = ARRAY['Waiting for the bank']")
    result = office.submit("Dana", {"reason": "shift_ending", "comment": "Until Monday."})
    assert "This reason is not in the queue's list any more." in result.errors["reason"]
    assert _typed(office)["comment"] == "Until Monday."
    assert office.task()["state"] == "claimed"
    assert office.submit("Dana", {"reason": "Waiting for the bank"}).closed
    office.shows(card, "*Handed back*", "Waiting for the bank")
    assert office.count("release_card", reason="Waiting for the bank") == 1


def test_a_done_task_is_not_released(office: Office) -> None:
    card = _started(office)
    office.press("Dana", card, "release")
    office.execute("UPDATE dibs.task SET state = 'done', lease_until = NULL, version = version + 1")
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}
    (said,) = office.submit("Dana", given).errors.values()
    assert "SUP-1 is done, finished by Dana. Nothing changed." in said
    assert office.count("release_card") == 0
