"""Every press is answered in time and with the truth, whatever becomes of the database or the way to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from tests.support.holders import LOCK, PATIENCE, Pressed, holder, wait_for_waiters, wait_until
from tests.support.journey import count_events, events_of, now, together, whole_row
from tests.support.proxy import Fault, Proxy, closed_port, proxy_before
from tests.support.store import AMAL, BILAL, Desk

from dibs.deadline import PRESS_SECONDS, Deadline
from dibs.domain.errors import Busy, Lost, NothingSent, Refused
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import State
from dibs.service.transitions import TransitionService
from dibs.store.engine import PRESS, Timeouts, make_engine
from dibs.store.guard import Guard

SLACK_SECONDS = 3.0
AT_ONCE = 2.0
"""Less than the deadline, to which whoever waited for the database would have to wait."""
SELECT_ONE = sa.text("SELECT 1 AS one")


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with proxy_before(database_url) as proxy:
        yield proxy


@pytest.fixture
def far_engine(proxy: Proxy) -> Iterator[sa.Engine]:
    """An engine whose connections go through the proxy."""
    engine = make_engine(proxy.url, PRESS, pool_size=16)
    yield engine
    engine.dispose()


@pytest.fixture
def guard(far_engine: sa.Engine) -> Guard:
    """A guard that has spoken to the database before."""
    guard = Guard(far_engine)
    guard.run(SELECT_ONE, {}, Deadline.after())
    return guard


@pytest.fixture
def far_service(far_engine: sa.Engine, guard: Guard) -> TransitionService:
    return TransitionService(far_engine, guard=guard)


def timed(service: TransitionService, task_id: int, person: str) -> tuple[Outcome, float]:
    arrival = time.monotonic()
    outcome = service.claim(task_id, person, 1, op_id=person, deadline=Deadline.after(since=arrival))
    return outcome, time.monotonic() - arrival


# --- a server that answers nothing any more


def test_fifty_presses_on_a_frozen_server_are_answered_in_time_with_what_is_known(
    desk: Desk, proxy: Proxy, guard: Guard, far_service: TransitionService
) -> None:
    task = desk.task()
    guard.open_connections(16)
    people = [f"U0P{number}" for number in range(50)]
    for person in people:
        desk.admit(person)
    back = threading.Event()
    guard.call_when_back(back.set)

    proxy.freeze()
    answers = together([lambda person=person: timed(far_service, task.id, person) for person in people])  # type: ignore[misc]

    assert max(seconds for _, seconds in answers) < SLACK_SECONDS
    told = [(outcome.verdict, outcome.why) for outcome, _ in answers]
    # There are sixteen connections: so many were sent, the others surely were not.
    assert told.count((Verdict.UNKNOWN, Refusal.CONNECTION_LOST)) == 16
    assert told.count((Verdict.UNCHANGED, Refusal.DATABASE_AWAY)) == 34

    assert guard.away
    later, seconds = timed(far_service, task.id, AMAL)
    assert (later.verdict, later.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
    assert seconds < AT_ONCE
    assert not back.is_set()

    proxy.thaw()
    assert back.wait(60)
    unknown = [outcome for outcome, _ in answers if outcome.unknown]
    settled = [
        far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
        for outcome in unknown
    ]
    assert {outcome.verdict for outcome in settled} <= {Verdict.CHANGED, Verdict.UNCHANGED}
    # Whichever writes arrived late: what was told of them is what the records say, and for good.
    winners = [outcome.actor_id for outcome in settled if outcome.changed]
    recorded = desk.rows("SELECT actor_id FROM dibs.event WHERE kind = 'claimed'")
    assert [row["actor_id"] for row in recorded] == winners
    assert now(desk, task).owner_id == (winners[0] if winners else None)
    for outcome in settled:
        assert len(events_of(desk, outcome.op_id)) == 1
    assert all(events_of(desk, outcome.op_id) == [] for outcome, _ in answers if outcome.unchanged)
    claimed = far_service.claim(desk.task().id, AMAL, 1)
    assert claimed.changed


def test_a_frozen_server_that_nobody_was_connected_to_is_told_in_time(
    desk: Desk, proxy: Proxy, far_engine: sa.Engine, guard: Guard, far_service: TransitionService
) -> None:
    task = desk.task()
    far_engine.dispose()
    proxy.freeze()
    outcome, seconds = timed(far_service, task.id, AMAL)
    assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
    assert seconds < SLACK_SECONDS
    assert guard.away
    proxy.thaw()
    wait_until(lambda: not guard.away)
    assert far_service.claim(task.id, AMAL, 1).changed


def test_a_second_try_that_cannot_connect_is_told_in_time(
    desk: Desk, proxy: Proxy, database_url: str, far_service: TransitionService
) -> None:
    """The connection is lost late, and the server takes no new one."""
    task = desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: timed(far_service, task.id, AMAL))
        wait_for_waiters(database_url)
        # The longer the first try took, the less is left of the 3 seconds for a new connection.
        desk.execute("SELECT pg_sleep(1)")
        proxy.freeze()
        proxy.cut_all()
        outcome, seconds = pressed.answer()
    assert outcome.unknown
    assert seconds < SLACK_SECONDS


def test_two_frozen_hosts_are_told_in_time(desk: Desk, proxy: Proxy, database_url: str) -> None:
    task = desk.task()
    with proxy_before(database_url) as other:
        url = proxy.url.replace("127.0.0.1", "127.0.0.1%2C127.0.0.1").replace(
            f"port={proxy.port}", f"port={proxy.port}%2C{other.port}"
        )
        engine = make_engine(url, PRESS, pool_size=2)
        service = TransitionService(engine)
        assert service.claim(desk.task().id, AMAL, 1).changed
        engine.dispose()
        proxy.freeze()
        other.freeze()
        outcome, seconds = timed(service, task.id, AMAL)
        assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
        assert seconds < SLACK_SECONDS
        other.thaw()
        proxy.thaw()
        engine.dispose()


def test_a_first_host_that_answers_nothing_costs_its_time_out_once(
    desk: Desk, proxy: Proxy, database_url: str
) -> None:
    """After a failover the dead machine still stands first in the address."""
    with proxy_before(database_url) as dead:
        url = proxy.url.replace("127.0.0.1", "127.0.0.1%2C127.0.0.1").replace(
            f"port={proxy.port}", f"port={dead.port}%2C{proxy.port}"
        )
        engine = make_engine(url, PRESS, pool_size=16)
        guard = Guard(engine)
        dead.freeze()
        guard.open_connections(1)
        engine.dispose()
        service = TransitionService(engine, guard=guard)
        tasks = [desk.task() for _ in range(8)]
        # Less than the time-out, which every press would have to wait for first.
        outcomes = together(
            [
                lambda task=task: service.claim(task.id, AMAL, 1, deadline=Deadline.after(1.5))  # type: ignore[misc]
                for task in tasks
            ]
        )
        assert [outcome.verdict for outcome in outcomes] == [Verdict.CHANGED] * len(tasks)
        engine.dispose()


def test_a_press_that_arrived_long_ago_is_not_begun(desk: Desk, service: TransitionService) -> None:
    task = desk.task()
    late = Deadline.after(since=time.monotonic() - 2.35)
    outcome = service.claim(task.id, AMAL, 1, deadline=late)
    assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
    assert count_events(desk, task) == 1


def test_the_deadline_of_a_press_counts_from_its_arrival(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.freeze()
    began = time.monotonic()
    outcome = far_service.claim(task.id, AMAL, 1, deadline=Deadline.after(since=began - 1.5))
    assert outcome.unknown
    # Less than the deadline would be if it counted from here.
    assert time.monotonic() - began < PRESS_SECONDS


# --- connections that are lost


def test_a_write_whose_answer_is_lost_is_found_by_its_operation_id(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.ANSWER_LOST)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert proxy.faults_left == 0
    assert outcome.changed
    assert outcome.task is not None
    assert (outcome.task.owner_id, outcome.task.version) == (AMAL, 2)
    assert events_of(desk, "op") == ["claimed"]
    assert desk.kinds(task) == ["created", "claimed"]


def test_a_refusal_whose_answer_is_lost_is_found_too(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    assert far_service.claim(task.id, BILAL, 1).changed
    proxy.fail_next(Fault.ANSWER_LOST)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert (outcome.unchanged, outcome.why) == (True, Refusal.HELD)
    assert events_of(desk, "op") == ["claim_rejected"]


def test_a_write_that_never_reached_the_server_is_carried_out_once(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.REQUEST_LOST)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert (outcome.changed, outcome.replayed) == (True, False)
    assert proxy.faults_left == 0
    assert events_of(desk, "op") == ["claimed"]
    assert now(desk, task).version == 2


def test_the_next_task_is_claimed_once_though_the_answer_is_lost(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    first, second = desk.task(), desk.task()
    proxy.fail_next(Fault.ANSWER_LOST)
    outcome = far_service.claim_next([desk.queue.id], AMAL, op_id="op")
    assert outcome.changed
    assert outcome.task is not None
    assert outcome.task.id == first.id
    assert now(desk, second).state is State.QUEUED


def test_a_write_that_is_lost_twice_is_unknown_and_settled_as_carried_out(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.ANSWER_LOST, Fault.ANSWER_LOST)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert (outcome.verdict, outcome.why) == (Verdict.UNKNOWN, Refusal.CONNECTION_LOST)
    assert proxy.faults_left == 0
    settled = far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
    assert settled.changed
    assert settled.task is not None
    assert settled.task.owner_id == AMAL
    assert events_of(desk, "op") == ["claimed"]


def test_a_write_that_is_settled_as_lost_takes_no_effect_when_it_arrives_late(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.REQUEST_LATE, Fault.REQUEST_LATE)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert (outcome.verdict, outcome.why) == (Verdict.UNKNOWN, Refusal.CONNECTION_LOST)
    settled = far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
    assert (settled.unchanged, settled.why) == (True, Refusal.CONNECTION_LOST)
    before, events = whole_row(desk, task), desk.kinds(task)
    assert events == ["created", "claim_rejected"]

    assert proxy.deliver_late() == 2

    assert (whole_row(desk, task), desk.kinds(task)) == (before, events)
    # And settled once more, it is what it was.
    again = far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
    assert (again.unchanged, again.why) == (True, Refusal.CONNECTION_LOST)
    assert far_service.claim(task.id, AMAL, 1).changed


def test_a_late_write_that_arrives_before_it_is_settled_is_settled_as_carried_out(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.REQUEST_LATE, Fault.REQUEST_LATE)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert proxy.deliver_late() == 2
    settled = far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
    assert settled.changed
    assert desk.kinds(task) == ["created", "claimed"]


def test_a_write_that_is_still_waiting_is_not_settled_as_lost(
    desk: Desk, proxy: Proxy, database_url: str
) -> None:
    """Its transaction may still commit, so the settling waits for it."""
    task = desk.task()
    # The server waits for as long as this test may take on a busy machine.
    waits = Timeouts(lock_ms=30_000, statement_ms=30_000, idle_in_transaction_ms=30_000)
    engine = make_engine(proxy.url, waits, pool_size=4)
    patient = TransitionService(engine)
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: patient.claim(task.id, AMAL, 1, op_id="op", deadline=Deadline.after(2.0)))
        wait_for_waiters(database_url)
        proxy.cut_all()
        outcome = pressed.answer()
        assert outcome.unknown
        settling = Pressed(
            lambda: patient.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after(PATIENCE))
        )
        wait_for_waiters(database_url, 2)
        assert not settling.answered
        somebody.rollback()
        settled = settling.answer()
    engine.dispose()
    # The server had not yet noticed that its client was gone, so the write went through.
    assert settled.changed
    assert desk.kinds(task) == ["created", "claimed"]


def test_a_row_that_somebody_holds_makes_nobody_think_the_database_hangs(
    desk: Desk, engine: sa.Engine, database_url: str
) -> None:
    """Presses that had waited for their turn reach their deadline before the server gives up by itself."""
    guard = Guard(engine)
    guard.open_connections(16)
    service = TransitionService(engine, guard=guard)
    held, free = desk.task(), desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=held.id)
        deadline = Deadline.after(1.0)
        waiting = [
            Pressed(lambda name=f"op{n}": service.claim(held.id, AMAL, 1, op_id=name, deadline=deadline))  # type: ignore[misc]
            for n in range(12)
        ]
        outcomes = [pressed.answer() for pressed in waiting]
        assert {(outcome.verdict, outcome.why) for outcome in outcomes} == {(Verdict.UNCHANGED, Refusal.BUSY)}
        assert not guard.away
        assert service.claim(free.id, AMAL, 1).changed


def test_settling_while_the_database_is_away_stays_unknown(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    proxy.fail_next(Fault.REQUEST_LOST, Fault.REQUEST_LOST)
    outcome = far_service.claim(task.id, AMAL, 1)
    assert outcome.unknown
    proxy.fail_next(Fault.REQUEST_LOST, Fault.REQUEST_LOST)
    assert far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after()) == outcome
    settled = far_service.settle(outcome, task_id=task.id, version=1, deadline=Deadline.after())
    assert (settled.unchanged, settled.why) == (True, Refusal.CONNECTION_LOST)


def test_the_backends_end_is_no_refusal(desk: Desk, engine: sa.Engine, database_url: str) -> None:
    """A server that is restarted ends the sessions of the pool; the next press finds a new one."""
    service = TransitionService(engine)
    task = desk.task()
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert service.claim(task.id, AMAL, 1).changed


def test_presses_on_a_server_that_is_gone_change_nothing_and_fail_fast(desk: Desk) -> None:
    engine = make_engine(f"postgresql://dibs@127.0.0.1:{closed_port()}/dibs", PRESS, pool_size=2)
    service = TransitionService(engine)
    for _ in range(3):
        outcome, seconds = timed(service, desk.task().id, AMAL)
        assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
        assert seconds < AT_ONCE


# --- the guard by itself


def test_an_exhausted_pool_changes_nothing_and_does_not_count_as_away(desk: Desk, database_url: str) -> None:
    engine = make_engine(database_url, PRESS, pool_size=1)
    guard = Guard(engine)
    service = TransitionService(engine, guard=guard)
    task = desk.task()
    with engine.connect():
        outcome, seconds = timed(service, task.id, AMAL)
        assert (outcome.verdict, outcome.why) == (Verdict.UNCHANGED, Refusal.DATABASE_AWAY)
        assert seconds < AT_ONCE
        assert not guard.away
    assert service.claim(task.id, AMAL, 1).changed
    engine.dispose()


def test_a_statement_that_returns_no_rows_gives_none(desk: Desk, engine: sa.Engine) -> None:
    guard = Guard(engine)
    touch = sa.text("UPDATE dibs.queue SET name = 'Help' WHERE id = :id")
    assert list(guard.run_once(touch, {"id": desk.queue.id}, Deadline.after())) == []
    assert desk.value("SELECT name FROM dibs.queue") == "Help"


def test_failures_are_sorted_by_what_is_known(
    desk: Desk, engine: sa.Engine, database_url: str, proxy: Proxy, guard: Guard
) -> None:
    near = Guard(engine)
    with pytest.raises(Refused) as refused:
        near.run(sa.text("UPDATE dibs.queue SET name = ''"), {}, Deadline.after())
    assert refused.value.table == "queue"
    task = desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        with pytest.raises(Busy):
            near.run(sa.text("UPDATE dibs.task SET title = 'x'"), {}, Deadline.after())
    with pytest.raises(Refused, match="cannot be sent"):
        near.run(sa.text("SELECT CAST(:text AS text)"), {"text": "\ud800"}, Deadline.after())
    proxy.fail_next(Fault.REQUEST_LOST)
    with pytest.raises(Lost):
        guard.run(SELECT_ONE, {}, Deadline.after())
    with pytest.raises(NothingSent):
        guard.run(SELECT_ONE, {}, Deadline.after(0))


def test_after_a_lost_try_not_being_able_to_ask_again_does_not_mean_that_nothing_happened(
    desk: Desk, proxy: Proxy, database_url: str
) -> None:
    engine = make_engine(proxy.url, PRESS, pool_size=1)
    service = TransitionService(engine)
    assert service.claim(desk.task().id, AMAL, 1).changed
    task = desk.task()
    with holder(database_url) as somebody:
        somebody.do(LOCK, id=task.id)
        pressed = Pressed(lambda: service.claim(task.id, AMAL, 1, op_id="op"))
        wait_for_waiters(database_url)
        # The way to the server is gone: the second try cannot even connect.
        proxy.refuse()
        proxy.cut_all()
        outcome = pressed.answer()
        assert (outcome.verdict, outcome.why) == (Verdict.UNKNOWN, Refusal.CONNECTION_LOST)
    engine.dispose()


def test_a_refusal_of_the_second_try_does_not_mean_that_nothing_happened(
    desk: Desk, proxy: Proxy, far_service: TransitionService
) -> None:
    task = desk.task()
    # The first try is carried out; what is refused is the record of the second.
    desk.execute(
        "CREATE FUNCTION dibs.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.why IS NOT NULL THEN RAISE 'the records are full'; END IF; RETURN NEW; END $$"
    )
    desk.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON dibs.event FOR EACH ROW EXECUTE FUNCTION dibs.refuse()"
    )
    proxy.fail_next(Fault.ANSWER_LOST)
    outcome = far_service.claim(task.id, AMAL, 1, op_id="op")
    assert events_of(desk, "op") == ["claimed"]
    assert (outcome.verdict, outcome.why) == (Verdict.UNKNOWN, Refusal.CONNECTION_LOST)


def test_the_servers_own_time_outs_lie_within_the_deadline_and_waiting_is_no_refusal(
    engine: sa.Engine,
) -> None:
    setting = sa.text("SELECT CAST(setting AS int) FROM pg_settings WHERE name = :name")
    with engine.connect() as connection:
        shown = {
            name: connection.scalar(setting, {"name": name})
            for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        }
    assert shown["lock_timeout"] >= 1000
    assert shown["lock_timeout"] < shown["statement_timeout"] < 2400
    assert shown["idle_in_transaction_session_timeout"] == 3000


def test_a_press_that_is_ended_in_a_deadlock_is_carried_out_once_the_other_has_gone_on(
    desk: Desk, service: TransitionService, database_url: str
) -> None:
    """Where an operator's hand locks what presses lock, in another order."""
    task = desk.task()
    # Long before the wait for the lock is over, however busy the machine is.
    desk.execute(
        "DO $$ BEGIN EXECUTE format("
        "'ALTER DATABASE %I SET deadlock_timeout = 100', current_database()); END $$"
    )
    desk.engine.dispose()
    card = "SELECT FROM dibs.card WHERE task_id = %(id)s FOR UPDATE"
    with holder(database_url) as somebody:
        somebody.do("SET deadlock_timeout = '1h'")
        somebody.do(card, id=task.id)
        press = Pressed(lambda: service.claim(task.id, AMAL, 1, op_id="once"))
        wait_for_waiters(database_url)
        somebody.do(LOCK, id=task.id)
        somebody.rollback()
        assert press.answer().changed
    assert events_of(desk, "once") == ["claimed"]
    counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    wait_until(lambda: desk.value(counted) == 1)
