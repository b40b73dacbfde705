"""Presses on a card: read the button, make one call, answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.errors import StoreError
from dibs.domain.outcomes import Outcome
from dibs.domain.queue import Facts
from dibs.domain.transitions import RULES, Operation, Rule
from dibs.slack import payloads, replies
from dibs.slack.front import Front
from dibs.slack.ids import Action
from dibs.slack.listeners.forms import admitted
from dibs.slack.payloads import Press
from dibs.slack.views import modals
from dibs.slack.views.history import MOST_EVENTS, history

Handler = Callable[[Front, Press], None]


def register(app: App, front: Front) -> None:
    """Listen to every button whose id begins with task_; one listener is matched faster than ten."""

    @app.action(re.compile("^task_"))
    def on_press(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            press = payloads.press(body, context["deadline"])
            handler = HANDLERS[Action(press.action_id)]
        except (payloads.UnreadableError, ValueError):
            unreadable(front, body)
        else:
            try:
                handler(front, press)
            except StoreError as error:
                # Only reads raise: every write of a press comes back as an Outcome.
                front.outgoing.tell(press.origin, replies.not_stored(error))
        ack()


def unreadable(front: Front, body: dict[str, Any]) -> None:
    """Say that the button could not be read, if the payload says where to say so."""
    if answer_url := payloads.answer_url_of(body):
        front.outgoing.submit(
            lambda: front.web.answer(
                answer_url, response_type="ephemeral", replace_original=False, text=replies.UNREADABLE
            )
        )


def _claim(front: Front, press: Press) -> None:
    origin = press.origin
    outcome = front.transitions.claim(
        press.task_id, origin.user_id, press.version, op_id=origin.op_id, deadline=origin.deadline
    )
    _tell(front, press, outcome)


def _renew(front: Front, press: Press) -> None:
    origin = press.origin
    outcome = front.transitions.renew(
        press.task_id, origin.user_id, press.version, op_id=origin.op_id, deadline=origin.deadline
    )
    _tell(front, press, outcome)


def _start(front: Front, press: Press) -> None:
    origin = press.origin
    task = front.queries.by_id(press.task_id, deadline=origin.deadline)
    if task is not None and task.needs_check:
        return _start_with_check(front, press)
    outcome = front.transitions.start(
        press.task_id, origin.user_id, press.version, op_id=origin.op_id, deadline=origin.deadline
    )
    return _tell(front, press, outcome)


def _start_with_check(front: Front, press: Press) -> None:
    def build(facts: Facts, metadata: str) -> dict[str, Any]:
        return modals.check(facts, metadata, then_start=True)

    _open_form(front, press, RULES[Operation.START], build, then="start")


def _check(front: Front, press: Press) -> None:
    def build(facts: Facts, metadata: str) -> dict[str, Any]:
        return modals.check(facts, metadata, then_start=False)

    _open_form(front, press, RULES[Operation.CHECK], build)


def _done(front: Front, press: Press) -> None:
    _open_form(front, press, RULES[Operation.DONE], modals.done)


def _release(front: Front, press: Press) -> None:
    _open_form(front, press, RULES[Operation.RELEASE], modals.release)


def _note(front: Front, press: Press) -> None:
    _open_form(front, press, RULES[Operation.NOTE], modals.note)


def _record_action(front: Front, press: Press) -> None:
    _open_form(front, press, RULES[Operation.RECORD_ACTION], modals.record_action)


def _resolve_action(front: Front, press: Press) -> None:
    _open_form(front, press, RULES[Operation.RESOLVE_ACTION], modals.resolve_action)


def _history(front: Front, press: Press) -> None:
    origin = press.origin
    task = front.queries.by_id(press.task_id, deadline=origin.deadline)
    if task is None:
        return front.outgoing.tell(origin, f"There is no such task. {replies.NOTHING_CHANGED}")
    events = front.queries.history(press.task_id, most=MOST_EVENTS + 1, deadline=origin.deadline)
    view = history(
        task,
        events[:MOST_EVENTS],
        more=len(events) > MOST_EVENTS,
        metadata=payloads.metadata_of(origin),
        may_intervene=front.queries.may_intervene(task.queue_id, origin.user_id, deadline=origin.deadline),
    )
    return _open(front, press, view)


HANDLERS: dict[Action, Handler] = {
    Action.CLAIM: _claim,
    Action.START: _start,
    Action.RENEW: _renew,
    Action.DONE: _done,
    Action.RELEASE: _release,
    Action.NOTE: _note,
    Action.RECORD_ACTION: _record_action,
    Action.RESOLVE_ACTION: _resolve_action,
    Action.CHECK: _check,
    Action.HISTORY: _history,
}


def _open_form(
    front: Front,
    press: Press,
    rule: Rule,
    build: Callable[[Facts, str], dict[str, Any]],
    **more: object,
) -> None:
    found = admitted(front, press.origin, rule, task_id=press.task_id, version=press.version)
    if isinstance(found, Outcome):
        return _tell(front, press, found)
    metadata = payloads.metadata_of(press.origin, task=press.task_id, version=press.version, **more)
    return _open(front, press, build(found, metadata))


def _open(front: Front, press: Press, view: dict[str, Any]) -> None:
    origin = press.origin
    if not (origin.trigger_id and front.web.open_view(origin.trigger_id, view, origin.deadline)):
        front.outgoing.tell(origin, f"Slack did not open the window in time. {replies.PRESS_AGAIN}")


def _tell(front: Front, press: Press, outcome: Outcome) -> None:
    front.outgoing.outcome(press.origin, outcome, task_id=press.task_id, version=press.version)
