"""The words that stand for states, reasons and the like, the same on every screen."""

from __future__ import annotations

from collections.abc import Sequence

from dibs.domain.brakes import QueueEvent
from dibs.domain.outcomes import Refusal
from dibs.domain.task import ActionStatus, ExternalAction, ExternalAnswer, Reason, State, Task
from dibs.domain.transitions import EventKind, Operation
from dibs.slack import text

STATE = {
    State.QUEUED: "Waiting",
    State.CLAIMED: "Claimed",
    State.STARTED: "In progress",
    State.DONE: "Done",
}

REASON = {
    Reason.MISSING_INFORMATION: "Blocked on missing information",
    Reason.OUT_OF_SCOPE: "Out of scope for my role",
    Reason.SHIFT_ENDING: "My shift is ending",
    Reason.NEEDS_SPECIALIST: "Needs a specialist",
    Reason.OTHER: "Another reason (say which)",
}

ACTION_STATUS = {
    ActionStatus.IN_PROGRESS: "in progress",
    ActionStatus.COMPLETED: "completed",
    ActionStatus.NOT_COMPLETED: "not completed",
    ActionStatus.UNKNOWN: "unknown",
}

EXTERNAL_ANSWER = {
    ExternalAnswer.NONE: "Nothing was done outside",
    ExternalAnswer.COMPLETED: "It was completed",
    ExternalAnswer.NOT_COMPLETED: "It was not completed",
    ExternalAnswer.UNKNOWN: "I don't know",
}
"""As the person says it who is asked."""

EXTERNAL_ANSWERED = {
    ExternalAnswer.NONE: "none",
    ExternalAnswer.COMPLETED: "completed",
    ExternalAnswer.NOT_COMPLETED: "not completed",
    ExternalAnswer.UNKNOWN: "unknown",
}
"""As others read it later."""

EVENT = {
    EventKind.CREATED: "added",
    EventKind.CLAIMED: "claimed",
    EventKind.RENEWED: "renewed the lease",
    EventKind.STARTED: "started",
    EventKind.ACTION_RECORDED: "recorded an external action",
    EventKind.ACTION_RESOLVED: "said how an external action ended",
    EventKind.NOTED: "wrote a working note",
    EventKind.COMMITTED: "committed to a time",
    EventKind.DONE: "finished",
    EventKind.RELEASED: "handed back",
    EventKind.EXPIRED: "returned it to the queue, because the lease expired",
    EventKind.CHECKED: "checked what happened outside",
    EventKind.TRANSFERRED: "gave the task to somebody else, as a supervisor",
    EventKind.FORCE_RELEASED: "returned the task to the queue, as a supervisor",
}

TRIED: dict[str, str] = {
    Operation.RECORD_ACTION: "record an external action",
    Operation.RESOLVE_ACTION: "say how an external action ended",
    Operation.NOTE: "write a working note",
    Operation.COMMIT: "commit to a time",
    Operation.DONE: "finish",
    Operation.RELEASE: "hand back",
    Operation.CHECK: "check what happened outside",
    Operation.FORCE_RELEASE: "return the task to the queue, as a supervisor",
}
"""What somebody tried who was refused, where the operation's own name does not say it."""

EVENT_OF_QUEUE: dict[str, str] = {
    QueueEvent.SETTINGS_CHANGED: "changed the queue's settings",
    QueueEvent.PAUSED: "paused the return of tasks whose lease ends",
    QueueEvent.RESUMED: "let the queue go on",
    QueueEvent.GRACED: "gave the leases more time, since nobody could renew for a while",
}
"""What happens to a queue and not to a task of it."""

REFUSAL = {
    Refusal.NO_SUCH_TASK: "there is no such task",
    Refusal.NOTHING_WAITING: "nothing was waiting",
    Refusal.ALREADY_DONE: "it was done already",
    Refusal.ALREADY_YOURS: "they had it already",
    Refusal.HELD: "somebody else had it",
    Refusal.NOT_HELD: "it was back in the queue",
    Refusal.STALE: "it had changed since that card was drawn",
    Refusal.WRONG_STATE: "it was in another state",
    Refusal.LEASE_ENDED: "the lease had ended",
    Refusal.NOT_A_MEMBER: "they were not a member of those who may claim",
    Refusal.BOT: "bots may not claim",
    Refusal.OTHER_WORKSPACE: "people of another workspace may not claim",
    Refusal.DEACTIVATED: "the account is deactivated",
    Refusal.MEMBERSHIP_UNKNOWN: "it could not be looked up whether they may claim",
    Refusal.NOT_ALLOWED: "only the owner or a supervisor of the queue may",
    Refusal.NOT_A_SUPERVISOR: "only supervisors of the queue may",
    Refusal.TURNED_OFF: "the queue has not turned this on",
    Refusal.HELD_TOO_LONG: "the longest time that one owner may keep a task was reached",
    Refusal.RELEASES_PAUSED: "releases were paused",
    Refusal.NEW_OWNER_NOT_ELIGIBLE: "the new owner may not claim in this queue",
    Refusal.THEIRS_ALREADY: "the new owner had it already",
    Refusal.NEEDS_CHECK: "it needs a check first",
    Refusal.NOT_FLAGGED: "there was nothing to check",
    Refusal.ACTION_OPEN: "an external action was still open",
    Refusal.NO_SUCH_ACTION: "there is no such external action",
    Refusal.ACTION_SETTLED: "that external action was settled already",
    Refusal.ANSWERS_MISSING: "an external action got no answer",
    Refusal.REASON_MISSING: "no reason was given",
    Refusal.COMMENT_MISSING: "the comment was missing",
    Refusal.HANDOFF_NOTE_MISSING: "the handoff note was missing",
    Refusal.ACTION_UNSTATED: "it was not said what became of the external action",
    Refusal.TEXT_MISSING: "the text was missing",
    Refusal.INVALID: "the values could not be used",
    Refusal.BUSY: "the database was busy",
    Refusal.DATABASE_AWAY: "the database could not be reached",
    Refusal.DATABASE_REFUSED: "the database refused the record",
    Refusal.CONNECTION_LOST: "the connection to the database was lost",
}
"""Why an attempt changed nothing, as a clause."""


def reason(value: str) -> str:
    """The words of a reason that was given, for formatted text; a queue's own reasons are their own words."""
    return "Another reason" if value == Reason.OTHER else text.one_line(_plain_reason(value), 75)


def reasons(values: Sequence[str]) -> list[tuple[str, str]]:
    """A queue's reasons as pairs of a value and its words in plain text, in the queue's order."""
    return [(value, _plain_reason(value)) for value in values]


def action(task: Task, action: ExternalAction, limit: int) -> str:
    """An external action by its reference, what it is, how it ended and who recorded it."""
    said = text.one_line(action.description, limit)
    status = ACTION_STATUS[action.status]
    return f"`{action.reference(task)}` {said}: *{status}*, recorded by {text.mention(action.recorded_by)}"


def _plain_reason(value: str) -> str:
    return REASON[Reason(value)] if value in set(Reason) else value


def tried(refused: str) -> str:
    """What somebody tried, as it is said after “tried to”; `refused` is the kind of the refusal."""
    operation = refused.removesuffix("_rejected")
    return TRIED.get(operation) or operation.replace("_", " ")


def event(kind: str) -> str:
    """What happened, as it is said of the person who did it."""
    known = EVENT.get(EventKind(kind)) if kind in set(EventKind) else None
    return known or EVENT_OF_QUEUE.get(kind) or kind.replace("_", " ")
