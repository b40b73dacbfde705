"""What every listener works with."""

from __future__ import annotations

from dataclasses import dataclass

from dibs.service.audit import AuditService
from dibs.service.brakes import BrakeService
from dibs.service.members import MembershipService
from dibs.service.queries import TaskQueries
from dibs.service.queues import QueueService
from dibs.service.reports import ReportService
from dibs.service.transitions import TransitionService
from dibs.slack.exporter import Exporter
from dibs.slack.outgoing import Outgoing
from dibs.slack.reporter import Reporter
from dibs.slack.web import SlackWeb


@dataclass(frozen=True, slots=True)
class Front:
    """The services, Slack, and what is sent after an acknowledgement."""

    transitions: TransitionService
    queues: QueueService
    queries: TaskQueries
    membership: MembershipService
    brakes: BrakeService
    audit: AuditService
    web: SlackWeb
    outgoing: Outgoing
    reports: ReportService
    reporter: Reporter
    exporter: Exporter
