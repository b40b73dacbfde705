"""A task in the database, and beside it a model of it that is written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.journey import guard_of
from tests.support.store import AMAL, BILAL, SUE, Desk

from dibs.domain.outcomes import Outcome
from dibs.domain.task import ActionStatus
from dibs.service.sweep import SweepService
from dibs.service.transitions import TransitionService

PEOPLE = [AMAL, BILAL, SUE, "U0STRANGER"]
MAY_CLAIM = {AMAL, BILAL}


@dataclass
class Model:
    """What one task should be by now, told in the words of the design."""

    state: str = "queued"
    owner: str | None = None
    lapsed: bool = False
    version: int = 1
    needs_check: bool = False
    started_before: bool = False
    recorded_since_check: bool = False
    actions: list[str] = field(default_factory=list)
    successes: int = 1

    @property
    def open(self) -> bool:
        return "in_progress" in self.actions or "unknown" in self.actions

    def changed(self) -> bool:
        self.version += 1
        self.successes += 1
        return True

    def answer(self, status: str) -> None:
        self.actions = [status if known in {"in_progress", "unknown"} else known for known in self.actions]

    def back(self) -> None:
        self.started_before |= self.state == "started"
        self.state, self.owner, self.lapsed = "queued", None, False


Step = Callable[["World", str, int], bool]


class World:
    """The task in the database and the model beside it."""

    def __init__(self, desk: Desk, service: TransitionService) -> None:
        self.desk = desk
        self.service = service
        self.task = desk.task()
        desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
        self.model = Model()
        self.outcome: Outcome | None = None

    def version(self, offset: int) -> int:
        return max(1, self.model.version + offset)

    def owned_by(self, who: str, offset: int, *states: str) -> bool:
        as_seen = self.version(offset) == self.model.version
        return self.model.owner == who and as_seen and self.model.state in states


def claim(world: World, who: str, offset: int) -> bool:
    model, seen = world.model, world.version(offset)
    world.outcome = world.service.claim(world.task.id, who, seen)
    if model.state != "queued" or seen != model.version or who not in MAY_CLAIM:
        return False
    model.state, model.owner, model.lapsed = "claimed", who, False
    return model.changed()


def renew(world: World, who: str, offset: int) -> bool:
    may = world.owned_by(who, offset, "claimed", "started") and not world.model.lapsed
    world.outcome = world.service.renew(world.task.id, who, world.version(offset))
    return may and world.model.changed()


def start(world: World, who: str, offset: int) -> bool:
    model = world.model
    world.outcome = world.service.start(world.task.id, who, world.version(offset))
    if not world.owned_by(who, offset, "claimed") or model.lapsed or model.needs_check:
        return False
    model.state = "started"
    return model.changed()


def start_checked(world: World, who: str, offset: int) -> bool:
    model = world.model
    answers = dict.fromkeys(_action_ids(world), ActionStatus.COMPLETED)
    world.outcome = world.service.start(
        world.task.id, who, world.version(offset), confirmed=True, answers=answers
    )
    if not world.owned_by(who, offset, "claimed") or model.lapsed:
        return False
    model.state = "started"
    if model.needs_check:
        model.needs_check = model.recorded_since_check = False
    model.answer("completed")
    return model.changed()


def record(world: World, who: str, offset: int) -> bool:
    model = world.model
    world.outcome = world.service.record_action(world.task.id, who, world.version(offset), "refund")
    if not world.owned_by(who, offset, "started") or model.lapsed:
        return False
    model.actions.append("in_progress")
    model.recorded_since_check = True
    return model.changed()


def resolve(world: World, who: str, offset: int) -> bool:
    model, ids = world.model, _action_ids(world)
    if not ids:
        world.outcome = None
        return False
    world.outcome = world.service.resolve_action(
        world.task.id, who, world.version(offset), ids[-1], ActionStatus.UNKNOWN
    )
    if not world.owned_by(who, offset, "started") or model.actions[-1] not in {"in_progress", "unknown"}:
        return False
    model.actions[-1] = "unknown"
    return model.changed()


def note(world: World, who: str, offset: int) -> bool:
    world.outcome = world.service.note(world.task.id, who, world.version(offset), "text")
    return world.owned_by(who, offset, "claimed", "started") and world.model.changed()


def done(world: World, who: str, offset: int) -> bool:
    model = world.model
    world.outcome = world.service.done(world.task.id, who, world.version(offset))
    if not world.owned_by(who, offset, "started") or model.open:
        return False
    model.state, model.lapsed = "done", False
    return model.changed()


def _release(world: World, who: str, offset: int, stated: str) -> bool:
    model = world.model
    world.outcome = world.service.release(
        world.task.id,
        who,
        world.version(offset),
        reason="shift_ending",
        handoff_note="half done",
        external_action=stated,
    )
    if not world.owned_by(who, offset, "claimed", "started") or (stated == "none" and model.open):
        return False
    if stated != "none":
        if model.open:
            model.answer(stated)
        elif stated == "unknown" or not model.actions:
            model.actions.append(stated)
        model.recorded_since_check = True
        model.needs_check |= stated == "unknown"
    model.back()
    return model.changed()


def release_clean(world: World, who: str, offset: int) -> bool:
    return _release(world, who, offset, "none")


def release_unknown(world: World, who: str, offset: int) -> bool:
    return _release(world, who, offset, "unknown")


def release_completed(world: World, who: str, offset: int) -> bool:
    return _release(world, who, offset, "completed")


def check(world: World, who: str, offset: int) -> bool:
    model = world.model
    answers = dict.fromkeys(_action_ids(world), ActionStatus.NOT_COMPLETED)
    as_seen = world.version(offset) == model.version
    world.outcome = world.service.check(world.task.id, who, world.version(offset), answers=answers)
    may = who in {SUE, model.owner}
    if not may or not as_seen or model.state == "done" or not model.needs_check:
        return False
    model.needs_check = model.recorded_since_check = False
    model.answer("not_completed")
    return model.changed()


def _intervenes(world: World, who: str, offset: int) -> bool:
    model = world.model
    as_seen = world.version(offset) == model.version
    return who == SUE and as_seen and model.state in {"claimed", "started"}


def transfer(world: World, who: str, offset: int) -> bool:
    model = world.model
    may = _intervenes(world, who, offset)
    heir = BILAL if model.owner == AMAL else AMAL
    world.outcome = world.service.transfer(
        world.task.id, who, world.version(offset), heir, reason="ill today"
    )
    if not may:
        return False
    model.needs_check |= model.state == "started" or model.recorded_since_check
    model.back()
    model.state, model.owner = "claimed", heir
    return model.changed()


def force_release(world: World, who: str, offset: int) -> bool:
    model = world.model
    may = _intervenes(world, who, offset)
    world.outcome = world.service.force_release(
        world.task.id, who, world.version(offset), reason="shift_ending"
    )
    if not may:
        return False
    model.needs_check |= model.state == "started" or model.recorded_since_check
    model.back()
    return model.changed()


def lease_ends(world: World, _who: str, _offset: int) -> bool:
    world.outcome = None
    if world.model.state in {"claimed", "started"}:
        world.desk.end_lease(world.task)
        world.model.lapsed = True
    return False


def sweep(world: World, _who: str, _offset: int) -> bool:
    world.outcome = None
    model = world.model
    returned = SweepService(guard_of(world.desk)).sweep_once()
    if not model.lapsed:
        assert world.task.id not in {expired.task.id for expired in returned}
        return False
    model.needs_check |= model.state == "started" or model.recorded_since_check
    model.back()
    return model.changed()


STEPS: list[Step] = [
    claim,
    renew,
    start,
    start_checked,
    record,
    resolve,
    note,
    done,
    release_clean,
    release_unknown,
    release_completed,
    check,
    transfer,
    force_release,
    lease_ends,
    sweep,
]


def _action_ids(world: World) -> list[int]:
    rows = world.desk.rows(
        "SELECT id FROM dibs.external_action WHERE task_id = :id ORDER BY number", id=world.task.id
    )
    return [row["id"] for row in rows]
