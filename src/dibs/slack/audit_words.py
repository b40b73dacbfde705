"""What may be typed after `/audit`: of what, and since when."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from dibs.slack import text

EXAMPLES = (
    "`/audit SUP-12` a task, `/audit SUP` or `/audit queue` a queue, `/audit @name` a person; and, if you "
    "like, since when: `7d`, `24h`, `today`, `yesterday`, `2026-11-01` or `2026-11-01 14:00`"
)

_MENTION = re.compile(r"<@([A-Za-z0-9_.-]{1,64})(?:\|[^<>]*)?>")
_TASK = re.compile(r"([A-Za-z][A-Za-z0-9]{1,9})-([1-9][0-9]{0,9})")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{1,9}")
_AGO = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ Tt]+(\d{1,2}):(\d{2}))?")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
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
    sent = _typed(sent)
    first, _, rest = sent.partition(" ")
    if not first or first.lower() == "queue":
        return Asked(since=_since(rest, zone, now))
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
    if _is_time(first):
        return Asked(since=_since(sent, zone, now))
    if _KEY.fullmatch(first):
        return Asked(queue=first.upper(), since=_since(rest, zone, now))
    raise Misread(f"Dibs does not know what “{text.one_line(first, 80)}” is.")


def _typed(sent: str) -> str:
    return text.typed(sent, lambda person: person).strip()


def _is_time(word: str) -> bool:
    lower = word.lower()
    return lower in (*_DAYS_BACK, "since") or bool(_AGO.fullmatch(lower) or _DATE.fullmatch(lower))


def _since(words: str, zone: Callable[[], tzinfo], now: datetime) -> datetime | None:
    words = " ".join(words.split()).lower().removeprefix("since").strip()
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
    return moment


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
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    if found := _DATE.fullmatch(words):
        year, month, day, hour, minute = (int(part or 0) for part in found.groups())
        return datetime(year, month, day, hour, minute, tzinfo=zone()).astimezone(UTC)
    return None
