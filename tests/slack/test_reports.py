"""The lease review as people get it: words for everybody, and a picture that a phone can show."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dibs.domain.leases import Day, Lasted, LeaseReview, spread, suggest
from dibs.domain.queue import Queue
from dibs.playground.blockkit import check_blocks
from dibs.slack import text
from dibs.slack.plots import HEIGHT, WIDTH, lease_picture
from dibs.slack.views.card import MOST_TEXT
from dibs.slack.views.report import METHOD, alt_text, nothing_seen, report

UNTIL = datetime(2026, 3, 31, 12, tzinfo=UTC)
MINUTE = 60


def review(
    whole: list[Lasted],
    *,
    lease: int = 30 * MINUTE,
    days: int = 30,
    expired: int = 0,
    name: str = "Support",
    reasons: tuple[tuple[str, int], ...] = (),
) -> LeaseReview:
    since = UNTIL - timedelta(days=days)
    by_day = [
        Day((since + timedelta(days=number)).date(), expired * (number % 3 == 0), expired * (number % 5 == 0))
        for number in range(days + 1)
    ]
    parts = spread(whole, lease)
    return LeaseReview(
        queue=Queue(1, "T0TEST", "SUP", name, "C0SUPPORT", lease),
        days=days,
        since=since,
        until=UNTIL,
        to_start=parts,
        to_done=parts,
        whole=parts,
        by_day=tuple(by_day),
        kinds={"expired": sum(day.expired for day in by_day), "renewed": 1} if whole else {},
        reasons=reasons,
        suggestion=suggest(parts, lease),
    )


def done(*minutes: float) -> list[Lasted]:
    return [Lasted(one * MINUTE) for one in minutes]


def cut_short(*minutes: float) -> list[Lasted]:
    return [Lasted(one * MINUTE, finished=False) for one in minutes]


_chance = random.Random(7)  # noqa: S311 - an example that is the same each time
REVIEWS = {
    "one": review(done(3)),
    "few": review([*done(1, 2, 40), *cut_short(31)], expired=1, days=7),
    "many": review(done(*(_chance.lognormvariate(3, 0.6) for _ in range(3000))), expired=40),
    "skewed": review(done(*(_chance.lognormvariate(2, 2.5) for _ in range(500))), days=365, expired=2),
    "none finished": review(cut_short(*[30] * 30), expired=3),
    "nothing": review([]),
    "at once": review([Lasted(0, count=50)]),
    "weeks": review(done(*range(0, 20000, 40)), lease=7 * 24 * 3600, days=90),
    "a short lease": review(done(0.1, 0.2, 5), lease=5),
    "an odd lease": review(done(*range(50)), lease=1801),
}


def test_the_words_hold_every_figure() -> None:
    found = review(
        [*done(*[10] * 10, *[38] * 20), *cut_short(31)],
        expired=2,
        reasons=(("shift_ending", 3), ("needs_specialist", 1)),
    )
    said = report(found, "/queue").text
    for words in (
        "*Lease review of SUP* Support",
        "The last 30 days",
        "The lease is 30 min.",
        "*From claim to start*: 31 observed, 1 of them cut short. Half took at most 38 min, 9 in 10 at most",
        "21 (68%) took longer than the lease.",
        "22 leases ran out, 14 tasks came back needing a check, and leases were renewed 1 time.",
        "In the first half of the period 12 ran out",
        "*Handed back*: 4 times. My shift is ending 3, Needs a specialist 1.",
        "*Suggested lease*: 45 min. 9 in 10 tasks take at most 38 min from claim to done (30 were finished)",
        "more than 30 min allow.",
        METHOD,
    ):
        assert words in said


@pytest.mark.parametrize("name", REVIEWS)
def test_every_review_passes_slacks_limits_and_its_text_says_all_that_its_blocks_say(name: str) -> None:
    message = report(REVIEWS[name], "/queue")
    assert [str(fault) for fault in check_blocks(message.blocks, "message")] == []
    assert text.length(message.text) <= MOST_TEXT
    for block in message.blocks:
        said = block["elements"][0]["text"] if block["type"] == "context" else block["text"]["text"]
        assert said in message.text
    assert 0 < text.length(alt_text(REVIEWS[name])) <= 1000
    assert "30 min" in nothing_seen(review([]), "/queue")


def test_a_length_that_was_not_seen_is_said_to_be_unknown_once() -> None:
    nothing_finished = report(REVIEWS["none finished"], "/queue").text
    some_finished = report(review([*done(*[5] * 10), *cut_short(*[31] * 5)]), "/queue").text
    assert "30 of them cut short. So many were cut short that it was not seen how long they take." in (
        nothing_finished
    )
    assert "so many were cut short that it was not seen how long the slowest take." in some_finished
    assert "unknown" not in nothing_finished + some_finished


def test_what_is_suggested_says_why() -> None:
    def said(observations: list[Lasted], days: int = 30) -> str:
        return report(review(observations, days=days), "/queue").text.split("*Suggested lease*: ")[1]

    assert said(done(3)).startswith(
        "none yet. 20 finished tasks are needed to go by, and there are 1. A longer period may show more: "
        "`/queue report SUP 90`."
    )
    assert "A longer period" not in said(done(3), days=365)
    assert said([*done(*[5] * 40), *cut_short(*[30] * 20)]).startswith(
        "none. So many tasks ran out or were handed back before they were done that nobody saw how long 9 in "
        "10 take (40 of 60 were finished). That is no reason to make 30 min shorter"
    )
    assert said(done(*[25] * 30)).startswith("keep 30 min.")
    assert said(done(*[7] * 30)).startswith("10 min. 9 in 10 tasks take at most 7 min")
    assert said(done(*[20000] * 30)).startswith("none. 9 in 10 tasks take at most 13 days 22 h")


@settings(max_examples=60, deadline=None)
@given(
    name=st.text(min_size=1, max_size=300),
    reasons=st.lists(st.tuples(st.text(min_size=1, max_size=200), st.integers(1, 10**6)), max_size=100),
)
def test_names_and_reasons_of_any_length_pass_slacks_limits_and_are_escaped(
    name: str, reasons: list[tuple[str, int]]
) -> None:
    message = report(review(done(1), name=name + "<!channel>&", reasons=tuple(reasons)), "/queue")
    assert [str(fault) for fault in check_blocks(message.blocks, "message")] == []
    assert text.length(message.text) <= MOST_TEXT
    assert "<!channel>" not in message.text


@pytest.mark.parametrize("name", REVIEWS)
def test_the_picture_of_every_review_decodes_and_has_the_right_size(name: str) -> None:
    with Image.open(io.BytesIO(lease_picture(REVIEWS[name]))) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (WIDTH, HEIGHT))
        colours = picture.convert("RGB").getcolors(1 << 20)
        assert colours is not None
        assert len(colours) > 10


def test_pictures_that_are_drawn_at_once_are_those_drawn_one_after_another() -> None:
    alone = {name: lease_picture(found) for name, found in REVIEWS.items()}
    together: dict[str, bytes] = {}
    threads = [
        threading.Thread(target=lambda name=name: together.update({name: lease_picture(REVIEWS[name])}))
        for name in REVIEWS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_dibs_starts_without_the_plotting_library() -> None:
    look = "import sys, dibs.wiring, dibs.slack.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0  # noqa: S603 - our own


def test_a_length_of_time_is_rounded_up_and_told_as_fits() -> None:
    told = {0: "0 s", 0.2: "1 s", 59.1: "60 s", 61: "2 min", 3600: "1 h", 5401: "1 h 31 min",
            86399: "1 day", 86400: "1 day", 90001: "1 day 2 h", 7 * 86400: "7 days"}  # fmt: skip
    assert {seconds: text.duration(seconds) for seconds in told} == told
