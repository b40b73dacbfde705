"""The words that stand for states, reasons and the like, the same on every screen."""

from __future__ import annotations

from collections.abc import Sequence

from dibs.domain.settings import SETTINGS_CHANGED
from dibs.domain.task import ActionStatus, ExternalAction, ExternalAnswer, Reason, State, Task
from dibs.domain.transitions import EventKind
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
    EventKind.EXPIRED: "returned to the queue, because the lease expired",
    EventKind.CHECKED: "checked what happened outside",
    EventKind.TRANSFERRED: "gave the task to somebody else, as a supervisor",
    EventKind.FORCE_RELEASED: "returned the task to the queue, as a supervisor",
}

EVENT_OF_QUEUE = {
    SETTINGS_CHANGED: "changed the queue's settings",
    "paused": "paused the return of tasks whose lease ends",
    "resumed": "let the queue go on",
    "graced": "gave the leases that had ended meanwhile more time, after a pause of its own",
}
"""What happens to a queue and not to a task of it."""


def reason(value: str) -> str:
    """The words of a reason, for formatted text; a queue's own reasons are their own words."""
    return text.one_line(_plain_reason(value), 75)


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


def event(kind: str) -> str:
    """What happened, as it is said of the person who did it."""
    known = EVENT.get(EventKind(kind)) if kind in set(EventKind) else None
    return known or EVENT_OF_QUEUE.get(kind) or kind.replace("_", " ")
