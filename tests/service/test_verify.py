"""Evidence of tampering: whatever is altered, removed, added or moved is found and named."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from tests.support.journey import together
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.domain.task import ActionStatus, Task
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.service.verify import Intact, Misfit, SavedHeadsUnreadable, Scope, VerifyService
from dibs.store.chain import ERASED, stored_event_hash
from dibs.store.guard import Guard

UPDATE = "UPDATE dibs.{0} {0} SET {1} WHERE id = {2}"
REHASH = UPDATE.format("event", f"hash = {stored_event_hash('event')}", ":id")
APPEND_ONLY = ("event", "release_card")


@pytest.fixture
def storied(desk: Desk, service: TransitionService, engine: sa.Engine) -> Task:
    """A task of which everything that can be recorded was recorded, and one before and after it."""
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    desk.admit(SUE, supervisor=True)
    desk.task("Before")
    task = desk.task("Refund order 1001")
    at = task.version

    def done(outcome: object) -> int:
        nonlocal at
        assert getattr(outcome, "changed"), outcome  # noqa: B009 - whatever operation it was
        at += 1
        return at

    done(service.claim(task.id, AMAL, at))
    assert service.claim(task.id, BILAL, at).unchanged
    done(service.start(task.id, AMAL, at))
    done(service.note(task.id, AMAL, at, "They wrote twice"))
    done(service.record_action(task.id, AMAL, at, "refund 20 EUR"))
    done(
        service.release(
            task.id,
            AMAL,
            at,
            reason="other",
            comment="The bank is closed",
            handoff_note="Call on Monday",
            external_action="unknown",
        )
    )
    done(service.claim(task.id, BILAL, at))
    action = desk.value("SELECT id FROM dibs.external_action")
    done(service.start(task.id, BILAL, at, answers={action: ActionStatus.COMPLETED}, finding="It arrived"))
    done(service.transfer(task.id, SUE, at, AMAL, reason="Bilal is away"))
    done(service.force_release(task.id, SUE, at, reason="shift_ending"))
    done(service.check(task.id, SUE, at, finding="Nothing is open"))
    done(service.claim(task.id, AMAL, at))
    desk.end_lease(task)
    SweepService(Guard(engine)).sweep_once()
    at += 1
    done(service.claim(task.id, BILAL, at))
    done(service.start(task.id, BILAL, at))
    done(service.done(task.id, BILAL, at, resolution="Refunded"))
    desk.task("After")
    for table in APPEND_ONLY:
        desk.execute(f"ALTER TABLE dibs.{table} DISABLE TRIGGER ALL")
    return task


def verified(
    engine: sa.Engine,
    saved: Iterable[str] = (),
    save: Callable[[str], object] = str,
) -> Intact | Misfit:
    return VerifyService(engine).verify(Scope(), saved=saved, save=save)


def found(engine: sa.Engine, *words: str) -> Misfit:
    fault = verified(engine)
    assert isinstance(fault, Misfit), fault
    assert all(word in f"{fault.where} {fault.what}" for word in words), fault
    return fault


@pytest.mark.usefixtures("storied")
def test_what_nobody_touched_fits(engine: sa.Engine, desk: Desk) -> None:
    intact = verified(engine)
    assert intact == Intact(
        tasks=3,
        events=desk.value("SELECT count(*) FROM dibs.event"),
        release_cards=2,
        before_the_chain=0,
        head=intact.head if isinstance(intact, Intact) else "",
    )


EVENT_COLUMNS = {
    "queue_id": "(SELECT max(id) FROM dibs.queue)",
    "task_id": "(SELECT max(id) FROM dibs.task)",
    "kind": "'renewed'",
    "actor_id": "'U0MALLORY'",
    "at": "at - interval '1 microsecond'",
    "version_before": "version_before + 1, version_after = version_after + 1",
    "version_seen": "coalesce(version_seen, 0) + 1",
    "op_id": "op_id || '!'",
    "detail": "coalesce(detail, '{}') || '{\"x\": 1}'",
    "private_text": "'never written'",
    "content": "sha256('x')",
    "previous": "sha256('x')",
    "hash": "sha256('x')",
}


@pytest.mark.parametrize("kind", ["created", "started", "released", "claim_rejected", "expired", "done"])
def test_each_column_of_an_event(desk: Desk, engine: sa.Engine, storied: Task, kind: str) -> None:
    desk.execute(
        "INSERT INTO dibs.queue (workspace, channel_id, key, name, lease_seconds, created_by) "
        "VALUES ('T', 'C', 'XYZ', 'x', 60, 'U')"
    )
    which = "SELECT max(id) FROM dibs.event WHERE task_id = :t AND kind = :k"
    event_id = desk.value(which, t=storied.id, k=kind)
    for column, value in EVENT_COLUMNS.items():
        if column == "kind" and kind == "claim_rejected":
            value = "'renew_rejected'"  # noqa: PLW2901 - a refusal must stay one
        with altered(desk, "event", column, value, event_id):
            fault = verified(engine)
        assert isinstance(fault, Misfit), column
        if column == "task_id":
            # It is missed where it was, or does not fit where it is now, whichever comes first.
            assert fault.where in ("SUP-2", "SUP-3")
        else:
            assert (fault.where, fault.event_id) == ("SUP-2", event_id), column
    assert isinstance(verified(engine), Intact)


@contextmanager
def altered(desk: Desk, table: str, column: str, value: str, row_id: int) -> Iterator[None]:
    """One column of one row otherwise, and then again as it was."""
    kept = desk.rows(f"SELECT * FROM dibs.{table} WHERE id = :id", id=row_id)[0]  # noqa: S608 - our own names
    desk.execute(UPDATE.format(table, f"{column} = {value}", ":id"), id=row_id)
    yield
    back = json.dumps(kept[column]) if isinstance(kept[column], dict) else kept[column]
    # A condition binds the two versions to each other.
    also = f", version_after = {kept['version_after']}" if column == "version_before" else ""
    desk.execute(UPDATE.format(table, f"{column} = :back{also}", ":id"), id=row_id, back=back)


def test_every_column_of_an_event_and_of_a_card_is_tried_here(desk: Desk) -> None:
    def columns(table: str) -> set[str]:
        return {
            row["column_name"]
            for row in desk.rows(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = 'dibs' AND table_name = :t",
                t=table,
            )
        }

    # An id is a place in the order, and tried there; version_after and why are bound to other columns.
    assert columns("event") - {"id", "version_after", "why"} == set(EVENT_COLUMNS)
    assert columns("release_card") - {"id", "version_after"} == set(CARD_COLUMNS)


@pytest.mark.usefixtures("storied")
def test_the_reason_of_a_refusal(desk: Desk, engine: sa.Engine) -> None:
    desk.execute("UPDATE dibs.event SET why = 'stale' WHERE kind = 'claim_rejected'")
    found(engine, "SUP-2", "claim_rejected", "altered")


CARD_COLUMNS = {
    "task_id": "(SELECT max(id) FROM dibs.task)",
    "previous_owner": "'U0MALLORY'",
    "state_at_release": "CASE state_at_release WHEN 'started' THEN 'claimed' ELSE 'started' END",
    "version_before": "version_before + 40, version_after = version_after + 40",
    "reason": "'out_of_scope'",
    "comment": "'never said'",
    "handoff_note": "'never written'",
    "external_action": "'completed'",
    "forced_by": "'U0MALLORY'",
    "created_at": "created_at + interval '1 microsecond'",
    "comment_digest": "sha256('x')",
    "note_digest": "sha256('x')",
    "previous": "sha256('x')",
    "hash": "sha256('x')",
}


def test_each_column_of_a_release_card(desk: Desk, engine: sa.Engine, storied: Task) -> None:
    released = desk.value("SELECT id FROM dibs.event WHERE kind = 'released' AND task_id = :t", t=storied.id)
    card = desk.value("SELECT min(id) FROM dibs.release_card")
    for column, value in CARD_COLUMNS.items():
        with altered(desk, "release_card", column, value, card):
            assert found(engine, "SUP-2", "released").event_id == released, column
    assert isinstance(verified(engine), Intact)


@pytest.mark.usefixtures("storied")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE dibs.task SET title = 'Another'", ("created", "text")),
        ("UPDATE dibs.task SET details = 'More'", ("created", "text")),
        ("UPDATE dibs.task SET resolution = 'Nothing' WHERE state = 'done'", ("done", "text")),
        ("UPDATE dibs.task SET head = sha256('x') WHERE number = 2", ("names another event",)),
        ("UPDATE dibs.task SET version = version + 1 WHERE number = 2", ("names another event",)),
        ("UPDATE dibs.task_note SET text = 'They never wrote'", ("noted", "text")),
        ("DELETE FROM dibs.task_note", ("noted", "text")),
        ("UPDATE dibs.external_action SET description = 'refund 2 EUR'", ("action_recorded", "text")),
        ("UPDATE dibs.event SET private_text = 'Never found' WHERE kind = 'started'", ("started", "text")),
        ("UPDATE dibs.event SET private_text = 'No' WHERE kind = 'checked'", ("checked", "text")),
        ("UPDATE dibs.event SET private_text = 'No' WHERE kind = 'transferred'", ("transferred", "text")),
        ("DELETE FROM dibs.release_card WHERE forced_by IS NULL", ("released", "release card is missing")),
        ("UPDATE dibs.task_note SET author_id = 'U0BILAL'", ("no event tells of its working note",)),
        ("UPDATE dibs.task_note SET created_at = created_at - interval '1 s'", ("of its working note",)),
        (
            "UPDATE dibs.external_action SET recorded_by = 'U0BILAL'",
            ("no event tells of its external action",),
        ),
        ("UPDATE dibs.external_action SET recorded_at = now()", ("no event tells of its external action",)),
        ("UPDATE dibs.external_action SET number = 7", ("no event tells of its external action",)),
        (
            """INSERT INTO dibs.task_note (task_id, version, author_id, text)
            SELECT id, 40, 'U0AMAL', 'x' FROM dibs.task WHERE number = 1""",
            ("no event tells of its working note",),
        ),
        (
            """INSERT INTO dibs.release_card
                (task_id, previous_owner, state_at_release, version_before, version_after, reason)
            SELECT id, 'U', 'claimed', 40, 41, 'other' FROM dibs.task WHERE number = 1""",
            ("no event tells of its release card",),
        ),
        ("DELETE FROM dibs.event WHERE task_id = (SELECT max(id) FROM dibs.task)", ("SUP-3", "no events")),
    ],
)
def test_what_stands_beside_the_events(
    desk: Desk, engine: sa.Engine, change: str, words: tuple[str, ...]
) -> None:
    desk.execute(change)
    found(engine, *words)


def _ids(desk: Desk, task: Task) -> list[int]:
    rows = desk.rows("SELECT id FROM dibs.event WHERE task_id = :t AND why IS NULL ORDER BY id", t=task.id)
    return [row["id"] for row in rows]


def test_a_removed_event_is_missed_by_the_next(desk: Desk, engine: sa.Engine, storied: Task) -> None:
    ids = _ids(desk, storied)
    desk.execute("DELETE FROM dibs.event WHERE id = :id", id=ids[5])
    assert found(engine, "SUP-2", "does not follow").event_id == ids[6]


def test_a_removed_last_event_is_missed_by_the_task(desk: Desk, engine: sa.Engine, storied: Task) -> None:
    ids = _ids(desk, storied)
    desk.execute("DELETE FROM dibs.event WHERE id = :id", id=ids[-1])
    assert found(engine, "SUP-2", "names another event").event_id == ids[-2]


def test_a_removed_first_event_is_missed_by_the_second(desk: Desk, engine: sa.Engine, storied: Task) -> None:
    ids = _ids(desk, storied)
    desk.execute("DELETE FROM dibs.event WHERE id = :id", id=ids[0])
    assert found(engine, "SUP-2", "does not follow").event_id == ids[1]


COPY = """
INSERT INTO dibs.event (id, queue_id, task_id, kind, actor_id, at, version_before, version_after,
                        version_seen, op_id, why, detail, private_text, content, previous, hash)
OVERRIDING SYSTEM VALUE
SELECT {id}, queue_id, task_id, kind, 'U0MALLORY', at, version_before, version_after, version_seen,
       'forged', why, detail, private_text, content, previous, {hash}
FROM dibs.event e WHERE id = :id
"""


@pytest.mark.parametrize("forged", ["hash", "NULL"])
@pytest.mark.parametrize("at", ["100000", "-1"])
def test_an_added_event_does_not_fit(
    desk: Desk, engine: sa.Engine, storied: Task, forged: str, at: str
) -> None:
    desk.execute(COPY.format(id=at, hash=forged), id=_ids(desk, storied)[5])
    if (forged, at) == ("NULL", "-1"):
        # Before the first event of a task that has a chain from its first event on.
        assert "there are events before it" in found(engine, "SUP-2").what
    else:
        assert found(engine, "SUP-2").event_id == int(at)


def test_two_events_that_changed_places(desk: Desk, engine: sa.Engine, storied: Task) -> None:
    first, second = _ids(desk, storied)[3:5]
    move = "UPDATE dibs.event SET id = :to OVERRIDING SYSTEM VALUE WHERE id = :id"
    desk.execute("ALTER TABLE dibs.event ALTER id SET GENERATED BY DEFAULT")
    for source, target in ((first, -1), (second, first), (-1, second)):
        desk.execute(move.replace(" OVERRIDING SYSTEM VALUE", ""), id=source, to=target)
    assert found(engine, "SUP-2", "does not follow").event_id == first


def test_an_event_that_was_rewritten_with_a_new_hash_breaks_the_next(
    desk: Desk, engine: sa.Engine, storied: Task
) -> None:
    ids = _ids(desk, storied)
    desk.execute("UPDATE dibs.event SET actor_id = 'U0MALLORY' WHERE id = :id", id=ids[4])
    desk.execute(REHASH, id=ids[4])
    assert found(engine, "SUP-2", "does not follow").event_id == ids[5]


@pytest.mark.usefixtures("storied")
def test_erased_texts_still_verify(desk: Desk, engine: sa.Engine) -> None:
    before = verified(engine)
    for change in (
        "UPDATE dibs.event SET private_text = NULL",
        "UPDATE dibs.task_note SET text = :erased",
        "UPDATE dibs.external_action SET description = :erased",
        "UPDATE dibs.release_card SET comment = NULL, handoff_note = :erased WHERE handoff_note IS NOT NULL",
        "UPDATE dibs.task SET title = :erased, resolution = NULL WHERE number = 2",
    ):
        desk.execute(change, **({"erased": ERASED} if ":erased" in change else {}))
    assert isinstance(before, Intact)
    assert verified(engine) == before


def test_events_from_before_the_chain_are_counted_and_the_chain_begins_after_them(
    desk: Desk, engine: sa.Engine, service: TransitionService, storied: Task
) -> None:
    desk.execute(
        "UPDATE dibs.event SET hash = NULL, previous = NULL, content = NULL "
        "WHERE task_id = (SELECT id FROM dibs.task WHERE number = 1)"
    )
    desk.execute("UPDATE dibs.task SET head = NULL WHERE number = 1")
    intact = verified(engine)
    assert isinstance(intact, Intact)
    assert intact.before_the_chain == 1
    older = desk.value("SELECT id FROM dibs.task WHERE number = 1")
    assert service.claim(older, AMAL, 1).changed
    assert service.claim(older, BILAL, 1).unchanged
    assert service.start(older, AMAL, 2).changed
    assert isinstance(verified(engine), Intact)
    first = _ids(desk, storied)[3]
    desk.execute("UPDATE dibs.event SET hash = NULL WHERE id = :id", id=first)
    assert found(engine, "no hash").event_id == first


def test_an_event_of_a_queue_that_was_altered(
    desk: Desk, engine: sa.Engine, service: TransitionService
) -> None:
    assert service.claim_next([desk.queue.id], AMAL).unchanged
    assert isinstance(verified(engine), Intact)
    desk.execute("ALTER TABLE dibs.event DISABLE TRIGGER ALL")
    desk.execute("UPDATE dibs.event SET actor_id = 'U0MALLORY'")
    found(engine, "SUP", "claim_rejected")


def test_heads_that_were_saved_stand_however_much_is_added(
    desk: Desk, engine: sa.Engine, service: TransitionService
) -> None:
    first, _ = desk.task(), desk.task()
    assert service.claim(first.id, AMAL, 1).changed
    kept: list[str] = []
    assert isinstance(verified(engine, save=kept.append), Intact)
    assert service.start(first.id, AMAL, 2).changed
    desk.task()
    assert isinstance(verified(engine, saved=kept), Intact)
    # Who rewrites all later hashes too, and the task's head, is found by the head that was kept.
    for table in APPEND_ONLY:
        desk.execute(f"ALTER TABLE dibs.{table} DISABLE TRIGGER ALL")
    desk.execute("UPDATE dibs.event SET actor_id = 'U0MALLORY' WHERE kind = 'claimed'")
    previous = None
    for event_id in _ids(desk, first):
        desk.execute("UPDATE dibs.event SET previous = :p WHERE id = :id", p=previous, id=event_id)
        desk.execute(REHASH, id=event_id)
        previous = desk.value("SELECT hash FROM dibs.event WHERE id = :id", id=event_id)
    desk.execute("UPDATE dibs.task SET head = :h WHERE id = :id", h=previous, id=first.id)
    assert isinstance(verified(engine), Intact)
    fault = verified(engine, saved=kept)
    assert isinstance(fault, Misfit)
    assert (fault.where, fault.what) == ("SUP-1", "the head that was saved no longer stands in its chain")
    gone = verified(engine, saved=["1000000 SUP-9 1 -\n"])
    assert isinstance(gone, Misfit)
    assert "it is gone" in gone.what


def test_a_task_that_was_taken_back_or_away_is_found_by_the_heads_that_were_kept(
    desk: Desk, engine: sa.Engine, service: TransitionService
) -> None:
    first, second = desk.task(), desk.task()
    assert service.claim(first.id, AMAL, 1).changed
    kept: list[str] = []
    verified(engine, save=kept.append)
    desk.execute("ALTER TABLE dibs.event DISABLE TRIGGER ALL")
    for statement in (
        "DELETE FROM dibs.event WHERE task_id = :t",
        "DELETE FROM dibs.card WHERE task_id = :t",
    ):
        desk.execute(statement, t=second.id)
    desk.execute("DELETE FROM dibs.task WHERE id = :t", t=second.id)
    assert isinstance(verified(engine), Intact)
    assert verified(engine, saved=kept) == Misfit("SUP-2", None, "a head was saved for it, and it is gone")
    desk.execute("DELETE FROM dibs.event WHERE kind = 'claimed'")
    desk.execute(
        "UPDATE dibs.task t SET version = 1, state = 'queued', owner_id = NULL, lease_until = NULL, "
        "head = (SELECT e.hash FROM dibs.event e WHERE e.task_id = t.id)"
    )
    assert isinstance(verified(engine), Intact)
    assert verified(engine, saved=kept) == Misfit(
        "SUP-1", None, "the head that was saved no longer stands in its chain"
    )


@pytest.mark.parametrize("line", ["", "x", "1 SUP-1 1 xyz", "x SUP-1 1 ab"])
def test_saved_heads_that_are_none(desk: Desk, engine: sa.Engine, line: str) -> None:
    desk.task()
    with pytest.raises(SavedHeadsUnreadable, match="line 1"):
        verified(engine, saved=[f"{line}\n"])


def test_ten_presses_at_once_make_one_chain(
    desk: Desk, engine: sa.Engine, service: TransitionService
) -> None:
    task = desk.task()
    outcomes = together([lambda: service.claim(task.id, AMAL, 1) for _ in range(10)])
    assert sum(outcome.changed for outcome in outcomes) == 1
    intact = verified(engine)
    assert isinstance(intact, Intact)
    assert intact.events == 11


def test_memory_stays_flat_however_much_is_verified(desk: Desk, engine: sa.Engine) -> None:
    desk.execute("ALTER TABLE dibs.event DISABLE TRIGGER ALL")
    small, large = desk.task(), desk.task()
    fill = """
        INSERT INTO dibs.event (queue_id, task_id, kind, version_before, version_after, op_id, why)
        SELECT :queue, :task, 'claim_rejected', 1, 1, concat(CAST(:task AS text), '-', n), 'held'
        FROM generate_series(1, CAST(:number AS int)) n"""
    desk.execute("UPDATE dibs.task SET head = NULL")
    desk.execute("UPDATE dibs.event SET hash = NULL")
    for task, number in ((small, 3_000), (large, 30_000)):
        desk.execute(fill, queue=desk.queue.id, task=task.id, number=number)

    def peak(task: Task) -> int:
        tracemalloc.start()
        try:
            found = VerifyService(engine).verify(Scope(task_id=task.id))
            assert isinstance(found, Intact)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(small)
    assert peak(large) < 1.5 * peak(small)
