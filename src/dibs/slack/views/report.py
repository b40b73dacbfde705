"""The lease review in words: everything that its picture shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dibs.domain.leases import FEWEST, Advice, LeaseReview, Spread
from dibs.domain.queue import LONGEST_LEASE_MINUTES
from dibs.domain.transitions import EventKind
from dibs.slack import text, words
from dibs.slack.views.card import MOST_TEXT, Message
from dibs.slack.views.elements import context, section

_MOST_REASONS = 10
_NAME = 80
_PERIODS = (30, 90, 365)

METHOD = (
    "What ran out, was handed back or still goes on counts as having taken at least that long: left out, it "
    "would make the work look quicker than it is. What was claimed before this period is not counted."
)


def report(review: LeaseReview, command: str) -> Message:
    """The lease review of a queue, for the person who asked and types `command` for `/queue`."""
    said = [_title(review), *_lengths(review), _over_time(review), _hand_backs(review)]
    said.append(_suggestion(review, command))
    return Message(
        text.cut_formatted("\n".join([*said, METHOD]), MOST_TEXT),
        [*(section(paragraph) for paragraph in said), context(METHOD)],
    )


def nothing_seen(review: LeaseReview, command: str) -> str:
    """What is said where there is nothing to report."""
    queue = review.queue
    return (
        f"Nothing was claimed in *{queue.key}* {text.one_line(queue.name, _NAME)} in the last "
        f"{_days(review.days)}, so there is nothing to measure its lease of "
        f"{text.duration(queue.lease_seconds)} against.{_longer(review, command)}"
    )


def alt_text(review: LeaseReview) -> str:
    """What a screen reader says of the picture: its figures, in plain text."""
    parts = [
        f"Lease review of {review.queue.key}, the last {_days(review.days)}",
        f"the lease is {text.duration(review.queue.lease_seconds)}",
        *(
            f"{name}: {spread.count} observed, median {_figure(spread.median)}, "
            f"9 in 10 within {_figure(spread.ninetieth)}, {_share(spread)} longer than the lease"
            for name, spread in _parts(review)[:2]
        ),
        f"{review.expired} leases ran out and {review.flagged} tasks came back needing a check",
    ]
    return ". ".join(part[0].upper() + part[1:] for part in parts) + "."


def _title(review: LeaseReview) -> str:
    queue = review.queue
    return (
        f"*Lease review of {queue.key}* {text.one_line(queue.name, _NAME)}\n"
        f"The last {_days(review.days)}, since {text.moment(review.since)}. "
        f"The lease is {text.duration(queue.lease_seconds)}."
    )


def _parts(review: LeaseReview) -> list[tuple[str, Spread]]:
    return [
        ("from claim to start", review.to_start),
        ("from start to done", review.to_done),
        ("from claim to done", review.whole),
    ]


def _lengths(review: LeaseReview) -> Iterator[str]:
    for name, spread in _parts(review):
        title = f"*{name.capitalize()}*"
        if not spread.count:
            yield f"{title}: nothing observed."
            continue
        cut_short = spread.count - spread.finished
        seen = f"{spread.count} observed" + (f", {cut_short} of them cut short" if cut_short else "")
        yield f"{title}: {seen}. {_took(spread)} {_share(spread)} took longer than the lease."


def _took(spread: Spread) -> str:
    if spread.median is None:
        return "So many were cut short that it was not seen how long they take."
    half = f"Half took at most {text.duration(spread.median)}"
    if spread.ninetieth is None:
        return f"{half}; so many were cut short that it was not seen how long the slowest take."
    return f"{half}, 9 in 10 at most {text.duration(spread.ninetieth)}."


def _figure(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else text.duration(seconds)


def _share(spread: Spread) -> str:
    return f"{spread.outlasted} ({spread.outlasted_share:.0%})"


def _over_time(review: LeaseReview) -> str:
    middle = (len(review.by_day) + 1) // 2
    halves = review.by_day[:middle], review.by_day[middle:]
    renewed = review.kinds.get(EventKind.RENEWED, 0)
    said = (
        f"*Leases*: {_number(review.expired, 'lease')} ran out, {_number(review.flagged, 'task')} came back "
        f"needing a check, and leases were renewed {_number(renewed, 'time')}."
    )
    if review.expired or review.flagged:
        early, late = (
            f"{sum(day.expired for day in half)} ran out and "
            f"{sum(day.flagged for day in half)} needed a check"
            for half in halves
        )
        said += f" In the first half of the period {early}; in the second half {late}."
        worst = max(review.by_day, key=lambda day: (day.expired, day.flagged))
        if worst.expired > 1:
            said += f" The most on one day were {worst.expired}, on {worst.day.isoformat()} (UTC)."
    return said


def _hand_backs(review: LeaseReview) -> str:
    total = sum(number for _, number in review.reasons)
    if not total:
        return "*Handed back*: nothing."
    shown = [f"{words.reason(reason)} {number}" for reason, number in review.reasons[:_MOST_REASONS]]
    rest = sum(number for _, number in review.reasons[_MOST_REASONS:])
    if rest:
        shown.append(f"other reasons {rest}")
    return f"*Handed back*: {_number(total, 'time')}. {', '.join(shown)}."


def _suggestion(review: LeaseReview, command: str) -> str:
    found = review.suggestion
    lease = text.duration(review.queue.lease_seconds)
    within = _figure(review.whole.ninetieth)
    behind = f"9 in 10 tasks take at most {within} from claim to done ({found.finished} were finished)"
    change = f"A supervisor can change it in `{command} settings {review.queue.key}`."
    match found.advice:
        case Advice.TOO_FEW:
            why = (
                f"none yet. {FEWEST} finished tasks are needed to go by, and there are {found.finished}."
                f"{_longer(review, command)}"
            )
        case Advice.NOT_SEEN:
            why = (
                f"none. So many tasks ran out or were handed back before they were done that nobody saw how "
                f"long 9 in 10 take ({found.finished} of {review.whole.count} were finished). That is no "
                f"reason to make {lease} shorter; see first why they were not finished."
            )
        case Advice.TOO_LONG:
            longest = text.duration(60 * LONGEST_LEASE_MINUTES)
            why = f"none. {behind}, longer than a lease can be ({longest}). Renewing in time is the way."
        case Advice.KEEP:
            why = f"keep {lease}. {behind}, and the next shorter step would be too short for that."
        case Advice.LENGTHEN:
            why = f"{text.duration(found.seconds or 0)}. {behind}, more than {lease} allow. {change}"
        case Advice.SHORTEN:
            why = (
                f"{text.duration(found.seconds or 0)}. {behind}, so a shorter lease than {lease} would still "
                f"do, and a forgotten task would come back sooner. {change}"
            )
        case _:
            assert_never(found.advice)
    return f"*Suggested lease*: {why}"


def _longer(review: LeaseReview, command: str) -> str:
    """What to type for a longer period, where there is one."""
    days = next((days for days in _PERIODS if days > review.days), None)
    return f" A longer period may show more: `{command} report {review.queue.key} {days}`." if days else ""


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _days(days: int) -> str:
    return "day" if days == 1 else f"{days} days"
