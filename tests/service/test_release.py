"""What a release asks for, what it leaves behind, and that it stands or falls whole."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.journey import (
    action_statuses,
    add_action,
    count_events,
    events_of,
    lapse,
    newest_event,
    now,
    place,
    whole_row,
)
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.domain.outcomes import Refusal
from dibs.domain.task import ActionStatus, State
from dibs.service.releases import UNRECORDED_ACTION
from dibs.service.transitions import TransitionService

C, S = State.CLAIMED, State.STARTED
GIVEN: dict[str, Any] = {
    "reason": "shift_ending",
    "handoff_note": "half done",
    "external_action": "completed",
}


@pytest.mark.parametrize(
    ("state", "action_open", "change", "why"),
    [
        (C, False, {}, None),
        (C, False, {"handoff_note": None, "external_action": None}, None),
        (C, False, {"external_action": "none"}, None),
        (C, True, {"handoff_note": None}, None),
        (C, True, {"external_action": None}, Refusal.ACTION_UNSTATED),
        (C, True, {"external_action": "none"}, Refusal.ACTION_UNSTATED),
        (S, False, {}, None),
        (S, False, {"external_action": "none"}, None),
        (S, False, {"external_action": "not_completed"}, None),
        (S, False, {"external_action": "unknown"}, None),
        (S, False, {"external_action": None}, Refusal.ACTION_UNSTATED),
        (S, False, {"external_action": "perhaps"}, Refusal.ACTION_UNSTATED),
        (S, True, {"external_action": "none"}, Refusal.ACTION_UNSTATED),
        (S, True, {"external_action": "unknown"}, None),
        (S, False, {"handoff_note": None}, Refusal.HANDOFF_NOTE_MISSING),
        (S, False, {"handoff_note": "\0 \n"}, Refusal.HANDOFF_NOTE_MISSING),
        (C, False, {"reason": None}, Refusal.REASON_MISSING),
        (C, False, {"reason": ""}, Refusal.REASON_MISSING),
        (C, False, {"reason": "bored"}, Refusal.REASON_MISSING),
        (C, False, {"reason": "other"}, Refusal.COMMENT_MISSING),
        (C, False, {"reason": "other", "comment": "  "}, Refusal.COMMENT_MISSING),
        (C, False, {"reason": "other", "comment": "a fire drill"}, None),
    ],
)
def test_each_precondition_accepts_and_refuses(
    desk: Desk,
    service: TransitionService,
    state: State,
    action_open: bool,  # noqa: FBT001 - a column of the table
    change: dict[str, Any],
    why: Refusal | None,
) -> None:
    task = place(desk, state)
    if action_open:
        add_action(desk, task)
    before = whole_row(desk, task)

    outcome = service.release(task.id, AMAL, task.version, **{**GIVEN, **change})

    assert outcome.why == why
    assert outcome.changed is (why is None)
    assert (whole_row(desk, task) == before) is (why is not None)
    assert desk.value("SELECT count(*) FROM dibs.release_card") == int(why is None)
    event = newest_event(desk, task)
    assert (event["kind"], event["why"]) == ("release_rejected" if why else "released", why)
    named = {action.status for action in outcome.actions}
    assert named == ({ActionStatus.IN_PROGRESS} if why is Refusal.ACTION_UNSTATED and action_open else set())


def test_a_queue_has_its_own_reasons(desk: Desk, service: TransitionService) -> None:
    task = place(desk, C)
    desk.execute("UPDATE dibs.queue SET reasons = ARRAY['Waits for the bank', 'other']")
    refused = service.release(task.id, AMAL, task.version, reason="out_of_scope")
    assert refused.why is Refusal.REASON_MISSING
    assert service.release(task.id, AMAL, task.version, reason="other").why is Refusal.COMMENT_MISSING
    assert service.release(task.id, AMAL, task.version, reason="Waits for the bank").changed
    assert desk.value("SELECT reason FROM dibs.release_card") == "Waits for the bank"


@pytest.mark.parametrize("answer", ["completed", "not_completed", "unknown"])
def test_the_answer_goes_to_every_open_action_and_to_no_other(
    desk: Desk, service: TransitionService, answer: str
) -> None:
    task = place(desk, State.STARTED)
    add_action(desk, task, ActionStatus.NOT_COMPLETED)
    add_action(desk, task, ActionStatus.IN_PROGRESS)
    add_action(desk, task, ActionStatus.UNKNOWN)
    elsewhere = place(desk, State.STARTED)
    add_action(desk, elsewhere)
    outcome = service.release(task.id, AMAL, task.version, **{**GIVEN, "external_action": answer})
    assert outcome.changed
    assert action_statuses(desk, task) == ["not_completed", answer, answer]
    assert action_statuses(desk, elsewhere) == ["in_progress"]
    assert now(desk, task).needs_check is (answer == "unknown")


@pytest.mark.parametrize("answer", ["none", "completed", "not_completed", "unknown"])
def test_an_action_that_was_never_recorded_is_recorded_by_the_answer(
    desk: Desk, service: TransitionService, answer: str
) -> None:
    task = place(desk, State.STARTED)
    assert service.release(task.id, AMAL, task.version, **{**GIVEN, "external_action": answer}).changed
    assert action_statuses(desk, task) == ([] if answer == "none" else [answer])
    descriptions = desk.rows("SELECT description FROM dibs.external_action")
    assert all(row["description"] == UNRECORDED_ACTION for row in descriptions)


def test_a_release_after_the_lease_lapsed_stands(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED, lapsed=True)
    released = service.release(task.id, AMAL, task.version, reason="shift_ending").task
    assert released is not None
    assert (released.state, released.owner_id, released.lease_until) == (State.QUEUED, None, None)


@pytest.mark.parametrize(
    ("table", "columns"),
    [("release_card", "reason <> 'shift_ending'"), ("event", "kind <> 'released'")],
)
def test_a_release_whose_card_or_event_is_refused_rolls_back_whole(
    desk: Desk, service: TransitionService, table: str, columns: str
) -> None:
    task = place(desk, State.STARTED)
    add_action(desk, task)
    desk.execute(f"ALTER TABLE dibs.{table} ADD CONSTRAINT audit_is_broken CHECK ({columns}) NOT VALID")
    before, events = whole_row(desk, task), count_events(desk, task)

    outcome = service.release(task.id, AMAL, task.version, op_id="broken", **GIVEN)

    assert (outcome.unchanged, outcome.why) == (True, Refusal.DATABASE_REFUSED)
    assert whole_row(desk, task) == before
    assert (count_events(desk, task), events_of(desk, "broken")) == (events + 1, ["release_rejected"])
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 0
    assert action_statuses(desk, task) == ["in_progress"]

    desk.execute(f"ALTER TABLE dibs.{table} DROP CONSTRAINT audit_is_broken")
    desk.execute("UPDATE dibs.breaker SET releases_paused_since = NULL, releases_paused_why = NULL")
    again = service.release(task.id, AMAL, task.version, op_id="broken", **GIVEN)
    assert (again.why, again.replayed, again.releases_paused) == (Refusal.DATABASE_REFUSED, True, True)
    assert service.release(task.id, AMAL, task.version, op_id="mended", **GIVEN).changed


def test_a_release_refused_by_a_trigger_rolls_back_whole(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    desk.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk full'; END $$"
    )
    desk.execute("CREATE TRIGGER no_room BEFORE INSERT ON dibs.release_card EXECUTE FUNCTION refuse()")
    before = whole_row(desk, task)
    outcome = service.release(task.id, AMAL, task.version, reason="shift_ending", op_id="full")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.DATABASE_REFUSED)
    assert (whole_row(desk, task), events_of(desk, "full")) == (before, ["release_rejected"])


@pytest.mark.parametrize("state", [State.CLAIMED, State.STARTED])
def test_a_statement_on_the_external_action_that_cannot_be_read_is_none(
    desk: Desk, service: TransitionService, state: State
) -> None:
    task = place(desk, state)
    outcome = service.release(
        task.id,
        AMAL,
        task.version,
        reason="shift_ending",
        handoff_note="half done",
        external_action="perhaps",
        op_id="op",
    )
    assert (outcome.unchanged, outcome.why) == (True, Refusal.ACTION_UNSTATED)
    assert events_of(desk, "op") == ["release_rejected"]


# --- the flags


def test_needs_check_stays_until_a_check(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.QUEUED, needs_check=True)
    assert service.claim(task.id, BILAL, task.version).changed
    assert service.renew(task.id, BILAL, task.version + 1).changed
    assert service.note(task.id, BILAL, task.version + 2, "reading the history").changed
    assert service.start(task.id, BILAL, task.version + 3).why is Refusal.NEEDS_CHECK
    assert service.release(
        task.id, BILAL, task.version + 3, reason="shift_ending", external_action="none"
    ).changed
    assert service.claim(task.id, AMAL, task.version + 4).changed
    back = lapse(desk, task)
    assert (back.needs_check, back.version) == (True, task.version + 6)
    checked = service.check(task.id, SUE, back.version, finding="nothing went out").task
    assert checked is not None
    assert (checked.state, checked.needs_check, checked.version) == (State.QUEUED, False, back.version + 1)


def test_a_check_needs_an_answer_for_each_open_action(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED, needs_check=True)
    first, second = add_action(desk, task), add_action(desk, task, ActionStatus.UNKNOWN)
    foreign = add_action(desk, place(desk, State.STARTED))
    done, no = ActionStatus.COMPLETED, ActionStatus.NOT_COMPLETED
    for answers in (
        {},
        {first: done},
        {first: done, foreign: done},
        {first: done, second: ActionStatus.UNKNOWN},
    ):
        outcome = service.check(task.id, AMAL, task.version, answers=answers)
        assert outcome.why is Refusal.ANSWERS_MISSING
        assert [action.id for action in outcome.actions] == [first, second]
        assert service.start(task.id, AMAL, task.version, confirmed=True, answers=answers).why is (
            Refusal.ANSWERS_MISSING
        )
    assert service.check(
        task.id, AMAL, task.version, answers={first: done, second: no, foreign: done}
    ).changed
    assert action_statuses(desk, task) == ["completed", "not_completed"]
    assert desk.value("SELECT status FROM dibs.external_action WHERE id = :id", id=foreign) == "in_progress"


def test_start_with_a_confirmed_check_is_one_version_and_one_event(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED, needs_check=True)
    action = add_action(desk, task, ActionStatus.UNKNOWN)
    events = count_events(desk, task)
    started = service.start(
        task.id,
        AMAL,
        task.version,
        answers={action: ActionStatus.NOT_COMPLETED},
        finding="The bank has no such payment.",
    ).task
    assert started is not None
    assert (started.state, started.needs_check, started.version) == (State.STARTED, False, task.version + 1)
    assert count_events(desk, task) == events + 1
    event = newest_event(desk, task)
    assert (event["kind"], event["detail"], event["private_text"]) == (
        "started",
        {"answers": {str(action): "not_completed"}},
        "The bank has no such payment.",
    )
    assert action_statuses(desk, task) == ["not_completed"]


def test_a_check_of_a_task_that_is_not_flagged_is_refused(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    assert service.check(task.id, AMAL, task.version).why is Refusal.NOT_FLAGGED


@pytest.mark.parametrize(
    ("checked_since", "flagged"), [(False, True), (True, False)], ids=["unchecked", "checked"]
)
def test_an_expiry_flags_what_was_recorded_since_the_last_check(
    desk: Desk,
    service: TransitionService,
    checked_since: bool,  # noqa: FBT001 - a column of the table
    flagged: bool,  # noqa: FBT001 - a column of the table
) -> None:
    task = place(desk, State.CLAIMED)
    service.release(task.id, AMAL, task.version, reason="shift_ending", external_action="completed")
    version = task.version + 1
    if checked_since:
        desk.execute("UPDATE dibs.task SET needs_check = true")
        assert service.check(task.id, SUE, version).changed
        version += 1
    assert service.claim(task.id, BILAL, version).changed
    assert lapse(desk, task).needs_check is flagged


# --- done, actions, commit


@pytest.mark.parametrize("status", [ActionStatus.IN_PROGRESS, ActionStatus.UNKNOWN])
def test_done_is_refused_while_an_action_is_open_and_names_it(
    desk: Desk, service: TransitionService, status: ActionStatus
) -> None:
    task = place(desk, State.STARTED)
    action = add_action(desk, task, status)
    outcome = service.done(task.id, AMAL, task.version)
    assert (outcome.why, [open_.id for open_ in outcome.actions]) == (Refusal.ACTION_OPEN, [action])
    assert service.resolve_action(task.id, AMAL, task.version, action, ActionStatus.UNKNOWN).changed
    assert service.done(task.id, AMAL, task.version + 1).why is Refusal.ACTION_OPEN
    assert service.resolve_action(task.id, AMAL, task.version + 1, action, ActionStatus.NOT_COMPLETED).changed
    assert service.done(task.id, AMAL, task.version + 2).changed


def test_a_settled_or_foreign_action_is_not_resolved(desk: Desk, service: TransitionService) -> None:
    task, other = place(desk, State.STARTED), place(desk, State.STARTED)
    settled, foreign = add_action(desk, task, ActionStatus.COMPLETED), add_action(desk, other)
    answer = ActionStatus.NOT_COMPLETED
    assert service.resolve_action(task.id, AMAL, task.version, settled, answer).why is Refusal.ACTION_SETTLED
    assert service.resolve_action(task.id, AMAL, task.version, foreign, answer).why is Refusal.NO_SUCH_ACTION
    assert action_statuses(desk, task) == ["completed"]
    assert action_statuses(desk, other) == ["in_progress"]


def test_actions_are_numbered_within_their_task(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.STARTED)
    for step, text in enumerate(("refund", "mail")):
        assert service.record_action(task.id, AMAL, task.version + step, text).changed
    rows = desk.rows("SELECT number, version, description, status FROM dibs.external_action ORDER BY id")
    assert [list(row.values()) for row in rows] == [
        [1, task.version + 1, "refund", "in_progress"],
        [2, task.version + 2, "mail", "in_progress"],
    ]


def test_commit_never_touches_the_requesters_deadline(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    desk.execute("UPDATE dibs.task SET deadline = '2030-01-02T09:00Z' WHERE id = :id", id=task.id)
    promised = now(desk, task).last_at
    committed = service.commit(task.id, AMAL, task.version, promised).task
    assert committed is not None
    assert committed.deadline is not None
    assert (committed.committed_to, committed.deadline.isoformat()) == (promised, "2030-01-02T09:00:00+00:00")


def test_a_commitment_without_a_time_zone_is_a_mistake_of_the_caller(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED)
    with pytest.raises(ValueError, match="time zone"):
        service.commit(task.id, AMAL, task.version, task.last_at.replace(tzinfo=None))
    assert now(desk, task).version == task.version
