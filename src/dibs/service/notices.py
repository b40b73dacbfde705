"""What Dibs says of its own accord, brought to its recipients once, and redrawn while it follows its task."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, assert_never

import sqlalchemy as sa

from dibs.deadline import Deadline
from dibs.domain.notices import Letter, Notice, Settlement, is_final, is_moot
from dibs.service.delivery import Delivered, Delivery, GivenUp, MessageGone, TryLater, back_off
from dibs.service.queries import TaskQueries
from dibs.service.steps import Passing, Step, unwatched
from dibs.store import outbox
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

PARCELS_AT_A_TIME = 100
STATEMENT_SECONDS = 5.0
SEND_SECONDS = 5.0
"""How long one message may take from the moment it is taken until Slack has answered. Well under
`outbox.SENDER_SECONDS`: after these it is looked for, and a post should not land later than that."""
SHORTEST_WAIT_SECONDS = 3.0
"""A post whose answer did not come in time may only be slow. It is looked for as late as it can be."""
WAIT_AT_FIRST_SECONDS = 6.0
"""The longest wait between the first tries. With the job's interval an alert is tried again within 10 s."""
FIRST_TRIES = 20
LONGEST_WAIT_SECONDS = 60.0
DAYS_KEPT = 30
"""How long a message that is over is kept, to answer what was told to whom."""
NO_LONGER_MATTERS = "no longer matters"
"""Why a reminder was never sent that was overtaken before its turn came."""


class NoticeSender(Protocol):
    """How notices reach people. Every method ends by its deadline and raises for nothing Slack does.

    The letters of one call are of one kind, for one recipient, and go into one message.
    """

    def send(self, letters: Sequence[Letter], deadline: Deadline) -> Delivery:
        """Send a new message that carries the letters' keys."""

    def redraw(
        self, letters: Sequence[Letter], channel_id: str, message_ts: str, deadline: Deadline
    ) -> Delivery:
        """Draw a message anew that stands already."""

    def look_for(
        self, recipient: str, keys: Sequence[str], since: datetime, deadline: Deadline
    ) -> Mapping[str, Delivered] | TryLater:
        """Where the messages with these keys stand that were sent after `since`, and all keys they carry.

        TryLater where it cannot be told: nothing must be repeated then.
        """


@dataclass(frozen=True, slots=True)
class _Parcel:
    """What goes into one message. Its rows come in the order of their ids, the lead first."""

    rows: tuple[sa.RowMapping, ...]
    sender: str

    @property
    def lead(self) -> sa.RowMapping:
        return self.rows[0]

    @property
    def mine(self) -> dict[str, Any]:
        return {"ids": [row["id"] for row in self.rows], "lead": self.lead["id"], "sender": self.sender}

    @property
    def uncertain(self) -> bool:
        """Whether it may have been posted by a try of which nothing is known."""
        return self.lead["message_ts"] is None and any(row["attempts"] > 1 for row in self.rows)


class NoticeService:
    """Sends what is due. Safe in several threads and processes at once: each notice is posted once.

    `passing` is told each step.
    """

    def __init__(
        self, guard: Guard, queries: TaskQueries, sender: NoticeSender, *, passing: Passing = unwatched
    ) -> None:
        self._guard = guard
        self._queries = queries
        self._sender = sender
        self._passing = passing
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Have `deliver_once` end after the message that is being sent; the others stay due."""
        self._stopping.set()

    def deliver_once(self, most: int = PARCELS_AT_A_TIME) -> int:
        """Send and redraw messages that are due, `most` at the most.

        Returns how many were tried. Raises StoreError.
        """
        for tried in range(most):
            if self._stopping.is_set():
                return tried
            sender, deadline = uuid.uuid4().hex, Deadline.after(SEND_SECONDS)
            rows = self._guard.run(outbox.TAKE, {"sender": sender}, Deadline.after(STATEMENT_SECONDS))
            if not rows:
                return tried
            self._passing(Step.TAKEN)
            self._deliver(_Parcel(tuple(rows), sender), deadline)
        return most

    def forget_old(self) -> int:
        """Drop messages that were over DAYS_KEPT ago; the record itself is in the events. Returns how many.

        Raises StoreError.
        """
        dropped = 0
        while rows := self._guard.run(
            outbox.FORGET_OLD, {"days": DAYS_KEPT}, Deadline.after(STATEMENT_SECONDS)
        ):
            dropped += len(rows)
        return dropped

    def _deliver(self, parcel: _Parcel, deadline: Deadline) -> None:
        if parcel.uncertain:
            missing = self._not_there(parcel, deadline)
            self._passing(Step.LOOKED)
            if missing is None:
                self._try_later(parcel, TryLater())
                return
            if not missing.rows:
                return
            parcel = missing
        letters, wanted = self._letters(parcel)
        self._passing(Step.READ)
        lead = parcel.lead
        if lead["message_ts"] is None and all(is_moot(letter) for letter in letters):
            self._run(outbox.GIVE_UP, parcel.mine | {"reason": NO_LONGER_MATTERS, "gone": False})
            return
        if lead["message_ts"] is None:
            delivery = self._sender.send(letters, deadline)
        else:
            delivery = self._sender.redraw(letters, lead["channel_id"], lead["message_ts"], deadline)
        self._passing(Step.SENT)
        self._note(parcel, letters, wanted, delivery)
        self._passing(Step.NOTED)

    def _not_there(self, parcel: _Parcel, deadline: Deadline) -> _Parcel | None:
        """What is left of a parcel once the posts that are there after all are noted.

        None where it cannot be told whether they are there.
        """
        keys = [row["key"] for row in parcel.rows]
        since = min(row["tried_since"] for row in parcel.rows)
        found = self._sender.look_for(parcel.lead["recipient"], keys, since, deadline)
        if isinstance(found, TryLater):
            return None
        there: set[int] = set()
        for place in sorted(set(found.values()), key=lambda place: place.message_ts):
            carried = [key for key, where in found.items() if where == place]
            values = {"keys": carried, "channel_id": place.channel_id, "message_ts": place.message_ts}
            there |= {row["id"] for row in self._run(outbox.FOUND, values)}
        there |= {row["id"] for row in parcel.rows if row["key"] in found}
        return _Parcel(tuple(row for row in parcel.rows if row["id"] not in there), parcel.sender)

    def _letters(self, parcel: _Parcel) -> tuple[list[Letter], list[int]]:
        """What the message is drawn from, and which drawing of each row that makes."""
        # The tasks are read after the rows: what they show is never older than what the rows ask for.
        rows = self._run(outbox.LETTERS, {"ids": parcel.mine["ids"]})
        return [self._letter(row) for row in rows], [row["wanted"] for row in rows]

    def _letter(self, row: sa.RowMapping) -> Letter:
        facts = None
        if row["task_id"] is not None:
            facts = self._queries.facts(row["task_id"], deadline=Deadline.after(STATEMENT_SECONDS))
        return Letter(
            id=row["id"],
            notice=Notice(row["kind"]),
            key=row["key"],
            recipient=row["recipient"],
            payload=row["payload"],
            queue_id=row["queue_id"],
            queue_key=row["queue_key"],
            queue_name=row["queue_name"],
            queue_channel=row["queue_channel"],
            facts=facts,
            settled=Settlement(row["settled_by"], row["settled_at"]) if row["settled_at"] else None,
            over=row["over"],
        )

    def _note(
        self, parcel: _Parcel, letters: Sequence[Letter], wanted: Sequence[int], delivery: Delivery
    ) -> None:
        match delivery:
            case Delivered():
                drawn = [
                    {"id": letter.id, "wanted": number, "final": is_final(letter)}
                    for letter, number in zip(letters, wanted, strict=True)
                ]
                shown = parcel.mine | {
                    "drawn": json.dumps(drawn),
                    "channel_id": delivery.channel_id,
                    "message_ts": delivery.message_ts,
                }
                if not self._run(outbox.SHOWN, shown):
                    self._run(outbox.OVERTAKEN, {"ids": parcel.mine["ids"]})
            case MessageGone():
                self._run(outbox.GONE, parcel.mine)
            case GivenUp():
                _log.warning("%s is given up: %s", parcel.lead["key"], delivery.reason)
                self._run(
                    outbox.GIVE_UP, parcel.mine | {"reason": delivery.reason, "gone": delivery.recipient_gone}
                )
            case TryLater():
                self._try_later(parcel, delivery)
            case _:
                assert_never(delivery)

    def _try_later(self, parcel: _Parcel, later: TryLater) -> None:
        attempts = parcel.lead["attempts"]
        surely = later.seconds is not None
        longest = WAIT_AT_FIRST_SECONDS if attempts <= FIRST_TRIES else LONGEST_WAIT_SECONDS
        waited_for = max(back_off(attempts, longest), SHORTEST_WAIT_SECONDS)
        wait = later.seconds if later.seconds is not None else waited_for
        # What was surely not done needs no look-up before the next try.
        values = {"seconds": wait, "attempts": attempts - 1 if surely else attempts}
        self._run(outbox.TRY_LATER, parcel.mine | values)

    def _run(self, statement: sa.Executable, values: Mapping[str, Any]) -> Sequence[sa.RowMapping]:
        return self._guard.run_once(statement, values, Deadline.after(STATEMENT_SECONDS))
