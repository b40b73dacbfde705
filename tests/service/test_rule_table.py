"""Every operation in every state, by everybody, with every version: what is promised, and what is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from tests.support.journey import (
    PLACED_VERSION,
    add_action,
    count_events,
    newest_event,
    place,
    whole_row,
)
from tests.support.store import AMAL, BILAL, HANA, SUE, Desk

from dibs.domain.outcomes import Outcome, Verdict
from dibs.domain.task import ActionStatus, State, Task
from dibs.service.transitions import TransitionService

STRANGER = "U0STRANGER"
SOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

# Written down from the design, not from the code: operation, from, who, lease, to, the event's kind.
PROMISED = """
claim           queued           member            any      claimed  claimed
renew           claimed,started  owner             current  same     renewed
start           claimed          owner             current  started  started
record_action   started          owner             current  same     action_recorded
resolve_action  started          owner             any      same     action_resolved
note            claimed,started  owner             any      same     noted
commit          claimed,started  owner             any      same     committed
done            started          owner             any      done     done
release         claimed,started  owner             any      queued   released
check           unfinished       owner,supervisor  any      same     checked
transfer        claimed,started  supervisor        any      claimed  transferred
force_release   claimed,started  supervisor        any      queued   force_released
"""

VERSIONS = {"as seen": PLACED_VERSION, "older": PLACED_VERSION - 1, "newer": PLACED_VERSION + 1}
PEOPLE = {"owner": AMAL, "member": BILAL, "supervisor": SUE, "stranger": STRANGER}


class Promise(NamedTuple):
    operation: str
    sources: frozenset[str]
    who: frozenset[str]
    lease: str
    target: str
    kind: str


class Case(NamedTuple):
    state: State
    lapsed: bool
    who: str
    version: str


def _promises() -> dict[str, Promise]:
    found = {}
    for line in PROMISED.strip().splitlines():
        operation, sources, who, lease, target, kind = line.split()
        states = "queued,claimed,started" if sources == "unfinished" else sources
        found[operation] = Promise(
            operation, frozenset(states.split(",")), frozenset(who.split(",")), lease, target, kind
        )
    return found


PROMISES = _promises()


def refusal(promise: Promise, case: Case) -> str | None:
    """What the person is told: the plainest truth first. None where the operation must succeed."""
    queued, done = case.state is State.QUEUED, case.state is State.DONE
    # In the queue nobody is the owner, also not who had the task before.
    owner = case.who == "owner" and not queued
    stale = case.version != "as seen"
    if promise.operation == "claim":
        # The former owner is an eligible member like any other; a supervisor only if in the channel.
        reasons = [
            ("already_done", done),
            ("lease_ended", case.lapsed),
            ("already_yours", owner),
            ("held", not queued),
            ("stale", stale),
            ("not_a_member", case.who in {"supervisor", "stranger"}),
        ]
    elif promise.operation == "check":
        may = owner or case.who == "supervisor"
        reasons = [("already_done", done), ("not_allowed", not may), ("stale", stale)]
    elif promise.who == {"supervisor"}:
        may = case.who == "supervisor"
        reasons = [
            ("already_done", done),
            ("not_a_supervisor", not may),
            ("not_held", queued),
            ("stale", stale),
        ]
    else:
        reasons = [
            ("already_done", done),
            ("not_held", queued),
            ("held", not owner),
            ("stale", stale),
            ("wrong_state", case.state not in promise.sources),
            ("lease_ended", case.lapsed and promise.lease == "current"),
        ]
    return next((why for why, holds in reasons if holds), None)


def press(service: TransitionService, operation: str, task: Task, action: int) -> Callable[..., Outcome]:
    """The operation on the task, with everything that it takes besides person and version."""
    presses: dict[str, Callable[..., Outcome]] = {
        "claim": lambda who, version, op: service.claim(task.id, who, version, op_id=op),
        "renew": lambda who, version, op: service.renew(task.id, who, version, op_id=op),
        "start": lambda who, version, op: service.start(task.id, who, version, op_id=op),
        "record_action": lambda who, version, op: service.record_action(
            task.id, who, version, "refund of 20 EUR", op_id=op
        ),
        "resolve_action": lambda who, version, op: service.resolve_action(
            task.id, who, version, action, ActionStatus.COMPLETED, op_id=op
        ),
        "note": lambda who, version, op: service.note(task.id, who, version, "asked the bank", op_id=op),
        "commit": lambda who, version, op: service.commit(task.id, who, version, SOON, op_id=op),
        "done": lambda who, version, op: service.done(task.id, who, version, resolution="paid", op_id=op),
        "release": lambda who, version, op: service.release(
            task.id,
            who,
            version,
            reason="shift_ending",
            handoff_note="half done",
            external_action="none",
            op_id=op,
        ),
        "check": lambda who, version, op: service.check(task.id, who, version, finding="saw it", op_id=op),
        "transfer": lambda who, version, op: service.transfer(
            task.id, who, version, HANA, reason="she knows the bank", op_id=op
        ),
        "force_release": lambda who, version, op: service.force_release(
            task.id, who, version, reason="shift_ending", op_id=op
        ),
    }
    return presses[operation]


def cases(state: State) -> list[Case]:
    lapses = (False, True) if state in {State.CLAIMED, State.STARTED} else (False,)
    return [Case(state, *case) for case in itertools.product(lapses, PEOPLE, VERSIONS)]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("operation", PROMISES)
def test_an_operation_does_just_what_is_promised(
    desk: Desk, service: TransitionService, operation: str, state: State
) -> None:
    promise = PROMISES[operation]
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    wrong = []
    for case in cases(state):
        # A started task is flagged only for its check: no press of Dibs' own leaves one behind.
        task = place(desk, state, lapsed=case.lapsed, needs_check=operation == "check")
        action = add_action(desk, task) if operation == "resolve_action" else 0
        before, events = whole_row(desk, task), count_events(desk, task)
        op_id = f"{operation} {case}"

        outcome = press(service, operation, task, action)(PEOPLE[case.who], VERSIONS[case.version], op_id)

        why = refusal(promise, case)
        row, event = desk.row_of(task), newest_event(desk, task)
        seen = {
            "verdict": outcome.verdict,
            "why": outcome.why,
            "untouched": whole_row(desk, task) == before,
            "version": (row["version"], outcome.task.version if outcome.task else None),
            "state": (row["state"], outcome.task.state if outcome.task else None),
            "events": count_events(desk, task) - events,
            "event": (event["kind"], event["why"], event["actor_id"], event["op_id"]),
            "versions": (event["version_before"], event["version_after"], event["version_seen"]),
            "replayed": outcome.replayed,
        }
        after = PLACED_VERSION + (why is None)
        to = state if why or promise.target == "same" else promise.target
        kind = f"{operation}_rejected" if why else promise.kind
        expected = {
            "verdict": Verdict.UNCHANGED if why else Verdict.CHANGED,
            "why": why,
            "untouched": why is not None,
            "version": (after, after),
            "state": (to, to),
            "events": 1,
            "event": (kind, why, PEOPLE[case.who], op_id),
            "versions": (PLACED_VERSION, after, VERSIONS[case.version]),
            "replayed": False,
        }
        if seen != expected:
            wrong.append({"case": case, "seen": seen, "expected": expected})
    assert not wrong


@pytest.mark.parametrize("operation", ["transfer", "force_release"])
def test_what_supervisors_may_do_is_off_until_their_queue_turns_it_on(
    desk: Desk, service: TransitionService, operation: str
) -> None:
    task = place(desk, State.STARTED)
    before = whole_row(desk, task)
    outcome = press(service, operation, task, 0)(SUE, PLACED_VERSION, operation)
    assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, "turned_off")
    assert whole_row(desk, task) == before
    assert newest_event(desk, task)["kind"] == f"{operation}_rejected"


def test_the_matrix_asks_every_operation_that_a_person_has() -> None:
    people_do = {
        name
        for name, method in vars(TransitionService).items()
        if callable(method) and not name.startswith("_") and name not in {"claim_next", "judge", "settle"}
    }
    assert people_do == set(PROMISES)


def test_a_success_sets_owner_and_lease_as_the_rule_says(desk: Desk, service: TransitionService) -> None:
    task = place(desk)

    claimed = service.claim(task.id, BILAL, PLACED_VERSION).task
    assert claimed is not None
    assert claimed.lease_until is not None
    assert claimed.owner_id == BILAL
    assert (claimed.lease_until - claimed.last_at).total_seconds() == desk.queue.lease_seconds

    desk.execute(
        "UPDATE dibs.task SET lease_until = clock_timestamp() + interval '9 s' WHERE id = :id", id=task.id
    )
    renewed = service.renew(task.id, BILAL, claimed.version).task
    assert renewed is not None
    assert renewed.lease_until is not None
    assert (renewed.lease_until - renewed.last_at).total_seconds() == desk.queue.lease_seconds

    started = service.start(task.id, BILAL, renewed.version).task
    assert started is not None
    assert (started.owner_id, started.lease_until) == (BILAL, renewed.lease_until)

    done = service.done(task.id, BILAL, started.version, resolution="  paid back ").task
    assert done is not None
    assert (done.owner_id, done.lease_until, done.resolution) == (BILAL, None, "paid back")


def test_an_event_and_its_task_agree_on_the_time(desk: Desk, service: TransitionService) -> None:
    task = place(desk)
    outcome = service.claim(task.id, AMAL, PLACED_VERSION)
    event = newest_event(desk, task)
    assert outcome.task is not None
    assert event["at"] == outcome.task.last_at == outcome.answered_at


def test_a_change_asks_for_a_new_card_and_a_refusal_does_not(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    wanted = "SELECT wanted_version FROM dibs.card WHERE task_id = :id"
    assert desk.value(wanted, id=task.id) == 1
    assert service.claim(task.id, STRANGER, 1).unchanged
    assert desk.value(wanted, id=task.id) == 1
    assert service.claim(task.id, AMAL, 1).changed
    assert desk.value(wanted, id=task.id) == 2
