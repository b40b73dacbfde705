"""What is typed into a queue's settings: read whole, or refused with everything that is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.queue import LONGEST_LEASE_MINUTES, USUAL_REASONS, Queue
from dibs.domain.settings import (
    LONGEST_HOLD_MINUTES,
    LONGEST_REASON,
    MOST_REASONS,
    Mistake,
    QueueSettings,
    Written,
    read,
    read_key,
)
from dibs.domain.task import Reason

USUAL = {"My shift is ending": Reason.SHIFT_ENDING, "Something else": Reason.OTHER}
GOOD = Written(
    name="Support", lease_minutes="30", supervisors=("U0SUE",), spike_limit="10", spike_minutes="10"
)


def _read(**typed: object) -> QueueSettings:
    found = read(replace(GOOD, **typed), USUAL)  # type: ignore[arg-type]
    assert isinstance(found, QueueSettings), found
    return found


def _mistakes(**typed: object) -> set[Mistake]:
    found = read(replace(GOOD, **typed), USUAL)  # type: ignore[arg-type]
    assert isinstance(found, frozenset), found
    return set(found)


def test_what_is_left_out_is_not_set() -> None:
    found = _read()
    assert (found.name, found.lease_seconds, found.supervisors) == ("Support", 1800, ("U0SUE",))
    assert (found.spike_share, found.longest_hold_seconds, found.reasons) == (None, None, None)
    assert _read(spike_share=" ", longest_hold_minutes="", reasons=" \n ") == found


def test_numbers_and_names_are_read_whole() -> None:
    found = _read(name="  Refunds \0", lease_minutes=" 45 ", longest_hold_minutes="46", spike_share="100")
    assert (found.name, found.lease_seconds, found.longest_hold_seconds) == ("Refunds", 2700, 2760)
    assert found.spike_share == 100
    assert _read(supervisors=("U2", "U1", "U2")).supervisors == ("U1", "U2")


@pytest.mark.parametrize(
    ("typed", "mistake"),
    [
        ({"name": None}, Mistake.NAME_MISSING),
        ({"name": "\0 "}, Mistake.NAME_MISSING),
        ({"name": "x" * 81}, Mistake.NAME_LONG),
        ({"supervisors": ()}, Mistake.SUPERVISORS_MISSING),
        *(({"lease_minutes": bad}, Mistake.LEASE_RANGE) for bad in (None, "", "0", "-5", "1.5", "²", "ten")),
        ({"lease_minutes": str(LONGEST_LEASE_MINUTES + 1)}, Mistake.LEASE_RANGE),
        ({"lease_minutes": "9" * 5000}, Mistake.LEASE_RANGE),
        ({"spike_limit": "0"}, Mistake.SPIKE_LIMIT_RANGE),
        ({"spike_limit": None}, Mistake.SPIKE_LIMIT_RANGE),
        ({"spike_minutes": "0"}, Mistake.SPIKE_MINUTES_RANGE),
        ({"spike_share": "0"}, Mistake.SPIKE_SHARE_RANGE),
        ({"spike_share": "101"}, Mistake.SPIKE_SHARE_RANGE),
        ({"spike_share": "half"}, Mistake.SPIKE_SHARE_RANGE),
        ({"longest_hold_minutes": "0"}, Mistake.HOLD_RANGE),
        ({"longest_hold_minutes": str(LONGEST_HOLD_MINUTES + 1)}, Mistake.HOLD_RANGE),
        ({"longest_hold_minutes": "30"}, Mistake.HOLD_NOT_LONGER),
        ({"reasons": "\n".join(f"r{n}" for n in range(MOST_REASONS + 1))}, Mistake.REASONS_TOO_MANY),
        ({"reasons": "Late\nlate"}, Mistake.REASONS_TWICE),
        ({"reasons": "My shift is ending\nshift_ending"}, Mistake.REASONS_TWICE),
        ({"reasons": "x" * (LONGEST_REASON + 1)}, Mistake.REASONS_LONG),
        ({"reasons": "🎉" * 38}, Mistake.REASONS_LONG),
    ],
)  # fmt: skip
def test_each_mistake_has_its_name(typed: dict[str, object], mistake: Mistake) -> None:
    assert _mistakes(**typed) == {mistake}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert _mistakes(name="", lease_minutes="0", spike_share="x", reasons="a\na") == {
        Mistake.NAME_MISSING, Mistake.LEASE_RANGE, Mistake.SPIKE_SHARE_RANGE, Mistake.REASONS_TWICE
    }  # fmt: skip


def test_a_line_that_is_a_usual_reason_keeps_its_value_and_others_are_their_own() -> None:
    found = _read(reasons="  my SHIFT  is ending\n\nThe bank   is closed\r\nother\n")
    assert found.reasons == (Reason.SHIFT_ENDING, "The bank is closed", Reason.OTHER)


def test_the_usual_list_is_stored_as_none_and_another_order_is_a_list_of_its_own() -> None:
    assert _read(reasons="\n".join(USUAL_REASONS)).reasons is None
    turned = tuple(reversed(USUAL_REASONS))
    assert _read(reasons="\n".join(turned)).reasons == turned


@given(reasons=st.text(max_size=400))
def test_whatever_is_written_as_reasons_is_refused_or_fits_the_database(reasons: str) -> None:
    found = read(replace(GOOD, reasons=reasons), USUAL)
    if isinstance(found, QueueSettings) and found.reasons is not None:
        assert 0 < len(found.reasons) <= MOST_REASONS
        for reason in found.reasons:
            assert reason.strip()
            assert "\0" not in reason
            assert len(reason.encode("utf-16-le")) // 2 <= LONGEST_REASON


def test_a_key_is_made_of_capitals() -> None:
    assert [read_key(typed) for typed in ("sup", " SUP ", "S1", "S", "1S", "S-P", "", None, "ÄB")] == [
        "SUP", "SUP", "S1", None, None, None, None, None, None
    ]  # fmt: skip


def test_seconds_that_no_form_shows_stay_where_the_minutes_were_left_as_they_are() -> None:
    queue = Queue(1, "T", "SUP", "Support", "C", 90, longest_hold_seconds=7230)
    kept = _read(lease_minutes="1", longest_hold_minutes="120").keeping(queue)
    assert (kept.lease_seconds, kept.longest_hold_seconds) == (90, 7230)
    other = _read(lease_minutes="2", longest_hold_minutes=None).keeping(queue)
    assert (other.lease_seconds, other.longest_hold_seconds) == (120, None)
