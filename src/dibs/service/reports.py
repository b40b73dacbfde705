"""The lease review: how long tasks were really held in a queue, against its lease."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.errors import Busy
from dibs.domain.leases import Day, Lasted, LeaseReview, spread, suggest
from dibs.domain.queue import Queue
from dibs.domain.task import Standing
from dibs.domain.transitions import EventKind
from dibs.service.members import MembershipService
from dibs.store import members, reports
from dibs.store.guard import Guard, Parameters, Row

LONGEST_DAYS = 365
DEFAULT_DAYS = 30
_ENOUGH_TO_COUNT_SECONDS = 0.5


class ReportService:
    """Reads, from the primary. Raises StoreError where the database did not answer in time."""

    def __init__(self, guard: Guard, membership: MembershipService) -> None:
        self._guard = guard
        self._membership = membership

    def may_read(self, queue_id: int, user_id: str, *, deadline: Deadline | None = None) -> bool:
        """Whether a person may see a queue's report: its eligible members and its supervisors may.

        Nobody is refused before they were looked up afresh. Raises LookUpFailed where that was not possible.
        """
        deadline = deadline or Deadline.after()
        if self._stands(queue_id, user_id, deadline):
            return True
        self._membership.look_up(queue_id, user_id, deadline)
        return self._stands(queue_id, user_id, deadline)

    def lease_review(self, queue: Queue, days: int, *, deadline: Deadline | None = None) -> LeaseReview:
        """How the queue's lease worked in the last `days` (1 to LONGEST_DAYS), by the database's clock.

        A hold counts if its claim lies in the period, even if it still goes on. Raises Busy where there was
        more to count than the deadline allowed, and ValueError for another number of days.
        """
        if not 1 <= days <= LONGEST_DAYS:
            raise ValueError(f"a report covers 1 to {LONGEST_DAYS} days")
        deadline = deadline or Deadline.after()
        period = self._guard.run_once(reports.PERIOD, {"days": days}, deadline)[0]
        asked = {"queue_id": queue.id, "since": period["since"], "until": period["until"]}
        parts: defaultdict[str, list[Lasted]] = defaultdict(list)
        for row in self._count(reports.LENGTHS, asked, deadline):
            parts[row["part"]].append(Lasted(row["length"], row["finished"], row["number"]))
        by_kind = self._count(reports.DAYS, asked, deadline)
        reasons = self._count(reports.REASONS, asked, deadline)
        kinds: Counter[str] = Counter()
        for row in by_kind:
            kinds[row["kind"]] += row["number"]
        whole = spread(parts["whole"], queue.lease_seconds)
        return LeaseReview(
            queue=queue,
            days=days,
            since=period["since"],
            until=period["until"],
            to_start=spread(parts["to_start"], queue.lease_seconds),
            to_done=spread(parts["to_done"], queue.lease_seconds),
            whole=whole,
            by_day=_every_day(period["since"], period["until"], by_kind),
            kinds=dict(kinds),
            reasons=tuple((row["reason"], row["number"]) for row in reasons),
            suggestion=suggest(whole, queue.lease_seconds),
        )

    def _count(self, statement: sa.Executable, asked: Parameters, deadline: Deadline) -> Sequence[Row]:
        # What was counted before may have used up the time of a database that answers well.
        if deadline.remaining < _ENOUGH_TO_COUNT_SECONDS:
            raise Busy("counting took all the time there was")
        return self._guard.run_once(statement, asked, deadline)

    def _stands(self, queue_id: int, user_id: str, deadline: Deadline) -> bool:
        asked = {"queue_ids": [queue_id], "user_id": user_id}
        rows = self._guard.run_once(members.STANDINGS, asked, deadline)
        return any(row["supervisor"] or row["standing"] == Standing.ELIGIBLE for row in rows)


def _every_day(since: datetime, until: datetime, rows: Sequence[Row]) -> tuple[Day, ...]:
    expired: Counter[date] = Counter()
    flagged: Counter[date] = Counter()
    for row in rows:
        flagged[row["day"]] += row["flagged"]
        if row["kind"] == EventKind.EXPIRED:
            expired[row["day"]] += row["number"]
    first, last = since.astimezone(UTC).date(), until.astimezone(UTC).date()
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return tuple(Day(day, expired[day], flagged[day]) for day in days)
