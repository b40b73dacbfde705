"""Cards brought up to date: the newest state, by one sender at a time, outside any transaction."""

from __future__ import annotations

import logging
import random
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, assert_never

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.queue import Facts
from dibs.service.queries import TaskQueries
from dibs.service.steps import Passing, Step, unwatched
from dibs.store import cards
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

STATEMENT_SECONDS = 5.0
SEND_SECONDS = 20.0
"""How long Slack may take for one delivery, all its requests together. With the statements around them it
stays well under `cards.SENDER_SECONDS`."""
LONGEST_WAIT_SECONDS = 300.0
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Delivered:
    """The message stands, and shows what it was given."""

    message_ts: str
    channel_id: str = field(default="", compare=False)
    """Where it stands, which for a message to a person only the answer tells."""
    counted: bool = field(default=False, compare=False)
    """Whether it was redrawn in the way of which a workspace has few."""


@dataclass(frozen=True, slots=True)
class MessageGone:
    """The message that should be updated was deleted."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """It cannot work for this version, such as in an archived channel. `reason` is the other side's word."""

    reason: str
    recipient_gone: bool = field(default=False, compare=False)
    """Whether the channel or the person cannot be reached, whatever is sent."""


@dataclass(frozen=True, slots=True)
class TryLater:
    """It did not work now. `seconds` is how long to wait where it was surely not done; or else it is None."""

    seconds: float | None = None


Delivery = Delivered | MessageGone | GivenUp | TryLater


class CardSender(Protocol):
    """How a card reaches its channel. Every method ends by its deadline and raises for nothing Slack does."""

    def post(self, facts: Facts, deadline: Deadline) -> Delivery:
        """Post a new message."""

    def update(self, facts: Facts, message_ts: str, answer_url: str | None, deadline: Deadline) -> Delivery:
        """Redraw the message, through `answer_url` where a press on this very message brought one."""

    def find(self, facts: Facts, since: datetime, deadline: Deadline) -> Delivered | MessageGone | TryLater:
        """The message of a post after `since` whose answer was lost, if it is there after all.

        TryLater where it cannot be told: the post must not be repeated then, or the card could double.
        """


@dataclass(frozen=True, slots=True)
class _Pressed:
    """The message that a press was on, and where the press is answered."""

    channel_id: str | None
    message_ts: str | None
    answer_url: str | None


_NOWHERE = _Pressed(None, None, None)


@dataclass(frozen=True, slots=True)
class _Came:
    """What came of one sending."""

    more: bool = False
    """There is something newer to send already."""
    wait: float | None = None
    """After how many seconds it is worth another try."""
    held_up: bool = False
    """The other side asked to wait, or did not answer."""


class DeliveryService:
    """Sends what is due. Safe in several threads and processes at once. `passing` is told each step."""

    def __init__(
        self, guard: Guard, queries: TaskQueries, sender: CardSender, *, passing: Passing = unwatched
    ) -> None:
        self._guard = guard
        self._queries = queries
        self._sender = sender
        self._passing = passing
        self._lock = threading.Lock()
        self._under_way: Counter[int] = Counter()
        self._handed_on: dict[int, _Pressed] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Have `deliver_once` end after the card that is being sent; the others stay due."""
        self._stopping.set()

    def deliver_once(self) -> int:
        """Bring every card that is due up to date. Returns how many were tried. Raises StoreError.

        Where the other side asks to wait, what it counts together is left for later: the posts of one
        channel, and all redraws.
        """
        due = self._guard.run(cards.DUE, {}, Deadline.after(STATEMENT_SECONDS))
        waiting: set[str | None] = set()
        tried = 0
        for row in due:
            if self._stopping.is_set():
                break
            if row["channel_id"] in waiting:
                continue
            tried += 1
            if self._bring_up_to_date(row["task_id"], _NOWHERE).held_up:
                waiting.add(row["channel_id"])
        return tried

    def post_again(self, queue_id: int, channel_id: str, *, alert_channel: str | None) -> None:
        """Show a queue in this channel from now on, and post the cards of its unfinished tasks there.

        Its alerts go to `alert_channel`, or else to the supervisors. What still matters of those that were
        sent to an alert channel before is sent there again; other messages stay as they are.
        """
        values = {"queue_id": queue_id, "channel_id": channel_id, "alert_channel": alert_channel}
        self._guard.run(cards.POST_AGAIN, values, Deadline.after(STATEMENT_SECONDS))

    def take_up_again(self, channel_id: str) -> None:
        """Send the cards that were given up in a channel, since Dibs is in it now."""
        self._guard.run(cards.ENABLE, {"channel_id": channel_id}, Deadline.after(STATEMENT_SECONDS))
        self.deliver_once()

    def refresh(
        self,
        task_id: int,
        *,
        pressed_in: str | None = None,
        pressed_ts: str | None = None,
        answer_url: str | None = None,
    ) -> float | None:
        """Bring the card of one task up to date, unless it is so already or somebody else is at it.

        `answer_url` belongs to the message `pressed_ts` in the channel `pressed_in`, and serves only if that
        is the card itself. Returns after how many seconds another try may do more, None where there is
        nothing to do. Raises StoreError where the database did not answer; the card stays due then.
        """
        pressed = _Pressed(pressed_in, pressed_ts, answer_url) if answer_url else _NOWHERE
        return self._bring_up_to_date(task_id, pressed).wait

    def _bring_up_to_date(self, task_id: int, pressed: _Pressed) -> _Came:
        with self._lock:
            self._under_way[task_id] += 1
        try:
            while (came := self._send_newest(task_id, pressed)).more and not self._stopping.is_set():
                # What changed while the message was on its way is sent through the url of a press that came
                # meanwhile, and not through one that served before: their uses are limited.
                with self._lock:
                    pressed = self._handed_on.pop(task_id, _NOWHERE)
            return came
        finally:
            with self._lock:
                self._under_way[task_id] -= 1
                if not self._under_way[task_id]:
                    del self._under_way[task_id]
                    self._handed_on.pop(task_id, None)

    def _send_newest(self, task_id: int, pressed: _Pressed) -> _Came:
        sender: dict[str, object] = {"task_id": task_id, "sender": uuid.uuid4().hex}
        where = {"pressed_ts": pressed.message_ts, "pressed_in": pressed.channel_id}
        taken = self._guard.run(cards.TAKE, sender | where, Deadline.after(STATEMENT_SECONDS))
        if taken:
            return self._send(task_id, taken[0], sender, pressed)
        with self._lock:
            if pressed.answer_url and self._under_way[task_id] > 1:
                self._handed_on[task_id] = pressed
        paced = self._guard.run(cards.PACED, {"task_id": task_id}, Deadline.after(STATEMENT_SECONDS))
        return _Came(wait=paced[0]["seconds"] if paced else None)

    def _send(self, task_id: int, card: sa.RowMapping, sender: dict[str, object], pressed: _Pressed) -> _Came:
        self._passing(Step.TAKEN)
        facts = self._queries.facts(task_id, deadline=Deadline.after(STATEMENT_SECONDS))
        if facts is None:
            return _Came()
        self._passing(Step.READ)
        message_ts, attempts = card["message_ts"], card["attempts"]
        deadline = Deadline.after(SEND_SECONDS)
        found: Delivered | MessageGone | TryLater = Delivered(message_ts) if message_ts else MessageGone()
        if message_ts is None and attempts > 1:
            found = self._sender.find(facts, card["tried_since"], deadline)
            self._passing(Step.LOOKED)
        delivery: Delivered | GivenUp | TryLater
        if isinstance(found, TryLater):
            delivery = found
        else:
            message_ts = found.message_ts if isinstance(found, Delivered) else None
            on_the_card = (message_ts, facts.channel_id) == (pressed.message_ts, pressed.channel_id)
            answer_url = pressed.answer_url if on_the_card else None
            delivery = self._update_or_post(facts, message_ts, answer_url, sender, deadline)
        self._passing(Step.SENT)
        more = self._note(facts, delivery, sender, attempts)
        self._passing(Step.NOTED)
        if isinstance(delivery, TryLater):
            return _Came(wait=delivery.seconds, held_up=True)
        return _Came(more=more)

    def _note(
        self, facts: Facts, delivery: Delivered | GivenUp | TryLater, sender: dict[str, object], attempts: int
    ) -> bool:
        """Write down what came of a delivery. Returns whether there is something newer to send already."""
        match delivery:
            case Delivered():
                shown = {
                    **sender,
                    "version": facts.task.version,
                    "message_ts": delivery.message_ts,
                    "redrawn": delivery.counted,
                }
                rows = self._guard.run_once(cards.SHOWN, shown, Deadline.after(STATEMENT_SECONDS))
                if not rows:
                    self._overtaken(facts, delivery.message_ts)
                return bool(rows and rows[0]["more"])
            case GivenUp():
                _log.warning("the card of %s is given up: %s", facts.task.name, delivery.reason)
                values = {
                    **sender,
                    "reason": delivery.reason,
                    "channel_gone": delivery.recipient_gone,
                    "version": facts.task.version,
                    "attempts": attempts - 1,
                }
                self._guard.run_once(cards.DISABLE, values, Deadline.after(STATEMENT_SECONDS))
            case TryLater():
                # What was surely not done needs no look-up before the next try.
                surely = delivery.seconds is not None
                wait = (
                    delivery.seconds
                    if delivery.seconds is not None
                    else back_off(attempts, LONGEST_WAIT_SECONDS)
                )
                values = {**sender, "seconds": wait, "attempts": attempts - 1 if surely else attempts}
                rows = self._guard.run_once(cards.TRY_LATER, values, Deadline.after(STATEMENT_SECONDS))
                if not (rows or surely):
                    self._overtaken(facts, None)
            case _:
                assert_never(delivery)
        return False

    def _overtaken(self, facts: Facts, message_ts: str | None) -> None:
        values = {"task_id": facts.task.id, "channel_id": facts.channel_id, "message_ts": message_ts}
        self._guard.run_once(cards.OVERTAKEN, values, Deadline.after(STATEMENT_SECONDS))

    def _update_or_post(
        self,
        facts: Facts,
        message_ts: str | None,
        answer_url: str | None,
        sender: dict[str, object],
        deadline: Deadline,
    ) -> Delivered | GivenUp | TryLater:
        if message_ts is not None:
            delivery = self._sender.update(facts, message_ts, answer_url, deadline)
            if not isinstance(delivery, MessageGone):
                return delivery
            self._guard.run_once(cards.GONE, sender, Deadline.after(STATEMENT_SECONDS))
            self._passing(Step.GONE)
        posted = self._sender.post(facts, deadline)
        return TryLater() if isinstance(posted, MessageGone) else posted


def back_off(attempts: int, longest: float) -> float:
    """Seconds to wait before the next try: twice as long each time, scattered so that crowds spread out."""
    # Where Slack is away for days there are more tries than a float has powers of two.
    doubled = 2.0 ** min(attempts, _MOST_DOUBLINGS)
    return random.uniform(0.5, 1.0) * min(doubled, longest)  # noqa: S311 - no secret
