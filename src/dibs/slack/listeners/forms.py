"""Opening the form of an operation, or refusing at once where it could not be accepted."""

from __future__ import annotations

from dibs.domain.outcomes import Outcome
from dibs.domain.queue import Facts
from dibs.domain.transitions import Operation, Rule, Who
from dibs.slack.front import Front
from dibs.slack.payloads import Origin


def admitted(front: Front, origin: Origin, rule: Rule, *, task_id: int, version: int) -> Facts | Outcome:
    """What the form of an operation shows; or its refusal, which is recorded like every other.

    `version` is the task's as the person saw it. Raises StoreError where the task could not be read.
    """
    facts = front.queries.facts(task_id, deadline=origin.deadline)
    if facts is not None and _may_succeed(front, facts, origin, rule, version):
        return facts
    return front.transitions.judge(
        rule.operation, task_id, origin.user_id, version, op_id=origin.op_id, deadline=origin.deadline
    )


def _may_succeed(front: Front, facts: Facts, origin: Origin, rule: Rule, version: int) -> bool:
    task, actor = facts.task, origin.user_id
    releases = rule.operation in (Operation.RELEASE, Operation.FORCE_RELEASE)
    hopeless = (
        task.version != version
        or task.state not in rule.sources
        or (rule.operation is Operation.CHECK and not task.needs_check)
        or (rule.operation is Operation.RESOLVE_ACTION and not facts.open_actions)
        or (releases and facts.releases_paused)
    )
    if hopeless:
        return False
    match rule.who:
        case Who.SUPERVISOR:
            return front.queries.may_intervene(task.queue_id, actor, deadline=origin.deadline)
        case Who.OWNER_OR_SUPERVISOR if task.owner_id != actor:
            return front.queries.supervises(task.queue_id, actor, deadline=origin.deadline)
        case _:
            return task.owner_id == actor
