"""What Dibs says of its own accord: alerts to supervisors, reminders and news to owners.

Names of tasks and people only: what a request, a note or an action says stays in the task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from dibs.domain.notices import Letter, Notice, still_matters
from dibs.domain.queue import Facts
from dibs.domain.task import State, Task
from dibs.domain.transitions import EventKind
from dibs.slack import text, words
from dibs.slack.ids import Action, QueueAction
from dibs.slack.views import owner_notices, queue_notices
from dibs.slack.views.card import MOST_TEXT, Message, value_of
from dibs.slack.views.elements import Block, Element, actions, button, section
from dibs.slack.views.queue_notices import person, queue, when, without_task

_MOST_ACTIONS = 10
_MOST_ACTIONS_IN_A_LIST = 3

_BUTTONS = {
    Action.CLAIM: "Claim",
    Action.START: "Start",
    Action.RENEW: "Renew",
    Action.DONE: "Done",
    Action.RELEASE: "Release",
    Action.CHECK: "Check",
    Action.HISTORY: "History",
}


def notice(letters: Sequence[Letter]) -> Message:
    """The message that one notice makes, or several of one kind together."""
    if len(letters) > 1:
        return _list(letters)
    [letter] = letters
    said = _SAYS[letter.notice](letter)
    said += _why_here(letter)
    blocks = [section(said)]
    if buttons := list(_buttons(letter)):
        blocks.append(actions(f"notice_{letter.id}", buttons))
    return Message(text.cut_formatted(said, MOST_TEXT), blocks)


def _why_here(letter: Letter) -> str:
    """Why a message did not go where such messages go, on a line of its own, or nothing."""
    instead_of = letter.payload.get("instead_of")
    if not instead_of:
        return ""
    if letter.recipient == letter.queue_channel:
        return (
            "\nThis channel is told, because none of the queue's supervisors can be reached. "
            f"Whoever may claim here can name others with `/queue settings {letter.queue_key}`, "
            "and one of those can do what supervisors do."
        )
    return f"\nYou are told directly, because the alert channel <#{instead_of}> cannot be reached."


# Of one task


def _needs_check(letter: Letter) -> str:
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    name = f"*{facts.task.name}*"
    said = [f"{_check_state(letter, facts)}\n{_how_it_came_back(letter, name)}"]
    said.append(_recorded(facts, most=_MOST_ACTIONS))
    if facts.task.needs_check:
        said.append("Find out what happened outside, then press Check. Dibs repeats nothing by itself.")
    return "\n".join(said)


def _check_state(letter: Letter, facts: Facts) -> str:
    task = facts.task
    if letter.settled:
        by, at = text.mention(letter.settled.by), text.moment(letter.settled.at)
        return f":white_check_mark: *{task.name}* was checked by {by}, {at}."
    if not task.needs_check:
        return f":white_check_mark: *{task.name}* was checked."
    warning = f":warning: *{task.name}* needs a check before anything is repeated."
    if task.owner_id:
        warning += f" {text.mention(task.owner_id)} has claimed it, and must check before starting."
    return warning


def _how_it_came_back(letter: Letter, name: str) -> str:
    payload = letter.payload
    former = text.mention(person(letter, "former_owner"))
    begun = "had started it" if payload.get("former_state") == State.STARTED else "had claimed it"
    match payload.get("kind"):
        case EventKind.EXPIRED:
            return (
                f"The lease of {former}, who {begun}, ended{when(letter)}, and {name} went back to the queue."
            )
        case EventKind.RELEASED:
            return (
                f"{former}, who {begun}, handed it back{when(letter)} without knowing what happened outside."
            )
        case EventKind.FORCE_RELEASED:
            by = text.mention(person(letter, "by"))
            return f"{by} returned it to the queue as a supervisor{when(letter)}. {former} {begun}."
        case _:
            return f"{former} {begun}."


def _recorded(facts: Facts, *, most: int) -> str:
    if not facts.actions:
        return "No external action was recorded."
    shown = [
        f"`{action.reference(facts.task)}` *{words.ACTION_STATUS[action.status]}*"
        for action in facts.actions[-most:]
    ]
    more = f", and {len(facts.actions) - most} earlier" if len(facts.actions) > most else ""
    return f"External actions recorded: {', '.join(shown)}{more}."


_SAYS: dict[Notice, Callable[[Letter], str]] = {
    Notice.NEEDS_CHECK: _needs_check,
    Notice.LEASE_ENDED: owner_notices.lease_ended,
    Notice.LEASE_ENDS_SOON: owner_notices.lease_ends_soon,
    Notice.HOLD_ENDS_SOON: owner_notices.hold_ends_soon,
    Notice.TRANSFERRED_AWAY: owner_notices.transferred_away,
    Notice.TRANSFERRED_TO: owner_notices.transferred_to,
    Notice.FORCE_RELEASED: owner_notices.force_released,
    Notice.OWNER_GONE: owner_notices.owner_gone,
    Notice.BREAKER_OPEN: queue_notices.breaker_open,
    Notice.CLOCK_STOPPED: queue_notices.clock_stopped,
    Notice.RELEASES_PAUSED: queue_notices.releases_paused,
    Notice.CHANNEL_GONE: queue_notices.channel_gone,
}


# Buttons


def _buttons(letter: Letter) -> Iterator[Element]:
    task = letter.facts.task if letter.facts else None
    match letter.notice:
        case Notice.BREAKER_OPEN | Notice.CLOCK_STOPPED | Notice.RELEASES_PAUSED:
            waits_for_nobody = letter.notice is Notice.CLOCK_STOPPED and not letter.payload.get(
                "needs_resume"
            )
            if not (letter.over or waits_for_nobody):
                value = json.dumps({"queue": letter.queue_id}, separators=(",", ":"))
                yield button(QueueAction.RESUME, "Resume", value, label=f"Resume {letter.queue_key}")
        case Notice.LEASE_ENDS_SOON | Notice.HOLD_ENDS_SOON if task and still_matters(letter):
            mine = task.owner_id == letter.recipient
            yield from _presses(task, _owners_buttons(letter, task) if mine else [Action.HISTORY])
        case Notice.LEASE_ENDS_SOON | Notice.HOLD_ENDS_SOON | Notice.CHANNEL_GONE:
            return
        case Notice.NEEDS_CHECK if task and task.needs_check and not letter.settled:
            yield from _presses(task, [Action.CHECK, Action.HISTORY])
        case _ if task:
            yield from _presses(task, [Action.HISTORY])
        case _:
            return


def _owners_buttons(letter: Letter, task: Task) -> list[Action]:
    onward = Action.START if task.state is State.CLAIMED else Action.DONE
    renewable = letter.notice is Notice.LEASE_ENDS_SOON and not letter.payload.get("last")
    renew = [Action.RENEW] if renewable else []
    return [*renew, onward, Action.RELEASE, Action.HISTORY]


def _presses(task: Task, which: Iterable[Action]) -> Iterator[Element]:
    for number, action in enumerate(which):
        first = number == 0 and action is not Action.HISTORY
        label = f"{_BUTTONS[action]} {task.name}"
        yield button(
            action, _BUTTONS[action], value_of(task), style="primary" if first else None, label=label
        )


# Several together


def _list(letters: Sequence[Letter]) -> Message:
    first = letters[0]
    name, number = queue(first), len(letters)
    blocks: list[Block] = []
    match first.notice:
        case Notice.NEEDS_CHECK:
            left = sum(letter.settled is None for letter in letters)
            heading = (
                f":warning: *{left} of {number} tasks* of {name} need a check before anything is repeated. "
                "Find out what happened outside, then press Check. Dibs repeats nothing by itself."
                if left
                else f":white_check_mark: All {number} tasks of {name} that needed a check were checked."
            )
        case _:
            heading = (
                f"Your leases on *{number} tasks* of {name} have ended, and Dibs returned them to the queue "
                f"in <#{first.queue_channel}>. Those that you had started are flagged: somebody checks what "
                "happened outside before anything is repeated. Tell your team what you have done."
            )
    heading += _why_here(first)
    lines = [heading]
    blocks.append(section(heading))
    for letter in letters:
        line = _line(letter)
        lines.append(line)
        blocks.append(section(line))
        if first.notice is Notice.NEEDS_CHECK and (buttons := list(_buttons(letter))):
            blocks.append(actions(f"notice_{letter.id}", buttons))
    return Message(text.cut_formatted("\n".join(lines), MOST_TEXT), blocks)


def _line(letter: Letter) -> str:
    facts = letter.facts
    if facts is None:
        return without_task(letter)
    task = facts.task
    if letter.notice is not Notice.NEEDS_CHECK:
        flagged = ", started" if letter.payload.get("former_state") == State.STARTED else ""
        return f"• *{task.name}*{flagged}"
    former = text.mention(person(letter, "former_owner"))
    if letter.settled:
        state = f"checked by {text.mention(letter.settled.by)}, {text.moment(letter.settled.at)}"
    elif task.owner_id:
        state = f"claimed by {text.mention(task.owner_id)}, who must check before starting"
    else:
        state = "waits for a check"
    return f"*{task.name}* was {former}'s: {state}. {_recorded(facts, most=_MOST_ACTIONS_IN_A_LIST)}"
