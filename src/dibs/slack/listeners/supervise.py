"""Supervisors' presses in the history of somebody's task, and the forms that follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.errors import StoreError
from dibs.domain.outcomes import Outcome
from dibs.domain.queue import Facts
from dibs.domain.transitions import RULES, Operation
from dibs.slack import payloads, replies
from dibs.slack.front import Front
from dibs.slack.ids import Field, Supervise, View
from dibs.slack.listeners.actions import unreadable
from dibs.slack.listeners.forms import admitted
from dibs.slack.payloads import Press, Submission
from dibs.slack.views import supervise

Build = Callable[[Facts, str], dict[str, Any]]

FORMS: Mapping[Supervise, tuple[Operation, View, Build]] = {
    Supervise.TRANSFER: (Operation.TRANSFER, View.TRANSFER, supervise.transfer),
    Supervise.FORCE_RELEASE: (Operation.FORCE_RELEASE, View.FORCE_RELEASE, supervise.force_release),
}


def register(app: App, front: Front) -> None:
    """Listen to the buttons that supervisors have."""

    @app.action(re.compile("^supervise_"))
    def on_press(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            press = payloads.press(body, context["deadline"])
            form = FORMS[Supervise(press.action_id)]
        except (payloads.UnreadableError, ValueError):
            unreadable(front, body)
        else:
            try:
                _open(front, press, *form)
            except StoreError as error:
                front.outgoing.tell(press.origin, replies.not_stored(error))
        ack()


def transfer(front: Front, form: Submission) -> Outcome:
    """Carry out the form that gives a task to somebody else."""
    return front.transitions.transfer(
        form.number("task"),
        form.origin.user_id,
        form.number("version"),
        form.person(Field.NEW_OWNER) or "",
        reason=form.text(Field.REASON),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )


def force_release(front: Front, form: Submission) -> Outcome:
    """Carry out the form that returns somebody's task to the queue."""
    return front.transitions.force_release(
        form.number("task"),
        form.origin.user_id,
        form.number("version"),
        reason=form.text(Field.REASON),
        comment=form.text(Field.COMMENT),
        handoff_note=form.text(Field.HANDOFF_NOTE),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )


def _open(front: Front, press: Press, operation: Operation, view: View, build: Build) -> None:
    origin = press.origin
    found = admitted(front, origin, RULES[operation], task_id=press.task_id, version=press.version)
    if isinstance(found, Outcome):
        front.outgoing.outcome(origin, found, task_id=press.task_id, version=press.version)
        name = found.task.name if found.task else "Nothing changed"
        shown = supervise.refused(name, view, replies.reply(found))
    else:
        shown = build(found, payloads.metadata_of(origin, task=press.task_id, version=press.version))
    if not (origin.trigger_id and front.web.push_view(origin.trigger_id, shown, origin.deadline)):
        front.outgoing.tell(origin, f"Slack did not open the window in time. {replies.PRESS_AGAIN}")
