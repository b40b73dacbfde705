"""Queues are made once, tasks are numbered without gaps or doubles, and lists show what is so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from tests.support.journey import add_action, lapse, place, together
from tests.support.store import AMAL, BILAL, CHANNEL, DANA, SUE, WORKSPACE, Desk

from dibs.deadline import Deadline
from dibs.domain.errors import Lost, NothingSent, Refused
from dibs.domain.queue import NewQueue
from dibs.domain.task import ActionStatus, State
from dibs.service.queries import TaskQueries
from dibs.service.queues import QueueService
from dibs.service.transitions import TransitionService
from dibs.store.guard import Guard, Parameters, Row

OPS = NewQueue(
    workspace=WORKSPACE,
    channel_id="C0OPS",
    key="OPS",
    name="Operations",
    lease_seconds=600,
    created_by=DANA,
    supervisors=(SUE, DANA),
)


@pytest.fixture
def queries(desk: Desk) -> TaskQueries:
    return TaskQueries(Guard(desk.engine))


# --- queues


def test_a_new_queue_has_its_creator_among_its_supervisors_and_a_breaker(desk: Desk) -> None:
    queue = desk.queues.create(OPS)
    assert queue is not None
    assert (queue.key, queue.channel_id, queue.lease_seconds) == ("OPS", "C0OPS", 600)
    members = "SELECT user_id FROM dibs.queue_member WHERE queue_id = :id AND supervisor ORDER BY user_id"
    assert [row["user_id"] for row in desk.rows(members, id=queue.id)] == [DANA, SUE]
    assert desk.value("SELECT count(*) FROM dibs.breaker WHERE queue_id = :id", id=queue.id) == 1


def test_a_key_is_taken_once_in_a_workspace(desk: Desk) -> None:
    first = desk.queues.create(OPS)
    assert desk.queues.create(replace(OPS, name="Something else")) is None
    assert desk.queues.create(replace(OPS, channel_id="C0ELSEWHERE")) is None
    # The same request, delivered again, finds its own queue.
    assert desk.queues.create(OPS) == first
    elsewhere = desk.queues.create(replace(OPS, workspace="T0OTHER"))
    assert elsewhere is not None
    assert elsewhere != first


def test_two_at_once_make_one_queue(desk: Desk) -> None:
    made = together([lambda: desk.queues.create(OPS)] * 4)
    assert len({queue.id for queue in made if queue}) == 1
    assert desk.value("SELECT count(*) FROM dibs.queue WHERE key = 'OPS'") == 1


@pytest.mark.parametrize("wrong", [{"key": "ops"}, {"key": ""}, {"lease_seconds": 0}])
def test_an_impossible_queue_is_refused(desk: Desk, wrong: dict[str, object]) -> None:
    with pytest.raises(Refused):
        desk.queues.create(replace(OPS, **wrong))  # type: ignore[arg-type]
    assert desk.value("SELECT count(*) FROM dibs.queue") == 1


def test_a_queue_without_a_name_is_none(desk: Desk) -> None:
    with pytest.raises(ValueError, match="name"):
        desk.queues.create(replace(OPS, name=" \0"))


def test_who_asks_for_the_next_task_is_looked_up_where_they_are_not_known_yet(desk: Desk) -> None:
    """One queue that knows the person and is empty does not hide another that does not know them yet."""
    ops = desk.queues.create(replace(OPS, channel_id=CHANNEL))
    assert ops is not None
    waiting = desk.queues.add_task(ops.id, "Older", SUE, op_id="older")
    assert waiting is not None

    class Directory:
        def look_up(self, queue_id: int, user_id: str, _deadline: Deadline) -> None:
            desk.execute(
                "INSERT INTO dibs.queue_member (queue_id, user_id, standing) VALUES (:q, :u, 'eligible') "
                "ON CONFLICT (queue_id, user_id) DO UPDATE SET standing = 'eligible'",
                q=queue_id,
                u=user_id,
            )

    service = TransitionService(desk.engine, membership=Directory())
    outcome = service.claim_next([desk.queue.id, ops.id], AMAL)
    assert outcome.task is not None
    assert outcome.task.id == waiting.task.id


def test_a_repeated_addition_that_cannot_be_looked_up_is_not_told_as_unchanged(
    desk: Desk, engine: sa.Engine
) -> None:
    desk.queues.add_task(desk.queue.id, "Once", SUE, op_id="again")
    short = QueueService(_OnlyOnce(engine))
    with pytest.raises(Lost):
        short.add_task(desk.queue.id, "Once", SUE, op_id="again")


class _OnlyOnce(Guard):
    """A guard whose database goes away after the first statement."""

    asked = 0

    def run(self, statement: sa.Executable, parameters: Parameters, deadline: Deadline) -> Sequence[Row]:
        self.asked += 1
        if self.asked > 1:
            raise NothingSent("the database went away")
        return super().run(statement, parameters, deadline)


def test_queues_are_found_by_channel_key_and_person(desk: Desk) -> None:
    ops = desk.queues.create(replace(OPS, channel_id=CHANNEL))
    assert desk.queues.of_channel(WORKSPACE, CHANNEL) == (desk.queue, ops)
    assert desk.queues.of_channel("T0OTHER", CHANNEL) == ()
    assert desk.queues.by_key(WORKSPACE, "OPS") == ops
    assert desk.queues.by_key("T0OTHER", "OPS") is None
    assert desk.queues.of_eligible(WORKSPACE, AMAL) == (desk.queue,)
    assert desk.queues.of_eligible(WORKSPACE, SUE) == ()


# --- tasks


def test_a_new_task_waits_at_version_1_with_its_event_and_its_card(desk: Desk) -> None:
    asked_for = datetime(2030, 1, 2, 9, tzinfo=UTC)
    added = desk.queues.add_task(
        desk.queue.id, " Refund ", AMAL, op_id="op", details=" order 7 ", task_deadline=asked_for
    )
    assert added is not None
    task = added.task
    assert (task.name, task.title, task.details, task.state) == ("SUP-1", "Refund", "order 7", State.QUEUED)
    assert (task.version, task.owner_id, task.lease_until, task.deadline) == (1, None, None, asked_for)
    assert desk.kinds(task) == ["created"]
    card = desk.rows("SELECT channel_id, message_ts, shown_version, wanted_version FROM dibs.card")
    assert [list(row.values()) for row in card] == [[CHANNEL, None, 0, 1]]


def test_tasks_added_at_once_are_numbered_one_by_one(desk: Desk) -> None:
    tasks = together([desk.task] * 12)
    assert sorted(task.number for task in tasks) == list(range(1, 13))


def test_numbers_are_each_queues_own(desk: Desk) -> None:
    ops = desk.queues.create(OPS)
    assert ops is not None
    desk.task()
    added = desk.queues.add_task(ops.id, "Restart it", DANA, op_id="ops")
    assert added is not None
    assert added.task.name == "OPS-1"


# --- what is shown


def test_a_task_is_found_by_its_name_in_its_workspace(desk: Desk, queries: TaskQueries) -> None:
    task = desk.task()
    assert queries.by_name(WORKSPACE, "SUP", task.number) == queries.by_id(task.id) == task
    assert queries.by_name("T0OTHER", "SUP", task.number) is None


def test_lists_leave_out_what_is_done_and_put_the_longest_waiting_first(
    desk: Desk, queries: TaskQueries
) -> None:
    waiting, claimed, done, started = (
        place(desk, state) for state in (State.QUEUED, State.CLAIMED, State.DONE, State.STARTED)
    )
    desk.execute("UPDATE dibs.task SET created_at = now() - interval '1 day' WHERE id = :id", id=started.id)
    listed = [task.id for task in queries.unfinished([desk.queue.id], most=10)]
    assert listed == [started.id, waiting.id, claimed.id]
    assert done.id not in listed
    assert len(queries.unfinished([desk.queue.id], most=2)) == 2


def test_mine_is_what_i_hold_now_the_lease_that_ends_first_first(desk: Desk, queries: TaskQueries) -> None:
    later, sooner = place(desk, State.CLAIMED), place(desk, State.STARTED)
    place(desk, State.CLAIMED, owner=BILAL)
    place(desk, State.DONE)
    desk.execute(
        "UPDATE dibs.task SET lease_until = lease_until - interval '9 min' WHERE id = :id", id=sooner.id
    )
    assert [task.id for task in queries.owned_by(WORKSPACE, AMAL, most=10)] == [sooner.id, later.id]
    assert queries.owned_by("T0OTHER", AMAL, most=10) == ()


def test_the_facts_of_a_card_are_of_one_moment(
    desk: Desk, service: TransitionService, queries: TaskQueries
) -> None:
    task = place(desk, State.STARTED)
    bare = queries.facts(task.id)
    assert bare is not None
    assert (bare.actions, bare.handover, bare.note, bare.channel_id) == ((), None, None, CHANNEL)
    add_action(desk, task, ActionStatus.COMPLETED)
    open_action = add_action(desk, task)
    service.note(task.id, AMAL, task.version, "first")
    service.note(task.id, AMAL, task.version + 1, "second")
    facts = queries.facts(task.id)
    assert facts is not None
    assert facts.note is not None
    assert (facts.note.text, facts.task.version) == ("second", task.version + 2)
    assert [action.id for action in facts.open_actions] == [open_action]
    assert facts.actions[1].reference(facts.task) == f"{task.name}-A2"
    service.release(
        task.id,
        AMAL,
        task.version + 2,
        reason="shift_ending",
        comment="bye",
        handoff_note="call back at noon",
        external_action="unknown",
    )
    facts = queries.facts(task.id)
    assert facts is not None
    assert facts.handover is not None
    assert (facts.handover.by, facts.handover.reason, facts.handover.note) == (
        AMAL,
        "shift_ending",
        "call back at noon",
    )
    assert facts.task.needs_check


def test_the_history_is_newest_first_and_shows_an_expiry_as_nobodys(
    desk: Desk, service: TransitionService, queries: TaskQueries
) -> None:
    task = place(desk, State.CLAIMED)
    assert service.note(task.id, AMAL, task.version, "on it").changed
    assert service.done(task.id, BILAL, task.version).unchanged
    lapse(desk, task)
    expired, refused, noted = queries.history(task.id, most=3)
    assert (expired.kind, expired.actor_id) == ("expired", None)
    assert (refused.kind, refused.why, refused.version_seen) == ("done_rejected", "held", task.version)
    assert (refused.version_before, refused.version_after) == (task.version + 1, task.version + 1)
    assert (noted.kind, noted.text) == ("noted", "on it")
    assert expired.at >= refused.at >= noted.at
