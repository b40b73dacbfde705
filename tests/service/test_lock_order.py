"""Who locks several rows locks them in order, so that no two wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import pytest
import sqlalchemy as sa
from tests.support.holders import Holder, Pressed, holder, wait_for_waiters
from tests.support.journey import guard_of, now, place
from tests.support.store import AMAL, BILAL, DANA, HANA, MAREK, SUE, Desk, open_desk

from dibs.deadline import Deadline
from dibs.domain.task import State
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store import cards, members

FIRST_CARD: LiteralString = "SELECT FROM dibs.card WHERE task_id = %(id)s FOR UPDATE"
MESSAGE: LiteralString = "SELECT FROM dibs.outbox WHERE id = %(id)s FOR UPDATE"
PERSON: LiteralString = "SELECT FROM dibs.queue_member WHERE user_id = %(id)s FOR UPDATE"


def _is_free(somebody: Holder, lock: LiteralString, row: object) -> None:
    """Fails at once where the press that waits for the first row has locked this one already."""
    somebody.do(lock + " NOWAIT", id=row)


@pytest.mark.parametrize(("actor", "heir"), [(SUE, AMAL), (AMAL, SUE)])
def test_a_transfer_locks_its_two_people_in_order(
    desk: Desk, service: TransitionService, database_url: str, actor: str, heir: str
) -> None:
    """As a change of the settings locks everybody."""
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    desk.execute("UPDATE dibs.queue_member SET supervisor = true, standing = 'eligible'")
    task = place(desk, State.CLAIMED, owner=BILAL)
    with holder(database_url) as somebody:
        somebody.do(PERSON, id=AMAL)
        transfer = Pressed(lambda: service.transfer(task.id, actor, task.version, heir, reason="shift"))
        wait_for_waiters(database_url)
        _is_free(somebody, PERSON, SUE)
        somebody.rollback()
        assert transfer.answer().changed
    assert now(desk, task).owner_id == heir


def _two_cards(desk: Desk) -> tuple[int, int]:
    """Two tasks. Whatever goes by where cards lie, or by when leases end, meets the second first."""
    first, second = place(desk, State.CLAIMED), place(desk, State.CLAIMED)
    desk.execute("UPDATE dibs.card SET disabled = 'is_archived', disabled_version = 1")
    desk.execute("UPDATE dibs.card SET attempts = 1 WHERE task_id = :id", id=first.id)
    desk.execute("UPDATE dibs.task SET lease_until = now() - make_interval(hours => CAST(id AS int))")
    return first.id, second.id


def _sweep(desk: Desk) -> object:
    return SweepService(guard_of(desk)).sweep_once()


def _post_again(desk: Desk) -> object:
    values = {"queue_id": desk.queue.id, "channel_id": "C0OTHER", "alert_channel": None}
    return guard_of(desk).run(cards.POST_AGAIN, values, Deadline.after(5))


def _take_up_again(desk: Desk) -> object:
    return guard_of(desk).run(cards.ENABLE, {"channel_id": desk.queue.channel_id}, Deadline.after(5))


@pytest.mark.parametrize("change", [_sweep, _post_again, _take_up_again])
def test_cards_are_locked_in_the_order_of_their_tasks(
    desk: Desk, database_url: str, change: Callable[[Desk], Any]
) -> None:
    first, second = _two_cards(desk)
    with holder(database_url) as somebody:
        somebody.do(FIRST_CARD, id=first)
        changed = Pressed(lambda: change(desk))
        wait_for_waiters(database_url)
        _is_free(somebody, FIRST_CARD, second)
        somebody.rollback()
        changed.answer()


@pytest.mark.parametrize(
    "lock", ["SELECT FROM dibs.queue FOR NO KEY UPDATE", "SELECT FROM dibs.outbox FOR UPDATE"]
)
def test_a_queue_that_moves_is_locked_before_its_messages_and_these_before_its_cards(
    desk: Desk, database_url: str, lock: LiteralString
) -> None:
    task = place(desk, State.CLAIMED)
    _two_messages(desk, [task.id])
    with holder(database_url) as settings:
        settings.do(lock)
        moved = Pressed(lambda: _post_again(desk))
        wait_for_waiters(database_url)
        _is_free(settings, FIRST_CARD, task.id)
        settings.rollback()
        moved.answer()
    assert desk.value("SELECT channel_id FROM dibs.card") == "C0OTHER"


def _put_last(desk: Desk, person: str) -> None:
    """Where the rows lie, the person's in this queue comes after all others."""
    desk.execute(
        "DELETE FROM dibs.queue_member WHERE queue_id = :q AND user_id = :p", q=desk.queue.id, p=person
    )
    desk.admit(person)


IN_QUEUE: LiteralString = "SELECT FROM dibs.queue_member WHERE queue_id = %(id)s FOR UPDATE"


def _told(desk: Desk, **more: object) -> dict[str, object]:
    return {"workspace": desk.queue.workspace, "user_id": AMAL, **more}


def _in_channel(desk: Desk) -> dict[str, object]:
    return _told(desk, channel_id=desk.queue.channel_id, at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (members.ACCOUNT_CHANGED, lambda desk: _told(desk, deactivated=True)),
        (members.JOINED, _in_channel),
        (members.LEFT, _in_channel),
    ],
    ids=["account", "joined", "left"],
)
def test_what_is_told_of_a_person_locks_them_in_the_order_of_the_queues(
    desk: Desk, database_url: str, statement: sa.Executable, values: Callable[[Desk], dict[str, object]]
) -> None:
    """As a claim of the longest waiting task of several queues does."""
    other = open_desk(desk.engine, key="BIL")
    for channel in ("C0ELSEWHERE", desk.queue.channel_id):
        desk.execute("UPDATE dibs.queue SET channel_id = :c WHERE id = :id", c=channel, id=desk.queue.id)
    _put_last(desk, AMAL)
    with holder(database_url) as somebody:
        somebody.do(IN_QUEUE, id=desk.queue.id)
        told = Pressed(lambda: guard_of(desk).run(statement, values(desk), Deadline.after(5)))
        wait_for_waiters(database_url)
        _is_free(somebody, IN_QUEUE, other.queue.id)
        somebody.rollback()
        told.answer()


@pytest.mark.parametrize(
    "present", [[], [AMAL, BILAL, HANA, DANA]], ids=["all gone", "one joins, one leaves"]
)
def test_a_reading_of_all_members_locks_them_in_the_order_of_their_ids(
    desk: Desk, database_url: str, present: list[str]
) -> None:
    desk.execute("UPDATE dibs.queue_member SET standing = 'left' WHERE user_id = :id", id=DANA)
    _put_last(desk, AMAL)
    first, last = (DANA, MAREK) if present else (AMAL, HANA)
    values = {
        "queue_id": desk.queue.id,
        "eligible_group": None,
        "present": present,
        "read_at": datetime.now(UTC) + timedelta(hours=1),
    }
    with holder(database_url) as somebody:
        somebody.do(PERSON, id=first)
        read = Pressed(lambda: guard_of(desk).run(members.READ_WHOLE, values, Deadline.after(5)))
        wait_for_waiters(database_url)
        _is_free(somebody, PERSON, last)
        somebody.rollback()
        read.answer()
    left = desk.rows(
        "SELECT user_id FROM dibs.queue_member WHERE standing = 'left' AND user_id <> :sue", sue=SUE
    )
    assert {row["user_id"] for row in left} == {AMAL, BILAL, HANA, MAREK, DANA} - set(present)


def _two_messages(desk: Desk, tasks: list[int]) -> list[int]:
    """Live messages, the first of which lies behind the others."""
    ids = [
        desk.value(
            "INSERT INTO dibs.outbox (queue_id, task_id, key, kind, recipient, payload, live) "
            "VALUES (:queue, :task, :key, 'needs_check', :who, '{}', true) RETURNING id",
            queue=desk.queue.id,
            task=task,
            key=f"needs_check:{task}:{number}",
            who=SUE,
        )
        for number, task in enumerate(tasks)
    ]
    desk.execute("UPDATE dibs.outbox SET attempts = 1, next_try_at = now() WHERE id = :id", id=ids[0])
    return ids


def test_a_press_locks_the_messages_that_follow_its_task_in_their_order(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    """As a sender does, of messages that have become one."""
    task = place(desk, State.CLAIMED)
    first, second = _two_messages(desk, [task.id, task.id])
    with holder(database_url) as somebody:
        somebody.do(MESSAGE, id=first)
        pressed = Pressed(lambda: service.start(task.id, AMAL, task.version))
        wait_for_waiters(database_url)
        _is_free(somebody, MESSAGE, second)
        somebody.rollback()
        assert pressed.answer().changed
    assert [row["wanted"] for row in desk.rows("SELECT wanted FROM dibs.outbox")] == [2, 2]


def test_the_sweep_locks_the_messages_that_follow_its_tasks_in_their_order(
    desk: Desk, database_url: str
) -> None:
    one, other = _two_cards(desk)
    first, second = _two_messages(desk, [one, other])
    with holder(database_url) as somebody:
        somebody.do(MESSAGE, id=first)
        swept = Pressed(lambda: _sweep(desk))
        wait_for_waiters(database_url)
        _is_free(somebody, MESSAGE, second)
        somebody.rollback()
        swept.answer()
    assert desk.value("SELECT count(*) FROM dibs.outbox WHERE kind = 'needs_check' AND wanted = 2") == 2
