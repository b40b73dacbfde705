"""What supervisors are told of a whole queue: what is paused or stopped, and that it goes on again."""

from __future__ import annotations

from datetime import datetime

from dibs.domain.notices import Letter
from dibs.slack import text


def queue(letter: Letter) -> str:
    """The queue, by its name and its key."""
    return f"*{text.one_line(letter.queue_name, 100)}* ({letter.queue_key})"


def person(letter: Letter, key: str) -> str | None:
    """The person whom the notice names so."""
    found = letter.payload.get(key)
    return str(found) if found else None


def when(letter: Letter) -> str:
    """When it happened, after a blank, or nothing."""
    at = letter.payload.get("at")
    return f" {text.moment(datetime.fromisoformat(str(at)))}" if at else ""


def _by_whom(letter: Letter) -> str:
    """Who resumed it and when, where somebody did."""
    by, at = person(letter, "resumed_by"), letter.payload.get("resumed_at")
    moment = f", {text.moment(datetime.fromisoformat(str(at)))}" if at else ""
    return f" by {text.mention(by)}{moment}" if by else ""


def without_task(letter: Letter) -> str:
    """What is said of a task that cannot be shown."""
    return f"Something happened in {queue(letter)}. Look at its cards in <#{letter.queue_channel}>."


def breaker_open(letter: Letter) -> str:
    """That no task returns by itself, or that this was resumed."""
    payload, name = letter.payload, queue(letter)
    opened_by = person(letter, "opened_by")
    figures = f"the limit is {payload.get('limit')} within {payload.get('minutes')} minutes"
    if opened_by:
        why = f"{text.mention(opened_by)} paused {name}"
        if count := payload.get("count"):
            why += f", while {count} {'lease' if count == 1 else 'leases'} waited to be ended ({figures})"
    else:
        why = f"{name} is paused: {payload.get('count')} leases would have ended, and {figures}"
    if letter.over:
        return f":white_check_mark: {name} was resumed{_by_whom(letter)}. Before: {why}."
    return (
        f":octagonal_sign: {why}. No task returns to the queue by itself until a supervisor resumes; owners "
        "can go on, finish and hand back. If nothing is wrong, press Resume: the tasks whose leases have "
        "ended return then."
    )


_CLOCK = {
    "backwards": "ran backwards",
    "ahead": "jumped ahead",
    "apart": "differs from this machine's clock",
}


def clock_stopped(letter: Letter) -> str:
    """That no lease ends, because of the database's clock, or that leases end again."""
    payload = letter.payload
    seconds = payload.get("seconds")
    by = f" by {seconds:.0f} s" if isinstance(seconds, int | float) else ""
    why = f"the database's clock {_CLOCK.get(str(payload.get('why')), 'cannot be trusted')}{by}"
    if letter.over:
        return f":white_check_mark: Leases end again in {queue(letter)}{_by_whom(letter)}. Before: {why}."
    then = (
        "When the clock is right, a supervisor presses Resume."
        if payload.get("needs_resume")
        else "Dibs goes on by itself once the clock has been right for a while."
    )
    return (
        f":octagonal_sign: No lease ends in {queue(letter)} just now, because {why}. Owners can still finish "
        f"and hand back. Ask the people who run the database to look at its clock. {then}"
    )


def releases_paused(letter: Letter) -> str:
    """That nobody can hand back, or that they can again."""
    name = queue(letter)
    if letter.over:
        return f":white_check_mark: Releases in {name} were resumed{_by_whom(letter)}."
    why = letter.payload.get("why")
    because = f" ({text.one_line(str(why), 200)})" if why else ""
    return (
        f":octagonal_sign: Releases in {name} are paused: the database refused to write the record of one"
        f"{because}, so that release did not happen. Tasks stay with their owners, who can go on and finish. "
        "Ask the people who run the database to look at it, then press Resume: it tries a write first."
    )


_CHANNEL = {
    "is_archived": "is archived",
    "is_inactive": "is archived",
    "not_in_channel": "does not have Dibs in it",
    "restricted_action": "does not let Dibs post",
    "restricted_action_read_only_channel": "does not let Dibs post",
    "restricted_action_thread_only_channel": "does not let Dibs post",
}


def channel_gone(letter: Letter) -> str:
    """That the cards of a queue cannot be shown."""
    payload = letter.payload
    why = _CHANNEL.get(str(payload.get("why")), "cannot be found")
    return (
        f":warning: The channel <#{payload.get('channel')}> of {queue(letter)} {why}, so the cards of its "
        "tasks are not shown any more. The tasks and their owners are as they were. Bring the channel back "
        "and invite Dibs to it: the cards appear again then."
    )
