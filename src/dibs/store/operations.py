"""The one conditional write of each operation.

Every operation is one statement with this shape, built from the table in `dibs.domain.transitions`:

    member   the actor's row in the queue, FOR SHARE, where the rule asks for membership
    locked   the task's row, FOR UPDATE: everything is judged on the row as it stands under the lock
    seen     the locked row with the database's clock, read after the wait for the lock
    ruled    the same with what the queue allows, read after every wait
    judged   the first condition that does not hold, or nothing
    sealed   the same with how its event reads, and the hash that binds it to the event before it
    changed  the UPDATE of the task, if nothing stands in the way
    logged   the event, or the refusal's event
    carded   the version that the task's card should show
    ...      what else the operation writes, such as the release card

so the task, its event and its release card stand or fall together in one round trip. `now()` and a
clock_timestamp() in the conditions of a plain UPDATE are read before the wait for the row lock, which let
a start through after its lease had ended; hence the MATERIALIZED steps (design.md, section 2).

A subquery sees the snapshot from before the wait. That is safe for external_action: whatever writes there
adds 1 to the task's version, and a task whose version in the snapshot is not the locked row's is `stale`,
even for a press that names the new version without having seen it. What the queue allows is read by
`dibs.rules_of`, a volatile function, which has a snapshot of its own each time: a lock would let a press wait
for whoever has the queue's row, and them for the press. The UPDATE of the locked row has no
such condition: it would miss the row, while the event says that it was changed.
"""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from dibs.domain.outcomes import Refusal
from dibs.domain.task import Standing, State
from dibs.domain.transitions import RULES, Lease, Operation, Rule, Who
from dibs.store.chain import event_hash
from dibs.store.columns import sql_list
from dibs.store.members import REFUSAL
from dibs.store.notices import follow
from dibs.store.specials import SPECIALS, Condition, Special, with_types

TASK_COLUMNS = (
    "id, queue_id, number, title, details, state, owner_id, lease_until, version, needs_check, "
    "started_before, deadline, committed_to, resolution, created_by, created_at, "
    "last_kind, last_actor, last_at"
)

_HELD_SINCE = {Lease.NEW: "j.clock", Lease.RENEWED: "coalesce(j.held_since, j.clock)"}
"""Since when the owner has the task, after an operation that sets the lease."""

_MEMBERSHIP: tuple[Condition, ...] = (
    (Refusal.MEMBERSHIP_UNKNOWN, f"NOT :looked_up AND s.standing IS DISTINCT FROM '{Standing.ELIGIBLE}'"),
    (Refusal.NOT_A_MEMBER, "s.standing IS NULL"),
    *((refusal, f"s.standing = '{standing}'") for standing, refusal in REFUSAL.items()),
)

LOOKED_UP_AFRESH = frozenset(refusal for refusal, _ in _MEMBERSHIP)
"""Refusals that are final only after the person was looked up afresh."""

_ONLY_JUDGED: Condition = (Refusal.STALE, ":judge_only")
"""The last condition of every write: a press that opens a form is judged like the form's own operation."""

_STALE: Condition = (
    Refusal.STALE,
    """s.version IS DISTINCT FROM :version
       OR s.version <> (SELECT t.version FROM dibs.task t WHERE t.id = s.id)""",
)


def _who_and_when(rule: Rule) -> list[Condition]:
    """The conditions that the rule's row in the table stands for, in the order in which they are told."""
    conditions: list[Condition] = [(Refusal.ALREADY_DONE, f"s.state = '{State.DONE}'")]
    match rule.who:
        case Who.ELIGIBLE_MEMBER:
            conditions += [
                (Refusal.LEASE_ENDED, "s.lease_until <= s.clock"),
                (Refusal.ALREADY_YOURS, "s.owner_id = :actor"),
                (Refusal.HELD, "s.owner_id IS NOT NULL"),
                _STALE,
                *_MEMBERSHIP,
            ]
        case Who.SUPERVISOR:
            conditions += [
                (Refusal.NOT_A_SUPERVISOR, "NOT coalesce(s.supervisor, false)"),
                (Refusal.TURNED_OFF, "NOT s.supervisor_operations"),
                (Refusal.NOT_HELD, "s.owner_id IS NULL"),
                _STALE,
            ]
        case Who.OWNER_OR_SUPERVISOR:
            conditions += [
                (
                    Refusal.NOT_ALLOWED,
                    "s.owner_id IS DISTINCT FROM :actor AND NOT coalesce(s.supervisor, false)",
                ),
                _STALE,
            ]
        case Who.OWNER | Who.SWEEP:
            conditions += [
                (Refusal.NOT_HELD, "s.owner_id IS NULL"),
                (Refusal.HELD, "s.owner_id <> :actor"),
                _STALE,
            ]
    conditions.append((Refusal.WRONG_STATE, f"s.state NOT IN ({sql_list(rule.from_states)})"))
    if rule.lease in (Lease.CURRENT, Lease.RENEWED):
        conditions.append((Refusal.LEASE_ENDED, "s.lease_until <= s.clock"))
    return conditions


_THE_TASK = "SELECT t.* FROM dibs.task t WHERE t.id = :task_id FOR UPDATE"
_THE_MEMBER = """
    SELECT m.standing, m.supervisor FROM dibs.queue_member m
    WHERE m.user_id = :actor AND m.queue_id = (SELECT t.queue_id FROM dibs.task t WHERE t.id = :task_id)
    FOR SHARE"""

_LONGEST_WAITING_TASK = f"""
    SELECT first.* FROM member m CROSS JOIN LATERAL (
        SELECT t.* FROM dibs.task t
        WHERE t.queue_id = m.queue_id AND t.state = '{State.QUEUED}'
        ORDER BY t.created_at, t.id LIMIT 1
        FOR UPDATE {{skip_locked}}) first
    ORDER BY first.created_at, first.id LIMIT 1"""
_ELIGIBLE_MEMBERSHIPS = f"""
    SELECT m.queue_id, m.standing, m.supervisor FROM dibs.queue_member m
    WHERE m.user_id = :actor AND m.queue_id = ANY(:queue_ids) AND m.standing = '{Standing.ELIGIBLE}'
    ORDER BY m.queue_id FOR NO KEY UPDATE"""
"""No two of the same person choose at once: of one claim that arrives twice, the second would pass over the
task that the first has locked, and take the next one if it were the sooner to record it."""


def _sealed(rule: Rule, special: Special) -> str:
    """The step that says how the event of the judged row `j` reads, and seals it with its hash.

    A refused text is kept nowhere.
    """
    event = {
        "task_id": "x.id",
        "kind": "x.kind",
        "actor_id": "CAST(:actor AS text)",
        "at": "x.clock",
        "version_before": "x.version",
        "version_after": "x.version_after",
        "version_seen": "CAST(:version AS integer)",
        "op_id": "CAST(:op_id AS text)",
        "why": "x.why",
        "detail": "x.event_detail",
        "content": "x.content",
    }
    return f"""sealed AS MATERIALIZED (
    SELECT x.*, {event_hash(event, "x.head")} AS hash
    FROM (
        SELECT j.*, CASE WHEN j.why IS NULL THEN '{rule.event}' ELSE '{rule.rejection}' END AS kind,
               j.version + CASE WHEN j.why IS NULL THEN 1 ELSE 0 END AS version_after,
               CASE WHEN j.why IS NULL THEN {special.content} END AS content,
               CASE WHEN j.why IS NULL THEN {special.detail} ELSE CAST(:detail AS jsonb) END AS event_detail
        FROM judged j
    ) x
)"""


def _nothing_swallowed(records: tuple[str, ...]) -> str:
    """The SQL that fails the statement where a change left no row in one of the steps that record it.

    A trigger or a rule can drop a row without an error; what is not recorded must not happen. PostgreSQL has
    no function that raises, so the complaint is read as a number, which fails with its words.
    """
    complaint = "CAST('a record was not written: {} of task ' || r.id AS integer)"
    checks = " ".join(
        f"WHEN NOT EXISTS (SELECT FROM {step}) THEN {complaint.format(step)}" for step in ("logged", *records)
    )
    return f"CASE WHEN r.why IS NOT NULL THEN 0 {checks} ELSE 1 END"


def _compose(rule: Rule, *, member: str, locked: str, member_joins: str, conditions: list[Condition]) -> str:
    special = SPECIALS[rule.operation]
    asks_member = rule.who not in (Who.OWNER, Who.SWEEP)
    judged = "\n        ".join(f"WHEN {sql} THEN '{refusal}'" for refusal, sql in conditions)
    assignments = list(special.assignments)
    if rule.target:
        assignments.append(f"state = '{rule.target}'")
    if held_since := _HELD_SINCE.get(rule.lease):
        assignments += [
            f"held_since = {held_since}",
            f"""lease_until = least(j.clock + make_interval(secs => j.lease_seconds),
                            {held_since} + make_interval(secs => j.longest_hold_seconds))""",
        ]
    elif rule.target in (State.QUEUED, State.DONE):
        assignments += ["held_since = NULL", "lease_until = NULL"]
    settings = "".join(f", {assignment}" for assignment in assignments)
    steps = [step.strip() for step in special.looks]
    if asks_member:
        steps.append(f"member AS MATERIALIZED ({special.member or member}\n)")
    steps += [
        f"locked AS MATERIALIZED ({locked}\n)",
        "seen AS MATERIALIZED (\n    SELECT l.*, clock_timestamp() AS clock"
        + (
            f", m.standing, m.supervisor\n    FROM locked l LEFT JOIN member m ON {member_joins}\n)"
            if asks_member
            else "\n    FROM locked l\n)"
        ),
        """ruled AS MATERIALIZED (
    SELECT s.*, r.* FROM seen s CROSS JOIN LATERAL dibs.rules_of(s.queue_id) r
)""",
        f"""judged AS MATERIALIZED (
    SELECT s.*, CASE
        {judged}
    END AS why
    FROM ruled s
)""",
        _sealed(rule, special),
        f"""changed AS (
    UPDATE dibs.task t
    SET version = j.version + 1, head = j.hash,
        last_kind = '{rule.event}', last_actor = :actor, last_at = j.clock{settings}
    FROM sealed j
    WHERE t.id = j.id AND j.why IS NULL
    RETURNING t.*
)""",
        f"""logged AS (
    INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after,
                            version_seen, op_id, why, detail, private_text, content, previous, hash)
    SELECT j.queue_id, j.id, j.kind, :actor, j.clock, j.version, j.version_after,
           CAST(:version AS integer), :op_id, j.why, j.event_detail,
           CASE WHEN j.why IS NULL THEN {special.private_text} END, j.content, j.head, j.hash
    FROM sealed j
    WHERE j.why IS NULL OR j.why <> ALL(:not_final)
    RETURNING kind
)""",
        """carded AS (
    UPDATE dibs.card d SET wanted_version = c.version, next_try_at = least(d.next_try_at, c.last_at)
    FROM changed c WHERE d.task_id = c.id
)""",
        follow("changed").strip(),
        *(write.strip() for write in special.writes),
    ]
    return (
        "WITH "
        + ",\n".join(steps)
        + f"""
SELECT r.*, q.key AS queue_key, q.eligible_group, {_nothing_swallowed(special.records)} AS recorded
FROM (SELECT {TASK_COLUMNS}, NULL AS why, last_at AS clock FROM changed
      UNION ALL
      SELECT {TASK_COLUMNS}, why, clock FROM judged WHERE why IS NOT NULL) r
JOIN dibs.queue q ON q.id = r.queue_id"""
    )


@cache
def conditional_write(operation: Operation) -> sa.TextClause:
    """The statement that carries out `operation` on one task, or records why it was refused.

    It returns one row: the task as it now stands and `why` (null where it was changed); no row where there
    is no such task. Where the operation id was used before, the unique constraint on `event` fails it whole.
    """
    rule = RULES[operation]
    conditions = [*_who_and_when(rule), *SPECIALS[operation].conditions, _ONLY_JUDGED]
    sql = _compose(rule, member=_THE_MEMBER, locked=_THE_TASK, member_joins="true", conditions=conditions)
    return with_types(sql)


@cache
def claim_of_longest_waiting(*, pass_over: bool) -> sa.TextClause:
    """The claim of the longest waiting task of several queues; two people at once get two tasks.

    It passes over rows that somebody else has locked, or waits to see whether they are still to be had; only
    then does no row mean that nothing is waiting.
    """
    skip_locked = "SKIP LOCKED" if pass_over else ""
    sql = _compose(
        RULES[Operation.CLAIM],
        member=_ELIGIBLE_MEMBERSHIPS,
        locked=_LONGEST_WAITING_TASK.format(skip_locked=skip_locked),
        member_joins="m.queue_id = l.queue_id",
        conditions=[(Refusal.WRONG_STATE, f"s.state <> '{State.QUEUED}'"), *_MEMBERSHIP],
    )
    return with_types(sql)
