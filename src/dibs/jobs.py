"""Every job that runs by the clock, with its interval. This is the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable

from dibs.scheduler import Job
from dibs.service.clock import ClockService
from dibs.service.delivery import DeliveryService
from dibs.service.members import MembershipService
from dibs.service.notices import NoticeService
from dibs.service.release_pauses import ReleasePauses
from dibs.service.reminders import ReminderService
from dibs.service.sweep import SweepService
from dibs.slack.outgoing import Outgoing
from dibs.slack.web import SlackWeb


def every_job(
    *,
    sweep: SweepService,
    sweep_seconds: float,
    clock: ClockService,
    web: SlackWeb,
    delivery: DeliveryService,
    notices: NoticeService,
    reminders: ReminderService,
    outgoing: Outgoing,
    membership: MembershipService,
    pauses: ReleasePauses,
    keep_database: Callable[[], object] | None,
) -> list[Job]:
    """The jobs of one bot. Every process runs all of them; the database sees to it that this is safe.

    `keep_database` is what starts an embedded database again, where there is one.
    """

    def settle() -> None:
        try:
            outgoing.settle_once()
        finally:
            pauses.store_held()

    jobs = [
        #   name        every          limit  what is done
        Job("sweep",    sweep_seconds,    60, sweep.sweep_once),
        Job("clock",    5,                60, clock.look_once),
        Job("slack",    20,               60, web.probe_once),
        Job("delivery", 2,               300, delivery.deliver_once),
        Job("notices",  2,               300, notices.deliver_once),
        Job("reminders", 15,              60, reminders.remind_once),
        Job("owners",  10,                60, reminders.report_owners_gone),
        Job("settle",   2,                60, settle),
        Job("members",  60,              300, membership.catch_up),
        Job("housekeeping", 3600,        300, notices.forget_old),
    ]  # fmt: skip
    if keep_database is not None:
        jobs.append(Job("database", 2, 60, keep_database))
    return jobs
