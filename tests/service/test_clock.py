"""No lease is ended by a clock that cannot be trusted, nor before its owner could have renewed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime

import psycopg
import pytest
from tests.support.clocks import Clocks, settable_clocks
from tests.support.store import AMAL, BILAL, SUE, Desk, open_desk

from dibs.domain.brakes import Brake
from dibs.domain.clock import AGREED_SECONDS
from dibs.domain.task import Task
from dibs.service.brakes import BrakeService
from dibs.service.clock import ClockLimits, ClockService, Look
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.store.engine import BACKGROUND, PRESS, make_engine
from dibs.store.guard import Guard

LIMITS = ClockLimits(tolerance=5, outage=300, grace=600)


@pytest.fixture
def clocks(database_url: str) -> Clocks:
    return settable_clocks(database_url)


@pytest.fixture
def desk(database_url: str, clocks: Clocks) -> Iterator[Desk]:
    """A queue on a database whose clock can be set; leases last for 30 minutes."""
    del clocks
    engine = make_engine(database_url, PRESS, pool_size=4)
    yield open_desk(engine)
    engine.dispose()


class Bot:
    """One process: its sweep, and whether it reaches Slack."""

    def __init__(self, url: str, clocks: Clocks, limits: ClockLimits = LIMITS) -> None:
        self.slack_answers = True
        self.engine = make_engine(url, BACKGROUND, pool_size=4)
        self.clock = ClockService(
            Guard(self.engine),
            limits,
            slack_answers=lambda: self.slack_answers,
            wall=clocks.wall,
            monotonic=clocks.monotonic,
        )
        self.sweep = SweepService(Guard(self.engine), clock=self.clock)

    def returned(self) -> int:
        return len(self.sweep.sweep_once())


@pytest.fixture
def start(database_url: str, clocks: Clocks, desk: Desk) -> Iterator[Callable[[], Bot]]:
    """Starts a process."""
    del desk
    with ExitStack() as stack:

        def start() -> Bot:
            bot = Bot(database_url, clocks)
            stack.callback(bot.engine.dispose)
            return bot

        yield start


@pytest.fixture
def bot(start: Callable[[], Bot]) -> Bot:
    bot = start()
    assert bot.returned() == 0
    return bot


def claimed(desk: Desk, service: TransitionService | None = None) -> Task:
    outcome = (service or TransitionService(desk.engine)).claim(desk.task().id, AMAL, 1)
    assert outcome.task is not None
    return outcome.task


def ends_in(desk: Desk, task: Task) -> float:
    """Seconds until the lease ends, by the database's clock."""
    seconds: float = desk.value(
        "SELECT extract(epoch FROM lease_until - clock_timestamp())::float FROM dibs.task WHERE id = :id",
        id=task.id,
    )
    return seconds


def alerts(desk: Desk) -> list[dict[str, object]]:
    rows = desk.rows("SELECT payload FROM dibs.outbox WHERE kind = 'clock_stopped' ORDER BY id")
    return [row["payload"] for row in rows]


# --- a jump ahead


def test_after_a_jump_ahead_nothing_is_returned_until_a_supervisor_resumes(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    claimed(desk)
    clocks.step_both(3600)
    for _ in range(2):
        assert bot.returned() == 0
        clocks.let_pass(AGREED_SECONDS)
    assert "jumped ahead by 3600" in str(bot.clock.holds_still)
    [alert] = alerts(desk)
    assert (alert["why"], alert["needs_resume"]) == ("ahead", True)
    assert alert["seconds"] == pytest.approx(3600, abs=1)
    assert BrakeService(Guard(desk.engine)).resume(desk.queue.id, SUE).lifted == {Brake.CLOCK}
    bot.returned()
    assert bot.clock.holds_still is None
    [redrawn] = alerts(desk)
    assert redrawn["resumed_by"] == SUE
    kinds = [row["kind"] for row in desk.rows("SELECT * FROM dibs.event WHERE task_id IS NULL ORDER BY id")]
    assert kinds == ["paused", "resumed", "graced"]


def test_the_owners_whom_a_jump_left_no_time_get_a_grace_when_it_is_resumed(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    task = claimed(desk)
    clocks.step_both(3600)
    bot.returned()
    BrakeService(Guard(desk.engine)).resume(desk.queue.id, SUE)
    assert bot.returned() == 0
    assert ends_in(desk, task) == pytest.approx(LIMITS.grace, abs=5)


def test_every_process_obeys_a_stop_and_a_resume_and_the_alert_comes_once(
    desk: Desk, bot: Bot, start: Callable[[], Bot], clocks: Clocks
) -> None:
    others = [start() for _ in range(3)]
    for other in others:
        other.returned()
    clocks.step_both(60)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(Bot.returned, [bot, *others]))
    late = start()
    for one in (bot, *others, late):
        assert one.returned() == 0
        assert one.clock.holds_still
    assert len(alerts(desk)) == 1
    BrakeService(Guard(desk.engine)).resume(desk.queue.id, SUE)
    desk.end_lease(claimed(desk))
    # One that had not read the clock since the jump takes it as it is, as the supervisor did.
    assert [one.returned() for one in (late, bot, *others)] == [1, 0, 0, 0, 0]
    assert [one.clock.holds_still for one in (late, bot, *others)] == [None] * 5


def test_one_that_reads_the_clock_only_after_the_resume_does_not_stop_it_again(
    desk: Desk, bot: Bot, start: Callable[[], Bot], clocks: Clocks
) -> None:
    slow = start()
    slow.returned()
    clocks.step_both(60)
    bot.returned()
    BrakeService(Guard(desk.engine)).resume(desk.queue.id, SUE)
    slow.returned()
    assert slow.clock.holds_still is None
    clocks.step_both(60)
    slow.returned()
    assert slow.clock.holds_still


def test_a_supervisor_of_several_queues_hears_of_a_jump_once(desk: Desk, bot: Bot, clocks: Clocks) -> None:
    open_desk(desk.engine, key="OPS")
    clocks.step_both(60)
    bot.returned()
    rows = desk.rows("SELECT recipient FROM dibs.outbox WHERE kind = 'clock_stopped'")
    assert [row["recipient"] for row in rows] == [SUE]


def test_a_resume_of_any_queue_is_recorded_in_each(desk: Desk, bot: Bot, clocks: Clocks) -> None:
    other = open_desk(desk.engine, key="OPS")
    clocks.step_both(60)
    bot.returned()
    BrakeService(Guard(desk.engine)).resume(other.queue.id, SUE)
    rows = desk.rows("SELECT queue_id, kind FROM dibs.event WHERE task_id IS NULL ORDER BY id")
    assert sorted((row["kind"], row["queue_id"]) for row in rows) == [
        (kind, queue) for kind in ("paused", "resumed") for queue in (desk.queue.id, other.queue.id)
    ]


def test_owners_finish_and_hand_back_while_the_clock_is_stopped(desk: Desk, bot: Bot, clocks: Clocks) -> None:
    service = TransitionService(desk.engine)
    finished, back = claimed(desk, service), claimed(desk, service)
    assert service.start(finished.id, AMAL, 2).changed
    clocks.step_both(3600)
    assert bot.returned() == 0
    assert service.done(finished.id, AMAL, 3).changed
    assert service.release(back.id, AMAL, 2, reason="shift_ending").changed


# --- a step back, and clocks that differ


def test_a_clock_that_is_set_back_holds_up_the_sweep_until_it_has_agreed_for_a_while(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    desk.end_lease(claimed(desk))
    clocks.step_database(-30)
    desk.execute("UPDATE dibs.task SET lease_until = clock_timestamp() - interval '1 minute'")
    assert bot.returned() == 0
    assert "set back by 30" in str(bot.clock.holds_still)
    assert bot.returned() == 0
    assert "differ by 30" in str(bot.clock.holds_still)
    [alert] = alerts(desk)
    assert (alert["why"], alert["needs_resume"]) == ("backwards", False)
    clocks.step_database(30)
    assert bot.returned() == 0
    clocks.let_pass(AGREED_SECONDS - 2)
    assert bot.returned() == 0
    clocks.let_pass(2)
    assert bot.returned() == 1
    assert [sorted(alert) for alert in alerts(desk)] == [["needs_resume", "over", "seconds", "why"]]


def test_a_machine_whose_clock_is_rightly_set_back_goes_on_by_itself(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    clocks.step_both(-3600)
    assert bot.returned() == 0
    assert bot.clock.holds_still
    bot.returned()
    clocks.let_pass(AGREED_SECONDS)
    desk.end_lease(claimed(desk))
    assert bot.returned() == 1


def test_a_process_whose_own_clock_is_wrong_holds_still_and_the_others_go_on(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    wrong = Bot(clocks.url, Clocks(clocks.url, process_is_ahead=60))
    desk.end_lease(claimed(desk))
    assert wrong.returned() == 0
    assert "differ by 60" in str(wrong.clock.holds_still)
    assert bot.returned() == 1
    wrong.engine.dispose()


def test_several_processes_alert_once_that_the_clocks_differ(
    desk: Desk, bot: Bot, start: Callable[[], Bot], clocks: Clocks
) -> None:
    bots = [bot, *(start() for _ in range(3))]
    for one in bots:
        one.returned()
    clocks.step_database(-60)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(Bot.returned, bots))
    assert len(alerts(desk)) == 1


def test_of_clocks_that_differ_who_supervises_a_queue_made_meanwhile_hears_too_and_nobody_twice(
    desk: Desk, clocks: Clocks
) -> None:
    own = Clocks(clocks.url, process_is_ahead=60)
    wrong = Bot(clocks.url, own)
    wrong.returned()
    assert len(alerts(desk)) == 1
    # It was deleted by hand, and another could not be sent.
    desk.execute("UPDATE dibs.outbox SET live = false")
    other = open_desk(desk.engine, key="BIL")
    other.admit(BILAL, supervisor=True)
    for _ in range(3):
        own.let_pass(15)
        wrong.returned()
    told = desk.rows("SELECT recipient FROM dibs.outbox WHERE kind = 'clock_stopped' ORDER BY id")
    assert [row["recipient"] for row in told] == [SUE, BILAL]
    wrong.engine.dispose()


def test_an_alert_of_a_process_that_ended_meanwhile_is_over_with_the_next_start(
    desk: Desk, start: Callable[[], Bot], clocks: Clocks
) -> None:
    wrong = Bot(clocks.url, Clocks(clocks.url, process_is_ahead=60))
    wrong.returned()
    [told] = alerts(desk)
    assert "over" not in told
    wrong.engine.dispose()
    start().returned()
    [told] = alerts(desk)
    assert "over" in told
    clocks.let_pass(5)
    again = Bot(clocks.url, Clocks(clocks.url, process_is_ahead=60))
    again.returned()
    assert len(alerts(desk)) == 2
    again.engine.dispose()


def test_a_process_that_starts_behind_a_time_that_was_written_down_waits_too(
    desk: Desk, start: Callable[[], Bot], clocks: Clocks
) -> None:
    desk.execute("UPDATE dibs.clock SET swept_at = clock_timestamp() + interval '1 hour'")
    late = start()
    assert late.returned() == 0
    assert "set back by 36" in str(late.clock.holds_still)
    late.returned()
    clocks.let_pass(AGREED_SECONDS)
    late.returned()
    assert late.clock.holds_still is None


def test_a_clock_that_jumps_between_the_look_and_the_write_ends_no_lease(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    class LooksThenJumps(ClockService):
        def trusted_until(self, look: Look) -> datetime:
            until = super().trusted_until(look)
            clocks.step_database(3600)
            return until

    claimed(desk)
    clock = LooksThenJumps(Guard(bot.engine), LIMITS, wall=clocks.wall, monotonic=clocks.monotonic)
    sweep = SweepService(Guard(bot.engine), clock=clock)
    assert sweep.sweep_once() == []
    assert desk.value("SELECT lease_until < clock_timestamp() - interval '29 minutes' FROM dibs.task")
    assert sweep.sweep_once() == []
    clock.look_once()
    assert clock.holds_still


def test_a_clock_that_is_set_back_between_the_selection_and_the_write_ends_no_lease(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    """By now() the lease has ended; by the clock as it is when the row is locked it has not."""
    with psycopg.connect(clocks.url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
            "$$ SELECT pg_catalog.clock_timestamp() - interval '2 seconds' $$"
        )
    task = claimed(desk)
    desk.execute("UPDATE dibs.task SET lease_until = pg_catalog.now() - interval '1 second'")
    assert bot.returned() == 0
    assert desk.row_of(task)["version"] == 2
    desk.execute("UPDATE dibs.task SET lease_until = pg_catalog.now() - interval '4 seconds'")
    assert bot.returned() == 1


# --- an outage


def test_after_an_outage_the_leases_get_a_grace_before_any_is_ended(
    desk: Desk, start: Callable[[], Bot], clocks: Clocks
) -> None:
    start().returned()
    service = TransitionService(desk.engine)
    short, long = claimed(desk, service), claimed(desk, service)
    desk.execute(
        "UPDATE dibs.task SET lease_until = clock_timestamp() + interval '1 day' WHERE id = :id", id=long.id
    )
    desk.execute("UPDATE dibs.card SET shown_version = wanted_version")
    clocks.let_pass(3600)
    assert ends_in(desk, short) < 0
    again = start()
    assert again.returned() == 0
    assert ends_in(desk, short) == pytest.approx(LIMITS.grace, abs=5)
    assert ends_in(desk, long) > 80_000
    assert desk.row_of(short)["version"] == 2
    # The old button still works, and only the card whose lease moved is drawn anew.
    stale = desk.rows("SELECT task_id FROM dibs.card WHERE shown_version < wanted_version")
    assert [row["task_id"] for row in stale] == [short.id]
    [event] = desk.rows("SELECT * FROM dibs.event WHERE kind = 'graced'")
    assert (event["task_id"], event["actor_id"], event["detail"]["leases"]) == (None, None, 1)
    assert service.renew(short.id, AMAL, 2).changed


def test_the_grace_is_given_once_and_then_the_leases_end(
    desk: Desk, bot: Bot, start: Callable[[], Bot], clocks: Clocks
) -> None:
    task = claimed(desk)
    clocks.let_pass(3600)
    bots = [bot, *(start() for _ in range(3))]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(Bot.returned, bots))
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'graced'") == 1
    returned = 0
    for _ in range(4):
        assert (returned, ends_in(desk, task) > 0) == (0, True)
        clocks.let_pass(LIMITS.grace / 4 + 1)
        returned += sum(one.returned() for one in bots)
    assert returned == 1
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'graced'") == 1


def test_a_new_installation_and_a_short_absence_give_no_grace(
    desk: Desk, start: Callable[[], Bot], clocks: Clocks
) -> None:
    start().returned()
    task = claimed(desk)
    desk.end_lease(task)
    clocks.let_pass(LIMITS.outage - 10)
    assert start().returned() == 1
    desk.execute("UPDATE dibs.clock SET swept_at = NULL")
    desk.end_lease(claimed(desk))
    assert start().returned() == 1
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'graced'") == 0


def test_a_long_interval_between_sweeps_is_no_outage(desk: Desk, bot: Bot, clocks: Clocks) -> None:
    task = claimed(desk)
    for _ in range(30):
        clocks.let_pass(100)
        bot.clock.look_once()
    assert ends_in(desk, task) < 0
    assert bot.returned() == 1


def test_while_slack_is_away_for_long_nothing_is_returned_and_then_the_grace_is_given(
    desk: Desk, bot: Bot, clocks: Clocks
) -> None:
    task, lapsed = claimed(desk), claimed(desk)
    bot.slack_answers = False
    desk.end_lease(lapsed)
    # At first it may be a hiccup, and the sweep goes on.
    assert bot.returned() == 1
    clocks.let_pass(1000)
    assert bot.returned() == 0
    clocks.let_pass(1000)
    assert bot.returned() == 0
    assert "Slack has not answered" in str(bot.clock.holds_still)
    assert desk.row_of(task)["state"] == "claimed"
    bot.slack_answers = True
    assert bot.returned() == 0
    assert ends_in(desk, task) == pytest.approx(LIMITS.grace, abs=5)
    assert bot.clock.holds_still is None


def test_a_process_that_alone_cannot_reach_slack_takes_no_grace_from_the_others(
    desk: Desk, bot: Bot, start: Callable[[], Bot], clocks: Clocks
) -> None:
    alone = start()
    alone.slack_answers = False
    for _ in range(10):
        clocks.let_pass(100)
        assert bot.clock.look_once().holds_still is None
        assert alone.clock.look_once().holds_still is None
    desk.end_lease(claimed(desk))
    assert alone.returned() == 1


def test_a_grace_that_somebody_else_is_giving_is_waited_for(
    desk: Desk, bot: Bot, clocks: Clocks, database_url: str
) -> None:
    desk.end_lease(claimed(desk))
    clocks.let_pass(3600)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM dibs.clock FOR UPDATE")
        assert bot.returned() == 0
        assert "getting a grace" in str(bot.clock.holds_still)
    assert bot.returned() == 0
    assert desk.value("SELECT count(*) FROM dibs.event WHERE kind = 'graced'") == 1
