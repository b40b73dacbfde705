"""What a person is told who pauses or resumes a queue, and what the record says of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from dibs.domain.brakes import Brake, Paused, QueueEvent, Resumed
from dibs.domain.queue import Event
from dibs.slack import text

_LIFTED = {
    Brake.BREAKER: "tasks whose lease has ended return to the queue again; those that waited return "
    "when Dibs looks for them next",
    Brake.CLOCK: "leases end again in every queue, as soon as the database's clock agrees with Dibs' own",
    Brake.RELEASES: "tasks can be handed back again; a trial write has worked",
}
_HELD_UP = {
    Brake.BREAKER: "a task whose lease has ended stays with its owner, who can still finish it",
    Brake.CLOCK: "no lease ends, in any queue, because the database's clock jumped ahead",
    Brake.RELEASES: "no task can be handed back, because the database refused the record of it",
}
_STILL = {
    Brake.RELEASES: "Releases stay paused: a trial release could not be written. Ask the people who run Dibs "
    "to look at the tables `dibs.release_card` and `dibs.event` and the database's log, then resume again.",
}
_HOLDS_STILL = (
    "No lease ends just now, because Dibs does not trust the database's clock, or Slack was away. It goes on "
    "by itself: nobody need do anything in Slack. The people who run Dibs see at `/readyz` why."
)


def held_up(key: str, brakes: Collection[Brake], queue_command: str) -> str:
    """What stands still in the queue `key`, and what lets it go on, on a line of its own."""
    what = "; ".join(_HELD_UP[brake] for brake in Brake if brake in brakes)
    resume = f"`{queue_command} resume {key}`"
    return f":warning: *{key}* is paused: {what}. A supervisor lets it go on with {resume}."


def paused(key: str, outcome: Paused, queue_command: str) -> str:
    """What came of pausing the queue `key`. `queue_command` is how the person types /queue."""
    if not outcome.allowed:
        return _refused(key, "pause", outcome.supervisors, replayed=outcome.replayed)
    if not outcome.changed:
        by = text.mention(outcome.by) if outcome.by else "the sweep"
        since = f" since {text.moment(outcome.since)}" if outcome.since else ""
        return (
            f"*{key}* is paused already{since}, by {by}. Nothing changed. "
            f"`{queue_command} resume {key}` lets it go on."
        )
    before = "This was answered before. " if outcome.replayed else ""
    return (
        f"{before}*{key}* is paused: no task returns to the queue by itself when its lease ends. Owners can "
        f"go on, finish and hand back. The supervisors are told. "
        f"`{queue_command} resume {key}` lets it go on."
    )


def resumed(key: str, outcome: Resumed) -> str:
    """What came of resuming the queue `key`."""
    if not outcome.allowed:
        return _refused(key, "resume", outcome.supervisors, replayed=outcome.replayed)
    before = "This was answered before. " if outcome.replayed else ""
    still = " ".join(_STILL[brake] for brake in Brake if brake in outcome.still)
    if outcome.still and not outcome.why:
        still = "Whether releases are paused too could not be seen just now; please resume once more."
    if outcome.why:
        still += f" It said: `{text.one_line(outcome.why.replace('`', chr(39)), 300)}`"
    if outcome.sweep_holds_still:
        still = f"{still} {_HOLDS_STILL}".strip()
    if not outcome.lifted:
        return f"{before}{still or f'Nothing was paused in *{key}*, so nothing changed.'}"
    lifted = "".join(f"\n• {_LIFTED[brake]}" for brake in Brake if brake in outcome.lifted)
    return f"{before}*{key}* goes on:{lifted}" + (f"\n{still}" if still else "")


def recorded(event: Event) -> str:
    """Why a queue was paused, what went on, or how long the grace is; empty where there is no more to say."""
    detail = event.detail or {}
    match event.kind:
        case QueueEvent.PAUSED if detail.get("clock"):
            return f"The database's clock had jumped ahead by {detail.get('seconds', 0):.0f} s."
        case QueueEvent.PAUSED if "count" in detail:
            figures = f"the limit is {detail.get('limit')} within {detail.get('minutes')} minutes"
            return f"{detail['count']} leases would have ended, and {figures}."
        case QueueEvent.RESUMED:
            lifted = [_LIFTED[brake] for brake in Brake if detail.get(brake)]
            said = " ".join(f"{words[0].upper()}{words[1:]}." for words in lifted)
            if since := detail.get("since"):
                when, why = datetime.fromisoformat(str(since)), text.one_line(str(detail.get("why")), 300)
                said += (
                    f" Releases were paused since {text.moment(when)}, because the database refused: {why}"
                )
            return said
        case QueueEvent.GRACED if "until" in detail:
            minutes = round(float(detail.get("silent_seconds", 0)) / 60)
            until = text.moment(datetime.fromisoformat(str(detail["until"])))
            return f"For {minutes} minutes. {detail.get('leases')} leases now last until {until}."
        case _:
            return ""


def _refused(key: str, what: str, supervisors: tuple[str, ...], *, replayed: bool) -> str:
    if replayed:
        return f"This was answered before. Only supervisors of *{key}* may {what} it."
    if not supervisors:
        return (
            f"Only supervisors of *{key}* may {what} it, and none of them can be reached. Nothing changed. "
            f"Whoever may claim in *{key}* can name others with `/queue settings {key}`."
        )
    who = text.people(supervisors)
    return f"Only supervisors of *{key}* may {what} it: {who}. Nothing changed."
