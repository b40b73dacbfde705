"""The worked examples of the three articles that Dibs was made from, with the versions that they name."""

from __future__ import annotations

import time

from tests.support.journey import add_action, guard_of, lapse, place, together, whole_row
from tests.support.store import AMAL, BILAL, DANA, HANA, MAREK, Desk

from dibs.domain.outcomes import Refusal
from dibs.domain.task import ActionStatus, State
from dibs.service.clock import ClockService
from dibs.service.queries import TaskQueries
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService


def _count(desk: Desk, *kinds: str) -> int:
    number: int = desk.value("SELECT count(*) FROM dibs.event WHERE kind = ANY(:kinds)", kinds=list(kinds))
    return number


# --- a claim and lease model


def test_the_worked_example_of_claim_and_lease(desk: Desk, service: TransitionService) -> None:
    t1 = desk.task("T1")
    amal = service.claim(t1.id, AMAL, 1)
    assert amal.changed
    assert amal.task is not None
    assert (amal.task.owner_id, amal.task.version) == (AMAL, 2)
    bilal = service.claim(t1.id, BILAL, 1)
    assert bilal.unchanged
    assert bilal.task is not None
    assert (bilal.why, bilal.task.owner_id, bilal.task.version) == (Refusal.HELD, AMAL, 2)
    started = service.start(t1.id, AMAL, 2)
    assert started.task is not None
    assert (started.task.state, started.task.version) == (State.STARTED, 3)

    t2 = desk.task("T2")
    assert service.claim(t2.id, AMAL, 1).changed
    assert service.start(t2.id, AMAL, 2).changed
    back = lapse(desk, t2)
    assert (back.state, back.owner_id, back.needs_check, back.version) == (State.QUEUED, None, True, 4)
    mine = service.claim(t2.id, BILAL, 4)
    assert mine.task is not None
    assert (mine.task.owner_id, mine.task.version) == (BILAL, 5)
    late = service.start(t2.id, AMAL, 2)
    assert late.unchanged
    assert late.task is not None
    assert (late.why, late.task.owner_id, late.task.version) == (Refusal.HELD, BILAL, 5)
    reviewed = TaskQueries(guard_of(desk)).history(t2.id, most=10)
    assert [event.kind for event in reviewed] == [
        "start_rejected",
        "claimed",
        "expired",
        "started",
        "claimed",
        "created",
    ]
    proceeds = service.start(t2.id, BILAL, 5, confirmed=True, finding="nothing was sent")
    assert proceeds.task is not None
    assert (proceeds.task.state, proceeds.task.needs_check, proceeds.task.version) == (
        State.STARTED,
        False,
        6,
    )

    # 2 tasks, 2 claim winners, 1 claim rejected, 1 lease expiry, 1 needs_check. The article's first claim
    # of T2 is how the example begins, so the claims are three, by two winners.
    assert desk.value("SELECT count(*) FROM dibs.task") == 2
    assert desk.value("SELECT count(DISTINCT actor_id) FROM dibs.event WHERE kind = 'claimed'") == 2
    assert _count(desk, "claim_rejected") == 1
    assert _count(desk, "expired") == 1
    assert _count(desk, "checked") == 0
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'started' AND detail IS NOT NULL") == 1


def test_two_simultaneous_claims_expect_one_owner(desk: Desk, service: TransitionService) -> None:
    for _ in range(20):
        task = desk.task()
        amal, bilal = together(
            [
                lambda task=task: service.claim(task.id, AMAL, 1),  # type: ignore[misc]
                lambda task=task: service.claim(task.id, BILAL, 1),  # type: ignore[misc]
            ]
        )
        winner, loser = (amal, bilal) if amal.changed else (bilal, amal)
        assert winner.changed
        assert loser.unchanged
        assert loser.why is Refusal.HELD
        assert loser.task is not None
        assert loser.task.owner_id == winner.actor_id == desk.row_of(task)["owner_id"]
        assert desk.row_of(task)["version"] == 2
        assert sorted(desk.kinds(task)) == ["claim_rejected", "claimed", "created"]


def test_start_after_lease_expiry_by_the_previous_owner_expect_rejection(
    desk: Desk, service: TransitionService
) -> None:
    swept = place(desk, State.CLAIMED)
    lapse(desk, swept)
    assert service.start(swept.id, AMAL, swept.version).why is Refusal.NOT_HELD
    waiting = place(desk, State.CLAIMED, lapsed=True)
    assert service.start(waiting.id, AMAL, waiting.version).why is Refusal.LEASE_ENDED


def test_renewal_by_a_non_owner_expect_rejection(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    before = whole_row(desk, task)
    outcome = service.renew(task.id, BILAL, task.version)
    assert (outcome.unchanged, outcome.why) == (True, Refusal.HELD)
    assert whole_row(desk, task) == before


def test_expiry_on_a_task_with_recorded_side_effects_expect_needs_check_and_no_automatic_repeat(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED)
    recorded = service.record_action(task.id, AMAL, task.version, "refund of 20 EUR").task
    assert recorded is not None
    back = lapse(desk, recorded)
    assert (back.state, back.needs_check, back.started_before) == (State.QUEUED, True, True)
    facts = TaskQueries(guard_of(desk)).facts(task.id)
    assert facts is not None
    # What is known of the action is as it was: nobody has found out, and the software does nothing about it.
    assert [action.status for action in facts.actions] == [ActionStatus.IN_PROGRESS]


def test_an_expiry_before_anything_was_started_or_recorded_needs_no_check(
    desk: Desk, service: TransitionService
) -> None:
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    back = lapse(desk, task)
    assert (back.state, back.needs_check, back.started_before, back.version) == (
        State.QUEUED,
        False,
        False,
        3,
    )


def test_repeat_the_expiry_sweep_expect_no_further_change(desk: Desk) -> None:
    task = place(desk, State.STARTED)
    lapse(desk, task)
    before, kinds = whole_row(desk, task), desk.kinds(task)
    assert SweepService(guard_of(desk)).sweep_once() == []
    assert (whole_row(desk, task), desk.kinds(task)) == (before, kinds)


def test_stop_automatic_requeueing_if_lease_expiries_spike_beyond_the_threshold(
    desk: Desk, service: TransitionService
) -> None:
    desk.execute("UPDATE dibs.queue SET spike_limit = 2")
    tasks = [place(desk, State.CLAIMED) for _ in range(3)]
    for task in tasks:
        desk.end_lease(task)
    assert SweepService(guard_of(desk)).sweep_once() == []
    assert [desk.row_of(task)["state"] for task in tasks] == ["claimed"] * 3
    # Owners are not held up: the first of them hands back.
    row = desk.row_of(tasks[0])
    assert service.release(tasks[0].id, row["owner_id"], row["version"], reason="shift_ending").changed


def test_stop_automatic_requeueing_if_the_time_source_is_unreliable(desk: Desk) -> None:
    task = place(desk, State.CLAIMED)
    desk.end_lease(task)
    unreliable = ClockService(guard_of(desk), wall=lambda: time.time() + 60)
    assert SweepService(guard_of(desk), clock=unreliable).sweep_once() == []
    assert desk.row_of(task)["state"] == "claimed"
    assert len(SweepService(guard_of(desk)).sweep_once()) == 1


def test_owner_finishes_after_the_lease_lapsed_but_before_anyone_reclaims(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED, lapsed=True)
    finished = service.done(task.id, AMAL, task.version).task
    assert finished is not None
    assert (finished.state, finished.owner_id) == (State.DONE, AMAL)

    reclaimed = lapse(desk, place(desk, State.STARTED))
    assert service.claim(reclaimed.id, BILAL, reclaimed.version).changed
    assert service.done(reclaimed.id, AMAL, reclaimed.version - 1).why is Refusal.HELD


# --- one current owner


def test_q52_is_handed_back_and_claimed_by_the_other_reviewer(desk: Desk, service: TransitionService) -> None:
    q52 = desk.task("Q-52")
    assert service.claim(q52.id, HANA, 1).changed
    marek = service.claim(q52.id, MAREK, 1)
    assert marek.why is Refusal.HELD
    assert marek.task is not None
    assert marek.task.owner_id == HANA
    assert service.note(q52.id, HANA, 2, "The pump's data sheet is attached.").changed
    back = service.release(
        q52.id, HANA, 3, reason="other", comment="Needs the product specialist's next review session."
    )
    assert back.task is not None
    assert (back.task.state, back.task.owner_id) == (State.QUEUED, None)

    facts = TaskQueries(guard_of(desk)).facts(q52.id)
    assert facts is not None
    assert facts.handover is not None
    assert facts.handover.comment == "Needs the product specialist's next review session."
    assert facts.note is not None
    assert (facts.note.author_id, facts.note.text) == (HANA, "The pump's data sheet is attached.")
    assert facts.task.resolution is None

    again = service.claim(q52.id, MAREK, 4)
    assert again.task is not None
    assert again.task.owner_id == MAREK
    # One successful claim, one rejected competing claim, an explicit handback and one later claim.
    assert desk.kinds(q52) == ["created", "claimed", "claim_rejected", "noted", "released", "claimed"]


# --- handing a task back


def test_danas_three_tasks(desk: Desk, service: TransitionService) -> None:
    t1, t2, t3 = (place(desk, state, owner=DANA) for state in (State.CLAIMED, State.STARTED, State.STARTED))
    add_action(desk, t3)

    first = service.release(t1.id, DANA, t1.version, reason="out_of_scope")
    second = service.release(
        t2.id,
        DANA,
        t2.version,
        reason="shift_ending",
        handoff_note="The refund went out at noon.",
        external_action="completed",
    )
    third = service.release(
        t3.id,
        DANA,
        t3.version,
        reason="shift_ending",
        handoff_note="The send timed out.",
        external_action="unknown",
    )
    assert [
        (o.task.state, o.task.needs_check, o.task.started_before) for o in (first, second, third) if o.task
    ] == [
        (State.QUEUED, False, False),
        (State.QUEUED, False, True),
        (State.QUEUED, True, True),
    ]
    old_tab = service.release(t1.id, DANA, t1.version, reason="out_of_scope")
    assert (old_tab.unchanged, old_tab.why) == (True, Refusal.NOT_HELD)
    assert old_tab.task is not None
    assert (old_tab.task.last_kind, old_tab.task.last_actor) == ("released", DANA)

    # 3 tasks, 3 audit cards, 2 queued, 1 needs_check, 1 stale request rejected without a new card.
    cards = desk.rows(
        """SELECT task_id, previous_owner, state_at_release, version_before, version_after, reason,
                  handoff_note, external_action, created_at IS NOT NULL AS dated
           FROM dibs.release_card ORDER BY id"""
    )
    before, after = t1.version, t1.version + 1
    assert [list(card.values()) for card in cards] == [
        [t1.id, DANA, "claimed", before, after, "out_of_scope", None, None, True],
        [
            t2.id,
            DANA,
            "started",
            before,
            after,
            "shift_ending",
            "The refund went out at noon.",
            "completed",
            True,
        ],
        [t3.id, DANA, "started", before, after, "shift_ending", "The send timed out.", "unknown", True],
    ]
    assert desk.value("SELECT count(*) FROM dibs.task WHERE state = 'queued' AND NOT needs_check") == 2
    assert desk.value("SELECT count(*) FROM dibs.task WHERE state = 'queued' AND needs_check") == 1
    assert _count(desk, "release_rejected") == 1


def test_release_by_a_non_owner_expect_rejection(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    assert service.release(task.id, BILAL, task.version, reason="shift_ending").why is Refusal.HELD
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 0


def test_release_of_a_started_task_without_a_note_expect_rejection(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.STARTED)
    outcome = service.release(
        task.id, AMAL, task.version, reason="shift_ending", handoff_note=" \n ", external_action="none"
    )
    assert outcome.why is Refusal.HANDOFF_NOTE_MISSING
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 0


def test_release_with_unknown_external_status_expect_needs_check(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED)
    outcome = service.release(task.id, AMAL, task.version, reason="shift_ending", external_action="unknown")
    assert outcome.task is not None
    assert (outcome.task.state, outcome.task.needs_check) == (State.QUEUED, True)


def test_double_release_expect_one_card_and_one_state_change(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    first, second = together(
        [lambda: service.release(task.id, AMAL, task.version, reason="shift_ending")] * 2
    )
    assert {first.changed, second.changed} == {True, False}
    assert {first.why, second.why} == {None, Refusal.NOT_HELD}
    assert desk.value("SELECT count(*) FROM dibs.release_card") == 1
    assert desk.row_of(task)["version"] == task.version + 1


def test_release_of_a_done_task_expect_rejection(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.DONE)
    outcome = service.release(
        task.id, AMAL, task.version, reason="shift_ending", handoff_note="x", external_action="none"
    )
    assert outcome.why is Refusal.ALREADY_DONE


def test_a_task_already_requeued_by_expiry_is_not_released_and_says_so(
    desk: Desk, service: TransitionService
) -> None:
    task = place(desk, State.CLAIMED)
    lapse(desk, task)
    outcome = service.release(task.id, AMAL, task.version, reason="shift_ending")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.NOT_HELD)
    assert outcome.task is not None
    assert (outcome.task.last_kind, outcome.task.last_actor) == ("expired", None)
