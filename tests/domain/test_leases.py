"""What the observations say of a lease: worked examples, and what must hold of all."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.leases import FEWEST, STEPS, Advice, Lasted, spread, suggest

MINUTE = 60
HALF_AN_HOUR = 30 * MINUTE


def minutes(*lengths: float) -> list[Lasted]:
    return [Lasted(length * MINUTE) for length in lengths]


def cut_short(*lengths: float) -> list[Lasted]:
    return [Lasted(length * MINUTE, finished=False) for length in lengths]


def advice(observations: list[Lasted], lease_minutes: float = 30) -> tuple[Advice, float | None]:
    lease = int(lease_minutes * MINUTE)
    found = suggest(spread(observations, lease), lease)
    return found.advice, found.seconds / MINUTE if found.seconds is not None else None


def test_without_anything_cut_short_the_figures_are_the_plain_ones() -> None:
    found = spread(minutes(*range(1, 11)), 7 * MINUTE)
    assert (found.count, found.finished) == (10, 10)
    assert found.median == 5 * MINUTE
    assert found.ninetieth == 9 * MINUTE
    assert found.outlasted == 3
    assert found.outlasted_share == pytest.approx(0.3)


def test_what_ran_out_counts_as_having_taken_at_least_as_long_as_the_lease() -> None:
    # Six are finished within 10 minutes. The other four are cut short at 30: 2 of 10 might well take longer
    # than any length that was seen, so the nine-in-ten is not known; left out, it would be 10 minutes.
    seen = minutes(5, 6, 7, 8, 9, 10)
    assert spread(seen, HALF_AN_HOUR).ninetieth == 10 * MINUTE
    found = spread([*seen, *cut_short(30, 30, 30, 30)], HALF_AN_HOUR)
    assert found.median == 9 * MINUTE
    assert found.ninetieth is None


def test_what_was_cut_short_is_spread_over_the_longer_ones_that_were_finished() -> None:
    # Ten holds: five done within 5 minutes, three cut short at 30, two done at 40 and 60. After minute 30 two
    # are left, and they stand for the half that is not finished: a quarter of all at 40, the rest at 60.
    found = spread([*minutes(1, 2, 3, 4, 5), *cut_short(30, 30, 30), *minutes(40, 60)], HALF_AN_HOUR)
    assert found.median == 5 * MINUTE
    assert found.ninetieth == 60 * MINUTE
    assert found.outlasted == 2


def test_nothing_observed_has_no_figures() -> None:
    found = spread([], HALF_AN_HOUR)
    assert (found.count, found.median, found.ninetieth, found.outlasted_share) == (0, None, None, 0.0)


def test_none_is_suggested_from_too_few() -> None:
    assert advice(minutes(*[12] * (FEWEST - 1))) == (Advice.TOO_FEW, None)
    assert advice([*minutes(*[12] * (FEWEST - 1)), *cut_short(*[30] * 500)]) == (Advice.TOO_FEW, None)
    assert advice(minutes(*[12] * FEWEST))[0] is Advice.SHORTEN


@pytest.mark.parametrize(
    ("work", "lease", "expected"),
    [
        (12, 30, (Advice.SHORTEN, 15)),
        (15, 30, (Advice.SHORTEN, 15)),
        (15.5, 30, (Advice.SHORTEN, 20)),
        (25, 30, (Advice.KEEP, 30)),
        (22, 25, (Advice.KEEP, 25)),
        (38, 30, (Advice.LENGTHEN, 45)),
        (0.1, 30, (Advice.SHORTEN, 5)),
        (0.1, 3, (Advice.KEEP, 3)),
        (100, 15, (Advice.LENGTHEN, 120)),
        (7 * 24 * 60, 30, (Advice.LENGTHEN, 7 * 24 * 60)),
        (8 * 24 * 60, 30, (Advice.TOO_LONG, None)),
    ],
)
def test_the_suggestion_is_the_round_step_that_nine_of_ten_fit_into(
    work: float, lease: float, expected: tuple[Advice, float | None]
) -> None:
    assert advice(minutes(*[1] * 20, *[work] * 30), lease) == expected


def test_so_many_that_ran_out_are_no_reason_to_shorten() -> None:
    assert advice([*minutes(*[5] * 40), *cut_short(*[30] * 20)]) == (Advice.NOT_SEEN, None)


some = st.lists(
    st.builds(Lasted, st.integers(0, 5000), st.booleans(), st.integers(1, 5)), min_size=1, max_size=60
)


@given(some, st.integers(1, 5000))
def test_one_more_that_was_cut_short_never_lowers_a_figure(observations: list[Lasted], at: int) -> None:
    before = spread(observations, HALF_AN_HOUR)
    after = spread([*observations, Lasted(at, finished=False)], HALF_AN_HOUR)
    for earlier, later in ((before.median, after.median), (before.ninetieth, after.ninetieth)):
        assert later is None or (earlier is not None and earlier <= later)


@given(some)
def test_what_was_cut_short_never_counts_for_less_than_if_it_had_been_finished(
    observations: list[Lasted],
) -> None:
    as_if = spread([Lasted(one.seconds, finished=True, count=one.count) for one in observations], 1)
    found = spread(observations, 1)
    assert as_if.ninetieth is not None
    assert found.ninetieth is None or as_if.ninetieth <= found.ninetieth
    assert found.outlasted == as_if.outlasted


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=200))
def test_where_all_were_finished_the_median_is_the_low_median(seconds: list[int]) -> None:
    found = spread([Lasted(one) for one in seconds], 1)
    assert found.median == statistics.median_low(seconds)
    assert found.ninetieth is not None
    assert sum(one <= found.ninetieth for one in seconds) >= 0.9 * len(seconds)


@given(some)
def test_counts_and_order_make_no_difference(observations: list[Lasted]) -> None:
    one_by_one = [Lasted(one.seconds, one.finished) for one in observations for _ in range(one.count)]
    together, apart = spread(observations, 900), spread(list(reversed(one_by_one)), 900)
    assert (together.median, together.ninetieth, together.count) == (
        apart.median,
        apart.ninetieth,
        apart.count,
    )


@given(some, st.integers(1, 600))
def test_a_suggested_lease_holds_nine_of_ten_and_is_a_round_step(
    observations: list[Lasted], lease_minutes: int
) -> None:
    found = spread(observations, lease_minutes * MINUTE)
    suggestion = suggest(found, lease_minutes * MINUTE)
    if suggestion.seconds is None:
        assert suggestion.advice in (Advice.TOO_FEW, Advice.NOT_SEEN)
        return
    assert found.ninetieth is not None
    assert suggestion.seconds >= found.ninetieth
    if suggestion.advice is not Advice.KEEP:
        assert suggestion.seconds / MINUTE in STEPS
