"""What a person is told of an Outcome: what happened, whether anything changed, and what to do next."""

from __future__ import annotations

from typing import assert_never

from dibs.domain.errors import Busy, Refused, StoreError
from dibs.domain.outcomes import Outcome, Refusal, Verdict
from dibs.domain.task import State, Task
from dibs.domain.transitions import EventKind, Operation
from dibs.slack import text, words

MOST_PEOPLE = 5
UNKNOWN = "We could not confirm this; look at the card before pressing again."
NOTHING_CHANGED = "Nothing changed."
PRESS_AGAIN = "Nothing changed. Please press again."
UNREADABLE = "Dibs could not read this button, so nothing changed. Press one on the newest card of the task."
UNREADABLE_FORM = "Dibs could not read this form, so nothing changed. Close it and open it again."
REASON_GONE = (
    "This reason is not in the queue's list any more. Choose another one, or close this form and open it "
    "again to see the new list. Nothing changed yet."
)
OUTDATED_FORM = (
    "This form does not ask for all that is needed now, since the task changed after you opened it. Nothing "
    "changed. Copy what you wrote, close the form and open it again."
)
UNKNOWN_FORM = "We could not confirm this. Close this form and look at the channel before you send it again."
WENT_WRONG = f"Something went wrong in Dibs. {UNKNOWN}"

_HAD = {
    Operation.CLAIM: "claimed",
    Operation.RENEW: "renewed your lease on",
    Operation.START: "started",
}
"""What made or kept the person its owner, in the past perfect."""


def why(refusal: str) -> str:
    """The reason of a refusal, as a clause for the history."""
    return words.REFUSAL[Refusal(refusal)]


def reply(outcome: Outcome, card: str | None = None) -> str:
    """What the person who pressed is told. `card` is a link to the task's current card."""
    match outcome.verdict:
        case Verdict.CHANGED:
            return _changed(outcome)
        case Verdict.UNCHANGED:
            return _unchanged(outcome, card)
        case Verdict.UNKNOWN:
            return UNKNOWN
        case _:
            assert_never(outcome.verdict)


def not_stored(error: StoreError) -> str:
    """What a person is told where nothing was written, or only a read failed."""
    match error:
        case Busy():
            why_not, then = "The database was too busy to do this in time.", "Please try again in a moment."
        case Refused():
            why_not, then = "The database refused this.", "Please tell the people who run Dibs."
        case _:
            why_not, then = "Dibs cannot reach its database just now.", "Please try again in a moment."
    return f"{why_not} {NOTHING_CHANGED} {then}"


def settled(outcome: Outcome, card: str | None = None) -> str:
    """What the person is told once it is known what became of a press that could not be confirmed."""
    if outcome.changed:
        return f"Your press went through after all. {_changed(outcome)}"
    if outcome.why is not Refusal.CONNECTION_LOST:
        return f"Your press did not go through. {_unchanged(outcome, card)}"
    return (
        f"Your press did not go through, and nothing changed. Press again if you still want to.{_see(card)}"
    )


def refused_in_form(outcome: Outcome) -> str:
    """Why a form was not accepted, for the input that it is shown at."""
    match outcome.why:
        case Refusal.REASON_MISSING:
            return "Choose a reason. Nothing changed yet."
        case Refusal.COMMENT_MISSING:
            return "Say in a few words what the other reason is. Nothing changed yet."
        case Refusal.HANDOFF_NOTE_MISSING:
            return "Started work needs a handoff note for the next owner. Nothing changed yet."
        case Refusal.ACTION_UNSTATED:
            return (
                "Say how the external action ended; if you are not sure, choose that you don't know. "
                "Nothing changed yet."
            )
        case Refusal.ANSWERS_MISSING:
            return (
                "Each external action needs an answer. If one is not shown here, close this form and press "
                "Check again. Nothing changed yet."
            )
        case Refusal.TEXT_MISSING:
            return "Write something here. Nothing changed yet."
        case Refusal.STALE if not outcome.replayed:
            return f"{_unchanged(outcome, None)} Close this form and open it again from there."
        case _:
            return reply(outcome)


def _changed(outcome: Outcome) -> str:
    task = outcome.task
    if task is None:
        return "It went through. The card shows how the task stands."
    if outcome.operation in _HAD and task.owner_id != outcome.actor_id:
        # It is told again or late, and somebody else may have the task by now.
        return f"You had {_HAD[outcome.operation]} *{task.name}*. {_now(task)}"
    until = f" until {text.moment(task.lease_until)}" if task.lease_until else ""
    flagged = " It is flagged: a person checks before anything is repeated." if task.needs_check else ""
    match outcome.operation:
        case Operation.CLAIM:
            check = " It needs a check before you start." if task.needs_check else ""
            return f"*{task.name}* is yours{until}.{check} Press Start on its card when you begin."
        case Operation.RENEW:
            return f"*{task.name}* stays yours{until}."
        case Operation.START:
            return f"You have started *{task.name}*. It is yours{until}; renew it in time if you need longer."
        case Operation.RECORD_ACTION:
            return _recorded(outcome, task)
        case Operation.RESOLVE_ACTION:
            return f"Saved on *{task.name}*."
        case Operation.NOTE:
            return f"Your working note on *{task.name}* is saved."
        case Operation.COMMIT:
            return f"Your commitment on *{task.name}* is saved."
        case Operation.DONE:
            return f"*{task.name}* is done. Thank you."
        case Operation.RELEASE:
            return f"You have handed back *{task.name}*.{flagged}"
        case Operation.CHECK:
            return f"Your check of *{task.name}* is recorded, and the flag is cleared."
        case Operation.TRANSFER:
            return f"*{task.name}* is now {text.mention(task.owner_id)}'s{until}. Both owners are told."
        case Operation.FORCE_RELEASE:
            return f"*{task.name}* is back in the queue.{flagged} Its former owner is told."
        case Operation.EXPIRE:
            return f"*{task.name}* is back in the queue."
        case _:
            assert_never(outcome.operation)


def _recorded(outcome: Outcome, task: Task) -> str:
    then = "Then press “How did it end?” on the card."
    if not outcome.actions:
        return f"Recorded on *{task.name}*. Do it now. {then}"
    name = outcome.actions[0].reference(task)
    return (
        f"Recorded on *{task.name}* as `{name}`. Do it now, and use `{name}` as the reference there (its "
        "idempotency key, if it takes one): it stays the same for whoever takes over, so that nothing is "
        f"done twice. {then}"
    )


def _unchanged(outcome: Outcome, card: str | None) -> str:
    said = _refusal(outcome)
    if outcome.replayed:
        # The first delivery was told already that nothing changed; repeating it could be misread.
        return f"This press was answered before. {said}{_see(card)}"
    return f"{said} {_nothing_changed(outcome)}{_next(outcome)}{_see(card)}"


def _nothing_changed(outcome: Outcome) -> str:
    held = outcome.why is Refusal.HELD and outcome.operation is Operation.CLAIM
    return "Your claim did not change its owner; nothing changed." if held else NOTHING_CHANGED


def _refusal(outcome: Outcome) -> str:
    task, actor = outcome.task, outcome.actor_id
    name = f"*{task.name}*" if task else "this task"
    match outcome.why:
        case None | Refusal.INVALID:
            return "Dibs could not use these values."
        case Refusal.NO_SUCH_TASK:
            return "There is no such task."
        case Refusal.NOTHING_WAITING:
            return "Nothing is waiting that you may claim."
        case Refusal.HELD if task and outcome.operation is Operation.CLAIM:
            return _now(task, actor)
        case Refusal.ALREADY_DONE | Refusal.HELD | Refusal.NOT_HELD | Refusal.WRONG_STATE | Refusal.STALE:
            return f"{_now(task, actor)}{_newest_change(task, actor)}" if task else "The task has changed."
        case Refusal.ALREADY_YOURS:
            return f"You have {name} already."
        case Refusal.LEASE_ENDED if outcome.operation is Operation.CLAIM:
            return f"The lease on {name} has ended, and it returns to the queue shortly."
        case Refusal.LEASE_ENDED:
            return f"Your lease on {name} has ended, and it returns to the queue shortly."
        case Refusal.NOT_A_MEMBER:
            return f"Only members of {who_may(outcome.eligible_group)} may claim {name}, and you are not one."
        case Refusal.BOT:
            return f"Bots may not claim {name}."
        case Refusal.OTHER_WORKSPACE:
            return f"Only people of this workspace may claim {name}, and your account is of another one."
        case Refusal.DEACTIVATED:
            return f"Your account is deactivated, so it may not claim {name}."
        case Refusal.MEMBERSHIP_UNKNOWN if outcome.operation is Operation.TRANSFER:
            return f"Dibs could not look up in Slack whether the person you chose may claim {name}."
        case Refusal.MEMBERSHIP_UNKNOWN:
            return f"Dibs could not look up in Slack whether you may claim {name}."
        case Refusal.NOT_ALLOWED:
            return f"Only the owner of {name} or a supervisor of its queue may do this."
        case Refusal.NOT_A_SUPERVISOR:
            return f"Only a supervisor of its queue may do this to {name}."
        case Refusal.TURNED_OFF:
            return f"The queue of {name} has not turned on what supervisors may do to other people's tasks."
        case Refusal.HELD_TOO_LONG:
            until = (
                f" It is yours until {text.moment(task.lease_until)}." if task and task.lease_until else ""
            )
            return f"{name} cannot be renewed: its queue limits how long one owner keeps a task.{until}"
        case Refusal.RELEASES_PAUSED:
            return f"Releases are paused in the queue of {name}, because their record could not be written."
        case Refusal.DATABASE_REFUSED if outcome.releases_paused:
            return (
                f"The database refused the record of this release, so {name} was not handed back: nothing "
                "goes back without its record. Releases are now paused in its queue."
            )
        case Refusal.NEW_OWNER_NOT_ELIGIBLE:
            return f"The person you chose may not claim in the queue of {name}."
        case Refusal.THEIRS_ALREADY:
            return f"The person you chose has {name} already."
        case Refusal.NEEDS_CHECK:
            return f"{name} needs a check first: something may already have happened outside."
        case Refusal.NOT_FLAGGED:
            return f"{name} has nothing to check."
        case Refusal.ACTION_OPEN:
            open_ones = ", ".join(f"`{action.reference(task)}`" for action in outcome.actions if task)
            return (
                f"It is not known yet how an external action ended on {name}: {open_ones or 'see the card'}."
            )
        case Refusal.BUSY:
            return "The database was too busy to do this in time."
        case Refusal.DATABASE_AWAY:
            return "Dibs cannot reach its database just now."
        case Refusal.DATABASE_REFUSED:
            return "The database refused to record this, so it was not done."
        case _:
            return f"Dibs did not do this on {name}: {why(outcome.why)}."


def _next(outcome: Outcome) -> str:
    match outcome.why:
        case Refusal.BUSY | Refusal.DATABASE_AWAY | Refusal.MEMBERSHIP_UNKNOWN:
            return " Please press again in a moment."
        case Refusal.NOT_A_MEMBER:
            how = "Ask to be added to it" if outcome.eligible_group else "Join the channel"
            return f" {how}, then press again."
        case Refusal.TURNED_OFF:
            return " A supervisor can turn it on with `/queue settings`."
        case Refusal.HELD_TOO_LONG:
            return " Finish it, or hand it back with a note, before then."
        case Refusal.RELEASES_PAUSED:
            return f"{_stays(outcome)} A supervisor lets releases go on with {_resume(outcome)}."
        case Refusal.DATABASE_REFUSED if outcome.releases_paused:
            return (
                f"{_stays(outcome)} The queue's supervisors are told; one of them lets releases go on with "
                f"{_resume(outcome)}."
            )
        case Refusal.NEW_OWNER_NOT_ELIGIBLE:
            return f" Choose somebody who may: a member of {who_may(outcome.eligible_group)}."
        case Refusal.ACTION_OPEN:
            return " Press “How did it end?” on the card first."
        case Refusal.NEEDS_CHECK:
            return " Press Check on its card."
        case Refusal.ALREADY_YOURS:
            return " Press Start on its card when you begin."
        case Refusal.NOTHING_WAITING:
            return " `/queue list` shows who has what."
        case Refusal.DATABASE_REFUSED:
            return " Please tell the people who run Dibs."
        case Refusal.LEASE_ENDED | Refusal.STALE | Refusal.NOT_HELD:
            return " Use the current card."
        case _:
            return ""


def _stays(outcome: Outcome) -> str:
    """That what could not be handed back stays with its owner."""
    task = outcome.task
    if outcome.operation is Operation.FORCE_RELEASE and task:
        return f" The task stays {text.mention(task.owner_id)}'s."
    return " The task stays yours."


def _resume(outcome: Outcome) -> str:
    """How releases are let go on, and who may."""
    key = f" {outcome.task.queue_key}" if outcome.task else ""
    who = text.people(outcome.who_resumes, MOST_PEOPLE)
    return f"`/queue resume{key}`{f': {who}' if who else ''}"


def who_may(group: str | None) -> str:
    """Whose members may claim in a queue, with this group or without one."""
    return f"the group {text.group(group)}" if group else "the queue's channel"


def _now(task: Task, actor: str | None = None) -> str:
    """Where the task stands, and who brought it there."""
    yours = task.owner_id is not None and task.owner_id == actor
    until = f" until {text.moment(task.lease_until)}" if task.lease_until else ""
    match task.state:
        case State.DONE:
            return f"*{task.name}* is done, finished by {text.mention(task.owner_id)}."
        case State.CLAIMED if yours:
            return f"*{task.name}* is yours, claimed{until}."
        case State.STARTED if yours:
            return f"*{task.name}* is yours and in progress{until}."
        case State.CLAIMED:
            return f"{text.mention(task.owner_id)} has *{task.name}*{until}."
        case State.STARTED:
            lease = until and f"; the lease lasts{until}"
            return f"{text.mention(task.owner_id)} has *{task.name}* and has started{lease}."
        case State.QUEUED:
            flagged = " It needs a check." if task.needs_check else ""
            return f"*{task.name}* is in the queue: {_how_it_came_back(task)}.{flagged}"
        case _:
            assert_never(task.state)


def _newest_change(task: Task, actor: str | None) -> str:
    """Who changed a task that somebody owns last, and how; else where it stands says so."""
    if task.state in (State.QUEUED, State.DONE):
        return ""
    who = "you" if task.last_actor == actor else text.mention(task.last_actor)
    return f" Newest change: {who} {words.EVENT[EventKind(task.last_kind)]}, {text.moment(task.last_at)}."


def _how_it_came_back(task: Task) -> str:
    when = text.moment(task.last_at)
    match task.last_kind:
        case EventKind.EXPIRED:
            return f"the sweep returned it {when}, because the lease expired"
        case EventKind.RELEASED:
            return f"{text.mention(task.last_actor)} already released it {when}"
        case EventKind.FORCE_RELEASED:
            return f"{text.mention(task.last_actor)} returned it as a supervisor {when}"
        case EventKind.CHECKED:
            return f"it waits for an owner, and {text.mention(task.last_actor)} checked it {when}"
        case _:
            return "it waits for an owner"


def _see(card: str | None) -> str:
    return f" {card}" if card else ""
