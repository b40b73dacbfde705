"""Several people press whatever they like, leases lapse, sweeps come; a model written by hand agrees."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.journey import newest_event, now
from tests.support.store import AMAL, BILAL, SUE, Desk
from tests.support.walks import (
    PEOPLE,
    STEPS,
    Step,
    World,
    check,
    claim,
    done,
    force_release,
    lease_ends,
    note,
    record,
    release_clean,
    release_completed,
    release_unknown,
    renew,
    resolve,
    start,
    start_checked,
    sweep,
    transfer,
)

from dibs.domain.task import State, Task
from dibs.service.transitions import TransitionService
from dibs.service.verify import Intact, Scope, VerifyService


def agree(world: World, *, changed: bool, before: Task) -> None:
    model, task = world.model, now(world.desk, world.task)
    if world.outcome is not None:
        assert world.outcome.changed is changed
        assert newest_event(world.desk, task)["kind"].endswith("_rejected") is not changed
    row = world.desk.row_of(task)
    statuses = world.desk.rows(
        "SELECT status FROM dibs.external_action WHERE task_id = :id ORDER BY number", id=task.id
    )
    assert (task.state, task.owner_id, task.version) == (model.state, model.owner, model.version)
    assert (task.needs_check, task.started_before) == (model.needs_check, model.started_before)
    assert row["action_recorded"] == model.recorded_since_check
    assert [status["status"] for status in statuses] == model.actions
    # What holds whatever the model says.
    kinds = world.desk.kinds(task)
    assert task.version == sum(not kind.endswith("_rejected") for kind in kinds) == model.successes
    assert (task.state is State.QUEUED) is (task.owner_id is None)
    assert (task.lease_until is not None) is (task.state in {State.CLAIMED, State.STARTED})
    assert task.version - before.version == int(changed)
    assert task.started_before or not before.started_before
    if before.needs_check and not task.needs_check:
        assert kinds[-1] in {"checked", "started"}
    if before.owner_id and task.owner_id and kinds[-1] != "transferred":
        assert task.owner_id == before.owner_id
    if before.state is State.DONE:
        assert task == before


presses = st.tuples(st.sampled_from(STEPS), st.sampled_from(PEOPLE), st.sampled_from([0, 0, 0, 0, 0, -1, 1]))


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(walk=st.lists(presses, min_size=5, max_size=40))
def test_any_walk_keeps_the_promises(
    desk: Desk, service: TransitionService, walk: list[tuple[Step, str, int]]
) -> None:
    """All walks share the desk, and each has a task of its own."""
    world = World(desk, service)
    for step, who, offset in walk:
        before = now(desk, world.task)
        changed = step(world, who, offset)
        agree(world, changed=changed, before=before)
    # Whatever was walked, every record of it still holds.
    assert isinstance(VerifyService(desk.engine).verify(Scope(task_id=world.task.id)), Intact)


def test_the_longest_way_round(desk: Desk, service: TransitionService) -> None:
    """A walk by hand through everything, so that the model is known to be walked in full."""
    world = World(desk, service)
    for step, who in [
        (claim, AMAL),
        (renew, AMAL),
        (start, AMAL),
        (record, AMAL),
        (lease_ends, AMAL),
        (record, AMAL),
        (note, AMAL),
        (sweep, AMAL),
        (claim, BILAL),
        (start, BILAL),
        (start_checked, BILAL),
        (record, BILAL),
        (resolve, BILAL),
        (done, BILAL),
        (release_clean, BILAL),
        (release_unknown, BILAL),
        (check, "U0STRANGER"),
        (check, SUE),
        (claim, AMAL),
        (lease_ends, AMAL),
        (claim, BILAL),
        (start, AMAL),
        (release_completed, AMAL),
        (claim, AMAL),
        (transfer, BILAL),
        (start, AMAL),
        (transfer, SUE),
        (start, BILAL),
        (start_checked, BILAL),
        (force_release, AMAL),
        (force_release, SUE),
        (check, SUE),
        (claim, AMAL),
        (start, AMAL),
        (lease_ends, AMAL),
        (done, AMAL),
        (claim, BILAL),
        (transfer, SUE),
    ]:
        before = now(desk, world.task)
        changed = step(world, who, 0)
        agree(world, changed=changed, before=before)
    assert now(desk, world.task).state is State.DONE
