"""Cards and forms in every state, as data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dibs.deadline import Deadline
from dibs.domain.audit import Page, Record, ReleaseCard, Selection, Topic
from dibs.domain.brakes import QueueEvent
from dibs.domain.queue import Event, EventAction, Facts, Flagged, Handover, Note, Queue
from dibs.domain.settings import UserGroup
from dibs.domain.task import ActionStatus, ExternalAction, Reason, State, Task
from dibs.domain.transitions import RULES, EventKind
from dibs.slack.payloads import Origin, metadata_of
from dibs.slack.views import audit, modals, settings, supervise
from dibs.slack.views.card import Message, card
from dibs.slack.views.history import history

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
QUEUE = Queue(1, "T0TEST", "SUP", "Support", "C0SUPPORT", 1800)


def task(
    state: State = State.QUEUED,
    *,
    title: str = "Refund order 1001",
    details: str = "",
    **about: Any,  # noqa: ANN401
) -> Task:
    owned = state is not State.QUEUED
    values: dict[str, Any] = {
        "id": 1,
        "queue_id": 1,
        "queue_key": "SUP",
        "number": 12,
        "title": title,
        "details": details,
        "state": state,
        "owner_id": "U0AMAL" if owned else None,
        "lease_until": AT if state in (State.CLAIMED, State.STARTED) else None,
        "version": 4,
        "needs_check": False,
        "started_before": False,
        "deadline": None,
        "committed_to": None,
        "resolution": None,
        "created_by": "U0SUE",
        "created_at": AT,
        "last_kind": EventKind.CREATED,
        "last_actor": "U0SUE",
        "last_at": AT,
    }
    return Task(**(values | about))


def action(
    number: int = 1, status: ActionStatus = ActionStatus.IN_PROGRESS, words: str = "refund"
) -> ExternalAction:
    return ExternalAction(number, 1, number, words, status, "U0AMAL", AT)


def facts(of: Task, *actions: ExternalAction, words: str = "Ask the bank.") -> Facts:
    return Facts(
        of,
        "C0SUPPORT",
        actions,
        Handover("U0HANA", AT, Reason.OTHER, words, words, "unknown"),
        Note("U0HANA", words, AT),
        flagged=Flagged(EventKind.EXPIRED, None, AT, "U0HANA", State.STARTED) if of.needs_check else None,
    )


def cards_in_every_state() -> list[Message]:
    states = itertools.product(State, (False, True), (EventKind.EXPIRED, EventKind.RELEASED), (0, 2))
    return [
        card(
            facts(
                task(
                    state,
                    needs_check=flagged and state is not State.DONE,
                    started_before=flagged,
                    last_kind=last,
                    deadline=AT,
                    committed_to=AT,
                    resolution="Refunded." if state is State.DONE else None,
                ),
                *(action(number) for number in range(1, actions + 1)),
            )
        )
        for state, flagged, last, actions in states
    ]


def events(words: str) -> list[Event]:
    kinds = [(kind, None) for kind in EventKind] + [(rule.rejection, "held") for rule in RULES.values()]
    detail = {
        "former_owner": "U0AMAL",
        "reason": Reason.OTHER,
        "external_action": "unknown",
        "answers": {"1": "completed", "2": "not_completed"},
        "finding": words,
    }
    return [
        Event(
            kind,
            "U0AMAL" if number else None,
            AT,
            1,
            2,
            1,
            why,
            detail,
            words,
            actions=tuple(EventAction(f"SUP-12-A{n}", words, ended) for n, ended in enumerate(ActionStatus)),
        )
        for number, (kind, why) in enumerate(kinds)
    ]


def all_modals(words: str = "refund 20 EUR", actions: int = 2) -> Iterator[dict[str, Any]]:
    """Every form, in the states in which it is opened."""
    origin = Origin(
        "T0TEST", "U0AMAL", "op", Deadline.after(), "C0SUPPORT", "1.2", "https://hooks.example/" + "x" * 200
    )
    metadata = metadata_of(origin, task=1, version=4, then="start")
    for state, number in itertools.product((State.CLAIMED, State.STARTED), (0, 1, actions)):
        known = facts(
            task(state, title=words, details=words),
            *(action(n, words=words) for n in range(1, number + 1)),
            words=words,
        )
        yield modals.release(known, metadata)
        yield modals.done(known, metadata)
        yield modals.note(known, metadata)
        yield modals.record_action(known, metadata)
        if number:
            yield modals.resolve_action(known, metadata)
        for then_start in (False, True):
            yield modals.check(known, metadata, then_start=then_start)
    yield modals.new_task([QUEUE], metadata)
    yield modals.new_task([Queue(n, "T", f"Q{n}", words[:80], "C1", 60) for n in range(1, 130)], metadata)
    groups = [UserGroup(f"S0{n}", f"group-{n}", words[:80]) for n in range(130)]
    for listed in (None, [], groups[:3], groups):
        yield settings.new_queue(metadata, creator="U0SUE", groups=listed)
        for chosen in (None, "S02", "S0GONE"):
            queue = replace(QUEUE, eligible_group=chosen, alert_channel=chosen and "C0A", spike_share=20)
            yield settings.settings(queue, ["U0SUE"], metadata, groups=listed)
    own = tuple(f"{n}{words}"[:37] for n in range(20))
    queue = replace(
        QUEUE, name=words[:80], reasons=own, longest_hold_seconds=7200, supervisor_operations=True
    )
    yield settings.settings(queue, [f"U0{n}" for n in range(50)], metadata, groups=groups)
    for more in (False, True):
        yield history(task(title=words), events(words)[:40], more=more)
        held = task(State.STARTED, title=words)
        yield history(held, events(words)[:40], more=more, metadata=metadata, may_intervene=True)
    for state, number in itertools.product((State.CLAIMED, State.STARTED), (0, actions)):
        known = facts(task(state, title=words), *(action(n, words=words) for n in range(1, number + 1)))
        known = replace(known, reasons=own)
        yield supervise.transfer(known, metadata)
        yield supervise.force_release(known, metadata)


def pages_of_records(words: str) -> Iterator[Message]:
    """Pages of everything that can be recorded, of each topic, with and without buttons beside them."""
    card = ReleaseCard("U0AMAL", State.STARTED, 1, 2, Reason.OTHER, words, words, "unknown", "U0SUE")
    known = [
        Record(number, "SUP", 12, words, "op", event, card if event.kind == EventKind.RELEASED else None)
        for number, event in enumerate(events(words), 1)
    ]
    for kind in QueueEvent:
        detail = {"name": {"old": words, "new": words}} if kind == QueueEvent.SETTINGS_CHANGED else None
        why = "not_a_supervisor" if kind.endswith("_rejected") else None
        known.append(
            Record(99, "SUP", None, None, "op", Event(kind, None, AT, None, None, None, why, detail, None))
        )
    for topic, beside in itertools.product(Topic, (False, True)):
        selection = Selection(topic, (1,), "U0AMAL" if topic is Topic.PERSON else 1, AT if beside else None)
        for start in range(0, len(known), 10):
            shown = Page(tuple(known[start : start + 10]), older=beside, newer=beside)
            yield audit.page(shown, selection, name="SUP", title=words, export=beside, upwards=start > 0)
        yield audit.page(Page((), older=False, newer=False), selection, name="SUP", title=words, export=True)


def elements_of(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The buttons of a message."""
    return [element for block in blocks if block["type"] == "actions" for element in block["elements"]]
