"""Everything is built here, once, from the settings. Nothing else connects or reads the environment."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from slack_bolt import App

from dibs.config import ConfigError, Settings
from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.jobs import every_job
from dibs.metrics import Metrics, MetricsServer
from dibs.scheduler import Scheduler
from dibs.service.audit import AuditService
from dibs.service.backlog import BacklogReader
from dibs.service.brakes import BrakeService
from dibs.service.clock import ClockLimits, ClockService
from dibs.service.delivery import DeliveryService
from dibs.service.export import ExportService
from dibs.service.members import MembershipService
from dibs.service.notices import NoticeService
from dibs.service.queries import TaskQueries
from dibs.service.queues import QueueService
from dibs.service.release_pauses import ReleasePauses
from dibs.service.reminders import ReminderService
from dibs.service.reports import ReportService
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService
from dibs.slack.app import make_app
from dibs.slack.calls import SlackUnusable
from dibs.slack.exporter import Exporter
from dibs.slack.files import FileSender
from dibs.slack.front import Front
from dibs.slack.http import Readiness, SlackHttp
from dibs.slack.notices import SlackNotices
from dibs.slack.outgoing import Outgoing
from dibs.slack.reporter import Reporter
from dibs.slack.socket import SlackSocket
from dibs.slack.web import SlackWeb
from dibs.store import schema
from dibs.store.engine import (
    BACKGROUND,
    PRESS,
    DatabaseUnusable,
    check_reachable,
    check_sessions,
    make_engine,
)
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

_BACKGROUND_CONNECTIONS = 16
_SPARE_CONNECTIONS = 2


@dataclass(frozen=True, slots=True)
class Bot:
    """A running bot: its HTTP server, its jobs and its connections."""

    http: SlackHttp
    socket: SlackSocket | None
    scheduler: Scheduler
    outgoing: Outgoing
    sweep: SweepService
    delivery: DeliveryService
    notices: NoticeService
    reminders: ReminderService
    membership: MembershipService
    queues: QueueService
    queries: TaskQueries
    guards: tuple[Guard, ...]
    engines: tuple[sa.Engine, ...]
    connections: tuple[int, ...]
    """How many each of the engines may open."""
    metrics: MetricsServer | None
    """Where the metrics have a port of their own."""

    def start(self) -> None:
        """Start the sweep, the delivery and the other jobs, and open the connection of Socket Mode.

        Every connection to the database is opened, so that one that cannot be had is told now. Raises
        DatabaseUnusable there, and ConfigError where Slack does not let Dibs open Socket Mode's.
        """
        with _enough_connections():
            for guard, number in zip(self.guards, self.connections, strict=True):
                guard.open_connections(number)
        self.scheduler.start()
        if self.socket is not None:
            try:
                self.socket.connect()
            except SlackUnusable as error:
                raise ConfigError(
                    f"Slack did not open a connection for Socket Mode: {error}. Check SLACK_APP_TOKEN, and "
                    "that Socket Mode is on in the app's settings."
                ) from error

    def close(self) -> None:
        """Stop in order: no new requests, no new jobs, what is waiting is sent, then the connections."""
        if self.socket is not None:
            self.socket.close()
        self.http.close()
        if self.metrics is not None:
            self.metrics.close()
        self.delivery.stop()
        self.notices.stop()
        self.scheduler.stop()
        self.outgoing.close()
        for guard in self.guards:
            guard.close()
        for engine in self.engines:
            engine.dispose()


def build(settings: Settings, database_url: str, *, keep_database: Callable[[], object] | None = None) -> Bot:
    """Connect to the database and to Slack, and put the bot together. Nothing runs yet.

    `keep_database` is called now and then, to start an embedded database again that has died.
    Raises ConfigError or DatabaseUnusable, each with one line that says what to do.
    """
    background = make_engine(database_url, BACKGROUND, pool_size=_BACKGROUND_CONNECTIONS)
    _make_ready(background)
    connections = (settings.threads + _SPARE_CONNECTIONS, _BACKGROUND_CONNECTIONS)
    presses = make_engine(database_url, PRESS, pool_size=connections[0])
    metrics = Metrics()
    web = SlackWeb(settings.slack_bot_token, settings.slack_api_url, telemetry=metrics)
    bot = _introduce(web, settings)

    press_guard, background_guard = Guard(presses), Guard(background)
    with _enough_connections():
        press_guard.open_connections(settings.threads)
    membership = MembershipService(press_guard, web)
    pauses = ReleasePauses(press_guard)
    transitions = TransitionService(
        presses, guard=press_guard, membership=membership, telemetry=metrics, pauses=pauses
    )
    queries = TaskQueries(background_guard)
    delivery = DeliveryService(background_guard, queries, web)
    notices = NoticeService(background_guard, queries, SlackNotices(web.sending))
    reminders = ReminderService(background_guard)
    outgoing = Outgoing(web, delivery, notices, transitions, queries, archive_url=str(bot.get("url") or ""))
    press_guard.call_when_back(outgoing.settle_once)
    files = FileSender(settings.slack_bot_token, settings.slack_api_url, metrics)
    clock = ClockService(
        background_guard,
        ClockLimits(
            tolerance=settings.clock_tolerance_seconds,
            outage=settings.outage_seconds,
            grace=settings.grace_seconds,
        ),
        slack_answers=lambda: web.answers,
    )
    front = Front(
        transitions=transitions,
        queues=QueueService(press_guard),
        queries=TaskQueries(press_guard),
        membership=membership,
        audit=AuditService(press_guard, membership),
        brakes=BrakeService(press_guard, pauses, sweep_holds_still=lambda: clock.holds_still is not None),
        web=web,
        outgoing=outgoing,
        reports=ReportService(press_guard, membership),
        reporter=Reporter(outgoing, web, files, ReportService(background_guard, membership)),
        exporter=Exporter(outgoing, files, ExportService(background_guard)),
    )
    sweep = SweepService(background_guard, metrics, clock=clock)
    jobs = every_job(
        sweep=sweep,
        sweep_seconds=settings.sweep_seconds,
        clock=clock,
        web=web,
        delivery=delivery,
        notices=notices,
        reminders=reminders,
        outgoing=outgoing,
        membership=membership,
        pauses=pauses,
        keep_database=keep_database,
    )
    scheduler = Scheduler(jobs, telemetry=metrics)
    metrics.watch(
        backlog=BacklogReader(background_guard),
        ages=scheduler.ages,
        overdue=scheduler.overdue,
        holds_still=lambda: clock.holds_still is not None,
    )
    app = make_app(front, signing_secret=settings.slack_signing_secret, bot=bot)
    socket = None
    if settings.slack_app_token:
        socket = SlackSocket(
            app,
            app_token=settings.slack_app_token,
            api_url=settings.slack_api_url,
            threads=settings.threads,
            telemetry=metrics,
        )
    readiness = partial(_readiness, background_guard, scheduler, clock, socket)
    return Bot(
        http=_listen(None if socket else app, readiness, metrics, settings),
        metrics=_own_port(metrics, settings),
        socket=socket,
        scheduler=scheduler,
        outgoing=outgoing,
        sweep=sweep,
        delivery=delivery,
        notices=notices,
        reminders=reminders,
        membership=membership,
        queues=front.queues,
        queries=front.queries,
        guards=(press_guard, background_guard),
        engines=(presses, background),
        connections=connections,
    )


def _make_ready(engine: sa.Engine) -> None:
    try:
        check_reachable(engine)
        with _enough_connections():
            check_sessions(engine)
        schema.upgrade(engine)
    except DatabaseUnusable:
        engine.dispose()
        raise


@contextlib.contextmanager
def _enough_connections() -> Iterator[None]:
    """Open connections in here. Raises DatabaseUnusable, which says what to do, where one is not given."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split())
        besides = _SPARE_CONNECTIONS + _BACKGROUND_CONNECTIONS
        raise DatabaseUnusable(
            "The database does not give all of the connections that Dibs needs: "
            f"{said}. Let it, the role and a pooler before it give DIBS_THREADS + {besides} "
            "(max_connections, CONNECTION LIMIT, default_pool_size), or set DIBS_THREADS to a smaller number."
        ) from error


def _introduce(web: SlackWeb, settings: Settings) -> Mapping[str, Any]:
    try:
        return web.auth_test()
    except SlackUnusable as error:
        raise ConfigError(
            f"Slack at {settings.slack_api_url} did not answer, or did not accept the bot: {error}. "
            "Check SLACK_BOT_TOKEN, SLACK_API_URL and the network."
        ) from error


def _listen(app: App | None, readiness: Readiness, metrics: Metrics, settings: Settings) -> SlackHttp:
    try:
        return SlackHttp(
            app,
            readiness,
            host=settings.host,
            port=settings.port,
            threads=settings.threads,
            scrape=metrics.scrape if settings.metrics_port is None else None,
            telemetry=metrics,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Dibs cannot listen on {settings.host} port {settings.port}: {error}. "
            "Set HOST and PORT to an address and a port that are free."
        ) from error


def _own_port(metrics: Metrics, settings: Settings) -> MetricsServer | None:
    if settings.metrics_port is None:
        return None
    try:
        return metrics.serve(settings.host, settings.metrics_port)
    except OSError as error:
        raise ConfigError(
            f"The metrics cannot be served on {settings.host} port {settings.metrics_port}: {error}. "
            "Set DIBS_METRICS_PORT to a port that is free."
        ) from error


def _readiness(
    guard: Guard, scheduler: Scheduler, clock: ClockService, socket: SlackSocket | None
) -> tuple[bool, dict[str, Any]]:
    """Whether the database and its schema are good; failing jobs are named, and presses work without them."""
    problems = scheduler.problems()
    if held := clock.holds_still:
        problems.append(f"the sweep holds still: {held}")
    known: dict[str, Any] = {"jobs": scheduler.report(), "problems": problems}
    if socket is not None:
        known["socket"] = socket.report()
    try:
        current = schema.found_current(guard, Deadline.after())
    except StoreError as error:
        _log.warning("not ready: %s", error)
        return False, {"ready": False, "database": "does not answer", **known}
    database = "good" if current else "its tables are of another version of Dibs"
    return current, {"ready": current, "database": database, **known}
