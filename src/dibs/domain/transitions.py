"""The table of transitions: everything that may happen to a task, who may do it and when.

This table is the one place that says so. The store builds its conditional writes from it, the README
shows it (`python -m dibs.domain.transitions` prints it), and the tests walk it. The conditions that
one operation alone has are named in `also`, in words, and written in SQL in `dibs.store.specials`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dibs.domain.task import State


class Operation(StrEnum):
    """What somebody may do to a task."""

    CLAIM = "claim"
    RENEW = "renew"
    START = "start"
    RECORD_ACTION = "record_action"
    RESOLVE_ACTION = "resolve_action"
    NOTE = "note"
    COMMIT = "commit"
    DONE = "done"
    RELEASE = "release"
    EXPIRE = "expire"
    CHECK = "check"
    TRANSFER = "transfer"
    FORCE_RELEASE = "force_release"


class Who(StrEnum):
    """Who may do it."""

    ELIGIBLE_MEMBER = "eligible member"
    OWNER = "owner"
    OWNER_OR_SUPERVISOR = "owner or supervisor"
    SUPERVISOR = "supervisor, where the queue allows it"
    SWEEP = "the sweep"


class Lease(StrEnum):
    """What the operation asks of the lease, and what it does to it."""

    IGNORED = "may have lapsed"
    CURRENT = "current"
    NEW = "a new one"
    RENEWED = "current; renewed"
    ENDED = "ended by the database's clock"


class EventKind(StrEnum):
    """What happened, as the append-only record names it. A refusal is `<operation>_rejected`."""

    CREATED = "created"
    CLAIMED = "claimed"
    RENEWED = "renewed"
    STARTED = "started"
    ACTION_RECORDED = "action_recorded"
    ACTION_RESOLVED = "action_resolved"
    NOTED = "noted"
    COMMITTED = "committed"
    DONE = "done"
    RELEASED = "released"
    EXPIRED = "expired"
    CHECKED = "checked"
    TRANSFERRED = "transferred"
    FORCE_RELEASED = "force_released"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table. `target` None means that the state stays as it is."""

    operation: Operation
    sources: frozenset[State]
    target: State | None
    who: Who
    lease: Lease
    event: EventKind
    also: str = ""

    @property
    def from_states(self) -> tuple[State, ...]:
        """The states that it may start from, in the order of a task's life."""
        return tuple(state for state in State if state in self.sources)

    @property
    def rejection(self) -> str:
        """The kind of the event that records a refusal."""
        return f"{self.operation}_rejected"


_QUEUED = frozenset({State.QUEUED})
_CLAIMED = frozenset({State.CLAIMED})
_STARTED = frozenset({State.STARTED})
_OWNED = _CLAIMED | _STARTED
_UNFINISHED = _QUEUED | _OWNED

# fmt: off
_TABLE = (
    #    operation                 from         to             who                      lease          event
    Rule(Operation.CLAIM,          _QUEUED,     State.CLAIMED, Who.ELIGIBLE_MEMBER,     Lease.NEW,     EventKind.CLAIMED),
    Rule(Operation.RENEW,          _OWNED,      None,          Who.OWNER,               Lease.RENEWED, EventKind.RENEWED,
         "the queue's longest hold is not reached"),
    Rule(Operation.START,          _CLAIMED,    State.STARTED, Who.OWNER,               Lease.CURRENT, EventKind.STARTED,
         "not needs_check, or the check is confirmed in the same write"),
    Rule(Operation.RECORD_ACTION,  _STARTED,    None,          Who.OWNER,               Lease.CURRENT, EventKind.ACTION_RECORDED),
    Rule(Operation.RESOLVE_ACTION, _STARTED,    None,          Who.OWNER,               Lease.IGNORED, EventKind.ACTION_RESOLVED,
         "the action is open"),
    Rule(Operation.NOTE,           _OWNED,      None,          Who.OWNER,               Lease.IGNORED, EventKind.NOTED),
    Rule(Operation.COMMIT,         _OWNED,      None,          Who.OWNER,               Lease.IGNORED, EventKind.COMMITTED),
    Rule(Operation.DONE,           _STARTED,    State.DONE,    Who.OWNER,               Lease.IGNORED, EventKind.DONE,
         "no external action is in progress or unknown"),
    Rule(Operation.RELEASE,        _OWNED,      State.QUEUED,  Who.OWNER,               Lease.IGNORED, EventKind.RELEASED,
         "a reason; a handoff note if started; the external action stated if started or one is open; releases are not paused"),
    Rule(Operation.EXPIRE,         _OWNED,      State.QUEUED,  Who.SWEEP,               Lease.ENDED,   EventKind.EXPIRED,
         "the queue's breaker is closed; the database's clock is trusted; owners could have renewed"),
    Rule(Operation.CHECK,          _UNFINISHED, None,          Who.OWNER_OR_SUPERVISOR, Lease.IGNORED, EventKind.CHECKED,
         "needs_check is set; each open external action is answered"),
    Rule(Operation.TRANSFER,       _OWNED,      State.CLAIMED, Who.SUPERVISOR,          Lease.NEW,     EventKind.TRANSFERRED,
         "a reason; the new owner is eligible"),
    Rule(Operation.FORCE_RELEASE,  _OWNED,      State.QUEUED,  Who.SUPERVISOR,          Lease.IGNORED, EventKind.FORCE_RELEASED,
         "a reason; releases are not paused"),
)
# fmt: on

RULES: dict[Operation, Rule] = {rule.operation: rule for rule in _TABLE}


def as_markdown() -> str:
    """The table as the README shows it."""
    lines = [
        "| operation | from | to | who | lease | must also hold | event |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule in RULES.values():
        sources = ", ".join(rule.from_states)
        cells = (
            rule.operation,
            sources,
            rule.target or "(stays)",
            rule.who,
            rule.lease,
            rule.also,
            rule.event,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    sys.stdout.write(as_markdown() + "\n")
