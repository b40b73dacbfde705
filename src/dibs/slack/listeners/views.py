"""Forms that somebody sent off: read them, make one call, close them or say at which input it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from slack_bolt import Ack, App, BoltContext

from dibs.domain.errors import Lost, StoreError
from dibs.domain.outcomes import Outcome, Refusal
from dibs.domain.task import SETTLED_STATUSES, ActionStatus
from dibs.slack import payloads, replies, text
from dibs.slack.front import Front
from dibs.slack.ids import ANSWER_PREFIX, Field, View
from dibs.slack.listeners import settings, supervise
from dibs.slack.listeners.errors import FIELD_OF, Errors, anywhere
from dibs.slack.payloads import Submission

Handler = Callable[[Front, Submission], Errors]
"""Carries a form out. Returns what is wrong, by input; nothing where it was accepted."""

_ON_TOP = frozenset({View.TRANSFER, View.FORCE_RELEASE})
"""Forms over the history, which is out of date once they are accepted and closes with them."""
_FORMS = "|".join(view for view in View if view is not View.HISTORY)


def register(app: App, front: Front) -> None:
    """Listen to every form through one listener."""

    @app.view(re.compile(f"^({_FORMS})$"))
    def on_submission(ack: Ack, body: dict[str, Any], context: BoltContext) -> None:
        try:
            form = payloads.submission(body, context["deadline"])
        except payloads.UnreadableError:
            ack(response_action="errors", errors=at_first_input(body, replies.UNREADABLE_FORM))
            return
        try:
            errors = HANDLERS[View(form.callback_id)](front, form)
        except payloads.UnreadableError:
            errors = anywhere(form, replies.UNREADABLE_FORM)
        except Lost:
            errors = anywhere(form, replies.UNKNOWN_FORM)
        except StoreError as error:
            errors = anywhere(form, replies.not_stored(error))
        if errors:
            ack(response_action="errors", errors=errors)
        elif form.callback_id in _ON_TOP:
            ack(response_action="clear")
        else:
            ack()


def at_first_input(body: Mapping[str, Any], said: str) -> Errors:
    """`said` as an error of the first input of the form."""
    blocks = (body.get("view") or {}).get("blocks") or []
    inputs = [block.get("block_id") for block in blocks if block.get("type") == "input"]
    return {str(inputs[0]): said} if inputs else {}


def _done(front: Front, form: Submission) -> Errors:
    outcome = front.transitions.done(
        *_which(form),
        resolution=form.text(Field.RESOLUTION),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    return _came_of_it(front, form, outcome)


def _release(front: Front, form: Submission) -> Errors:
    outcome = front.transitions.release(
        *_which(form),
        reason=form.text(Field.REASON),
        comment=form.text(Field.COMMENT),
        handoff_note=form.text(Field.HANDOFF_NOTE),
        external_action=form.text(Field.EXTERNAL_ACTION),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    return _came_of_it(front, form, outcome)


def _note(front: Front, form: Submission) -> Errors:
    outcome = front.transitions.note(
        *_which(form),
        form.text(Field.TEXT) or "",
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    return _came_of_it(front, form, outcome)


def _record_action(front: Front, form: Submission) -> Errors:
    outcome = front.transitions.record_action(
        *_which(form),
        form.text(Field.DESCRIPTION) or "",
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    return _came_of_it(front, form, outcome)


def _resolve_action(front: Front, form: Submission) -> Errors:
    action, status = payloads.id_in(form.text(Field.EXTERNAL_ACTION)), form.text(Field.STATUS)
    if action is None:
        return {Field.EXTERNAL_ACTION: "Choose which external action you mean. Nothing changed yet."}
    if status not in set(ActionStatus):
        return {
            Field.STATUS: "Say how it ended; if you are not sure, choose that you don't know. "
            "Nothing changed yet."
        }
    outcome = front.transitions.resolve_action(
        *_which(form),
        action,
        ActionStatus(status),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    return _came_of_it(front, form, outcome)


def _check(front: Front, form: Submission) -> Errors:
    finding = form.text(Field.FINDING)
    if not finding:
        return {Field.FINDING: "Say in a sentence what you found. Nothing changed yet."}
    answers = {
        action: ActionStatus(status)
        for action, status in form.starting_with(ANSWER_PREFIX).items()
        if status in SETTLED_STATUSES
    }
    if form.metadata.get("then") == "start":
        outcome = front.transitions.start(
            *_which(form),
            answers=answers,
            finding=finding,
            op_id=form.origin.op_id,
            deadline=form.origin.deadline,
        )
    else:
        outcome = front.transitions.check(
            *_which(form),
            answers=answers,
            finding=finding,
            op_id=form.origin.op_id,
            deadline=form.origin.deadline,
        )
    return _came_of_it(front, form, outcome)


def _new_task(front: Front, form: Submission) -> Errors:
    queue, title = form.text(Field.QUEUE), form.text(Field.TITLE)
    queue_id = payloads.id_in(queue)
    if queue_id is None:
        return {Field.QUEUE: "Choose a queue. Nothing changed yet."}
    if not title:
        return {Field.TITLE: "Say what is to be done. Nothing changed yet."}
    added = front.queues.add_task(
        queue_id,
        title,
        form.origin.user_id,
        details=form.text(Field.DETAILS),
        task_deadline=form.moment(Field.DEADLINE),
        op_id=form.origin.op_id,
        deadline=form.origin.deadline,
    )
    if added is None:
        return {Field.QUEUE: "This queue is gone. Nothing changed."}
    front.outgoing.refresh(added.task.id)
    front.outgoing.tell(form.origin, f"*{added.task.name}* is in the queue.")
    return {}


def _transfer(front: Front, form: Submission) -> Errors:
    if not form.person(Field.NEW_OWNER):
        return {Field.NEW_OWNER: "Choose who gets the task. Nothing changed yet."}
    if not form.text(Field.REASON):
        return {Field.REASON: "Say why, in a sentence. Nothing changed yet."}
    return _came_of_it(front, form, supervise.transfer(front, form))


def _force_release(front: Front, form: Submission) -> Errors:
    return _came_of_it(front, form, supervise.force_release(front, form))


HANDLERS: dict[View, Handler] = {
    View.DONE: _done,
    View.RELEASE: _release,
    View.NOTE: _note,
    View.RECORD_ACTION: _record_action,
    View.RESOLVE_ACTION: _resolve_action,
    View.CHECK: _check,
    View.NEW_TASK: _new_task,
    View.QUEUE_SETTINGS: settings.submitted,
    View.TRANSFER: _transfer,
    View.FORCE_RELEASE: _force_release,
}


def _which(form: Submission) -> tuple[int, str, int]:
    return form.number("task"), form.origin.user_id, form.number("version")


def _came_of_it(front: Front, form: Submission, outcome: Outcome) -> Errors:
    """Close the form and answer where it was opened; or keep it open, with what was typed, and say why."""
    task_id, _, version = _which(form)
    if outcome.changed:
        front.outgoing.outcome(form.origin, outcome, task_id=task_id, version=version)
        return {}
    if outcome.unknown:
        front.outgoing.watch(form.origin, outcome, task_id=task_id, version=version)
    elif outcome.task is not None and outcome.task.version != version:
        front.outgoing.refresh(outcome.task.id, form.origin)
    where = FIELD_OF.get(outcome.why) if outcome.why else None
    # A repeated delivery keeps the form open like the first one, and does not say again that nothing changed.
    words = replies.reply(outcome) if outcome.replayed else replies.refused_in_form(outcome)
    if where and where not in form.blocks:
        words = replies.OUTDATED_FORM
    elif outcome.why is Refusal.REASON_MISSING and form.text(Field.REASON):
        words = replies.REASON_GONE
    words = front.outgoing.worded(words, form.origin.deadline)
    said = text.plain(words, lambda user: front.web.name_of(user, form.origin.deadline))
    return {where: said} if where in form.blocks else anywhere(form, said)
