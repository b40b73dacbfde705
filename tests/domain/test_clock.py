"""Readings of clocks, judged."""

from __future__ import annotations

import math

import pytest

from dibs.domain.clock import AGREED_SECONDS, Base, Course, Fault, Reading

TOLERANCE = 5.0


def reading(at: float, *, ahead: float = 0.0, wall_ahead: float = 0.0, uncertainty: float = 0.0) -> Reading:
    """What is read `at` so many seconds, where the database's clock or the wall's is ahead of the truth."""
    epoch = 1_700_000_000.0
    return Reading(
        database=epoch + at + ahead,
        wall=epoch + at + wall_ahead,
        monotonic=at,
        uncertainty=uncertainty,
    )


def course(*readings: Reading) -> Course:
    gone = Course()
    for one in readings:
        gone = gone.after(one, tolerance=TOLERANCE)
    return gone


def test_clocks_that_go_on_together_are_trusted() -> None:
    gone = course(*(reading(float(at)) for at in range(0, 3600, 10)))
    assert gone == Course(base=Base(offset=1_700_000_000.0, monotonic=3590.0))


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (-5.1, Fault.BACKWARDS),
        (-4.9, None),
        (4.9, None),
        (5.1, Fault.AHEAD),
        (3600.0, Fault.AHEAD),
        (-3600.0, Fault.BACKWARDS),
    ],
)
def test_a_step_is_a_fault_from_the_tolerance_on_even_where_both_machines_clocks_take_it(
    step: float, fault: Fault | None
) -> None:
    gone = course(reading(0.0), reading(10.0, ahead=step, wall_ahead=step))
    assert (gone.fault, gone.held) == (fault, fault is not None)
    if fault:
        # The clocks may have drifted by some milliseconds in ten seconds.
        assert gone.seconds == pytest.approx(abs(step), abs=0.011)


@pytest.mark.parametrize("wall_ahead", [6.0, -6.0])
def test_a_clock_that_differs_from_the_time_of_day_is_a_fault_from_the_first_reading_on(
    wall_ahead: float,
) -> None:
    gone = course(reading(0.0, wall_ahead=wall_ahead))
    assert gone.fault is Fault.APART
    assert gone.seconds == pytest.approx(6.0)


def test_a_slow_round_trip_is_no_fault_and_hides_none_for_long() -> None:
    slow = reading(10.0, ahead=6.0, wall_ahead=6.0, uncertainty=2.0)
    assert course(reading(0.0), slow).fault is None
    assert course(reading(0.0), slow, reading(20.0, ahead=6.0, wall_ahead=6.0)).fault is Fault.AHEAD


def test_many_small_steps_add_up_to_a_fault() -> None:
    steps = [reading(10.0 * n, ahead=2.0 * n, wall_ahead=2.0 * n) for n in range(4)]
    assert course(*steps[:3]).fault is None
    assert course(*steps).fault is Fault.AHEAD


def test_clocks_that_are_slewed_for_a_day_are_trusted_however_seldom_they_are_read() -> None:
    day = 86_400.0
    slewed = [reading(n * day, ahead=80.0 * n, wall_ahead=80.0 * n) for n in range(30)]
    assert course(*slewed).fault is None


def test_leases_end_again_only_after_the_clocks_have_agreed_for_the_set_time() -> None:
    trouble = [reading(0.0), reading(10.0, wall_ahead=60.0), reading(20.0)]
    assert course(*trouble, reading(20.0 + AGREED_SECONDS - 0.1)).held
    assert not course(*trouble, reading(20.0 + AGREED_SECONDS)).held
    # Trouble in between begins the time anew.
    again = [*trouble, reading(50.0, wall_ahead=60.0), reading(60.0)]
    assert course(*again, reading(20.0 + AGREED_SECONDS)).held
    assert not course(*again, reading(60.0 + AGREED_SECONDS)).held


def test_a_clock_that_was_set_back_and_is_right_again_has_not_jumped_ahead() -> None:
    right_again = course(reading(0.0), reading(10.0, ahead=-3600.0), reading(20.0))
    assert (right_again.fault, right_again.held) == (None, True)
    assert not course(reading(0.0), reading(10.0, ahead=-3600.0), reading(20.0), reading(80.0)).held


def test_a_clock_that_overshoots_when_it_is_set_right_has_jumped_ahead() -> None:
    gone = course(reading(0.0), reading(10.0, ahead=-3600.0), reading(20.0, ahead=60.0, wall_ahead=60.0))
    assert gone.fault is Fault.AHEAD
    assert gone.seconds == pytest.approx(60.0, abs=0.1)


def test_a_machine_whose_clock_was_rightly_set_back_is_trusted_after_the_set_time() -> None:
    back = [reading(10.0 * n, ahead=-3600.0, wall_ahead=-3600.0) for n in range(1, 9)]
    gone = [course(reading(0.0), *back[:number]).held for number in range(1, 9)]
    assert gone == [True] * 7 + [False]


def test_a_clock_that_was_wrong_from_the_beginning_may_be_set_right_by_a_jump() -> None:
    assert course(reading(0.0, ahead=-3600.0), reading(10.0)).fault is None
    assert course(reading(0.0, ahead=-3600.0), reading(10.0)).held


def test_no_course_of_readings_lets_a_lease_end_early_by_more_than_the_tolerance() -> None:
    """Whatever the steps: while the sweep goes on, the clock is no further ahead than steps that it saw."""
    ahead, readings = 0.0, [reading(0.0)]
    for at, step in enumerate([1.0, 2.0, 1.5, 4.0, -3.0, 6.0, 2.0, -9.0, 4.9], start=1):
        ahead += step
        readings.append(reading(10.0 * at, ahead=ahead, wall_ahead=ahead))
        gone = course(*readings)
        if gone.held:
            break
        assert abs(ahead) <= TOLERANCE + 0.1
    assert ahead == 8.5


def test_a_reading_lies_in_the_middle_of_its_round_trip() -> None:
    read = Reading.between(100.0, wall=(90.0, 92.0), monotonic=(5.0, 7.0))
    assert (read.wall, read.monotonic, read.uncertainty) == (91.0, 6.0, 1.0)


def test_no_fault_is_found_where_any_difference_is_tolerated() -> None:
    assert Course().after(reading(0.0, ahead=1e6), tolerance=math.inf).fault is None
