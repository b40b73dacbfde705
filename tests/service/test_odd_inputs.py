"""What no screen of Dibs sends, and what people do type: nothing breaks, nothing is cut or guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.support.journey import (
    action_statuses,
    add_action,
    count_events,
    events_of,
    newest_event,
    now,
    place,
    whole_row,
)
from tests.support.store import AMAL, SUE, Desk

from dibs.deadline import Deadline
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import ActionStatus, State, Task
from dibs.domain.transitions import Operation
from dibs.service.queries import TaskQueries
from dibs.service.transitions import TransitionService
from dibs.store.guard import Guard

UNCOMPRESSIBLE = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(20_000))
LONG = "ä€😀 \N{COMBINING ACUTE ACCENT}" * 12_000
ODD_NUMBERS = [0, -1, -(2**63), 2**31, 2**63 - 1, 2**63, 10**30]
PRESSES: dict[str, Callable[[TransitionService, int, int], Outcome]] = {
    "claim": lambda s, task, version: s.claim(task, AMAL, version),
    "start": lambda s, task, version: s.start(task, AMAL, version),
    "done": lambda s, task, version: s.done(task, AMAL, version),
    "release": lambda s, task, version: s.release(task, AMAL, version, reason="shift_ending"),
    "check": lambda s, task, version: s.check(task, AMAL, version),
}


@pytest.mark.parametrize("operation", PRESSES)
def test_a_task_that_does_not_exist_changes_nothing(
    desk: Desk, service: TransitionService, operation: str
) -> None:
    events = desk.value("SELECT count(*) FROM dibs.event")
    for task in [*ODD_NUMBERS, 99]:
        outcome = PRESSES[operation](service, task, 1)
        assert (outcome.unchanged, outcome.why, outcome.task) == (True, Refusal.NO_SUCH_TASK, None)
    assert desk.value("SELECT count(*) FROM dibs.event") == events


@pytest.mark.parametrize("operation", PRESSES)
def test_a_version_that_cannot_be_changes_nothing(
    desk: Desk, service: TransitionService, operation: str
) -> None:
    task = place(desk, State.CLAIMED)
    before = whole_row(desk, task)
    for version in ODD_NUMBERS:
        outcome = PRESSES[operation](service, task.id, version)
        assert (outcome.unchanged, outcome.task) == (True, now(desk, task))
        event = newest_event(desk, task)
        assert (event["kind"], event["why"]) == (f"{operation}_rejected", outcome.why)
        # The column holds what a task's version can be.
        assert event["version_seen"] == (version if abs(version) < 2**31 else None)
        assert outcome.why in {Refusal.STALE, Refusal.HELD, Refusal.ALREADY_YOURS}
    assert whole_row(desk, task) == before


@pytest.mark.parametrize(
    "actor", ["", " ", "\0", "U0\0AMAL", "\ud800", "x" * 100_000, "'; DROP TABLE task", "%s :id"]
)
def test_an_actor_who_cannot_be_gets_nothing(desk: Desk, service: TransitionService, actor: str) -> None:
    task = desk.task()
    before = whole_row(desk, task)
    assert service.claim(task.id, actor, 1).verdict is Verdict.UNCHANGED
    assert service.claim_next([desk.queue.id], actor).verdict is Verdict.UNCHANGED
    assert whole_row(desk, task) == before


@pytest.mark.parametrize("op_id", ["\0", "\ud800", UNCOMPRESSIBLE])
def test_an_operation_id_that_cannot_be_kept_is_refused(
    desk: Desk, service: TransitionService, op_id: str
) -> None:
    task = desk.task()
    assert service.claim(task.id, AMAL, 1, op_id=op_id).why is Refusal.DATABASE_REFUSED
    assert (count_events(desk, task), desk.row_of(task)["state"]) == (1, "queued")


def test_long_text_is_kept_whole(desk: Desk, service: TransitionService) -> None:
    assert len(LONG.encode()) > 100_000
    kept = LONG.strip()
    added = desk.queues.add_task(desk.queue.id, LONG, SUE, op_id="long", details=LONG)
    assert added is not None
    task = added.task
    assert (task.title, task.details) == (kept, kept)
    assert service.claim(task.id, AMAL, 1).changed
    assert service.start(task.id, AMAL, 2, finding=LONG).changed
    assert service.note(task.id, AMAL, 3, LONG).changed
    assert service.record_action(task.id, AMAL, 4, LONG).changed
    assert service.release(
        task.id, AMAL, 5, reason="other", comment=LONG, handoff_note=LONG, external_action="completed"
    ).changed
    queries = TaskQueries(Guard(desk.engine))
    facts = queries.facts(task.id)
    assert facts is not None
    assert facts.handover is not None
    assert facts.note is not None
    assert [facts.handover.comment, facts.handover.note, facts.note.text] == [kept] * 3
    assert [action.description for action in facts.actions] == [kept]
    texts = {event.kind: event for event in queries.history(task.id, most=10)}
    assert (texts["noted"].text, texts["action_recorded"].text, texts["released"].text) == (kept,) * 3
    assert (texts["started"].detail, texts["started"].text) == ({"answers": {}}, kept)
    assert service.claim(task.id, AMAL, 6).changed
    assert service.start(task.id, AMAL, 7).changed
    done = service.done(task.id, AMAL, 8, resolution=LONG).task
    assert done is not None
    assert done.resolution == kept


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("a\0b", "ab"),
        ("\ud83d lone", "? lone"),
        ("  spaces \n", "spaces"),
        ("<!channel> & <@U1>", "<!channel> & <@U1>"),
        ("%s %(id)s :id {x} \\ ' \"", "%s %(id)s :id {x} \\ ' \""),
    ],
)
def test_text_is_kept_as_it_was_typed(desk: Desk, service: TransitionService, typed: str, kept: str) -> None:
    task = place(desk, State.STARTED)
    assert service.note(task.id, AMAL, task.version, typed).changed
    assert service.record_action(task.id, AMAL, task.version + 1, typed).changed
    assert service.release(
        task.id,
        AMAL,
        task.version + 2,
        reason="other",
        comment=typed,
        handoff_note=typed,
        external_action="completed",
    ).changed
    assert desk.value("SELECT text FROM dibs.task_note") == kept
    assert desk.value("SELECT description FROM dibs.external_action") == kept
    card = desk.rows("SELECT comment, handoff_note FROM dibs.release_card")[0]
    assert (card["comment"], card["handoff_note"]) == (kept, kept)


@pytest.mark.parametrize("empty", ["", "   ", "\n\t", "\0"])
def test_a_text_with_nothing_in_it_is_missing(desk: Desk, service: TransitionService, empty: str) -> None:
    task = place(desk, State.STARTED)
    assert service.note(task.id, AMAL, task.version, empty).why is Refusal.TEXT_MISSING
    assert service.record_action(task.id, AMAL, task.version, empty).why is Refusal.TEXT_MISSING
    assert newest_event(desk, task)["kind"] == "record_action_rejected"
    done = service.done(task.id, AMAL, task.version, resolution=empty).task
    assert done is not None
    assert done.resolution is None
    with pytest.raises(ValueError, match="title"):
        desk.queues.add_task(desk.queue.id, empty, SUE, op_id="empty")


@pytest.mark.parametrize("status", [ActionStatus.IN_PROGRESS, "perhaps", "", None])
def test_an_action_is_not_resolved_with_what_is_no_answer(
    desk: Desk, service: TransitionService, status: ActionStatus
) -> None:
    task = place(desk, State.STARTED)
    action = add_action(desk, task)
    outcome = service.resolve_action(task.id, AMAL, task.version, action, status, op_id="op")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.INVALID)
    assert events_of(desk, "op") == ["resolve_action_rejected"]
    assert action_statuses(desk, task) == ["in_progress"]


def test_an_action_that_does_not_exist_is_not_resolved(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.STARTED)
    for action in [*ODD_NUMBERS, 99]:
        outcome = service.resolve_action(task.id, AMAL, task.version, action, ActionStatus.COMPLETED)
        assert outcome.unchanged
        assert outcome.why in {Refusal.INVALID, Refusal.NO_SUCH_ACTION}


def test_answers_for_what_is_not_asked_do_nothing(desk: Desk, service: TransitionService) -> None:
    task, other = place(desk, State.CLAIMED, needs_check=True), place(desk, State.STARTED)
    own, foreign = add_action(desk, task), add_action(desk, other)
    settled = add_action(desk, task, ActionStatus.NOT_COMPLETED)
    answers = dict.fromkeys([own, foreign, settled, *ODD_NUMBERS], ActionStatus.COMPLETED)
    assert service.check(task.id, AMAL, task.version, answers=answers).changed
    assert action_statuses(desk, task) == ["completed", "not_completed"]
    assert action_statuses(desk, other) == ["in_progress"]


def test_a_commitment_that_could_not_be_read_back_is_refused(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    last = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12)))
    outcome = service.commit(task.id, AMAL, task.version, last, op_id="op")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.INVALID)
    assert events_of(desk, "op") == ["commit_rejected"]


def test_a_commitment_in_the_past_is_the_owners_business(desk: Desk, service: TransitionService) -> None:
    task = place(desk, State.CLAIMED)
    first = datetime(1066, 10, 14, tzinfo=UTC)
    assert service.commit(task.id, AMAL, task.version, first).changed


def test_settling_what_never_was_is_definite(desk: Desk, service: TransitionService) -> None:
    lost = Outcome(Operation.CLAIM, Verdict.UNKNOWN, "never sent", actor_id=AMAL)
    task = desk.task()
    settled = service.settle(lost, task_id=task.id, version=1, deadline=Deadline.after())
    assert (settled.unchanged, settled.why) == (True, Refusal.CONNECTION_LOST)
    assert events_of(desk, "never sent") == ["claim_rejected"]
    nowhere = Outcome(Operation.CLAIM, Verdict.UNKNOWN, "elsewhere", actor_id=AMAL)
    assert service.settle(nowhere, task_id=99, version=1, deadline=Deadline.after()).unchanged


def test_look_ups_of_what_cannot_be_find_nothing(desk: Desk) -> None:
    queries = TaskQueries(Guard(desk.engine))
    task: Task = desk.task()
    for number in ODD_NUMBERS:
        assert queries.by_id(number) is None
        assert queries.by_name(desk.queue.workspace, desk.queue.key, number) is None
        assert queries.facts(number) is None
        assert queries.history(number, most=5) == ()
    assert queries.by_name(desk.queue.workspace, "sup", task.number) is None
    assert queries.unfinished([], most=5) == ()
    assert queries.unfinished([*ODD_NUMBERS[:4]], most=5) == ()
