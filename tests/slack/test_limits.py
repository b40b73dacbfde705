"""Requests are counted ahead of Slack's refusals, and what it asks to wait is waited for just that."""

from __future__ import annotations

import pytest

from dibs.slack.limits import IN_CHANNEL, Limits

MINUTE = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("names", "tier"),
    [
        (("chat.update",), 50),
        (("conversations.history",), 50),
        (("conversations.open",), 50),
        (("chat.postMessage",), 300),
        ((f"{IN_CHANNEL}C0SUPPORT",), 65),
    ],
)
def test_no_minute_sees_more_than_the_tier_allows(clock: Clock, names: tuple[str, ...], tier: int) -> None:
    limits = Limits(clock)
    asked: list[float] = []
    while clock.now < 1000 + 5 * MINUTE:
        if limits.take(names) == 0:
            asked.append(clock.now)
        clock.now += 0.05
    for begin in asked:
        assert sum(begin <= at < begin + MINUTE for at in asked) <= tier
    assert len(asked) >= 0.75 * 5 * min(tier, 60)


def test_who_waits_as_long_as_told_gets_through(clock: Clock) -> None:
    limits = Limits(clock)
    while not (wait := limits.take(["chat.update"])):
        pass
    clock.now += wait / 2
    assert limits.take(["chat.update"]) == pytest.approx(wait / 2)
    clock.now += wait / 2 + 0.001
    assert limits.take(["chat.update"]) == 0


def test_a_busy_channel_holds_up_no_other_and_costs_the_workspace_nothing_while_it_waits(
    clock: Clock,
) -> None:
    limits = Limits(clock)
    busy, quiet = ("chat.postMessage", f"{IN_CHANNEL}C1"), ("chat.postMessage", f"{IN_CHANNEL}C2")
    while not limits.take(busy):
        pass
    for _ in range(500):
        assert limits.take(busy) > 0
    assert limits.take(quiet) == 0


def test_what_slack_asks_to_wait_is_waited(clock: Clock) -> None:
    limits = Limits(clock)
    assert limits.hold("chat.update", 30) == 30
    assert limits.take(["chat.update"]) == pytest.approx(30)
    assert limits.take(["conversations.history"]) == 0
    clock.now += 30.1
    assert limits.take(["chat.update"]) == 0


def test_methods_that_are_not_counted_wait_only_when_slack_says_so(clock: Clock) -> None:
    limits = Limits(clock)
    assert [limits.take(["users.info"]) for _ in range(500)] == [0.0] * 500
    limits.hold("users.info", 3)
    assert limits.take(["users.info"]) == pytest.approx(3)


def test_quiet_channels_are_forgotten_and_busy_ones_are_not(clock: Clock) -> None:
    limits = Limits(clock)
    for number in range(20_000):
        limits.take([f"{IN_CHANNEL}C{number}"])
        clock.now += 0.01
        while number == 10_000 and not limits.take([f"{IN_CHANNEL}C0BUSY"]):
            pass
    assert limits.counted < 6000
