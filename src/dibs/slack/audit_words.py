"""What may be typed after `/audit`: of what, and since when."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from dibs.slack import text

EXAMPLES = (
    "`/audit SUP-12` a task, `/audit SUP` or `/audit queue` a queue, `/audit @name` a person; and, if you "
    "like, since when: `7d`, `24h`, `today`, `yesterday`, `2026-11-01` or `2026-11-01 14:00`"
)

_MENTION = re.compile(r"<@([A-Za-z0-9_.-]{1,64})(?:\|[^<>]*)?>")
_TASK = re.compile(r"([A-Za-z][A-Za-z0-9]{1,9})-([1-9][0-9]{0,9})")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{1,9}")
_QUEUE = re.compile(r"queue(\s+|$)", re.IGNORECASE)
_AGO = re.compile(
    r"([1-9][0-9]{0,4}) ?(m|h|d|w|minutes?|hours?|days?|weeks?)(?: ago)?", re.ASCII | re.IGNORECASE
)
# Also as an answer shows a time (with UTC after it) and as an export writes one (ISO 8601).
_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,6})?)?(?: ?(Z|UTC)|([+-]\d{2}):?(\d{2}))?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""Before all records; Slack shows no time before this."""
_DAYS_BACK = {"today": 0, "yesterday": 1}
_LARGEST_NUMBER = 2**31 - 1


class Misread(Exception):
    """It cannot be told what is meant. The message is for the person who typed it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to see: one of a task, a person or a queue, or else this channel's queue."""

    task: tuple[str, int] | None = None
    """The queue's key and the task's number."""
    person: str | None = None
    queue: str | None = None
    """A queue's key."""
    since: datetime | None = None


def read(sent: str, zone: Callable[[], tzinfo], now: datetime) -> Asked:
    """Read what Slack sent on. `zone` tells the writer's time zone, and is asked only where a day is named.

    Raises Misread with an answer that says what could be typed.
    """
    if found := _MENTION.match(sent.strip()):
        return Asked(person=found[1], since=_since(_typed(sent.strip()[found.end() :]), zone, now))
    # The word may stand before a key as well as in its place.
    sent = _QUEUE.sub("", _typed(sent))
    first, _, rest = sent.partition(" ")
    if not first:
        return Asked()
    if first.startswith("@"):
        raise Misread(
            f"Slack did not say who “{text.one_line(first, 80)}” is. Choose the person from the list that "
            "Slack offers while you type the name. (Where it offers none, Dibs' settings in Slack need "
            "“Escape channels, users, and links” turned on for this command.)"
        )
    if found := _TASK.fullmatch(first):
        number = int(found[2])
        if number > _LARGEST_NUMBER:
            raise Misread(f"No task has a number as large as {number}.")
        return Asked(task=(found[1].upper(), number), since=_since(rest, zone, now))
    if _is_time(sent):
        return Asked(since=_since(sent, zone, now))
    if _KEY.fullmatch(first):
        return Asked(queue=first.upper(), since=_since(rest, zone, now))
    raise Misread(f"Dibs does not know what “{text.one_line(first, 80)}” is.")


def _typed(sent: str) -> str:
    return text.typed(sent, lambda person: person).strip()


def _is_time(words: str) -> bool:
    """Whether these begin with a time, and not with what is asked for."""
    words = " ".join(words.split()).lower()
    first = words.partition(" ")[0]
    return first.rstrip(":") in (*_DAYS_BACK, "since") or bool(_AGO.match(words) or _DATE.match(words))


def _since(words: str, zone: Callable[[], tzinfo], now: datetime) -> datetime | None:
    words = " ".join(words.split()).lower().removeprefix("since").removeprefix(":").strip()
    if not words:
        return None
    try:
        moment = _moment(words, zone, now)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise Misread(f"Dibs does not know when “{text.one_line(words, 80)}” is.")
    if moment > now:
        raise Misread(f"“{text.one_line(words, 80)}” is still to come.")
    return max(moment, _EARLIEST)


def _moment(words: str, zone: Callable[[], tzinfo], now: datetime) -> datetime | None:
    if words in _DAYS_BACK:
        today = now.astimezone(zone()).replace(hour=0, minute=0, second=0, microsecond=0)
        # By the calendar: a day before a change of the clocks is not 24 hours ago.
        return (
            (today.replace(tzinfo=None) - timedelta(days=_DAYS_BACK[words]))
            .replace(tzinfo=today.tzinfo)
            .astimezone(UTC)
        )
    if found := _AGO.fullmatch(words):
        return now - timedelta(**{_UNITS[found[2][0]]: int(found[1])})
    if found := _DATE.fullmatch(words):
        *digits, in_utc, hours, minutes = found.groups()
        year, month, day, hour, minute, second = (int(part or 0) for part in digits)
        return datetime(
            year, month, day, hour, minute, second, tzinfo=_written_zone(in_utc, hours, minutes) or zone()
        ).astimezone(UTC)
    return None


def _written_zone(in_utc: str | None, hours: str | None, minutes: str | None) -> tzinfo | None:
    if in_utc:
        return UTC
    if hours is None:
        return None
    return timezone(timedelta(hours=int(hours), minutes=int(f"{hours[0]}{minutes}")))
