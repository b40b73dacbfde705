"""The records as a file: CSV for a spreadsheet, or JSON Lines for programs, at any size.

Both are oldest first, with times in UTC (ISO 8601, with a Z), a line for each event. They are read in pages
through an index and written as they come, so that memory stays the same however many there are, and no
transaction stays open while whoever reads the file takes their time. Whatever was committed before the
export began is in it.

JSON Lines keeps every text exactly. In CSV a cell that a spreadsheet would take for a formula gets an
apostrophe before it, which makes it a text to every spreadsheet; the file begins with a byte order mark,
without which Excel takes it for another encoding than UTF-8.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

from dibs.deadline import Deadline
from dibs.domain.audit import OLDEST, Record, Selection
from dibs.service.audit import read_on
from dibs.store.guard import Guard

_RECORDS_AT_A_TIME = 500
_STATEMENT_SECONDS = 20.0

# Some programs take these for the end of a line too; in JSON both ways of writing them are the same text.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
BYTE_ORDER_MARK = "\ufeff"

# Spreadsheets pass over blanks and quotation marks before a formula, and take full-width signs for signs.
_FORMULA = re.compile(r"""[\t\r\n]|[\s"'\u2018\u2019\u201c\u201d]*[=+\-@\uff1d\uff0b\uff0d\uff20]""")


class Form(StrEnum):
    """How the records are written."""

    CSV = "csv"
    JSONL = "jsonl"


COLUMNS = (
    "at",
    "queue",
    "task",
    "title",
    "kind",
    "actor",
    "version_before",
    "version_after",
    "version_seen",
    "why",
    "text",
    "resolution",
    "previous_owner",
    "state_at_release",
    "reason",
    "comment",
    "handoff_note",
    "external_action",
    "forced_by",
    "external_actions",
    "detail",
    "event_id",
    "op_id",
    "hash",
)
"""What a record is written as. Where `actor` is empty, it was the sweep."""


class Writable(Protocol):
    """Where the records are written to."""

    def write(self, text: str, /) -> object:
        """Take the next piece."""


class Unfinished(Exception):
    """The export was not finished, since whoever asked for it could not wait any longer."""


class ExportService:
    """Writes records out. Whether somebody may have them is decided before."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def write(
        self,
        selections: Iterable[Selection],
        form: Form,
        out: Writable,
        *,
        give_up: Callable[[], bool] = lambda: False,
    ) -> int:
        """Write these records to `out`, which must not translate line ends. Returns how many there were.

        `give_up` is asked now and then. Raises Unfinished where it says yes, StoreError where the database
        did not answer, and OSError where `out` takes no more.
        """
        number = 0
        records = (record for selection in selections for record in self._all(selection, give_up))
        rows = (_row(record) for record in records)
        if form is Form.CSV:
            out.write(BYTE_ORDER_MARK)
            writer = csv.writer(out)
            writer.writerow(COLUMNS)
            for row in rows:
                number += 1
                writer.writerow([_cell(row[column]) for column in COLUMNS])
        else:
            for row in rows:
                number += 1
                out.write(json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS) + "\n")
        return number

    def _all(self, selection: Selection, give_up: Callable[[], bool]) -> Iterator[Record]:
        beyond = OLDEST
        while True:
            if give_up():
                raise Unfinished
            found = read_on(
                self._guard,
                selection,
                beyond,
                _RECORDS_AT_A_TIME,
                Deadline.after(_STATEMENT_SECONDS),
                newer=True,
            )
            yield from found
            if len(found) < _RECORDS_AT_A_TIME:
                return
            beyond = found[-1].place


def _row(record: Record) -> dict[str, Any]:
    event, card = record.event, record.card
    return {
        "at": in_utc(event.at),
        "queue": record.queue_key,
        "task": record.task_name,
        "title": record.title,
        "kind": event.kind,
        "actor": event.actor_id,
        "version_before": event.version_before,
        "version_after": event.version_after,
        "version_seen": event.version_seen,
        "why": event.why,
        # The comment of a release stands in a column of its own.
        "text": None if card else event.text,
        "resolution": event.resolution,
        "previous_owner": card.previous_owner if card else None,
        "state_at_release": card.state_at_release if card else None,
        "reason": card.reason if card else None,
        "comment": card.comment if card else None,
        "handoff_note": card.handoff_note if card else None,
        "external_action": card.external_action if card else None,
        "forced_by": card.forced_by if card else None,
        "external_actions": [asdict(action) for action in event.actions] or None,
        "detail": event.detail,
        "event_id": record.id,
        "op_id": record.op_id,
        "hash": record.hash.hex() if record.hash else None,
    }


def in_utc(at: datetime) -> str:
    """A time as both forms write it: UTC, ISO 8601, with a Z."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case dict() | list():
            return as_cell(json.dumps(value, ensure_ascii=False))
        case _:
            return as_cell(str(value))


def as_cell(text: str) -> str:
    """`text` as a spreadsheet shows it and never runs it, with an apostrophe before what begins a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
