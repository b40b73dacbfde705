"""The one conditional write that changes a queue's settings."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.store import AMAL, BILAL, HANA, SUE, Desk

from dibs.domain.outcomes import Refusal
from dibs.domain.queue import Queue
from dibs.domain.settings import QueueSettings
from dibs.service.queues import Settled
from dibs.store.chain import stored_event_hash

_numbers = itertools.count(1)


def _now(desk: Desk) -> Queue:
    queue = desk.queues.by_id(desk.queue.id)
    assert queue is not None
    return queue


def _as_they_are(desk: Desk, **other: Any) -> QueueSettings:  # noqa: ANN401 - a setting has its own type
    queue = _now(desk)
    same = {
        field.name: getattr(queue, field.name)
        for field in dataclasses.fields(QueueSettings)
        if field.name not in ("supervisors", "reasons")
    }
    supervisors = desk.queues.supervisors(queue.id)
    return QueueSettings(**{**same, "supervisors": supervisors, "reasons": None, **other})


def _change(desk: Desk, by: str = SUE, *, seen: int | None = None, op: str = "", **other: object) -> Settled:
    version = _now(desk).settings_version if seen is None else seen
    return desk.queues.change_settings(
        desk.queue.id, by, version, _as_they_are(desk, **other), op_id=op or f"set-{next(_numbers)}"
    )


def test_everything_is_stored_and_one_event_tells_the_old_and_the_new_values(desk: Desk) -> None:
    new: dict[str, Any] = {
        "name": "Refunds",
        "lease_seconds": 600,
        "eligible_group": "S0GROUP",
        "alert_channel": "C0ALERTS",
        "spike_limit": 5,
        "spike_minutes": 7,
        "spike_share": 20,
        "longest_hold_seconds": 7200,
        "reasons": ("out_of_scope", "Needs the bank's answer"),
        "supervisor_operations": True,
    }
    settled = _change(desk, supervisors=(AMAL, SUE), **new)
    assert settled.why is None
    assert {change.setting for change in settled.changes} == {*new, "supervisors"}
    queue = _now(desk)
    assert {name: getattr(queue, name) for name in new} == new
    assert queue.settings_version == 2
    assert queue.key == desk.queue.key
    assert desk.queues.supervisors(queue.id) == (AMAL, SUE)
    (event,) = desk.rows(
        f"SELECT e.*, {stored_event_hash('e')} = e.hash AS fits FROM dibs.event e"  # noqa: S608 - our own words
    )
    assert (event["kind"], event["task_id"], event["actor_id"]) == ("settings_changed", None, SUE)
    assert event["fits"]
    assert event["detail"]["lease_seconds"] == {"old": 1800, "new": 600}
    assert event["detail"]["supervisors"] == {"old": [SUE], "new": [AMAL, SUE]}
    assert event["detail"]["reasons"] == {"old": None, "new": ["out_of_scope", "Needs the bank's answer"]}


def test_what_stands_like_that_already_changes_nothing(desk: Desk) -> None:
    assert _change(desk) == Settled()
    assert _now(desk).settings_version == 1
    assert desk.value("SELECT count(*) FROM dibs.event") == 0


@pytest.mark.parametrize("person", [AMAL, "U0NOBODY"])
def test_only_a_supervisor_changes_anything(desk: Desk, person: str) -> None:
    assert _change(desk, person, name="Mine now", supervisors=(person,)).why is Refusal.NOT_A_SUPERVISOR
    assert _now(desk).name == "Support"
    assert desk.queues.supervisors(desk.queue.id) == (SUE,)
    assert desk.value("SELECT count(*) FROM dibs.event") == 0


def test_settings_that_were_changed_meanwhile_are_not_overwritten(desk: Desk) -> None:
    desk.admit(AMAL, supervisor=True)
    assert _change(desk, AMAL, lease_seconds=900, seen=1).changes
    assert _change(desk, SUE, lease_seconds=300, seen=1).why is Refusal.STALE
    assert _now(desk).lease_seconds == 900


def test_a_supervisor_who_was_removed_meanwhile_changes_nothing(desk: Desk) -> None:
    desk.admit(AMAL, supervisor=True)
    assert _change(desk, AMAL, supervisors=(AMAL,)).changes
    assert _change(desk, SUE, name="Mine").why is Refusal.NOT_A_SUPERVISOR


def test_of_many_changes_at_once_one_stands(desk: Desk) -> None:
    people = [AMAL, BILAL, HANA, SUE]
    for person in people:
        desk.admit(person, supervisor=True)
    desired = [_as_they_are(desk, name=f"By {person}", supervisors=(person,)) for person in people]

    def change(number: int) -> Settled:
        person = people[number]
        return desk.queues.change_settings(
            desk.queue.id, person, 1, desired[number], op_id=f"at-once-{number}"
        )

    with ThreadPoolExecutor(len(people)) as pool:
        settled = list(pool.map(change, range(len(people))))
    (winner,) = [number for number, one in enumerate(settled) if one.changes]
    lost = {one.why for number, one in enumerate(settled) if number != winner}
    assert lost <= {Refusal.STALE, Refusal.NOT_A_SUPERVISOR}
    assert _now(desk).name == f"By {people[winner]}"
    assert _now(desk).settings_version == 2
    assert desk.queues.supervisors(desk.queue.id) == (people[winner],)
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'settings_changed'") == 1


def test_a_second_delivery_is_answered_as_the_first_one(desk: Desk) -> None:
    first = _change(desk, name="Refunds", seen=1, op="twice")
    assert _change(desk, name="Refunds", seen=1, op="twice") == first
    assert _change(desk, name="Other", seen=2).changes
    assert _change(desk, name="Refunds", seen=1, op="twice") == first
    assert _now(desk).name == "Other"


def test_with_another_group_nobody_is_known_to_be_eligible_and_the_group_is_read_anew(desk: Desk) -> None:
    desk.execute("UPDATE dibs.queue SET members_read_at = now(), members_tried_at = now()")
    assert _change(desk, name="Refunds").changes
    assert desk.value("SELECT count(*) FROM dibs.queue_member WHERE standing = 'eligible'") == 5
    assert _change(desk, eligible_group="S0GROUP").changes
    assert desk.value("SELECT count(*) FROM dibs.queue_member WHERE standing = 'eligible'") == 0
    assert desk.value("SELECT count(*) FROM dibs.queue WHERE members_tried_at IS NULL") == 1


def test_tasks_are_added_and_claimed_while_settings_change(desk: Desk) -> None:
    with ThreadPoolExecutor(2) as pool:
        added = pool.submit(lambda: [desk.task() for _ in range(20)])
        settled = [_change(desk, lease_seconds=60 * number) for number in range(1, 11)]
        assert len(added.result()) == 20
    assert all(one.changes for one in settled)
