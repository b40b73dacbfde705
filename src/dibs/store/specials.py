"""What each operation has beyond its row in the table of transitions, in SQL.

The names stand for the steps of the statement that `dibs.store.operations` builds: `s` is the locked row that
is judged, `j` the judged one, `c` the task as it was changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dibs.domain.notices import Notice
from dibs.domain.outcomes import Refusal
from dibs.domain.task import OPEN_STATUSES, ExternalAnswer, Reason, Standing, State
from dibs.domain.transitions import Operation
from dibs.store.chain import card_hash, digest
from dibs.store.columns import WITHIN_READABLE_TIMES, sql_list
from dibs.store.notices import FORMER_OWNER, to_person, to_supervisors

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
    looks: tuple[str, ...] = ()
    """Steps that lock what else is judged."""
    member: str | None = None
    """Where the actor's row in the queue is found, if one of `looks` has locked it."""
    records: tuple[str, ...] = ()
    """Those of `writes` that record the change beside its event, and without which it must not happen."""
    content: str = "CAST(NULL AS bytea)"
    """The digest of what the person wrote, which goes into the event's hash."""
    private_text: str = "CAST(NULL AS text)"
    """What the person wrote, where no other table keeps it."""
    detail: str = "CAST(:detail AS jsonb)"
    """What the event tells beside its columns."""


_USUAL_REASONS = f"ARRAY[{sql_list(Reason)}]"
_RELEASE_ALLOWED: tuple[Condition, ...] = (
    (
        Refusal.RELEASES_PAUSED,
        """s.releases_paused
           OR EXISTS (SELECT FROM dibs.task t
                      WHERE t.id = ANY(:paused_here) AND t.queue_id = s.queue_id)""",
    ),
    (
        Refusal.REASON_MISSING,
        f"(:reason = ANY(coalesce(s.reasons, {_USUAL_REASONS}))) IS NOT TRUE",
    ),
    (Refusal.COMMENT_MISSING, f":reason = '{Reason.OTHER}' AND CAST(:comment AS text) IS NULL"),
)
_FLAGGED_AS_BY_EXPIRY = (
    f"started_before = j.started_before OR j.state = '{State.STARTED}'",
    f"needs_check = j.needs_check OR j.state = '{State.STARTED}' OR j.action_recorded",
)
_OWN_CARD = {
    "task_id": "j.id",
    "previous_owner": "j.owner_id",
    "state_at_release": "j.state",
    "version_before": "j.version",
    "version_after": "j.version + 1",
    "reason": "CAST(:reason AS text)",
    "comment_digest": digest(":comment"),
    "note_digest": digest(":handoff_note"),
    "external_action": "CAST(:external_action AS text)",
    "forced_by": "CAST(NULL AS text)",
    "created_at": "j.clock",
}
_FORCED_CARD = {**_OWN_CARD, "forced_by": "CAST(:actor AS text)"}


def _handed_back(card: Mapping[str, str]) -> str:
    """The step that leaves the release card, in the same statement as the release."""
    return f"""
handed_back AS (
    INSERT INTO dibs.release_card
        ({", ".join(card)}, comment, handoff_note, previous, hash)
    SELECT {", ".join(card.values())}, :comment, :handoff_note, j.head, j.content
    FROM sealed j JOIN changed c ON c.id = j.id
    RETURNING id
)"""


_TAKEN_FROM = """CAST(:detail AS jsonb)
                   || jsonb_build_object('former_owner', j.owner_id, 'former_state', j.state)"""
_BY_A_SUPERVISOR = "jsonb_build_object('by', x.last_actor)"
_WITH_FORMER_OWNER = """(
        SELECT c.*, j.owner_id AS former_owner, j.state AS former_state
        FROM changed c JOIN sealed j ON j.id = c.id)"""
_ALERTED = to_supervisors(
    "alerted",
    _WITH_FORMER_OWNER,
    Notice.NEEDS_CHECK,
    payload=FORMER_OWNER,
    where="x.needs_check",
)


_HEIR_MAY_NOT = (
    f"(SELECT p.standing FROM people p WHERE p.user_id = :new_owner) IS DISTINCT FROM '{Standing.ELIGIBLE}'"
)

SPECIALS: dict[Operation, Special] = {
    Operation.CLAIM: Special(assignments=("owner_id = :actor",)),
    Operation.RENEW: Special(
        conditions=(
            (
                Refusal.HELD_TOO_LONG,
                "s.lease_until >= s.held_since + make_interval(secs => s.longest_hold_seconds)",
            ),
        ),
    ),
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
        content=digest(":finding"),
        private_text=":finding",
    ),
    Operation.RECORD_ACTION: Special(
        conditions=((Refusal.TEXT_MISSING, "CAST(:description AS text) IS NULL"),),
        content=digest(":description"),
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
            (Refusal.INVALID, "NOT :readable"),
            (Refusal.NO_SUCH_ACTION, f"NOT EXISTS ({_THE_ACTION})"),
            (Refusal.ACTION_SETTLED, f"NOT EXISTS ({_THE_ACTION} AND a.status IN ({_OPEN}))"),
        ),
        writes=(_RESOLVE_ANSWERS,),
    ),
    Operation.NOTE: Special(
        conditions=((Refusal.TEXT_MISSING, "CAST(:text AS text) IS NULL"),),
        content=digest(":text"),
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
        assignments=("resolution = :resolution",),
        content=digest(":resolution"),
    ),
    Operation.RELEASE: Special(
        conditions=(
            *_RELEASE_ALLOWED,
            (
                Refusal.HANDOFF_NOTE_MISSING,
                f"s.state = '{State.STARTED}' AND CAST(:handoff_note AS text) IS NULL",
            ),
            (
                Refusal.ACTION_UNSTATED,
                f"""CASE WHEN NOT :readable THEN true
                    WHEN CAST(:external_action AS text) IS NULL
                    THEN s.state = '{State.STARTED}' OR EXISTS ({_OPEN_ACTION})
                    ELSE :external_action = '{ExternalAnswer.NONE}' AND EXISTS ({_OPEN_ACTION}) END""",
            ),
        ),
        assignments=(
            "owner_id = NULL",
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
            _handed_back(_OWN_CARD),
            _ALERTED,
        ),
        records=("handed_back",),
        content=card_hash(_OWN_CARD, "j.head"),
    ),
    Operation.CHECK: Special(
        conditions=(
            (Refusal.NOT_FLAGGED, "NOT s.needs_check"),
            (Refusal.ANSWERS_MISSING, _UNANSWERED),
        ),
        assignments=("needs_check = false", "action_recorded = false"),
        writes=(_RESOLVE_ANSWERS,),
        content=digest(":finding"),
        private_text=":finding",
    ),
    Operation.TRANSFER: Special(
        # Both are locked in one step and in order, or two who lock people could wait for each other.
        looks=(
            """
people AS MATERIALIZED (
    SELECT m.user_id, m.standing, m.supervisor FROM dibs.queue_member m
    WHERE m.user_id IN (:actor, :new_owner)
      AND m.queue_id = (SELECT t.queue_id FROM dibs.task t WHERE t.id = :task_id)
    ORDER BY m.user_id FOR SHARE
)""",
        ),
        member="SELECT p.standing, p.supervisor FROM people p WHERE p.user_id = :actor",
        conditions=(
            (Refusal.TEXT_MISSING, "CAST(:text AS text) IS NULL"),
            (Refusal.THEIRS_ALREADY, "s.owner_id = :new_owner"),
            (Refusal.MEMBERSHIP_UNKNOWN, f"NOT :looked_up AND {_HEIR_MAY_NOT}"),
            (Refusal.NEW_OWNER_NOT_ELIGIBLE, _HEIR_MAY_NOT),
        ),
        assignments=("owner_id = :new_owner", *_FLAGGED_AS_BY_EXPIRY),
        writes=(
            to_person(
                "taken",
                _WITH_FORMER_OWNER,
                Notice.TRANSFERRED_AWAY,
                recipient="x.former_owner",
                payload="jsonb_build_object('by', x.last_actor, 'to', x.owner_id)",
            ),
            to_person(
                "given",
                "changed",
                Notice.TRANSFERRED_TO,
                recipient="x.owner_id",
                payload=_BY_A_SUPERVISOR,
            ),
        ),
        content=digest(":text"),
        private_text=":text",
        detail=_TAKEN_FROM,
    ),
    Operation.FORCE_RELEASE: Special(
        conditions=_RELEASE_ALLOWED,
        assignments=("owner_id = NULL", *_FLAGGED_AS_BY_EXPIRY),
        writes=(
            _handed_back(_FORCED_CARD),
            _ALERTED,
            to_person(
                "taken",
                _WITH_FORMER_OWNER,
                Notice.FORCE_RELEASED,
                recipient="x.former_owner",
                payload=_BY_A_SUPERVISOR,
            ),
        ),
        records=("handed_back",),
        content=card_hash(_FORCED_CARD, "j.head"),
        detail=_TAKEN_FROM,
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
    "readable": sa.Boolean(),
    "confirmed": sa.Boolean(),
    "answers": sa.Text(),
    "description": sa.Text(),
    "text": sa.Text(),
    "committed_to": sa.TIMESTAMP(timezone=True),
    "resolution": sa.Text(),
    "reason": sa.Text(),
    "comment": sa.Text(),
    "handoff_note": sa.Text(),
    "external_action": sa.Text(),
    "unrecorded": sa.Text(),
    "finding": sa.Text(),
    "new_owner": sa.Text(),
    "paused_here": sa.ARRAY(sa.BigInteger()),
}


def with_types(sql: str) -> sa.TextClause:
    """The statement with every parameter bound by its type, so that the server never has to guess."""
    names = set(re.findall(r"(?<!:):([a-z_]+)", sql))
    return sa.text(sql).bindparams(*(sa.bindparam(name, type_=_TYPES[name]) for name in sorted(names)))
