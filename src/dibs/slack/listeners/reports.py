"""/queue report: the lease review of a queue."""

from __future__ import annotations

from dibs.domain.errors import Busy, LookUpFailed
from dibs.domain.queue import Queue
from dibs.service.reports import DEFAULT_DAYS, LONGEST_DAYS
from dibs.slack import replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command
from dibs.slack.listeners.answers import Answer, as_typed, named_queue, private, said
from dibs.slack.payloads import Typed
from dibs.slack.views.report import nothing_seen, report

_MOST_DIGITS = 6


def lease_report(front: Front, typed: Typed, rest: str) -> Answer:
    """Answer `/queue report [KEY] [days]`: the numbers at once, the picture in a direct message."""
    asked = rest.split()
    key = asked.pop(0) if asked and not _is_number(asked[0]) else None
    days = _days(asked)
    if days is None:
        return said(
            f"Dibs does not understand “{text.one_line(' '.join(asked), 60)}” as a period. Type a number of "
            f"days from 1 to {LONGEST_DAYS} after the queue's key, such as "
            f"`{as_typed(typed, Command.QUEUE)} report SUP 90`; without one it is the last "
            f"{DEFAULT_DAYS} days."
        )
    queue = named_queue(front, typed, key or "", "report", str(days))
    return _report(front, typed, queue, days) if isinstance(queue, Queue) else queue


def _report(front: Front, typed: Typed, queue: Queue, days: int) -> Answer:
    origin, command = typed.origin, as_typed(typed, Command.QUEUE)
    try:
        allowed = front.reports.may_read(queue.id, origin.user_id, deadline=origin.deadline)
    except LookUpFailed:
        return said(
            f"Dibs could not look up in Slack whether you are a member of *{queue.key}*, so it shows no "
            "report. Please try again in a moment."
        )
    if not allowed:
        group = queue.eligible_group
        join = "Ask to be added to it" if group else f"Join <#{queue.channel_id}>"
        words = (
            f"Only members of {replies.who_may(group)} and its supervisors may see the report of "
            f"*{queue.key}*, and you are neither. {join}, then type it again."
        )
        return said(front.outgoing.worded(words, origin.deadline))
    try:
        review = front.reports.lease_review(queue, days, deadline=origin.deadline)
    except Busy:
        front.reporter.count_and_send(origin, queue, days, command)
        return said(
            f"There is much to count in *{queue.key}*, so its report takes a moment longer. It follows here "
            "by itself."
        )
    if review.empty:
        return said(nothing_seen(review, command))
    front.reporter.send_picture(origin, review)
    return private(report(review, command))


def _is_number(word: str) -> bool:
    return not word[:1].isalpha()


def _days(words: list[str]) -> int | None:
    """The period that was typed, such as `90`, `90d` or `90 days`; None where it is none."""
    if not words:
        return DEFAULT_DAYS
    typed = " ".join(words).lower()
    for unit in ("days", "day", "d"):
        typed = typed.removesuffix(unit).rstrip()
    if not (typed.isascii() and typed.isdigit() and len(typed) <= _MOST_DIGITS):
        return None
    return int(typed) if 1 <= int(typed) <= LONGEST_DAYS else None
