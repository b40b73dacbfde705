"""/release: from wherever one is, for the task that was named, or for one's own."""

from __future__ import annotations

import pytest
from tests.support.bodies import interaction, submission
from tests.support.bot import Office
from tests.support.ways import at_version, claimed, started

NOTE = "The bank still has to confirm."


def _views(office: Office, name: str) -> int:
    return len(office.slack.views(office.id(name)))


@pytest.mark.parametrize("typed", ["SUP-1", "sup-1", "  `Sup-1`, please", "#SUP-1", "“sup\u20111”: I go"])
def test_a_task_that_is_named_opens_its_form(office: Office, typed: str) -> None:
    card = started(office, "Dana")
    assert office.type("Dana", typed, "/release") == ""
    view = office.opened("Dana")
    assert (view["callback_id"], view["title"]["text"]) == ("release", "Release SUP-1")
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}
    assert office.submit("Dana", given).closed
    office.hears("Dana", "You have handed back *SUP-1*.")
    office.shows(card, NOTE)
    assert office.count("release_card", handoff_note=NOTE) == 1


def test_dibs_release_does_the_same(office: Office) -> None:
    claimed(office, "Dana")
    assert office.type("Dana", "release SUP-1", "/dibs") == ""
    assert office.opened("Dana")["callback_id"] == "release"


def test_without_a_name_the_only_task_of_mine_opens_at_once(office: Office) -> None:
    claimed(office, "Hana", "Hers")
    claimed(office, "Dana", "Mine")
    assert office.type("Dana", "", "/release") == ""
    assert office.opened("Dana")["title"]["text"] == "Release SUP-2"


def test_without_a_name_one_of_several_is_chosen_with_one_press(office: Office) -> None:
    claimed(office, "Dana", "The first")
    second = started(office, "Dana", "The second")
    claimed(office, "Hana", "Hers")
    assert "Which task do you hand back?" in office.type("Dana", "", "/release")
    choice = office.slack.ephemerals(office.id("Dana"))[-1]
    buttons = [block["accessory"] for block in choice["blocks"] if "accessory" in block]
    assert [button["accessibility_label"] for button in buttons] == ["Release SUP-1", "Release SUP-2"]
    assert "Hers" not in str(choice)

    block = choice["blocks"][2]["block_id"]
    office.slack.press(office.id("Dana"), office.channel.id, choice["ts"], "task_release", block_id=block)
    assert office.opened("Dana")["title"]["text"] == "Release SUP-2"
    given = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}
    assert office.submit("Dana", given).closed
    said = office.hears("Dana", "You have handed back *SUP-2*.")
    assert choice["ts"].replace(".", "") not in said
    office.shows(second, NOTE)


def test_without_a_name_and_without_a_task_it_says_so(office: Office) -> None:
    claimed(office, "Hana")
    said = office.type("Dana", "", "/release")
    assert "You hold no task, so there is nothing to hand back. Nothing changed." in said
    assert "`/queue list`" in said
    assert "`/dibs queue list`" in office.type("Dana", "release", "/dibs")
    assert _views(office, "Dana") == 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("SUP-99", "There is no task *SUP-99*. Nothing changed."),
        ("NO-1", "There is no task *NO-1*. Nothing changed."),
        ("SUP-9999999999", "There is no task *SUP-9999999999*. Nothing changed."),
        ("SUP-0", "There is no task *SUP-0*. Nothing changed."),
        ("12", "“12” is not the name of a task. Nothing changed. Type `/release SUP-12`"),
        ("<b>&1", "“&lt;b&gt;&amp;1” is not the name of a task. Nothing changed."),
        ("*", "“*” is not the name of a task. Nothing changed."),
    ],
)
def test_a_name_that_is_none_is_answered_and_recorded_nowhere(office: Office, typed: str, said: str) -> None:
    claimed(office, "Dana")
    assert said in office.type("Dana", typed, "/release")
    assert _views(office, "Dana") == 0
    assert office.count("event", kind="release_rejected") == 0


def test_of_two_names_none_is_taken_for_both(office: Office) -> None:
    claimed(office, "Dana", "The first")
    claimed(office, "Dana", "The second")
    said = office.type("Dana", "SUP-2 and SUP-1", "/release")
    assert "One task is handed back at a time, and you named *SUP-2* and *SUP-1*. Nothing changed." in said
    assert "Type `/release SUP-2` first." in said
    assert _views(office, "Dana") == 0
    assert office.type("Dana", "SUP-2, that is SUP-2", "/release") == ""


def test_somebody_elses_task_says_who_has_it_and_the_attempt_is_recorded(office: Office) -> None:
    card = claimed(office, "Hana")
    said = office.type("Dana", "SUP-1", "/release")
    assert f"<@{office.id('Hana')}> has *SUP-1* until" in said
    assert f"Newest change: <@{office.id('Hana')}> claimed," in said
    assert "Nothing changed." in said
    assert card.replace(".", "") in said
    assert _views(office, "Dana") == 0
    assert office.kinds() == ["created", "claimed", "release_rejected"]
    rejected = office.rows("SELECT * FROM dibs.event WHERE kind = 'release_rejected'")[0]
    assert (rejected["actor_id"], rejected["why"]) == (office.id("Dana"), "held")


def test_a_finished_task_says_by_whom_and_the_attempt_is_recorded(office: Office) -> None:
    card = started(office, "Dana")
    office.press("Dana", card, "done")
    assert office.submit("Dana", {}).closed
    said = office.type("Dana", "SUP-1", "/release")
    assert f"*SUP-1* is done, finished by <@{office.id('Dana')}>. Nothing changed." in said
    assert office.kinds()[-1] == "release_rejected"


def test_a_task_in_the_queue_says_how_it_came_there_and_the_attempt_is_recorded(office: Office) -> None:
    card = claimed(office, "Dana")
    office.type("Dana", "SUP-1", "/release")
    assert office.submit("Dana", {"reason": "shift_ending"}).closed
    said = office.type("Dana", "SUP-1", "/release")
    assert f"*SUP-1* is in the queue: <@{office.id('Dana')}> already released it" in said
    at_version(office, card, 3)
    office.press("Dana", card, "claim")
    office.end_lease()
    office.sweep()
    said = office.type("Dana", "SUP-1", "/release")
    assert "*SUP-1* is in the queue: the sweep returned it" in said
    assert "because the lease expired. Nothing changed." in said
    assert office.count("event", kind="release_rejected", why="not_held") == 2
    assert office.count("release_card") == 1


def test_a_form_without_the_question_that_has_become_due_asks_to_be_opened_again(office: Office) -> None:
    card = claimed(office, "Dana")
    office.press("Dana", card, "release")
    old = submission(office, "Dana", {"reason": "shift_ending", "handoff_note": NOTE})
    office.press("Dana", card, "start")
    # As if the form had named the newest version without having asked anew.
    old["view"]["private_metadata"] = old["view"]["private_metadata"].replace('"version":2', '"version":3')
    answer = office.slack.send_raw(interaction(old))
    assert "close the form and open it again" in answer.body
    assert "Nothing changed." in answer.body
    assert office.task()["state"] == "started"
    assert office.count("release_card") == 0


def test_a_window_that_does_not_open_changes_nothing_and_asks_to_type_again(office: Office) -> None:
    claimed(office, "Dana")
    office.slack.faults.fail_next("views.open", error="expired_trigger_id")
    said = office.type("Dana", "SUP-1", "/release")
    assert "Slack did not open the window in time. Nothing changed. Please type it again." in said
    assert office.kinds() == ["created", "claimed"]
    assert office.type("Dana", "SUP-1", "/release") == ""
