"""What may be typed after /audit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dibs.slack import audit_words
from dibs.slack.audit_words import Asked, Misread

BERLIN = ZoneInfo("Europe/Berlin")
# Two hours after midnight in Berlin, an hour of which was left out that very night.
NOW = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def read(sent: str) -> Asked:
    return audit_words.read(sent, lambda: BERLIN, NOW)


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ("", Asked()),
        ("  ", Asked()),
        ("queue", Asked()),
        ("Queue", Asked()),
        ("SUP-12", Asked(task=("SUP", 12))),
        ("sup-12", Asked(task=("SUP", 12))),
        ("SUP", Asked(queue="SUP")),
        ("queue SUP", Asked(queue="SUP")),
        ("queue sup 24h", Asked(queue="SUP", since=NOW - timedelta(hours=24))),
        ("b2b", Asked(queue="B2B")),
        ("<@U0AMAL>", Asked(person="U0AMAL")),
        ("<@U0AMAL|amal>", Asked(person="U0AMAL")),
        ("<@W0AMAL|amal|x>", Asked(person="W0AMAL")),
    ],
)
def test_of_what(sent: str, asked: Asked) -> None:
    assert read(sent) == asked


@pytest.mark.parametrize(
    ("words", "since"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("90m", NOW - timedelta(minutes=90)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("today", datetime(2026, 3, 28, 23, tzinfo=UTC)),
        ("YESTERDAY", datetime(2026, 3, 27, 23, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 2, 28, 23, tzinfo=UTC)),
        ("2025-07-01", datetime(2025, 6, 30, 22, tzinfo=UTC)),
        ("2026-03-01 14:05", datetime(2026, 3, 1, 13, 5, tzinfo=UTC)),
        ("2026-03-01T14:05", datetime(2026, 3, 1, 13, 5, tzinfo=UTC)),
        ("since 7d", NOW - timedelta(days=7)),
        ("since: 7d", NOW - timedelta(days=7)),
        ("2 days", NOW - timedelta(days=2)),
        ("1 hour ago", NOW - timedelta(hours=1)),
        ("3d ago", NOW - timedelta(days=3)),
        # As the answers show a time, and as the exports write one.
        ("2026-03-01 14:05 UTC", datetime(2026, 3, 1, 14, 5, tzinfo=UTC)),
        ("2026-03-01T14:05:09.123456Z", datetime(2026, 3, 1, 14, 5, 9, tzinfo=UTC)),
        ("2026-03-01T14:05:09-03:30", datetime(2026, 3, 1, 17, 35, 9, tzinfo=UTC)),
        # Longer ago than there can be records, and than Slack shows a time.
        ("1887-03-01", datetime(1970, 1, 1, tzinfo=UTC)),
        ("99999w", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_since_when(words: str, since: datetime) -> None:
    assert read(words) == Asked(since=since)
    assert read(f"SUP-12 {words}") == Asked(task=("SUP", 12), since=since)
    assert read(f"<@U0AMAL|amal> {words}") == Asked(person="U0AMAL", since=since)
    assert read(f"queue  {words}") == Asked(since=since)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("@amal", "Slack did not say who “@amal” is"),
        ("@amal 7d", "Choose the person from the list"),
        ("SUP-12345678901", "what “SUP-12345678901” is"),
        ("SUP-9999999999", "as large as 9999999999"),
        ("SUP-0", "what “SUP-0” is"),
        ("SUP-12 soon", "when “soon” is"),
        ("queue SUP soon", "when “soon” is"),
        ("SUP 2 dogs", "when “2 dogs” is"),
        ("2026-03-01 14:05:61", "when “2026-03-01 14:05:61” is"),
        ("2026-03-01T14:05+99:00", "when “2026-03-01t14:05\\+99:00” is"),
        ("SUP-12 2026-13-01", "when “2026-13-01” is"),
        ("2026-02-30", "when “2026-02-30” is"),
        ("2026-03-01 25:00", "when “2026-03-01 25:00” is"),
        ("0000-01-01", "when"),
        ("0001-01-01", "when"),
        ("9999-12-31", "still to come"),
        ("2026-03-30", "still to come"),
        ("SUP 0d", "when “0d” is"),
        ("SUP <@U1|amal>", "when “@amal” is"),
        ("<#C1|support>", "what “#support” is"),
        ("<http://b.example|b.example>", "what “b.example” is"),
        ("&lt;b&gt;", "what “&lt;b&gt;” is"),
        ("\u0661\u0662d", "what"),
        ("x", "what “x” is"),
    ],
)
def test_what_cannot_be_read_is_said(sent: str, words: str) -> None:
    with pytest.raises(Misread, match=words):
        read(sent)


def test_the_time_zone_is_asked_only_where_a_day_is_named() -> None:
    def zone() -> ZoneInfo:
        raise AssertionError("asked")

    for sent in ("SUP-12", "7d", "<@U1> 24h"):
        audit_words.read(sent, zone, NOW)
    with pytest.raises(AssertionError, match="asked"):
        audit_words.read("today", zone, NOW)
