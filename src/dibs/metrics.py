"""What Dibs counts and measures, for Prometheus.

Each bot has a registry of its own. Labels are words of Dibs' own, queue keys and Slack's words for errors;
nobody's name or id, and no task's, is among them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from dibs.domain.outcomes import Outcome
from dibs.domain.transitions import Operation
from dibs.service.backlog import BacklogReader
from dibs.service.telemetry import Telemetry

_ANSWER_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
"""In seconds; Slack shows a failure to the person after three."""
_SLACK_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MOST_ERROR_WORDS = 100
_OTHER = "other"

Ages = Callable[[], Mapping[str, float]]
"""How many seconds ago each job last worked."""


class Metrics(Telemetry):
    """Hears what happens, and tells the sums to whoever scrapes them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._lock = threading.Lock()
        self._error_words: set[str] = set()
        self._transitions = self._counter(
            "dibs_transitions", "Changes of tasks; those of the sweep are `expire`.", "operation"
        )
        self._refusals = self._counter(
            "dibs_refusals", "Operations that changed nothing, by why.", "operation", "reason"
        )
        self._unconfirmed = self._counter(
            "dibs_unconfirmed",
            "Operations that got no answer of the database; settled, they count again as what they were.",
            "operation",
        )
        self._repeats = self._counter(
            "dibs_repeated_deliveries",
            "Operations that arrived again and were answered as the first time; counted nowhere else.",
            "operation",
        )
        self._answers = Histogram(
            "dibs_acknowledgement_seconds",
            "From a request of Slack's arriving until its acknowledgement, a press among others.",
            ["kind"],
            registry=self._registry,
            buckets=_ANSWER_BUCKETS,
        )
        self._slack = Histogram(
            "dibs_slack_request_seconds",
            "Until Slack answered a request of Dibs', or was no longer waited for.",
            ["method"],
            registry=self._registry,
            buckets=_SLACK_BUCKETS,
        )
        self._slack_errors = self._counter(
            "dibs_slack_errors",
            "Requests to Slack that failed, by Slack's word for it.",
            "method",
            "error",
        )
        self._job_failures = self._counter(
            "dibs_job_failures", "Runs of a job by the clock that failed.", "job"
        )
        # A series that begins with its first event has no rate for it, so what is known is there before.
        for operation in Operation:
            self._transitions.labels(operation)
            if operation is not Operation.EXPIRE:
                self._unconfirmed.labels(operation)
                self._repeats.labels(operation)
        self._answers.labels("press")

    def watch(
        self,
        *,
        backlog: BacklogReader,
        ages: Ages,
        overdue: Callable[[], Iterable[str]],
        holds_still: Callable[[], bool],
    ) -> None:
        """Also tell, whenever it is asked, what these say then."""
        for job in ages():
            self._job_failures.labels(job)
        self._registry.register(_Gauges(backlog, ages, overdue, holds_still))

    def scrape(self) -> tuple[bytes, str]:
        """Everything as it stands, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def serve(self, host: str, port: int) -> MetricsServer:
        """Serve it on a port of its own. Raises OSError where the address cannot be used."""
        return MetricsServer(*start_http_server(port, addr=host, registry=self._registry))

    def answered(self, outcome: Outcome) -> None:
        """Count an operation, once, as what came of it."""
        operation = outcome.operation
        if outcome.replayed:
            self._repeats.labels(operation).inc()
        elif outcome.changed:
            self._transitions.labels(operation).inc()
        elif outcome.unknown:
            self._unconfirmed.labels(operation).inc()
        else:
            self._refusals.labels(operation, outcome.why or _OTHER).inc()

    def expired(self, number: int) -> None:
        """Count the tasks that the sweep has returned."""
        self._transitions.labels(Operation.EXPIRE).inc(number)

    def acknowledged(self, kind: str, seconds: float) -> None:
        """Measure how long a request waited for its answer."""
        self._answers.labels(kind).observe(seconds)

    def asked_slack(self, method: str, seconds: float, error: str | None) -> None:
        """Measure a request to Slack, and count it if it failed."""
        self._slack.labels(method).observe(seconds)
        if error is not None:
            self._slack_errors.labels(method, self._one_of_few(error)).inc()

    def job_failed(self, name: str) -> None:
        """Count a run that failed."""
        self._job_failures.labels(name).inc()

    def _one_of_few(self, word: str) -> str:
        """The word, or `other` where the other side has used too many different ones."""
        with self._lock:
            if word not in self._error_words and len(self._error_words) >= _MOST_ERROR_WORDS:
                return _OTHER
            self._error_words.add(word)
            return word

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self._registry)


class MetricsServer:
    """A server for nothing but the metrics, in threads of its own."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._server.server_port

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Gauges(Collector):
    """What is read when it is asked for. What the database does not tell is left out of the answer."""

    def __init__(
        self,
        backlog: BacklogReader,
        ages: Ages,
        overdue: Callable[[], Iterable[str]],
        holds_still: Callable[[], bool],
    ) -> None:
        self._backlog = backlog
        self._ages = ages
        self._overdue = overdue
        self._holds_still = holds_still

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not read the database to learn the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The gauges, of which those from the database may be missing."""
        ages, overdue = self._ages(), set(self._overdue())
        if "sweep" in ages:
            yield _gauge("dibs_sweep_age_seconds", "Since the sweep last worked.", ages["sweep"])
        yield _labelled("dibs_job_age_seconds", "Since a job by the clock last worked.", "job", ages)
        late = {job: float(job in overdue) for job in ages}
        yield _labelled("dibs_job_overdue", "1 where a job hangs or is not run.", "job", late)
        held = float(self._holds_still())
        yield _gauge("dibs_sweep_holds_still", "1 where this process ends no lease; /readyz says why.", held)
        backlog = self._backlog.read()
        # After the reading, which may just have found it out.
        away = float(self._backlog.database_away or backlog is None)
        yield _gauge("dibs_database_away", "1 where the database does not answer.", away)
        if backlog is None:
            return
        yield _gauge("dibs_cards_due", "Cards that show an older state; counted to 10000.", backlog.cards_due)
        yield _gauge(
            "dibs_cards_oldest_due_seconds", "Since the oldest of them was due.", backlog.oldest_card_seconds
        )
        yield _gauge("dibs_outbox_due", "Messages to be sent; counted to 10000.", backlog.messages_due)
        yield _gauge(
            "dibs_outbox_oldest_due_seconds",
            "Since the oldest of them was due.",
            backlog.oldest_message_seconds,
        )
        for name, meaning, stopped in (
            ("dibs_breaker_open", "1 where expiries are stopped in a queue.", backlog.breakers_open),
            ("dibs_releases_paused", "1 where releases are paused in a queue.", backlog.releases_paused),
        ):
            yield _labelled(name, meaning, "queue", stopped)
        clock_stopped = float(backlog.clock_stopped)
        yield _gauge("dibs_clock_stopped", "1 where the clock jumped and no lease is ended.", clock_stopped)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=value)


def _labelled(name: str, meaning: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for word, value in values.items():
        family.add_metric([word], float(value))
    return family
