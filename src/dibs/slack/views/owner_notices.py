"""What people are told of tasks that they own or owned, and supervisors of owners."""

from __future__ import annotations

from dibs.domain.notices import Letter, still_matters
from dibs.domain.queue import Facts
from dibs.domain.task import ActionStatus, Standing, State
from dibs.domain.transitions import EventKind
from dibs.slack import text
from dibs.slack.views.queue_notices import person, when, without_task


def lease_ended(letter: Letter) -> str:
    """To the former owner: why the task is no longer theirs, and what to do."""
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    name, where = f"*{facts.task.name}*", f"<#{facts.channel_id}>"
    said = f"Your lease on {name} ended{when(letter)}, and Dibs returned it to the queue in {where}."
    if letter.payload.get("former_state") == State.STARTED or any(
        action.status is ActionStatus.IN_PROGRESS for action in facts.actions
    ):
        said += (
            " You had started it, so it is flagged: somebody checks what happened outside before anything is "
            "repeated. Tell your team what you have done, or claim it again and answer the check yourself."
        )
    else:
        said += " If you still want it, claim it again there."
    return said


def lease_ends_soon(letter: Letter) -> str:
    """To the owner: until when the lease lasts; or what became of it meanwhile."""
    facts, until = letter.facts, letter.until
    if facts is None or until is None:
        return without_task(letter)
    if not still_matters(letter):
        return _withdrawn(facts, letter.recipient)
    task = facts.task
    begun = (
        "it returns to the queue, and somebody must check what happened outside"
        if task.state is State.STARTED
        else "it returns to the queue"
    )
    longer = (
        "Its queue limits how long one owner keeps a task, so it cannot be renewed. Finish it"
        if letter.payload.get("last")
        else "Renew it if you need longer. Otherwise finish it"
    )
    return (
        f"Your lease on *{task.name}* ends {text.moment(until)}. "
        f"{longer} or hand it back; after that time {begun}."
    )


def _withdrawn(facts: Facts, person: str) -> str:
    """What a reminder says once it no longer matters."""
    task = facts.task
    name = f"*{task.name}*"
    if task.state is State.DONE:
        return f"{name} is done. Nothing is left to do."
    if task.owner_id == person and task.lease_until:
        return f"{name} is yours until {text.moment(task.lease_until)} now. Nothing is left to do."
    if task.owner_id:
        return f"{name} is {text.mention(task.owner_id)}'s now. Nothing is left to do for you."
    if task.last_kind == EventKind.EXPIRED:
        return f"The lease on {name} ended {text.moment(task.last_at)}, and it is back in the queue."
    return f"{name} is back in the queue. Nothing is left to do for you."


def hold_ends_soon(letter: Letter) -> str:
    """To the owner and to supervisors: until when the task can be kept at most."""
    facts, until = letter.facts, letter.until
    if facts is None or until is None:
        return without_task(letter)
    owner = person(letter, "owner")
    if not still_matters(letter):
        return _withdrawn(facts, owner or "")
    name, last = f"*{facts.task.name}*", text.moment(until)
    if letter.recipient == owner:
        return (
            f"Your queue limits how long one owner keeps a task: {name} is yours "
            f"until {last} at most, and cannot be renewed beyond that. Finish it, or hand it back with a "
            "note for the next owner."
        )
    return (
        f"{text.mention(owner)} has had {name} for long, and can keep it until {last} at most: the queue "
        "limits how long one owner keeps a task. Then it returns to the queue. Ask whether help is needed."
    )


def transferred_away(letter: Letter) -> str:
    """To the former owner."""
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    by, to = text.mention(person(letter, "by")), person(letter, "to")
    heir = text.mention(to) if to else "somebody else"
    return (
        f"{by}, a supervisor, gave *{facts.task.name}* to {heir}, so it is no longer yours. "
        f"Its history says why. If you had begun, tell {by} what you have done."
    )


def transferred_to(letter: Letter) -> str:
    """To the new owner."""
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    task, by = facts.task, text.mention(person(letter, "by"))
    said = f"{by}, a supervisor, gave you *{task.name}*."
    if task.owner_id == letter.recipient and task.lease_until:
        said += f" It is yours until {text.moment(task.lease_until)}."
        if task.needs_check:
            said += " It needs a check before you start: something may already have happened outside."
    return f"{said} Use its card in <#{facts.channel_id}>; its history says why."


def force_released(letter: Letter) -> str:
    """To the former owner."""
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    by = text.mention(person(letter, "by"))
    return (
        f"{by}, a supervisor, returned *{facts.task.name}* to the queue, so it is no longer yours. "
        f"Its history says why. If you had begun, tell {by} what you have done."
    )


def owner_gone(letter: Letter) -> str:
    """To supervisors: who holds a task and is gone, or could not be told something."""
    facts, owner = letter.facts, text.mention(person(letter, "owner"))
    if unsent := letter.payload.get("unsent"):
        about = f" about *{facts.task.name}*" if facts else ""
        return (
            f"Slack does not let Dibs write to {owner} any more: a message{about} did not reach them "
            f"({str(unsent).replace('_', ' ')}). Tell them another way if it matters."
        )
    if facts is None:
        return without_task(letter)
    task = facts.task
    why = (
        "has no active account any more"
        if letter.payload.get("standing") == Standing.DEACTIVATED
        else "may no longer claim in this queue"
    )
    if not still_matters(letter):
        return f"{owner} {why}. {_withdrawn(facts, '')}"
    until = f" {text.moment(task.lease_until)}" if task.lease_until else ""
    return (
        f":warning: {owner} {why}, and still has *{task.name}*. It returns to the queue when the lease ends"
        f"{until}. Find somebody to take it over."
    )
