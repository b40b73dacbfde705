"""What supervisors do to somebody's task: only where the queue lets them, and never past the version."""

from __future__ import annotations

import pytest
from tests.support.bot import Office
from tests.support.ways import at_version, claimed, started

BUTTONS = ["supervise_transfer", "supervise_force_release"]
WHY = "She knows the bank."


def _allowed(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET supervisor_operations = true")


def _buttons(office: Office, name: str, card: str) -> list[str]:
    """The buttons in the history that a person opens."""
    office.press(name, card, "history")
    return [
        element["action_id"]
        for block in office.opened(name)["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def _press(office: Office, what: str, card: str, name: str = "Sue") -> None:
    office.press(name, card, "history")
    office.slack.press_in_view(office.id(name), f"supervise_{what}")


def test_the_buttons_are_there_for_supervisors_of_a_queue_that_allows_it_and_for_nobody_else(
    office: Office,
) -> None:
    card = claimed(office, "Hana")
    assert _buttons(office, "Sue", card) == []
    _allowed(office)
    assert _buttons(office, "Sue", card) == BUTTONS
    assert _buttons(office, "Dana", card) == []
    assert _buttons(office, "Hana", card) == []
    office.press("Hana", card, "release")
    assert office.submit("Hana", {"reason": "shift_ending"}).closed
    at_version(office, card, 3)
    assert _buttons(office, "Sue", card) == []


def test_a_transfer_makes_somebody_else_the_owner_and_both_hear(office: Office) -> None:
    _allowed(office)
    card = started(office, "Hana")
    _press(office, "transfer", card)
    view = office.opened("Sue")
    assert (view["callback_id"], view["title"]["text"]) == ("transfer", "Transfer SUP-1")
    assert f"<@{office.id('Hana')}> has it now." in str(view["blocks"])
    assert office.submit("Sue", {"new_owner": office.id("Marek"), "reason": WHY}).closed
    assert office.slack.views(office.id("Sue")) == []
    task = office.task()
    assert (task["state"], task["owner_id"], task["version"]) == ("claimed", office.id("Marek"), 4)
    assert (task["needs_check"], task["started_before"]) == (True, True)
    office.hears("Sue", f"*SUP-1* is now <@{office.id('Marek')}>'s", "Both owners are told.")
    office.shows(card, f"owner <@{office.id('Marek')}>", "Needs a check")
    assert office.count("outbox", kind="transferred_away", recipient=office.id("Hana")) == 1
    assert office.count("outbox", kind="transferred_to", recipient=office.id("Marek")) == 1
    office.press("Marek", card, "history")
    story = str(office.opened("Marek")["blocks"])
    for said in ("gave the task to somebody else, as a supervisor", WHY, f"It was <@{office.id('Hana')}>'s."):
        assert said in story


def test_a_forced_release_leaves_a_card_that_names_the_supervisor(office: Office) -> None:
    _allowed(office)
    card = started(office, "Hana")
    _press(office, "force_release", card)
    assert office.opened("Sue")["callback_id"] == "force_release"
    assert office.submit("Sue", {"reason": "other"}).errors.keys() == {"comment"}
    given = {"comment": "Hana is ill.", "handoff_note": "Ask Hana on Monday."}
    assert office.submit("Sue", given).closed
    assert office.slack.views(office.id("Sue")) == []
    (record,) = office.rows("SELECT * FROM dibs.release_card")
    assert (record["previous_owner"], record["forced_by"]) == (office.id("Hana"), office.id("Sue"))
    assert (record["comment"], record["handoff_note"]) == ("Hana is ill.", "Ask Hana on Monday.")
    task = office.task()
    assert (task["state"], task["owner_id"], task["needs_check"]) == ("queued", None, True)
    office.hears("Sue", "*SUP-1* is back in the queue.", "flagged", "Its former owner is told.")
    assert office.count("outbox", kind="force_released", recipient=office.id("Hana")) == 1
    office.shows(card, "Hana is ill.", "Ask Hana on Monday.", f"<@{office.id('Sue')}>")


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"reason": WHY}, "new_owner", "Choose who gets the task."),
        ({"new_owner": "Marek"}, "reason", "Say why, in a sentence."),
        ({"new_owner": "Hana", "reason": WHY}, "new_owner", "The person you chose has SUP-1 already."),
        ({"new_owner": "Guest", "reason": WHY}, "new_owner", "The person you chose may not claim"),
    ],
    ids=["no owner", "no reason", "the owner", "no member"],
)
def test_a_refused_transfer_stands_at_its_field_and_keeps_what_was_typed(
    office: Office, given: dict[str, str], field: str, said: str
) -> None:
    _allowed(office)
    guest = office.slack.add_person("Guest")
    card = claimed(office, "Hana")
    _press(office, "transfer", card)
    people = {"Marek": office.id("Marek"), "Hana": office.id("Hana"), "Guest": guest.id}
    values = {key: people.get(value, value) for key, value in given.items()}
    result = office.submit("Sue", values)
    assert result.errors.keys() == {field}
    if said.startswith("The person"):
        assert said in result.errors[field]
        assert "Nothing changed." in result.errors[field]
        assert office.kinds()[-1] == "transfer_rejected"
        office.press("Dana", card, "history")
        story = str(office.opened("Dana")["blocks"])
        assert "tried to transfer, which changed nothing" in story
        assert f"It was to be <@{values['new_owner']}>'s." in story
    assert office.task()["owner_id"] == office.id("Hana")
    kept = office.opened("Sue")["state"]["values"]
    assert kept["reason"]["reason"]["value"] == given.get("reason")


@pytest.mark.parametrize("what", ["transfer", "force_release"])
def test_a_task_that_changed_meanwhile_is_left_as_it_is(office: Office, what: str) -> None:
    _allowed(office)
    card = claimed(office, "Hana")
    _press(office, what, card)
    office.press("Hana", card, "start")
    given = {"new_owner": office.id("Marek"), "reason": WHY if what == "transfer" else "shift_ending"}
    if what == "force_release":
        given.pop("new_owner")
    (said,) = office.submit("Sue", given).errors.values()
    assert "Hana has SUP-1 and has started; the lease lasts until" in said
    assert "Newest change: Hana started," in said
    assert "Nothing changed." in said
    assert (office.task()["owner_id"], office.task()["version"]) == (office.id("Hana"), 3)
    assert office.kinds()[-1] == f"{what}_rejected"


@pytest.mark.parametrize("what", ["transfer", "force_release"])
def test_an_old_history_says_over_itself_that_it_is_out_of_date(office: Office, what: str) -> None:
    _allowed(office)
    card = claimed(office, "Hana")
    office.press("Sue", card, "history")
    office.press("Hana", card, "release")
    assert office.submit("Hana", {"reason": "shift_ending"}).closed
    office.slack.press_in_view(office.id("Sue"), f"supervise_{what}")
    view = office.opened("Sue")
    assert not view["submit"]
    assert "*SUP-1* is in the queue" in str(view["blocks"])
    assert "Nothing changed." in str(view["blocks"])
    assert office.kinds()[-1] == f"{what}_rejected"


def test_who_is_no_supervisor_any_more_is_refused_by_the_write_itself(office: Office) -> None:
    _allowed(office)
    _press(office, "transfer", claimed(office, "Hana"))
    office.execute("UPDATE dibs.queue_member SET supervisor = false")
    (said,) = office.submit("Sue", {"new_owner": office.id("Marek"), "reason": WHY}).errors.values()
    assert "Only a supervisor of its queue may do this to SUP-1. Nothing changed." in said
    assert office.task()["owner_id"] == office.id("Hana")


def test_a_window_that_does_not_open_changes_nothing_and_says_press_again(office: Office) -> None:
    _allowed(office)
    card = claimed(office, "Hana")
    office.slack.faults.fail_next("views.push", error="expired_trigger_id")
    _press(office, "transfer", card)
    office.hears("Sue", "Slack did not open the window in time. Nothing changed. Please press again.")
    assert office.opened("Sue")["callback_id"] == "history"
    assert office.kinds() == ["created", "claimed"]


def test_a_new_owner_who_cannot_be_looked_up_is_refused_for_just_that(office: Office) -> None:
    _allowed(office)
    guest = office.slack.add_person("Guest")
    _press(office, "transfer", claimed(office, "Hana"))
    office.slack.faults.fail_next("conversations.members", error="internal_error")
    result = office.submit("Sue", {"new_owner": guest.id, "reason": WHY})
    said = result.errors["new_owner"]
    assert "could not look up in Slack whether the person you chose may claim SUP-1. Nothing changed." in said
    assert office.count("event", kind="transfer_rejected", why="membership_unknown") == 1
    assert office.task()["owner_id"] == office.id("Hana")


def test_a_newcomer_gets_the_task_once_they_have_joined(office: Office) -> None:
    _allowed(office)
    guest = office.slack.add_person("Guest")
    office.slack.join(guest.id, office.channel.id)
    _press(office, "transfer", claimed(office, "Hana"))
    assert office.submit("Sue", {"new_owner": guest.id, "reason": WHY}).closed
    assert office.task()["owner_id"] == guest.id
