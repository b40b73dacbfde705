"""Text from people, made safe and cut as Slack counts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.slack import text

people_write = st.text(st.characters(codec="utf-8"), max_size=400)
limits = st.integers(min_value=2, max_value=500)


@given(people_write)
def test_nothing_that_people_write_survives_as_a_mention_or_a_link(written: str) -> None:
    safe = text.escaped(written)
    assert "<" not in safe
    assert ">" not in safe
    assert not re.search(r"&(?!amp;|lt;|gt;)", safe)
    assert text.unescaped(safe) == written


@given(people_write, limits)
def test_shown_text_fits_ends_visibly_and_breaks_no_escape(written: str, limit: int) -> None:
    shown = text.shown(written, limit)
    assert text.length(shown) <= limit
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)
    assert (shown == text.escaped(written)) == (
        text.length(text.escaped(written)) <= limit
    ) or shown.endswith("…")
    if shown != text.escaped(written):
        assert shown.endswith(text.ELLIPSIS)


@given(people_write, limits)
def test_a_cut_is_a_beginning_of_the_text_and_never_half_a_character(written: str, limit: int) -> None:
    cut = text.cut(written, limit)
    assert text.length(cut) <= limit
    cut.encode("utf-8")
    if cut != written:
        assert cut.endswith(text.ELLIPSIS)
        assert written.startswith(cut.removesuffix(text.ELLIPSIS).rstrip())


def test_an_emoji_counts_two() -> None:
    assert text.length("🎉") == 2
    assert text.cut("🎉🎉🎉", 5) == "🎉🎉…"
    assert text.cut("a🎉🎉", 4) == "a🎉…"


@given(people_write, limits)
def test_a_title_is_one_line(written: str, limit: int) -> None:
    assert len(text.one_line(written, limit).splitlines()) <= 1


@given(people_write)
def test_every_line_of_a_quotation_is_quoted(written: str) -> None:
    assert all(line.startswith("> ") for line in text.quoted(written, 5000).split("\n"))


def test_a_time_has_a_fallback_in_utc_that_says_so() -> None:
    at = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert text.moment(at) == "<!date^1772321400^{date_short_pretty}, {time}|2026-02-28 23:30 UTC>"
    assert text.plain_moment(at.astimezone(UTC)) == "2026-02-28 23:30 UTC"


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (
            "<@U1> has *SUP-1* until <!date^1^{time}|1970-01-01 00:00 UTC>.",
            "Ann has SUP-1 until 1970-01-01 00:00 UTC.",
        ),
        ("<https://x.slack.com/archives/C1/p1|The current card>", "The current card"),
        ("`SUP-1-A1` &lt;b&gt; &amp;amp;", "SUP-1-A1 <b> &amp;"),
    ],
)
def test_words_where_slack_takes_plain_text_only(said: str, plain: str) -> None:
    assert text.plain(said, lambda _user: "Ann") == plain


def test_nobody_is_the_sweep() -> None:
    assert text.mention(None) == "the sweep"
    assert text.mention("U1") == "<@U1>"


@given(st.text(st.characters(codec="utf-8")))
def test_what_slack_escaped_is_read_as_it_was_typed(words: str) -> None:
    assert text.typed(text.escaped(words), lambda _: "never asked") == words


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("<@U1|amal>", "@amal"),
        ("<@U1>", "@name of U1"),
        ("<#C1|support>", "#support"),
        ("<#C1|>", "#C1"),
        ("<https://a.example/?x=1&amp;y=2>", "https://a.example/?x=1&y=2"),
        ("<http://b.example|b.example>", "b.example"),
        ("<mailto:amal@b.example|amal@b.example>", "amal@b.example"),
        ("<!here>", "@here"),
        ("<!subteam^S1|@helpers>", "@helpers"),
        ("a &lt;@U1&gt; &amp;lt;", "a <@U1> &lt;"),
        ("1 < 2 > 0", "1 < 2 > 0"),
        ("<b> <@> <!> <>", "<b> <@> <!> <>"),
    ],
)
def test_what_slack_wrote_out_is_read_as_it_was_typed(sent: str, typed: str) -> None:
    assert text.typed(sent, lambda id_: f"name of {id_}") == typed
