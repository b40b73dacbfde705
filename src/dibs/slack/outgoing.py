"""What is sent after a press was acknowledged: its answer, and the card it changed.

A press is acknowledged as soon as its transaction has committed; what follows runs here, on a few threads,
so that a slow Slack holds up no press. An answer that is lost with the process is not the only carrier of
anything: the card tells the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.domain.outcomes import Outcome
from dibs.service.delivery import DeliveryService
from dibs.service.notices import NoticeService
from dibs.service.queries import TaskQueries
from dibs.service.transitions import TransitionService
from dibs.slack import replies, text
from dibs.slack.calls import Answered
from dibs.slack.payloads import Origin
from dibs.slack.web import SlackWeb

_log = logging.getLogger(__name__)

_THREADS = 6
_SETTLE_WITHIN_SECONDS = 5.0
_WORDS_WITHIN_SECONDS = 2.0
_MOST_UNSETTLED = 1000
_MOST_WAITING = 1000
_LAST_JOBS_SECONDS = 3.0
_SOON_SECONDS = 5.0
_MOST_TIMERS = 50
_NOTICES_AT_A_TIME = 20


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A press of which it is not known yet whether it changed its task."""

    outcome: Outcome
    task_id: int
    version: int
    origin: Origin
    queue_id: int | None = None
    """One of the queues that were asked for the next task, which is no task yet."""


class Outgoing:
    """Answers to people, and the cards that their presses changed."""

    def __init__(
        self,
        web: SlackWeb,
        delivery: DeliveryService,
        notices: NoticeService,
        transitions: TransitionService,
        queries: TaskQueries,
        *,
        archive_url: str,
    ) -> None:
        self._web = web
        self._delivery = delivery
        self._notices = notices
        self._transitions = transitions
        self._queries = queries
        self._archive_url = archive_url
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="dibs-outgoing")
        self._jobs: set[Future[None]] = set()
        self._unsettled: list[Unsettled] = []
        self._notices_wanted = threading.Event()
        self._notices_turn = threading.Lock()
        self._timers: set[threading.Timer] = set()
        self._dropped = 0
        self.closing = False
        """Whether Dibs is stopping, for work that would hold that up."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Give what is still waiting a few seconds, then drop the rest: cards stay due, answers are lost.

        What is being sent just now still ends by its own deadline.
        """
        self.closing = True
        self._pool.shutdown(wait=False)
        with self._lock:
            jobs = set(self._jobs)
            for timer in self._timers:
                timer.cancel()
        dropped = sum(job.cancel() for job in wait(jobs, _LAST_JOBS_SECONDS).not_done)
        if dropped:
            _log.warning("Dibs is stopping; %d messages that were still to be sent are dropped", dropped)
        self._pool.shutdown(wait=True)

    @property
    def waiting(self) -> int:
        """How many things are still to be sent or are being sent."""
        with self._lock:
            return len(self._jobs)

    def submit(self, job: Callable[[], object]) -> None:
        """Have `job` done soon, on another thread. It is dropped where too many wait, and that is logged."""
        with self._lock:
            if len(self._jobs) >= _MOST_WAITING:
                if not self._dropped:
                    _log.warning("%d messages wait to be sent; for now more are dropped", _MOST_WAITING)
                self._dropped += 1
                return
            if self._dropped and len(self._jobs) < _MOST_WAITING // 2:
                _log.warning("%d messages were dropped; the cards among them are sent later", self._dropped)
                self._dropped = 0
            try:
                waiting = self._pool.submit(_logged, job)
            except RuntimeError:
                _log.warning("Dibs is stopping; %s was not done", job)
                return
            self._jobs.add(waiting)
        waiting.add_done_callback(self._forget)

    def _forget(self, job: Future[None]) -> None:
        with self._lock:
            self._jobs.discard(job)

    def tell(self, origin: Origin, said: str) -> None:
        """Tell the person, and nobody else."""
        self.submit(lambda: self.tell_now(origin, said))

    def worded(self, said: str, deadline: Deadline) -> str:
        """`said` with the handles of user groups, which Slack is asked for where they are not known."""
        return text.with_handles(said, lambda group: self._web.lookups.handle_of(group, deadline))

    def outcome(self, origin: Origin, outcome: Outcome, *, task_id: int, version: int) -> None:
        """Tell the person what came of their press, and bring the task's card up to date."""
        task = outcome.task
        if task is not None and (outcome.changed or outcome.replayed or task.version != version):
            self.refresh(task.id, origin)
        if outcome.changed:
            self.send_notices()
        if outcome.unknown:
            self.watch(origin, outcome, task_id=task_id, version=version)
        self.submit(lambda: self.tell_now(origin, replies.reply(outcome, self._card_link(origin, outcome))))

    def watch(
        self, origin: Origin, outcome: Outcome, *, task_id: int, version: int, queue_id: int | None = None
    ) -> None:
        """Tell the person later what became of a press that could not be confirmed."""
        self._remember(Unsettled(outcome, task_id, version, origin, queue_id))

    def refresh(self, task_id: int, origin: Origin | None = None) -> None:
        """Bring a task's card up to date, through the press's own url where the press was on the card."""
        pressed_in, pressed_ts, answer_url = (
            (origin.channel_id, origin.message_ts, origin.answer_url) if origin else (None, None, None)
        )

        def bring_up_to_date() -> None:
            wait = self._delivery.refresh(
                task_id, pressed_in=pressed_in, pressed_ts=pressed_ts, answer_url=answer_url
            )
            if wait is not None and wait < _SOON_SECONDS:
                self._refresh_in(wait, task_id)

        self.submit(bring_up_to_date)

    def _refresh_in(self, seconds: float, task_id: int) -> None:
        """Try once more when it may work, which is sooner than the next job comes; that does the rest."""
        timer = threading.Timer(seconds, lambda: self.refresh(task_id))
        timer.daemon = True
        with self._lock:
            self._timers = {timer for timer in self._timers if timer.is_alive()}
            if self.closing or len(self._timers) >= _MOST_TIMERS:
                return
            self._timers.add(timer)
            timer.start()

    def send_notices(self) -> None:
        """Send alerts and redraw the messages that follow a task now, and not only by the next job."""
        self._notices_wanted.set()
        self.submit(self._send_some_notices)

    def _send_some_notices(self) -> None:
        # One thread at a time, and not for long: the answers to presses come first.
        while self._notices_wanted.is_set() and self._notices_turn.acquire(blocking=False):
            try:
                self._notices_wanted.clear()
                self._notices.deliver_once(_NOTICES_AT_A_TIME)
            finally:
                self._notices_turn.release()

    def invited(self, channel_id: str) -> None:
        """Send the cards that could not be posted before Dibs was in the channel."""
        self.submit(lambda: self._delivery.take_up_again(channel_id))

    def _card_link(self, origin: Origin, outcome: Outcome) -> str | None:
        """A link to the card of a task that was not changed, which need not be the message pressed on."""
        where: tuple[str, str | None] | None = None
        if outcome.changed:
            # The answer tells all there is.
            return None
        if outcome.task is not None:
            try:
                where = self._queries.card_of(outcome.task.id, deadline=Deadline.after(_WORDS_WITHIN_SECONDS))
            except StoreError as error:
                _log.warning("an answer leads to the message that was pressed on: %s", error)
        if where is None and origin.channel_id and origin.message_ts:
            where = origin.channel_id, origin.message_ts
        return self.link_to(*where) if where else None

    def link_to(self, channel_id: str, message_ts: str | None, words: str = "The current card") -> str:
        """A link to a card, or to its channel where the card is not posted yet."""
        if message_ts is None or not self._archive_url:
            return f"{words}: <#{channel_id}>"
        return text.link(f"{self._archive_url}archives/{channel_id}/p{message_ts.replace('.', '')}", words)

    def settle_once(self) -> None:
        """Find out about the presses that could not be confirmed, and tell their people."""
        with self._lock:
            waiting, self._unsettled = self._unsettled, []
        for number, entry in enumerate(waiting):
            outcome = self._transitions.settle(
                entry.outcome,
                task_id=entry.task_id,
                version=entry.version,
                queue_id=entry.queue_id,
                deadline=Deadline.after(_SETTLE_WITHIN_SECONDS),
            )
            if outcome.unknown:
                # The database does not answer: the others come first next time.
                for later in (*waiting[number + 1 :], entry):
                    self._remember(later)
                return
            if outcome.task is not None:
                self.refresh(outcome.task.id, entry.origin)
            self.tell(entry.origin, replies.settled(outcome, self._card_link(entry.origin, outcome)))

    def _remember(self, entry: Unsettled) -> None:
        with self._lock:
            self._unsettled = [*self._unsettled[-_MOST_UNSETTLED:], entry]

    def tell_now(self, origin: Origin, said: str) -> None:
        """Tell the person from this thread, so that what they are told next comes after it."""
        said = self.worded(said, Deadline.after(_WORDS_WITHIN_SECONDS))
        if origin.answer_url:
            answered = self._web.answer(
                origin.answer_url, response_type="ephemeral", replace_original=False, text=said
            )
            if answered is not Answered.REFUSED:
                # Also where no word came back: the answer may be there, and must not be said twice.
                return
        if origin.channel_id:
            self._web.tell(origin.channel_id, origin.user_id, said)


def _logged(job: Callable[[], object]) -> None:
    try:
        job()
    except StoreError as error:
        _log.warning("left for the next delivery: %s", error)
    except Exception:  # noqa: BLE001 - the pool would swallow whatever goes wrong here
        _log.exception("something went wrong after a press was acknowledged")
