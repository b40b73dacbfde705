"""What the database itself refuses: impossible rows, doubles, and every rewriting of the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from tests.support.store import AMAL, Desk

from dibs.service.transitions import TransitionService
from dibs.store.tables import EVENT_OP_ID_KEY, metadata

Values = Mapping[str, Any]

LATER = "2030-01-01T00:00Z"

# A row of each table that is as it should be, on the desk's queue and its one task.
GOOD: dict[str, Values] = {
    "queue": {
        "workspace": "T1",
        "key": "NEW",
        "name": "n",
        "channel_id": "C1",
        "lease_seconds": 60,
        "created_by": AMAL,
    },
    "queue_member": {"queue_id": 1, "user_id": "U1", "standing": "eligible"},
    "task": {"queue_id": 1, "number": 99, "title": "t", "created_by": AMAL},
    "external_action": {
        "task_id": 1,
        "number": 1,
        "version": 2,
        "description": "d",
        "status": "in_progress",
        "recorded_by": AMAL,
    },
    "task_note": {"task_id": 1, "version": 2, "author_id": AMAL, "text": "t"},
    "event": {
        "queue_id": 1,
        "task_id": 1,
        "kind": "noted",
        "op_id": "op",
        "version_before": 1,
        "version_after": 2,
    },
    "release_card": {
        "task_id": 1,
        "previous_owner": AMAL,
        "state_at_release": "started",
        "version_before": 1,
        "version_after": 2,
        "reason": "other",
        "handoff_note": "h",
        "external_action": "none",
    },
    "card": {"task_id": 2, "channel_id": "C1", "wanted_version": 1},
    "outbox": {"queue_id": 1, "key": "k", "kind": "alert", "recipient": "C1", "payload": "{}"},
    "breaker": {"queue_id": 2},
    "clock": {"id": 1},
}

# Each named constraint, and the rows that only it refuses.
IMPOSSIBLE: dict[str, list[Values]] = {
    "queue_key_form": [{"key": "sup"}, {"key": "S"}, {"key": "1A"}, {"key": "A" * 11}],
    "queue_name_given": [{"name": ""}],
    "queue_lease_positive": [{"lease_seconds": 0}],
    "queue_spike_positive": [{"spike_limit": 0}, {"spike_minutes": 0}],
    "queue_share_in_percent": [{"spike_share": 0}, {"spike_share": 101}],
    "queue_hold_positive": [{"longest_hold_seconds": 0}],
    "queue_reasons_given": [{"reasons": "{}"}],
    "queue_member_standing_known": [{"standing": "friend"}],
    "task_state_known": [{"state": "paused", "owner_id": AMAL}],
    "task_times_readable": [
        {"deadline": "infinity"},
        {"committed_to": "9999-12-31T23:59Z"},
        {"state": "claimed", "owner_id": AMAL, "lease_until": "infinity"},
    ],
    "task_owner_matches_state": [
        {"owner_id": AMAL},
        {"state": "claimed", "lease_until": LATER},
        {"state": "started", "lease_until": LATER},
        {"state": "done"},
    ],
    "task_lease_matches_state": [
        {"lease_until": LATER},
        {"state": "claimed", "owner_id": AMAL},
        {"state": "started", "owner_id": AMAL},
        {"state": "done", "owner_id": AMAL, "lease_until": LATER},
    ],
    "task_owner_given": [{"state": "claimed", "owner_id": "", "lease_until": LATER}],
    "task_counted_from_one": [{"version": 0}, {"number": 0}],
    "task_title_given": [{"title": ""}],
    "external_action_status_known": [{"status": "perhaps", "answered_by": AMAL}],
    "external_action_answer_matches_status": [{"answered_by": AMAL}, {"status": "completed"}],
    "external_action_description_given": [{"description": ""}],
    "task_note_text_given": [{"text": ""}],
    "event_refusal_says_why": [
        {"why": "held", "version_after": 1},
        {"kind": "note_rejected"},
    ],
    "event_version_counted": [
        {"version_after": 1},
        {"version_after": 3},
        {"kind": "note_rejected", "why": "held"},
    ],
    "event_task_has_versions": [
        {"version_before": None},
        {"version_after": None},
        {"version_before": None, "version_after": None},
    ],
    "release_card_owner_given": [{"previous_owner": ""}],
    "release_card_reason_given": [{"reason": ""}],
    "release_card_state_released": [{"state_at_release": "done"}, {"state_at_release": "queued"}],
    "release_card_version_counted": [{"version_after": 1}, {"version_after": 3}],
    "release_card_handoff_note_given": [{"handoff_note": ""}, {"handoff_note": None}],
    "release_card_action_stated": [{"external_action": None}],
    "release_card_action_known": [{"external_action": "perhaps"}],
    "card_sender_has_limit": [{"sender": "s"}, {"sender_until": LATER}],
    "outbox_sender_has_limit": [{"sender": "s"}, {"sender_until": LATER}],
    "outbox_message_has_channel": [{"channel_id": "C1"}, {"message_ts": "1.1"}],
    "breaker_pause_says_why": [{"releases_paused_since": LATER}, {"releases_paused_why": "full"}],
    "clock_one_row": [{"id": 2}],
}


@pytest.fixture
def filled(desk: Desk) -> Desk:
    """The desk with two tasks, one without a card, a queue without a breaker, and no row for the clock."""
    desk.task()
    second = desk.task()
    desk.execute("DELETE FROM dibs.card WHERE task_id = :id", id=second.id)
    _insert(desk, "queue", {**GOOD["queue"], "key": "SECOND"})
    desk.execute("DELETE FROM dibs.clock")
    return desk


def _insert(desk: Desk, table: str, values: Values) -> None:
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    desk.execute(f"INSERT INTO dibs.{table} ({names}) VALUES ({places})", **values)  # noqa: S608


def _refusal(desk: Desk, table: str, values: Values) -> str | None:
    """The constraint that refuses the row."""
    with pytest.raises(sa.exc.IntegrityError) as refused:
        _insert(desk, table, values)
    name: str | None = refused.value.orig.diag.constraint_name  # type: ignore[union-attr]
    return name


@pytest.mark.parametrize("table", GOOD)
def test_a_row_that_is_as_it_should_be_is_taken(filled: Desk, table: str) -> None:
    _insert(filled, table, GOOD[table])


@pytest.mark.parametrize("constraint", IMPOSSIBLE)
def test_an_impossible_row_is_refused_by_name(filled: Desk, constraint: str) -> None:
    table = max((name for name in GOOD if constraint.startswith(f"{name}_")), key=len)
    for change in IMPOSSIBLE[constraint]:
        assert _refusal(filled, table, {**GOOD[table], **change}) == constraint


def test_every_named_constraint_is_tried_here() -> None:
    named = {
        str(constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, sa.CheckConstraint)
    }
    assert named == set(IMPOSSIBLE)


@pytest.mark.parametrize(
    ("table", "again", "key"),
    [
        ("event", {"kind": "done", "task_id": None}, EVENT_OP_ID_KEY),
        ("release_card", {"reason": "out_of_scope"}, "release_card_task_id_version_before_key"),
        ("external_action", {"description": "another"}, "external_action_task_id_number_key"),
        ("task", {"title": "another"}, "task_queue_id_number_key"),
        ("queue", {"name": "another"}, "queue_workspace_key_key"),
        ("queue_member", {"standing": "left"}, "queue_member_pkey"),
        ("card", {"channel_id": "C2"}, "card_pkey"),
        ("outbox", {"kind": "reminder"}, "outbox_key_key"),
        ("breaker", {}, "breaker_pkey"),
    ],
)
def test_a_double_is_refused_by_its_key(filled: Desk, table: str, again: Values, key: str) -> None:
    _insert(filled, table, GOOD[table])
    assert _refusal(filled, table, {**GOOD[table], **again}) == key


def test_two_queues_of_two_workspaces_may_have_the_same_key(filled: Desk) -> None:
    _insert(filled, "queue", GOOD["queue"])
    _insert(filled, "queue", {**GOOD["queue"], "workspace": "T2"})


@pytest.mark.parametrize("table", ["event", "release_card"])
@pytest.mark.parametrize(
    "rewriting",
    [
        "UPDATE dibs.{} SET id = DEFAULT",
        "UPDATE dibs.{} SET version_after = 7 WHERE false",
        "DELETE FROM dibs.{}",
        "TRUNCATE dibs.{}",
        "TRUNCATE dibs.task CASCADE",
    ],
)
def test_the_record_is_never_rewritten(
    desk: Desk, service: TransitionService, table: str, rewriting: str
) -> None:
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    assert service.release(task.id, AMAL, 2, reason="shift_ending").changed
    record = f"SELECT * FROM dibs.{table} ORDER BY id"  # noqa: S608
    before = desk.rows(record)
    with pytest.raises(sa.exc.IntegrityError, match="append-only"):
        desk.execute(rewriting.format(table))
    assert desk.rows(record) == before


def test_a_task_with_a_record_is_never_deleted(desk: Desk) -> None:
    task = desk.task()
    with pytest.raises(sa.exc.IntegrityError):
        desk.execute("DELETE FROM dibs.task WHERE id = :id", id=task.id)
