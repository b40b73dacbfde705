"""`/audit` and the buttons below its answer: the records, for those who may look at them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.audit import NEWEST, Page, Topic
from dibs.domain.errors import LookUpFailed, StoreError
from dibs.service.audit import Answer as Found
from dibs.service.audit import Ask, NotOpened, Opened
from dibs.service.export import Form
from dibs.slack import audit_words, payloads, replies
from dibs.slack.audit_words import Asked, Misread
from dibs.slack.calls import Answered
from dibs.slack.front import Front
from dibs.slack.ids import Audit
from dibs.slack.listeners.actions import unreadable
from dibs.slack.listeners.answers import Answer, private, queues_here, said
from dibs.slack.payloads import Button, Origin, Typed, UnreadableError
from dibs.slack.views import audit
from dibs.slack.views.card import Message

_NOT_OPENED = {
    NotOpened.MAY_NOT: "Dibs found no records by that name that you may look at. Only members of a queue's "
    "channel or group and its supervisors may look at its records. See that the name is right, join the "
    "channel, or ask a supervisor of the queue.",
    NotOpened.NO_SUCH_TASK: "There is no such task in this queue.",
    NotOpened.UNKNOWN: "Dibs could not look up in Slack whether you may look at these records. "
    "Please try again in a moment.",
}
NOT_SHOWN = "Slack did not take this page, so the one above stays as it was. Please type the command again."
_UNSENT = "Nothing was sent."
_FORMS = {Audit.CSV: Form.CSV, Audit.JSONL: Form.JSONL}


def register(app: App, front: Front) -> None:
    """Listen to the buttons below a page of records."""

    @app.action(re.compile("^audit_"))
    def on_press(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            button = payloads.pressed_button(body, context["deadline"])
            _turn(front, button)
        except (UnreadableError, ValueError, OverflowError):
            unreadable(front, body)
        ack()


def show(front: Front, typed: Typed, words: str) -> Answer:
    """Answer `/audit`; `words` are what followed it, as Slack sent them."""
    origin = typed.origin
    zone = _Zone(front, typed)
    try:
        asked = audit_words.read(words, zone, datetime.now(UTC))
        found = _found(front, typed, asked)
    except Misread as error:
        return said(f"{error} Nothing was looked up. You can type: {audit_words.EXAMPLES}.")
    except LookUpFailed:
        return said(
            "Dibs could not look up your time zone in Slack, so it does not know when your day begins. "
            "Please try again in a moment, or say `24h` or `7d` instead."
        )
    if not isinstance(found, Opened):
        return said(_NOT_OPENED[found])
    records = front.audit.page(found.selection, origin.deadline)
    return private(_message(found, records))


class _Zone:
    """The time zone of who typed, looked up in Slack only where it matters."""

    def __init__(self, front: Front, typed: Typed) -> None:
        self._front = front
        self._origin = typed.origin

    def __call__(self) -> tzinfo:
        """Return the zone. Raises LookUpFailed."""
        return self._front.web.zone_of(self._origin.user_id, self._origin.deadline)


def _found(front: Front, typed: Typed, asked: Asked) -> Found:
    """Open what was asked for. Raises Misread where this channel does not tell which queue is meant."""
    origin = typed.origin
    ask = _ask(origin, asked.since)
    if asked.task:
        return front.audit.of_task(ask, *asked.task)
    if asked.person:
        return front.audit.of_person(ask, asked.person)
    if asked.queue:
        return front.audit.of_queue(ask, asked.queue)
    here = queues_here(front, typed)
    if not here:
        raise Misread("This channel has no queue, so say which one you mean.")
    if len(here) > 1:
        keys = ", ".join(f"`{queue.key}`" for queue in here)
        raise Misread(f"This channel has several queues, so say which one you mean: {keys}.")
    return front.audit.of_queue(ask, here[0].key)


def _ask(origin: Origin, since: datetime | None) -> Ask:
    return Ask(origin.workspace, origin.user_id, origin.channel_id, origin.deadline, since)


def _turn(front: Front, button: Button) -> None:
    """Show the page beside, or send the file. Whether the person may look is found out anew."""
    pressed = Audit(button.action_id)
    try:
        _turn_to(front, button, pressed)
    except StoreError as error:
        front.outgoing.tell(button.origin, replies.not_stored(error))


def _turn_to(front: Front, button: Button, pressed: Audit) -> None:
    origin = button.origin
    found = _found_again(front, button)
    if not isinstance(found, Opened):
        return front.outgoing.tell(origin, _NOT_OPENED[found])
    if pressed in _FORMS:
        return _send(front, origin, found, _FORMS[pressed])
    newer = pressed is Audit.NEWER
    beyond = NEWEST
    if "at" in button.value:
        beyond = audit.place_of(button.number("at"), payloads.row_id(button.value, "id"))
    records = front.audit.page(found.selection, origin.deadline, beyond=beyond, newer=newer)
    message = _message(found, records, upwards=newer and records.newer)
    return front.outgoing.submit(lambda: _show(front, origin, message))


def _show(front: Front, origin: Origin, message: Message) -> None:
    """Put the page in the place of the one that was pressed, or say that Slack did not take it."""
    answered = Answered.REFUSED
    if origin.answer_url:
        answered = front.web.answer(origin.answer_url, replace_original=True, **message.as_payload())
    if answered is Answered.REFUSED:
        front.outgoing.tell_now(origin, NOT_SHOWN)


def _send(front: Front, origin: Origin, found: Opened, form: Form) -> None:
    selection = found.for_export
    if selection is None:
        return front.outgoing.tell(
            origin, f"Only a supervisor of the queue may export its records. {_UNSENT}"
        )
    name = str(selection.subject) if selection.topic is Topic.PERSON else found.name
    return front.exporter.send(origin, selection, form, name=name)


def _found_again(front: Front, button: Button) -> Found:
    """Open what a button names. Raises UnreadableError where it names nothing."""
    value = button.value
    since = datetime.fromtimestamp(button.number("since"), UTC) if "since" in value else None
    ask = _ask(button.origin, since)
    if Topic.PERSON in value:
        return front.audit.of_person(ask, str(value[Topic.PERSON]))
    topic = Topic.TASK if Topic.TASK in value else Topic.QUEUE
    return front.audit.again(ask, topic, payloads.row_id(value, topic))


def _message(found: Opened, records: Page, *, upwards: bool = False) -> Message:
    return audit.page(
        records,
        found.selection,
        name=found.name,
        title=found.title,
        export=found.for_export is not None,
        upwards=upwards,
    )
