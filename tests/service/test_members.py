"""Who is in a channel: events that come twice, late or never, and look-ups that take their time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from tests.support.proxy import Fault, proxy_before
from tests.support.store import AMAL, CHANNEL, WORKSPACE, Desk

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed, StoreError
from dibs.domain.task import Standing
from dibs.service.members import PEOPLE_AT_A_TIME, QUEUES_AT_A_TIME, MembershipService
from dibs.store.engine import PRESS, make_engine
from dibs.store.guard import Guard

NINA = "U0NINA"
NOON = datetime.now(UTC)


def _nothing() -> None:
    pass


class Directory:
    """Channels and people as Slack would tell of them. `meanwhile` happens while a question is on its way."""

    def __init__(self, *people: str) -> None:
        self.people = set(people)
        self.unreadable: set[str] = set()
        self.unknown: set[str] = set()
        self.meanwhile: Callable[[], None] = _nothing
        self.asked: list[str] = []

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:
        assert deadline.remaining > 0
        self.asked.append(channel_id)
        if channel_id in self.unreadable:
            raise LookUpFailed("channel_not_found")
        found = set(self.people)
        self.meanwhile()
        return found

    def group_members(self, group_id: str, deadline: Deadline) -> Collection[str]:
        return self.members(group_id, deadline)

    def has_member(self, channel_id: str, user_id: str, deadline: Deadline) -> bool:
        return user_id in self.members(channel_id, deadline)

    def standing(self, workspace: str, user_id: str, deadline: Deadline) -> Standing:
        assert workspace == WORKSPACE
        assert deadline.remaining > 0
        self.asked.append(user_id)
        if user_id in self.unknown:
            raise LookUpFailed("user_not_found")
        self.meanwhile()
        return Standing.ELIGIBLE


@pytest.fixture
def directory(desk: Desk) -> Directory:
    people = desk.rows("SELECT user_id FROM dibs.queue_member WHERE standing <> 'left'")
    return Directory(*(row["user_id"] for row in people))


@pytest.fixture
def service(engine: sa.Engine, directory: Directory) -> MembershipService:
    return MembershipService(Guard(engine), directory)


def standing(desk: Desk, user_id: str) -> str | None:
    found: str | None = desk.value("SELECT standing FROM dibs.queue_member WHERE user_id = :u", u=user_id)
    return found


def joins(service: MembershipService, user_id: str, seconds: float = 0) -> None:
    service.joined(WORKSPACE, CHANNEL, user_id, NOON + timedelta(seconds=seconds), Deadline.after())


def leaves(service: MembershipService, user_id: str, seconds: float = 0) -> None:
    service.left(WORKSPACE, CHANNEL, user_id, NOON + timedelta(seconds=seconds), Deadline.after())


def test_a_repeated_join_lets_nobody_in_who_has_left(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    joins(service, NINA, 1)
    leaves(service, NINA, 2)
    joins(service, NINA, 1)
    assert standing(desk, NINA) == "left"
    service.catch_up()
    assert standing(desk, NINA) == "left"
    directory.people.add(NINA)
    joins(service, NINA, 3)
    service.catch_up()
    assert standing(desk, NINA) == "eligible"


def test_events_that_come_in_the_wrong_order_count_by_when_they_happened(
    desk: Desk, service: MembershipService
) -> None:
    leaves(service, NINA, 2)
    joins(service, NINA, 1)
    assert standing(desk, NINA) == "left"
    joins(service, NINA, 4)
    leaves(service, NINA, 3)
    assert standing(desk, NINA) == "unverified"


def test_an_event_without_a_time_is_taken_on_the_safe_side(desk: Desk, service: MembershipService) -> None:
    leaves(service, AMAL)
    service.joined(WORKSPACE, CHANNEL, AMAL, None, Deadline.after())
    assert standing(desk, AMAL) == "left"
    joins(service, AMAL, 1)
    service.left(WORKSPACE, CHANNEL, AMAL, None, Deadline.after())
    assert standing(desk, AMAL) == "left"


def test_a_late_join_of_somebody_who_was_found_gone_is_passed_over(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    directory.people.discard(AMAL)
    service.read_again_soon()
    service.catch_up()
    assert standing(desk, AMAL) == "left"
    joins(service, AMAL, -60)
    assert standing(desk, AMAL) == "left"


def test_nobody_becomes_eligible_by_the_word_of_an_event_alone(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    service.catch_up()
    joins(service, NINA)  # who has left again, and the leave was lost
    service.catch_up()
    assert standing(desk, NINA) == "left"
    assert NINA not in directory.asked


@pytest.mark.parametrize("known", [None, Standing.LEFT, Standing.UNVERIFIED, Standing.ELIGIBLE])
def test_a_leave_during_a_look_up_stays(
    desk: Desk, service: MembershipService, directory: Directory, known: Standing | None
) -> None:
    if known:
        desk.admit(NINA, known)
    directory.people.add(NINA)
    directory.meanwhile = lambda: leaves(service, NINA, 60)
    service.look_up(desk.queue.id, NINA, Deadline.after())
    assert standing(desk, NINA) == "left"


def test_a_look_up_finds_who_is_there_and_who_is_not(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    service.look_up(desk.queue.id, NINA, Deadline.after())
    assert standing(desk, NINA) == "left"
    directory.people.add(NINA)
    service.look_up(desk.queue.id, NINA, Deadline.after())
    assert standing(desk, NINA) == "eligible"


def test_who_is_known_to_be_in_the_channel_is_looked_up_without_reading_it(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    directory.unreadable.add(CHANNEL)
    joins(service, NINA)
    service.look_up(desk.queue.id, NINA, Deadline.after())
    assert standing(desk, NINA) == "eligible"
    assert directory.asked == [NINA]


def test_a_channel_that_took_too_long_for_a_press_is_read_in_the_background(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    service.catch_up()
    directory.people.add(NINA)
    directory.unreadable.add(CHANNEL)
    with pytest.raises(LookUpFailed):
        service.look_up(desk.queue.id, NINA, Deadline.after())
    directory.unreadable.clear()
    service.catch_up()
    assert standing(desk, NINA) == "eligible"


def test_a_missed_event_is_remembered_until_the_database_knows(
    desk: Desk, directory: Directory, database_url: str
) -> None:
    with proxy_before(database_url) as proxy:
        engine = make_engine(proxy.url, PRESS, pool_size=2)
        service = MembershipService(Guard(engine), directory)
        service.catch_up()
        directory.people.add(NINA)
        service.read_again_soon()
        proxy.fail_next(Fault.REQUEST_LOST, Fault.REQUEST_LOST)
        with pytest.raises(StoreError):
            service.catch_up()
        assert standing(desk, NINA) is None
        service.catch_up()
        assert standing(desk, NINA) == "eligible"
        engine.dispose()


def test_channels_that_cannot_be_read_do_not_keep_others_from_being_read(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    desk.execute(
        "INSERT INTO dibs.queue (workspace, key, name, channel_id, lease_seconds, created_by) "
        "SELECT 'T0TEST', 'Q' || n, 'Gone', 'C0GONE' || n, 60, 'U0SUE' FROM generate_series(1, :most) n",
        most=QUEUES_AT_A_TIME,
    )
    desk.execute("UPDATE dibs.queue SET members_tried_at = '2001-01-01' WHERE key = 'SUP'")
    directory.unreadable.update(f"C0GONE{number}" for number in range(1, QUEUES_AT_A_TIME + 1))
    service.catch_up()
    assert CHANNEL not in directory.asked
    service.catch_up()
    assert CHANNEL in directory.asked
    # What could not be read is left alone for a while.
    asked = len(directory.asked)
    service.catch_up()
    assert not [channel for channel in directory.asked[asked:] if channel.startswith("C0GONE")]


def test_people_who_cannot_be_looked_up_do_not_keep_others_from_being_known(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    desk.execute("DELETE FROM dibs.queue_member WHERE NOT supervisor")
    directory.unknown = {f"U0A{number:02}" for number in range(PEOPLE_AT_A_TIME)}
    directory.people = {*directory.unknown, NINA, "U0MOTHS"}
    service.catch_up()
    service.catch_up()
    assert {standing(desk, NINA), standing(desk, "U0MOTHS")} == {"eligible"}


def test_a_channel_is_read_again_after_an_hour_and_not_before(
    desk: Desk, service: MembershipService, directory: Directory
) -> None:
    service.catch_up()
    service.catch_up()
    assert directory.asked.count(CHANNEL) == 1
    desk.execute(
        "UPDATE dibs.queue SET members_read_at = members_read_at - interval '61 minutes', "
        "members_tried_at = members_tried_at - interval '61 minutes'"
    )
    service.catch_up()
    assert directory.asked.count(CHANNEL) == 2
