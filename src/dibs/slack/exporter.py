"""The records as a file in a direct message: made and sent after the press was acknowledged."""

from __future__ import annotations

import logging
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

from dibs.deadline import Deadline
from dibs.domain.audit import Selection, Topic
from dibs.domain.errors import StoreError
from dibs.service.export import ExportService, Form, Unfinished
from dibs.slack import text
from dibs.slack.calls import Answered
from dibs.slack.files import FileSender
from dibs.slack.outgoing import Outgoing
from dibs.slack.payloads import Origin

_log = logging.getLogger(__name__)

_MOST_AT_ONCE = 2
"""Answers to presses go out on the same threads, and must not wait for exports."""
_MAKE_SECONDS = 180.0
_SEND_SECONDS = 120.0

COMMAND_LINE = "`dibs audit export` on the machine that Dibs runs on writes records of any number"
TAKES_TIME = "The file is being made. It comes to you in a direct message from Dibs."
NO_MORE_AT_ONCE = (
    "Other exports are being made just now, so this one was not begun. Please press again in a minute."
)
NOT_MADE = "The file could not be made: the database did not answer. Please press again in a moment."
TOO_LONG = f"There is too much for one file here. Ask for less, such as `/audit SUP 30d`; {COMMAND_LINE}."
NOT_SENT = (
    "The file was made, and Slack did not take it: {why}. Please press again in a moment. If it happens "
    f"again, {COMMAND_LINE}."
)
NOT_TAKEN = (
    "The file was made, and Slack did not take it: {why}. Pressing again does not help before that is "
    f"mended, so please tell the people who run Dibs. Meanwhile, {COMMAND_LINE}."
)
NOT_KNOWN = (
    "We could not confirm that the file has reached you. Look at your direct messages from Dibs before you "
    "press again."
)


class Exporter:
    """Makes files of records and sends them, a few at a time."""

    def __init__(self, outgoing: Outgoing, files: FileSender, exports: ExportService) -> None:
        self._outgoing = outgoing
        self._files = files
        self._exports = exports
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def send(self, origin: Origin, selection: Selection, form: Form, *, name: str) -> None:
        """Send the whole selection to the person soon, and tell them so; `name` says what it is of."""
        self._outgoing.submit(lambda: self._send(origin, selection, form, name))

    def _send(self, origin: Origin, selection: Selection, form: Form, name: str) -> None:
        if not self._free.acquire(blocking=False):
            self._outgoing.tell(origin, NO_MORE_AT_ONCE)
            return
        try:
            self._outgoing.tell_now(origin, TAKES_TIME)
            said = self._made_and_sent(origin, selection, form, name)
        finally:
            self._free.release()
        if said:
            self._outgoing.tell(origin, said)

    def _made_and_sent(self, origin: Origin, selection: Selection, form: Form, name: str) -> str | None:
        """What there is to tell, which is nothing where the file has arrived."""
        by = Deadline.after(_MAKE_SECONDS)
        with tempfile.TemporaryDirectory(prefix="dibs-export-") as folder:
            path = Path(folder) / "records"
            try:
                with path.open("w", encoding="utf-8", newline="") as out:
                    number = self._exports.write(
                        [selection], form, out, give_up=lambda: by.remaining <= 0 or self._outgoing.closing
                    )
            except Unfinished:
                return TOO_LONG
            except StoreError as error:
                _log.warning("an export was not made: %s", error)
                return NOT_MADE
            since = f" since {text.plain_moment(selection.since)}" if selection.since else ""
            sent = self._files.send_file(
                origin.user_id,
                path,
                filename=f"audit-{name}-{datetime.now(UTC):%Y-%m-%d-%H%M}.{form}",
                title=f"Audit of {name}{since}",
                comment=f"{_records(selection, name)} that you asked for: {number} events, oldest first, "
                "with times in UTC.",
                deadline=Deadline.after(_SEND_SECONDS),
            )
        if sent.arrived:
            return None
        if sent.answered is Answered.UNKNOWN:
            return NOT_KNOWN
        return (NOT_TAKEN if sent.lasting else NOT_SENT).format(why=sent.why)


def _records(selection: Selection, name: str) -> str:
    of = text.mention(str(selection.subject)) if selection.topic is Topic.PERSON else f"*{name}*"
    since = f" since {text.moment(selection.since)}" if selection.since else ""
    return f"The records of {of}{since}"
