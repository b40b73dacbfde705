"""Every button and every form, by those who may press it and by those who may not."""

from __future__ import annotations

import pytest
from tests.support.bot import Office
from tests.support.ways import at_version, claimed, started, with_open_action

CLAIMED = ["start", "renew", "release", "note", "history"]
STARTED = ["done", "renew", "release", "note", "record_action", "history"]


def test_the_buttons_are_those_that_the_state_allows(office: Office) -> None:
    card = office.add_task()
    assert office.buttons(card) == ["claim", "history"]
    office.press("Amal", card, "claim")
    at_version(office, card, 2)
    assert office.buttons(card) == CLAIMED
    office.press("Amal", card, "start")
    at_version(office, card, 3)
    assert office.buttons(card) == STARTED
    office.press("Amal", card, "record_action")
    assert office.submit("Amal", {"description": "refund"}).closed
    at_version(office, card, 4)
    assert office.buttons(card) == [*STARTED[:-1], "resolve_action", "history"]
    office.end_lease()
    office.sweep()
    at_version(office, card, 5)
    assert office.buttons(card) == ["claim", "check", "history"]
    office.press("Bilal", card, "claim")
    at_version(office, card, 6)
    assert office.buttons(card) == [*CLAIMED[:-1], "check", "history"]
    office.press("Bilal", card, "start")
    (action,) = office.rows("SELECT id FROM dibs.external_action")
    checked = {f"answer_{action['id']}": "completed", "finding": "The bank has it."}
    assert office.submit("Bilal", checked).closed
    at_version(office, card, 7)
    assert office.buttons(card) == STARTED
    office.press("Bilal", card, "done")
    assert office.submit("Bilal").closed
    at_version(office, card, 8)
    assert office.buttons(card) == ["history"]


def test_renew_gives_a_new_lease(office: Office) -> None:
    card = claimed(office, "Amal")
    office.execute("UPDATE dibs.task SET lease_until = clock_timestamp() + interval '1 minute'")
    office.press("Amal", card, "renew")
    office.hears("Amal", "*SUP-1* stays yours until")
    (left,) = office.rows(
        "SELECT extract(epoch FROM lease_until - clock_timestamp()) AS seconds FROM dibs.task"
    )
    assert 29 * 60 < left["seconds"] <= 30 * 60
    assert (office.task()["version"], office.kinds()[-1]) == (3, "renewed")


@pytest.mark.parametrize("button", ["renew", "start"])
def test_a_lease_that_has_ended_is_neither_renewed_nor_started_on(office: Office, button: str) -> None:
    card = claimed(office, "Amal")
    office.end_lease()
    office.press("Amal", card, button)
    office.hears(
        "Amal", "Your lease on *SUP-1* has ended", "returns to the queue shortly", "Nothing changed."
    )
    assert office.kinds()[-1] == f"{button}_rejected"
    assert office.task()["version"] == 2


def test_a_claim_on_a_lease_that_has_ended_and_is_not_swept_yet_hears_just_that(office: Office) -> None:
    card = office.add_task()
    before = office.card(card)
    office.press("Amal", card, "claim")
    office.end_lease()
    office.slack.press_stale(office.id("Bilal"), before, "task_claim")
    told = office.hears("Bilal", "The lease on *SUP-1* has ended, and it returns to the queue shortly.")
    assert "Amal" not in told
    office.sweep()
    at_version(office, card, 3)
    office.press("Bilal", card, "claim")
    office.hears("Bilal", "*SUP-1* is yours")


@pytest.mark.parametrize("resolution", [None, "Refunded by bank transfer."])
def test_done(office: Office, resolution: str | None) -> None:
    card = started(office, "Amal")
    office.press("Amal", card, "done")
    assert office.submit("Amal", {"resolution": resolution} if resolution else {}).closed
    office.hears("Amal", "*SUP-1* is done.")
    office.shows(card, f"*Done* by <@{office.id('Amal')}>", *([resolution] if resolution else []))
    task = office.task()
    assert (task["state"], task["version"], task["resolution"]) == ("done", 4, resolution)


def test_done_stands_after_the_lease_has_lapsed_while_nobody_else_has_the_task(office: Office) -> None:
    card = started(office, "Amal")
    office.end_lease()
    office.press("Amal", card, "done")
    assert office.submit("Amal").closed
    assert office.task()["state"] == "done"


def test_done_with_an_open_action_is_refused_in_the_form_and_what_was_typed_stays(office: Office) -> None:
    card = with_open_action(office)
    office.press("Amal", card, "done")
    form = str(office.opened("Amal")["blocks"])
    assert "SUP-1-A1" in form
    assert "press “How did it end?” on the card" in form
    result = office.submit("Amal", {"resolution": "Refunded."})
    assert not result.closed
    assert result.errors.keys() == {"resolution"}
    assert (
        "It is not known yet how an external action ended on SUP-1: SUP-1-A1." in result.errors["resolution"]
    )
    assert "Nothing changed." in result.errors["resolution"]
    assert office.opened("Amal")["state"]["values"]["resolution"]["resolution"]["value"] == "Refunded."
    assert office.kinds()[-1] == "done_rejected"

    office.slack.close_view(office.id("Amal"))
    office.press("Amal", card, "resolve_action")
    assert office.submit("Amal", {"status": "completed"}).closed
    office.hears("Amal", "Saved on *SUP-1*.")
    at_version(office, card, 5)
    assert "resolve_action" not in office.buttons(card)
    office.press("Amal", card, "done")
    assert "How did it end?" not in str(office.opened("Amal")["blocks"])
    assert office.submit("Amal", {"resolution": "Refunded."}).closed
    assert office.kinds()[-2:] == ["action_resolved", "done"]


def test_several_actions_are_told_apart(office: Office) -> None:
    card = with_open_action(office)
    office.press("Amal", card, "record_action")
    assert office.submit("Amal", {"description": "mail to the customer"}).closed
    at_version(office, card, 5)
    first, second = [row["id"] for row in office.rows("SELECT id FROM dibs.external_action ORDER BY number")]
    office.press("Amal", card, "resolve_action")
    # Neither of two is preselected.
    assert office.submit("Amal", {"status": "unknown"}).errors.keys() == {"external_action"}
    assert office.submit("Amal", {"external_action": str(second), "status": "unknown"}).closed
    statuses = office.rows("SELECT id, status FROM dibs.external_action ORDER BY number")
    assert [(row["id"], row["status"]) for row in statuses] == [(first, "in_progress"), (second, "unknown")]


def test_a_note_is_saved_and_shown_to_whoever_writes_the_next(office: Office) -> None:
    card = claimed(office, "Amal")
    office.press("Amal", card, "note")
    assert office.submit("Amal", {"text": "Called <!channel> & waited"}).closed
    office.hears("Amal", "Your working note on *SUP-1* is saved.")
    at_version(office, card, 3)
    office.press("Amal", card, "note")
    assert "Called &lt;!channel&gt; &amp; waited" in str(office.opened("Amal")["blocks"])
    # It is for the team: it is no part of what the customer is told, nor of the card.
    assert "waited" not in str(office.card(card))
    assert office.task()["resolution"] is None


BUTTONS = ("start", "renew", "done", "release", "note", "record_action", "resolve_action")


@pytest.mark.parametrize("button", BUTTONS)
def test_who_is_not_the_owner_is_refused_at_once(office: Office, button: str) -> None:
    card = (
        claimed(office, "Amal")
        if button == "start"
        else with_open_action(office)
        if button == "resolve_action"
        else started(office, "Amal")
    )
    before = office.task()
    office.press("Bilal", card, button)
    told = office.hears("Bilal", f"<@{office.id('Amal')}> has *SUP-1*", "Nothing changed.")
    assert office.heard("Bilal") == [told]
    assert office.slack.views(office.id("Bilal")) == []
    assert office.task() == before
    (rejected,) = office.rows(f"SELECT * FROM dibs.event WHERE kind = '{button}_rejected'")  # noqa: S608
    assert (rejected["actor_id"], rejected["version_seen"], rejected["why"]) == (
        office.id("Bilal"),
        before["version"],
        "held",
    )


@pytest.mark.parametrize("button", BUTTONS)
def test_a_button_of_an_older_card_is_refused_and_the_card_redrawn(office: Office, button: str) -> None:
    card = (
        claimed(office, "Amal")
        if button == "start"
        else with_open_action(office)
        if button == "resolve_action"
        else started(office, "Amal")
    )
    older = office.card(card)
    office.end_lease()
    # The sweep returns the task, and nobody has redrawn its card yet.
    office.bot.sweep.sweep_once()
    assert "owner" in office.card(card)["text"]
    office.slack.press_stale(office.id("Amal"), older, f"task_{button}")
    office.hears(
        "Amal",
        "*SUP-1* is in the queue: the sweep returned it",
        "because the lease expired",
        "Nothing changed.",
    )
    office.shows(card, "Returned to the queue")
    assert office.slack.views(office.id("Amal")) == []
    assert office.kinds()[-1] == f"{button}_rejected"


def test_a_late_press_on_finished_work_leaves_it_finished(office: Office) -> None:
    card = started(office, "Amal")
    older = office.card(card)
    office.press("Amal", card, "done")
    office.submit("Amal")
    at_version(office, card, 4)
    for number, button in enumerate(("done", "renew", "release", "note"), 1):
        office.slack.press_stale(office.id("Amal"), older, f"task_{button}")
        office.wait(lambda number=number: len(office.heard("Amal")) == number + 3)  # type: ignore[misc]
        assert (
            f"*SUP-1* is done, finished by <@{office.id('Amal')}>. Nothing changed."
            in office.heard("Amal")[-1]
        )
    assert office.task()["version"] == 4


# --- the check


def test_history_stands_on_every_card_and_names_everybody(office: Office) -> None:
    card = started(office, "Amal")
    office.press("Bilal", card, "renew")
    office.press("Bilal", card, "history")
    shown = str(office.opened("Bilal")["blocks"])
    for words in (
        f"<@{office.id('Sue')}> added",
        f"<@{office.id('Amal')}> claimed",
        f"<@{office.id('Amal')}> started",
        f"<@{office.id('Bilal')}> tried to renew, which changed nothing: somebody else had it",
    ):
        assert words in shown
    assert office.opened("Bilal")["submit"] is None
    for state in ("queued", "done"):
        office.slack.close_view(office.id("Bilal"))
        if state == "queued":
            office.end_lease()
            office.sweep()
            at_version(office, card, 4)
        else:
            office.press("Amal", card, "claim")
            at_version(office, card, 5)
            office.press("Amal", card, "start")
            office.submit("Amal", {"finding": "x"})
            at_version(office, card, 6)
            office.press("Amal", card, "done")
            office.submit("Amal")
            at_version(office, card, 7)
        office.press("Bilal", card, "history")
        assert office.opened("Bilal")["title"]["text"] == "History of SUP-1"


def test_a_long_history_says_that_it_is_not_all(office: Office) -> None:
    card = claimed(office, "Amal")
    for _ in range(45):
        office.press("Amal", card, "renew")
        version = office.task()["version"]
        at_version(office, card, version)
    office.press("Bilal", card, "history")
    assert "Only the newest 40 are shown." in str(office.opened("Bilal")["blocks"])


@pytest.mark.parametrize("fault", ["expired_trigger_id", "silence", "http"])
def test_a_window_that_does_not_open_changes_nothing_and_says_press_again(office: Office, fault: str) -> None:
    card = claimed(office, "Amal")
    if fault == "silence":
        office.slack.faults.fail_next("views.open", silence=True)
    elif fault == "http":
        office.slack.faults.fail_next("views.open", http_status=503)
    else:
        office.slack.faults.fail_next("views.open", error=fault)
    result = office.press("Amal", card, "release")
    assert (result.status, result.seconds < 3) == (200, True)
    office.hears("Amal", "Slack did not open the window in time. Nothing changed. Please press again.")
    assert office.task()["version"] == 2
    office.press("Amal", card, "release")
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    assert office.task()["state"] == "queued"
