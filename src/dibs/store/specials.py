"""What each operation has beyond its row in the table of transitions, in SQL.

The names stand for the steps of the statement that `dibs.store.operations` builds: `s` is the locked row that
is judged, `j` the judged one, `c` the task as it was changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dibs.domain.outcomes import Refusal
from dibs.domain.task import OPEN_STATUSES, ExternalAnswer, Reason, State
from dibs.domain.transitions import Operation
from dibs.store.tables import WITHIN_READABLE_TIMES, sql_list

Condition = tuple[Refusal, str]
"""A refusal, and the SQL on the row `s` that is true where it applies."""

_OPEN = sql_list(sorted(OPEN_STATUSES))
_OPEN_ACTION = f"SELECT FROM dibs.external_action a WHERE a.task_id = s.id AND a.status IN ({_OPEN})"
_THE_ACTION = "SELECT FROM dibs.external_action a WHERE a.task_id = s.id AND a.id = :action_id"
_UNANSWERED = f"EXISTS ({_OPEN_ACTION} AND NOT jsonb_exists(CAST(:answers AS jsonb), CAST(a.id AS text)))"

_RESOLVE_ANSWERS = f"""
answered AS (
    UPDATE dibs.external_action a
    SET status = CAST(:answers AS jsonb) ->> CAST(a.id AS text), answered_by = :actor, answered_at = c.last_at
    FROM changed c
    WHERE a.task_id = c.id AND a.status IN ({_OPEN})
      AND jsonb_exists(CAST(:answers AS jsonb), CAST(a.id AS text))
)"""


@dataclass(frozen=True, slots=True)
class Special:
    """What one operation has beyond its row in the table of transitions."""

    conditions: tuple[Condition, ...] = ()
    assignments: tuple[str, ...] = ()
    writes: tuple[str, ...] = field(default=())


SPECIALS: dict[Operation, Special] = {
    Operation.CLAIM: Special(assignments=("owner_id = :actor",)),
    Operation.RENEW: Special(),
    Operation.START: Special(
        conditions=(
            (Refusal.NEEDS_CHECK, "s.needs_check AND NOT :confirmed"),
            (Refusal.ANSWERS_MISSING, f"s.needs_check AND {_UNANSWERED}"),
        ),
        assignments=(
            "needs_check = false",
            "action_recorded = j.action_recorded AND NOT j.needs_check",
        ),
        writes=(_RESOLVE_ANSWERS,),
    ),
    Operation.RECORD_ACTION: Special(
        conditions=((Refusal.TEXT_MISSING, "CAST(:description AS text) IS NULL"),),
        assignments=("action_recorded = true",),
        writes=(
            """
recorded AS (
    INSERT INTO dibs.external_action (task_id, number, version, description, status, recorded_by, recorded_at)
    SELECT c.id, 1 + coalesce((SELECT max(a.number) FROM dibs.external_action a WHERE a.task_id = c.id), 0),
           c.version, :description, 'in_progress', :actor, c.last_at
    FROM changed c
)""",
        ),
    ),
    Operation.RESOLVE_ACTION: Special(
        conditions=(
            (Refusal.NO_SUCH_ACTION, f"NOT EXISTS ({_THE_ACTION})"),
            (Refusal.ACTION_SETTLED, f"NOT EXISTS ({_THE_ACTION} AND a.status IN ({_OPEN}))"),
        ),
        writes=(_RESOLVE_ANSWERS,),
    ),
    Operation.NOTE: Special(
        conditions=((Refusal.TEXT_MISSING, "CAST(:text AS text) IS NULL"),),
        writes=(
            """
noted AS (
    INSERT INTO dibs.task_note (task_id, version, author_id, text, created_at)
    SELECT c.id, c.version, :actor, :text, c.last_at FROM changed c
)""",
        ),
    ),
    Operation.COMMIT: Special(
        conditions=((Refusal.INVALID, f"(:committed_to {WITHIN_READABLE_TIMES}) IS NOT TRUE"),),
        assignments=("committed_to = :committed_to",),
    ),
    Operation.DONE: Special(
        conditions=((Refusal.ACTION_OPEN, f"EXISTS ({_OPEN_ACTION})"),),
        assignments=("lease_until = NULL", "resolution = :resolution"),
    ),
    Operation.RELEASE: Special(
        conditions=(
            (Refusal.REASON_MISSING, "CAST(:reason AS text) IS NULL OR :reason <> ALL(:reasons)"),
            (Refusal.COMMENT_MISSING, f":reason = '{Reason.OTHER}' AND CAST(:comment AS text) IS NULL"),
            (
                Refusal.HANDOFF_NOTE_MISSING,
                f"s.state = '{State.STARTED}' AND CAST(:handoff_note AS text) IS NULL",
            ),
            (
                Refusal.ACTION_UNSTATED,
                f"""CASE WHEN CAST(:external_action AS text) IS NULL
                    THEN s.state = '{State.STARTED}' OR EXISTS ({_OPEN_ACTION})
                    ELSE :external_action = '{ExternalAnswer.NONE}' AND EXISTS ({_OPEN_ACTION}) END""",
            ),
        ),
        assignments=(
            "owner_id = NULL",
            "lease_until = NULL",
            f"started_before = j.started_before OR j.state = '{State.STARTED}'",
            f"needs_check = j.needs_check OR coalesce(:external_action = '{ExternalAnswer.UNKNOWN}', false)",
            (
                "action_recorded = j.action_recorded "
                f"OR coalesce(:external_action <> '{ExternalAnswer.NONE}', false)"
            ),
        ),
        writes=(
            f"""
answered AS (
    UPDATE dibs.external_action a
    SET status = :external_action, answered_by = :actor, answered_at = c.last_at
    FROM changed c
    WHERE a.task_id = c.id AND a.status IN ({_OPEN})
)""",
            f"""
recorded AS (
    INSERT INTO dibs.external_action
        (task_id, number, version, description, status, recorded_by, recorded_at, answered_by, answered_at)
    SELECT c.id, 1 + coalesce((SELECT max(a.number) FROM dibs.external_action a WHERE a.task_id = c.id), 0),
           c.version, :unrecorded, :external_action, :actor, c.last_at, :actor, c.last_at
    FROM changed c
    WHERE :external_action <> '{ExternalAnswer.NONE}'
      AND NOT EXISTS (
          SELECT FROM dibs.external_action a
          WHERE a.task_id = c.id
            -- An unknown one needs a row that the check can answer; an ended one may be a recorded one.
            AND (a.status IN ({_OPEN}) OR :external_action <> '{ExternalAnswer.UNKNOWN}'))
)""",
            """
handed_back AS (
    INSERT INTO dibs.release_card
        (task_id, previous_owner, state_at_release, version_before, version_after,
         reason, comment, handoff_note, external_action, created_at)
    SELECT j.id, j.owner_id, j.state, j.version, c.version,
           :reason, :comment, :handoff_note, :external_action, c.last_at
    FROM judged j JOIN changed c ON c.id = j.id
)""",
        ),
    ),
    Operation.CHECK: Special(
        conditions=(
            (Refusal.NOT_FLAGGED, "NOT s.needs_check"),
            (Refusal.ANSWERS_MISSING, _UNANSWERED),
        ),
        assignments=("needs_check = false", "action_recorded = false"),
        writes=(_RESOLVE_ANSWERS,),
    ),
}

_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "task_id": sa.BigInteger(),
    "queue_ids": sa.ARRAY(sa.BigInteger()),
    "action_id": sa.BigInteger(),
    "version": sa.Integer(),
    "actor": sa.Text(),
    "op_id": sa.Text(),
    "detail": sa.Text(),
    "not_final": sa.ARRAY(sa.Text()),
    "judge_only": sa.Boolean(),
    "looked_up": sa.Boolean(),
    "confirmed": sa.Boolean(),
    "answers": sa.Text(),
    "description": sa.Text(),
    "text": sa.Text(),
    "committed_to": sa.TIMESTAMP(timezone=True),
    "resolution": sa.Text(),
    "reason": sa.Text(),
    "reasons": sa.ARRAY(sa.Text()),
    "comment": sa.Text(),
    "handoff_note": sa.Text(),
    "external_action": sa.Text(),
    "unrecorded": sa.Text(),
}


def with_types(sql: str) -> sa.TextClause:
    """The statement with every parameter bound by its type, so that the server never has to guess."""
    names = set(re.findall(r"(?<!:):([a-z_]+)", sql))
    return sa.text(sql).bindparams(*(sa.bindparam(name, type_=_TYPES[name]) for name in sorted(names)))
