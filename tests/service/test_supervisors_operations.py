"""What a supervisor may do with somebody else's task, and what stays behind of it."""

from __future__ import annotations

import pytest
from tests.support.journey import (
    action_statuses,
    add_action,
    count_events,
    events_of,
    newest_event,
    now,
    place,
    together,
    whole_row,
)
from tests.support.store import AMAL, BILAL, HANA, SUE, Desk

from dibs.deadline import Deadline
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import Standing, State
from dibs.domain.transitions import Operation
from dibs.service.transitions import TransitionService
from dibs.store.chain import stored_card_hash, stored_event_hash


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A queue whose supervisors may do it."""
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    return desk


def _told(desk: Desk) -> list[tuple[str, str]]:
    rows = desk.rows("SELECT kind, recipient FROM dibs.outbox ORDER BY kind, recipient")
    return [(row["kind"], row["recipient"]) for row in rows]


@pytest.mark.parametrize("standing", [*Standing, None])
def test_only_who_is_eligible_becomes_the_owner(
    desk: Desk, service: TransitionService, standing: Standing | None
) -> None:
    task = place(desk, State.CLAIMED)
    if standing:
        desk.admit("U0OTHER", standing)
    outcome = service.transfer(task.id, SUE, task.version, "U0OTHER", reason="her customer")
    if standing is Standing.ELIGIBLE:
        assert outcome.changed
        assert now(desk, task).owner_id == "U0OTHER"
    else:
        assert outcome.why is Refusal.NEW_OWNER_NOT_ELIGIBLE
        assert now(desk, task).owner_id == AMAL
        assert _told(desk) == []


@pytest.mark.parametrize(
    ("heir", "reason", "why"),
    [
        (AMAL, "her customer", Refusal.THEIRS_ALREADY),
        ("", "her customer", Refusal.NEW_OWNER_NOT_ELIGIBLE),
        (BILAL, None, Refusal.TEXT_MISSING),
        (BILAL, " \n", Refusal.TEXT_MISSING),
    ],
)
def test_a_transfer_that_lacks_something_changes_nothing(
    desk: Desk, service: TransitionService, heir: str, reason: str | None, why: Refusal
) -> None:
    task = place(desk, State.STARTED)
    before = whole_row(desk, task)
    assert service.transfer(task.id, SUE, task.version, heir, reason=reason).why is why
    assert whole_row(desk, task) == before
    event = newest_event(desk, task)
    assert (event["kind"], event["private_text"], event["content"]) == ("transfer_rejected", None, None)


def test_started_work_that_is_transferred_is_claimed_again_and_needs_a_check(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED, lapsed=True)
    add_action(desk, task)
    moved = service.transfer(task.id, SUE, task.version, BILAL, reason="his customer").task
    assert moved is not None
    assert (moved.state, moved.owner_id, moved.version) == (State.CLAIMED, BILAL, 8)
    assert (moved.needs_check, moved.started_before) == (True, True)
    assert moved.lease_until is not None
    assert (moved.lease_until - moved.last_at).total_seconds() == desk.queue.lease_seconds
    assert action_statuses(desk, task) == ["in_progress"]
    event = newest_event(desk, task)
    assert (event["kind"], event["actor_id"], event["private_text"]) == ("transferred", SUE, "his customer")
    assert "his customer" not in str(event["detail"])
    assert service.start(task.id, AMAL, 7).why is Refusal.HELD
    assert service.start(task.id, BILAL, 8).why is Refusal.NEEDS_CHECK


@pytest.mark.parametrize(("recorded", "flagged"), [(False, False), (True, True)])
def test_a_claimed_task_is_flagged_only_for_an_action(
    desk: Desk, service: TransitionService, *, recorded: bool, flagged: bool
) -> None:
    tasks = [place(desk, State.CLAIMED), place(desk, State.CLAIMED)]
    desk.execute("UPDATE dibs.task SET action_recorded = :recorded", recorded=recorded)
    assert service.transfer(tasks[0].id, SUE, 7, BILAL, reason="his customer").changed
    assert service.force_release(tasks[1].id, SUE, 7, reason="shift_ending").changed
    assert [now(desk, task).needs_check for task in tasks] == [flagged, flagged]
    assert [now(desk, task).started_before for task in tasks] == [False, False]


@pytest.mark.parametrize("operation", ["transfer", "force_release"])
def test_delivered_three_times_at_once_it_happens_and_is_told_once(
    desk: Desk, service: TransitionService, operation: str
) -> None:
    task = place(desk, State.STARTED)
    events = count_events(desk, task)

    def press() -> Outcome:
        if operation == "transfer":
            return service.transfer(task.id, SUE, 7, BILAL, reason="his customer", op_id="thrice")
        return service.force_release(task.id, SUE, 7, reason="shift_ending", op_id="thrice")

    outcomes = together([press] * 3)
    assert [outcome.changed for outcome in outcomes] == [True] * 3
    assert sorted(outcome.replayed for outcome in outcomes) == [False, True, True]
    assert count_events(desk, task) == events + 1
    assert now(desk, task).version == 8
    if operation == "transfer":
        assert _told(desk) == [("transferred_away", AMAL), ("transferred_to", BILAL)]
    else:
        assert _told(desk) == [("force_released", AMAL), ("needs_check", SUE)]


def test_a_forced_release_leaves_one_card_that_is_sealed_and_names_the_supervisor(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED)
    outcome = service.force_release(
        task.id, SUE, 7, reason="other", comment="She is ill.", handoff_note="ask her"
    )
    assert outcome.changed
    [card] = desk.rows(f"SELECT c.*, c.hash = {stored_card_hash('c')} AS fits FROM dibs.release_card c")  # noqa: S608 - our own words
    assert (card["previous_owner"], card["forced_by"], card["reason"]) == (AMAL, SUE, "other")
    assert (card["state_at_release"], card["version_before"], card["version_after"]) == ("started", 7, 8)
    assert (card["comment"], card["handoff_note"], card["external_action"]) == (
        "She is ill.",
        "ask her",
        None,
    )
    event = newest_event(desk, task)
    assert card["fits"]
    assert event["content"] == card["hash"]
    assert service.force_release(task.id, SUE, 7, reason="out_of_scope").why is Refusal.NOT_HELD
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 1


@pytest.mark.parametrize("supervisor_is_owner", [False, True])
def test_a_supervisor_who_owns_the_task_is_one_like_any_other(
    desk: Desk, service: TransitionService, *, supervisor_is_owner: bool
) -> None:
    desk.admit(SUE, supervisor=True)
    task = place(desk, State.STARTED, owner=SUE if supervisor_is_owner else AMAL)
    heir = HANA if supervisor_is_owner else SUE
    assert service.transfer(task.id, SUE, 7, heir, reason="the shift ends").changed
    assert now(desk, task).owner_id == heir
    assert service.transfer(task.id, AMAL, 8, AMAL, reason="mine").why is Refusal.NOT_A_SUPERVISOR


@pytest.mark.parametrize("settled_first", [True, False])
def test_a_lost_transfer_is_settled_for_good(
    desk: Desk, service: TransitionService, *, settled_first: bool
) -> None:
    task = place(desk, State.CLAIMED)
    lost = Outcome(Operation.TRANSFER, Verdict.UNKNOWN, "lost", actor_id=SUE)

    def settle() -> Outcome:
        return service.settle(lost, task_id=task.id, version=7, deadline=Deadline.after())

    def write() -> Outcome:
        return service.transfer(task.id, SUE, 7, BILAL, reason="his customer", op_id="lost")

    first, second = (settle, write) if settled_first else (write, settle)
    answers = first(), second()
    assert [answer.changed for answer in answers] == [not settled_first] * 2
    assert events_of(desk, "lost") == ["transfer_rejected" if settled_first else "transferred"]
    assert now(desk, task).owner_id == (AMAL if settled_first else BILAL)
    assert _told(desk) == ([] if settled_first else [("transferred_away", AMAL), ("transferred_to", BILAL)])


def test_twenty_presses_at_once_leave_one_unbroken_chain(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    presses = [
        press
        for _ in range(4)
        for press in (
            lambda: service.renew(task.id, AMAL, 2),
            lambda: service.note(task.id, AMAL, 2, "asked the bank"),
            lambda: service.claim(task.id, BILAL, 2),
            lambda: service.transfer(task.id, SUE, 2, BILAL, reason="his customer"),
            lambda: service.force_release(task.id, SUE, 2, reason="shift_ending"),
        )
    ]
    outcomes = together(presses)
    assert sum(outcome.changed for outcome in outcomes) == 1
    events = desk.rows(
        f"SELECT e.*, e.hash = {stored_event_hash('e')} AS fits FROM dibs.event e "  # noqa: S608 - our own words
        "WHERE e.task_id = :id ORDER BY e.id",
        id=task.id,
    )
    assert len(events) == 22
    assert all(event["fits"] for event in events)
    # Refusals name the head as it was when they had the task, and move nothing.
    heads = {0: None} | {event["version_after"]: event["hash"] for event in events if not event["why"]}
    assert [event["previous"] for event in events] == [heads[event["version_before"]] for event in events]
    assert desk.row_of(task)["head"] == heads[3]
