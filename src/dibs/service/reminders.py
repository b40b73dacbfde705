"""Reminders: owners hear a while before a lease ends, and before a task can be kept no longer."""

from __future__ import annotations

from collections.abc import Mapping

from dibs.deadline import Deadline
from dibs.domain.reminders import reminder_lead
from dibs.store import reminders
from dibs.store.guard import Guard

RUN_SECONDS = 20.0


class ReminderService:
    """Writes the reminders that are due. Safe in several processes at once: each is written once."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def remind_once(self) -> int:
        """Write what is due now, for the leases as they stand. Returns how many. Raises StoreError."""
        deadline = Deadline.after(RUN_SECONDS)
        queues = self._guard.run_once(reminders.LEASES, {}, deadline)
        leases = {row["queue_id"]: row["lease_seconds"] for row in queues}
        holds = {
            row["queue_id"]: row["longest_hold_seconds"] for row in queues if row["longest_hold_seconds"]
        }
        written = self._guard.run_once(reminders.LEASE_ENDS_SOON, _leads(leases), deadline)
        near_the_cap = self._guard.run_once(reminders.HOLD_ENDS_SOON, _leads(holds), deadline)
        self._guard.run_once(reminders.MOVED, {}, deadline)
        return len(written) + len(near_the_cap)

    def report_owners_gone(self) -> int:
        """Tell supervisors of each task whose owner was deactivated or left, once. Raises StoreError."""
        return len(self._guard.run_once(reminders.OWNERS_GONE, {}, Deadline.after(RUN_SECONDS)))


def _leads(seconds: Mapping[int, int]) -> dict[str, list[float]]:
    """How long before its end a lease of each queue is reminded of; without the queues that remind nobody."""
    found = {queue_id: reminder_lead(lasting) for queue_id, lasting in seconds.items()}
    told = {queue_id: lead for queue_id, lead in found.items() if lead is not None}
    return {"queue_ids": list(told), "leads": list(told.values())}
