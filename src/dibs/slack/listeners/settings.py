"""/queue create and /queue settings: their form is opened, read, checked and carried out."""

from __future__ import annotations

import dataclasses
import logging

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.outcomes import Refusal
from dibs.domain.queue import DEFAULT_SPIKE_LIMIT, DEFAULT_SPIKE_MINUTES, NewQueue, Queue
from dibs.domain.settings import Mistake, QueueSettings, UserGroup, Written, read, read_key
from dibs.domain.task import Standing
from dibs.slack import payloads, replies, text
from dibs.slack.front import Front
from dibs.slack.ids import Command, Field
from dibs.slack.listeners.answers import Answer, as_typed, named_queue, open_modal, said
from dibs.slack.listeners.errors import Errors, anywhere, at
from dibs.slack.lookups import ChannelAccess
from dibs.slack.payloads import Submission, Typed
from dibs.slack.views import settings as form_of_settings
from dibs.slack.views.changes import changed
from dibs.slack.views.settings import EVERYBODY, KNOWN_REASONS

_log = logging.getLogger(__name__)

_LEFT_TO_OPEN_SECONDS = 1.0
"""What of a command's time is kept for the window, however long Slack takes to tell the groups."""
_CHANNELS = ("C", "G")
"""How the ids of channels begin."""
_NO_ACCESS = {
    ChannelAccess.ARCHIVED: "This channel is archived, so no alert could stand there. Choose another one.",
    ChannelAccess.NOT_MEMBER: "Dibs is not in this channel, so it could not send alerts there. Type "
    "/invite @Dibs there, then send this form again.",
}
_NOT_A_SUPERVISOR = {
    Standing.BOT: "is a bot",
    Standing.OTHER_WORKSPACE: "is of another workspace",
    Standing.DEACTIVATED: "is deactivated",
}


def create(front: Front, typed: Typed, _rest: str) -> Answer:
    """Open the form of a new queue."""
    origin = typed.origin
    if not origin.channel_id or origin.channel_id.startswith("D"):
        create_command = f"{as_typed(typed, Command.QUEUE)} create"
        return said(f"A queue lives in a channel. {replies.NOTHING_CHANGED} Type `{create_command}` in one.")
    view = form_of_settings.new_queue(
        payloads.metadata_of(origin), creator=origin.user_id, groups=_groups(front, origin.deadline)
    )
    return open_modal(front, typed, view)


def settings(front: Front, typed: Typed, rest: str) -> Answer:
    """Open the form of a queue's settings for one of its supervisors."""
    origin = typed.origin
    queue = named_queue(front, typed, rest, "settings")
    if not isinstance(queue, Queue):
        return queue
    supervisors = front.queues.supervisors(queue.id, deadline=origin.deadline)
    if origin.user_id not in supervisors and front.queues.may_name_supervisors(
        queue.id, origin.user_id, deadline=origin.deadline
    ):
        supervisors = (origin.user_id,)
    if origin.user_id not in supervisors:
        return said(_not_yours(queue, supervisors))
    view = form_of_settings.settings(
        queue,
        supervisors,
        payloads.metadata_of(origin, queue=queue.id, seen=queue.settings_version),
        groups=_groups(front, origin.deadline),
    )
    return open_modal(front, typed, view)


def submitted(front: Front, form: Submission) -> Errors:
    """Make a queue or change its settings, or say at each input what is wrong there."""
    if "queue" in form.metadata:
        return _change(front, form)
    return _make(front, form)


def _make(front: Front, form: Submission) -> Errors:
    origin = form.origin
    wanted, errors = _read(front, form, alone=(origin.user_id,), stored=None)
    key = read_key(form.text(Field.KEY))
    if key is None:
        where, words = form_of_settings.mistake(Mistake.KEY_FORM)
        errors |= at(form, where, words)
    if errors or wanted is None or key is None or origin.channel_id is None:
        return errors or anywhere(form, replies.UNREADABLE_FORM)
    queue = front.queues.create(
        NewQueue(
            workspace=origin.workspace,
            channel_id=origin.channel_id,
            key=key,
            created_by=origin.user_id,
            **{field.name: getattr(wanted, field.name) for field in dataclasses.fields(wanted)},
        ),
        deadline=origin.deadline,
    )
    if queue is None:
        return at(
            form,
            Field.KEY,
            f"{key} is taken by another queue. Choose another key. {form_of_settings.NOT_SAVED}",
        )
    front.outgoing.submit(front.membership.catch_up)
    front.outgoing.tell(
        origin,
        f"The queue *{queue.key}* {text.one_line(queue.name, 80)} is ready in this channel. "
        "Type `/queue add` and a title to add a task. "
        "If its card does not appear, invite Dibs to the channel.",
    )
    return {}


def _change(front: Front, form: Submission) -> Errors:
    origin = form.origin
    queue = front.queues.by_id(form.number("queue"), deadline=origin.deadline)
    if queue is None or queue.workspace != origin.workspace:
        return anywhere(form, f"There is no such queue any more. {replies.NOTHING_CHANGED}")
    wanted, errors = _read(front, form, alone=(), stored=queue)
    if (key := form.text(Field.KEY)) is not None and read_key(key) != queue.key:
        errors |= at(
            form,
            Field.KEY,
            f"The key stays {queue.key}, because tasks are named by it. {form_of_settings.NOT_SAVED}",
        )
    if errors or wanted is None:
        return errors
    settled = front.queues.change_settings(
        queue.id,
        origin.user_id,
        form.number("seen"),
        wanted.keeping(queue),
        op_id=origin.op_id,
        deadline=origin.deadline,
    )
    if settled.why is not None:
        return anywhere(form, _refused(front, form, queue, settled.why))
    if any(change.setting == "eligible_group" for change in settled.changes):
        front.outgoing.submit(front.membership.catch_up)
    if not settled.changes:
        words = f"The settings of *{queue.key}* stand like that already. {replies.NOTHING_CHANGED}"
    else:
        words = changed(queue, settled.changes)
    front.outgoing.tell(origin, words)
    return {}


def _refused(front: Front, form: Submission, queue: Queue, why: Refusal) -> str:
    deadline = form.origin.deadline
    if why is Refusal.STALE:
        last = front.queues.last_change(queue.id, deadline=deadline)
        changed_by = f"{text.mention(last[0])} changed these settings {text.moment(last[1])}" if last else ""
        words = (
            f"{changed_by or 'These settings changed'}, while this form was open, so nothing was saved. "
            f"Close it, and type /queue settings {queue.key} to see them as they are now."
        )
    else:
        words = _not_yours(queue, front.queues.supervisors(queue.id, deadline=deadline))
    return text.plain(words, lambda user: front.web.name_of(user, deadline))


def _not_yours(queue: Queue, supervisors: tuple[str, ...]) -> str:
    return (
        f"Only supervisors of *{queue.key}* may change its settings, and you are not one. "
        f"{replies.NOTHING_CHANGED} Ask one of them: {text.people(supervisors)}."
    )


def _groups(front: Front, deadline: Deadline) -> tuple[UserGroup, ...] | None:
    """The user groups to choose from; None where they cannot be read in time or at all."""
    try:
        return front.web.lookups.groups(Deadline(deadline.at - _LEFT_TO_OPEN_SECONDS))
    except LookUpFailed as error:
        _log.warning("the user groups could not be read: %s", error)
        return None


def _read(
    front: Front, form: Submission, *, alone: tuple[str, ...], stored: Queue | None
) -> tuple[QueueSettings | None, Errors]:
    """What was written, and what is wrong with it. `alone` supervise where nobody was chosen."""
    group = form.text(Field.ELIGIBLE_GROUP)
    if group is None and Field.ELIGIBLE_GROUP not in form.blocks:
        # The groups could not be read when the form was opened: what is set stays.
        group = stored.eligible_group if stored else None
    written = Written(
        name=form.text(Field.NAME),
        lease_minutes=form.text(Field.LEASE_MINUTES),
        supervisors=form.people(Field.SUPERVISORS) or alone,
        # Slack lets nobody leave these two empty; where they are missing all the same, they stay as they are.
        spike_limit=form.text(Field.SPIKE_LIMIT)
        or str(stored.spike_limit if stored else DEFAULT_SPIKE_LIMIT),
        spike_minutes=form.text(Field.SPIKE_MINUTES)
        or str(stored.spike_minutes if stored else DEFAULT_SPIKE_MINUTES),
        spike_share=form.text(Field.SPIKE_SHARE),
        longest_hold_minutes=form.text(Field.LONGEST_HOLD_MINUTES),
        reasons=form.text(Field.REASONS),
        eligible_group=None if group == EVERYBODY else group,
        alert_channel=form.text(Field.ALERT_CHANNEL),
        supervisor_operations=form.ticked(Field.SUPERVISOR_OPERATIONS),
    )
    found = read(written, KNOWN_REASONS)
    errors: Errors = {}
    for mistake in sorted(found) if isinstance(found, frozenset) else ():
        where, words = form_of_settings.mistake(mistake)
        errors |= at(form, where, words)
    for field, said_there in (
        (Field.ALERT_CHANNEL, _channel_mistake(front, form, written.alert_channel, stored)),
        (Field.SUPERVISORS, _people_mistake(front, form, written.supervisors, stored)),
    ):
        if said_there and field not in errors:
            errors |= at(form, field, f"{said_there} {form_of_settings.NOT_SAVED}")
    return (found if isinstance(found, QueueSettings) else None), errors


def _channel_mistake(front: Front, form: Submission, channel: str | None, stored: Queue | None) -> str | None:
    """Why Dibs cannot send alerts to a channel."""
    if channel is None or not channel.startswith(_CHANNELS):
        return channel and "Choose a channel, or leave it empty for direct messages to the supervisors."
    try:
        access = front.web.lookups.access_to(channel, form.origin.deadline)
    except LookUpFailed as error:
        _log.warning("an alert channel could not be looked up: %s", error)
        if stored and stored.alert_channel == channel:
            return None
        return "Dibs could not look up this channel in Slack just now. Please send this form again."
    return _NO_ACCESS.get(access)


def _people_mistake(
    front: Front, form: Submission, supervisors: tuple[str, ...], stored: Queue | None
) -> str | None:
    """Why somebody who was chosen cannot be a supervisor. Who could not be looked up is believed."""
    origin = form.origin
    known = set(front.queues.supervisors(stored.id, deadline=origin.deadline)) if stored else set()
    for user in supervisors:
        if user in known or user == origin.user_id:
            continue
        try:
            standing = front.web.standing(origin.workspace, user, origin.deadline)
        except LookUpFailed as error:
            _log.warning("a supervisor could not be looked up: %s", error)
            return None
        if standing in _NOT_A_SUPERVISOR:
            name = front.web.name_of(user, origin.deadline)
            return f"{name} {_NOT_A_SUPERVISOR[standing]}, so no alert would reach a person. Choose others."
    return None
