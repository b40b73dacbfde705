"""The records as an answer to `/audit`: a page at a time, newest first, to be read on a phone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dibs.domain.audit import NEWEST, Page, Place, Record, Selection, Topic
from dibs.domain.brakes import QueueEvent
from dibs.domain.task import State
from dibs.slack import text, words
from dibs.slack.ids import Audit
from dibs.slack.views import brakes, changes
from dibs.slack.views.card import MOST_TEXT, Message
from dibs.slack.views.elements import Element, actions, button, context, section
from dibs.slack.views.history import told

QUOTE = 350
_TITLE = 150
_LEFT_FOR_THE_REST = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

NOTHING = "Nothing was recorded."
_TIMES = "Times are in your own time zone."
LONG = f"{_TIMES} A long text is cut here and stands whole in the files that the buttons send you."
SHORT = f"{_TIMES} A long text is cut here; a supervisor can export it whole."


def page(
    shown: Page, selection: Selection, *, name: str, title: str, export: bool, upwards: bool = False
) -> Message:
    """A page of records. As many are shown as fit into a message; the others are on the page beside it.

    `upwards`: the page was come to from older ones, so what does not fit is newer.
    """
    head = _head(selection, name, title)
    lines = [_line(record, beside_task=selection.topic is Topic.TASK) for record in shown.records]
    room = MOST_TEXT - text.length(head) - _LEFT_FOR_THE_REST
    kept = _fitting(lines[::-1] if upwards else lines, room)
    first, last = (len(lines) - kept, len(lines)) if upwards else (0, kept)
    records, lines = shown.records[first:last], lines[first:last]
    older, newer = shown.older or last < len(shown.records), shown.newer or first > 0
    remark = (LONG if export else SHORT) if lines else _TIMES
    blocks = [section(head), *(section(line) for line in lines or [NOTHING]), context(remark)]
    if buttons := _buttons(records, selection, older=older, newer=newer, export=export):
        blocks.append(actions("audit", buttons))
    return Message(text.cut_formatted("\n\n".join([head, *(lines or [NOTHING]), remark]), MOST_TEXT), blocks)


def _head(selection: Selection, name: str, title: str) -> str:
    if selection.topic is Topic.PERSON:
        who = text.mention(str(selection.subject))
        head = f"*Audit of* {who} in {name}\nWhat they did, and what happened to the tasks they held."
    else:
        head = f"*Audit of {name}*  {text.one_line(title, _TITLE)}"
    since = f" since {text.moment(selection.since)}" if selection.since else ""
    return f"{head}\nNewest first{since}."


def _line(record: Record, *, beside_task: bool) -> str:
    line = told(record.event, of=None if beside_task else record.task_name, quote=QUOTE)
    if record.event.kind == QueueEvent.SETTINGS_CHANGED and record.event.detail:
        line += f"\n{changes.recorded(record.event.detail)}"
    if why := brakes.recorded(record.event):
        line += f"\n{why}"
    if card := record.card:
        state = words.STATE[State(card.state_at_release)].lower()
        line += (
            f"\n_Release card: {text.mention(card.previous_owner)} had it, {state}; "
            f"version {card.version_before} became {card.version_after}_"
        )
    return line


def _fitting(lines: Sequence[str], room: int) -> int:
    """How many of these fit, at least one where there are any."""
    for number, line in enumerate(lines):
        room -= text.length(line) + 2
        if room < 0 and number:
            return number
    return len(lines)


def _buttons(
    records: Sequence[Record], selection: Selection, *, older: bool, newer: bool, export: bool
) -> list[Element]:
    buttons = []
    if newer and records:
        buttons.append(button(Audit.NEWER, "Newer", _value(selection, records[0].place)))
    if older and records:
        buttons.append(button(Audit.OLDER, "Older", _value(selection, records[-1].place)))
    if export and records:
        whole = _value(selection, NEWEST)
        buttons.append(button(Audit.CSV, "CSV", whole, label="Send me all of it as CSV, for a spreadsheet"))
        buttons.append(button(Audit.JSONL, "JSON Lines", whole, label="Send me all of it as JSON Lines"))
    return buttons


def _value(selection: Selection, place: Place) -> str:
    """What a button carries: what is shown, and the place from which it goes on."""
    value: dict[str, Any] = {str(selection.topic): selection.subject}
    if selection.since:
        value["since"] = int(selection.since.timestamp())
    if place is not NEWEST:
        value |= {"at": (place.at - _EPOCH) // _MICROSECOND, "id": place.id}
    return json.dumps(value, separators=(",", ":"))


def place_of(at: int, id_: int) -> Place:
    """The place that a button carries. Raises OverflowError where it can be none."""
    return Place(_EPOCH + at * _MICROSECOND, id_)
