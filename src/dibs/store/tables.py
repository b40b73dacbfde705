"""The tables (schema `dibs`), with the named CHECK constraints that refuse impossible rows.

`event` and `release_card` are append-only: triggers made by the first migration refuse UPDATE, DELETE
and TRUNCATE. Every time is a timestamptz that the database's own clock has set.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from dibs.domain.task import ActionStatus, ExternalAnswer, Standing, State

SCHEMA = "dibs"

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s",
    },
)

EVENT_OP_ID_KEY = "event_op_id_key"
"""The unique constraint that makes an operation happen at most once."""


WITHIN_READABLE_TIMES = "BETWEEN '0001-01-03T00:00Z' AND '9999-01-01T00:00Z'"
"""What the times of a task lie within, or they could be stored and never be read again."""


def _time(name: str, *, required: bool = False, clock: bool = False) -> sa.Column[object]:
    default = sa.text("clock_timestamp()") if clock else None
    return sa.Column(
        name, sa.TIMESTAMP(timezone=True), nullable=not (required or clock), server_default=default
    )


def sql_list(values: Iterable[str]) -> str:
    """Our own words, such as states, as a list for IN."""
    return ", ".join(f"'{value}'" for value in values)


def _one_of(column: str, values: Iterable[str]) -> str:
    return f"{column} IN ({sql_list(values)})"


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)


def _of_queue() -> sa.Column[int]:
    return sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), nullable=False)


def _of_task() -> sa.Column[int]:
    return sa.Column("task_id", sa.BigInteger, sa.ForeignKey("dibs.task.id"), nullable=False)


queue = sa.Table(
    "queue",
    metadata,
    _id(),
    sa.Column("workspace", sa.Text, nullable=False, comment="the team id"),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("channel_id", sa.Text, nullable=False),
    sa.Column("lease_seconds", sa.Integer, nullable=False),
    sa.Column("eligible_group", sa.Text, comment="unset: the members of the channel are eligible"),
    sa.Column("alert_channel", sa.Text, comment="unset: alerts go to the supervisors"),
    sa.Column("spike_limit", sa.Integer, nullable=False, server_default="10"),
    sa.Column("spike_minutes", sa.Integer, nullable=False, server_default="10"),
    sa.Column("last_number", sa.Integer, nullable=False, server_default="0", comment="of the newest task"),
    sa.Column("members_read_at", sa.TIMESTAMP(timezone=True), comment="when the channel was last read whole"),
    sa.Column("members_tried_at", sa.TIMESTAMP(timezone=True), comment="when its last reading was begun"),
    sa.Column("created_by", sa.Text, nullable=False),
    _time("created_at", clock=True),
    sa.UniqueConstraint("workspace", "key"),
    sa.CheckConstraint("key ~ '^[A-Z][A-Z0-9]{1,9}$'", name="key_form"),
    sa.CheckConstraint("name <> ''", name="name_given"),
    sa.CheckConstraint("lease_seconds > 0", name="lease_positive"),
    sa.CheckConstraint("spike_limit > 0 AND spike_minutes > 0", name="spike_positive"),
    sa.Index(None, "workspace", "channel_id"),
)

queue_member = sa.Table(
    "queue_member",
    metadata,
    sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("standing", sa.Text, nullable=False),
    sa.Column("supervisor", sa.Boolean, nullable=False, server_default=sa.false()),
    _time("changed_at", clock=True),
    sa.Column("joined_at", sa.TIMESTAMP(timezone=True), comment="the newest join, by Slack's clock"),
    sa.Column("left_at", sa.TIMESTAMP(timezone=True), comment="the newest leave, or when it was found out"),
    sa.Column("tried_at", sa.TIMESTAMP(timezone=True), comment="when it was last looked up who it is"),
    sa.CheckConstraint(_one_of("standing", Standing), name="standing_known"),
    sa.Index(None, "user_id"),
)

task = sa.Table(
    "task",
    metadata,
    _id(),
    _of_queue(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False, server_default=""),
    sa.Column("state", sa.Text, nullable=False, server_default=State.QUEUED),
    sa.Column("owner_id", sa.Text),
    _time("lease_until"),
    sa.Column("version", sa.Integer, nullable=False, server_default="1", comment="the fencing token"),
    sa.Column("needs_check", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("started_before", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column(
        "action_recorded",
        sa.Boolean,
        nullable=False,
        server_default=sa.false(),
        comment="an external action was recorded since the last check",
    ),
    sa.Column("deadline", sa.TIMESTAMP(timezone=True), comment="what the requester asked for"),
    sa.Column("committed_to", sa.TIMESTAMP(timezone=True), comment="what the owner promised"),
    sa.Column("resolution", sa.Text),
    sa.Column("created_by", sa.Text, nullable=False),
    _time("created_at", clock=True),
    sa.Column("last_kind", sa.Text, nullable=False, server_default="created", comment="the newest change"),
    sa.Column("last_actor", sa.Text, comment="unset: the sweep"),
    _time("last_at", clock=True),
    sa.UniqueConstraint("queue_id", "number"),
    sa.CheckConstraint(_one_of("state", State), name="state_known"),
    sa.CheckConstraint("(state = 'queued') = (owner_id IS NULL)", name="owner_matches_state"),
    sa.CheckConstraint(
        "(state IN ('claimed', 'started')) = (lease_until IS NOT NULL)", name="lease_matches_state"
    ),
    sa.CheckConstraint("version >= 1 AND number >= 1", name="counted_from_one"),
    sa.CheckConstraint(
        " AND ".join(
            f"({time} {WITHIN_READABLE_TIMES})" for time in ("lease_until", "committed_to", "deadline")
        ),
        name="times_readable",
    ),
    sa.CheckConstraint("title <> ''", name="title_given"),
    sa.Index("task_lease_until_idx", "lease_until", postgresql_where=sa.text("lease_until IS NOT NULL")),
    sa.Index(
        "task_unfinished_idx", "queue_id", "created_at", "id", postgresql_where=sa.text("state <> 'done'")
    ),
    sa.Index("task_owner_idx", "owner_id", postgresql_where=sa.text("lease_until IS NOT NULL")),
)

external_action = sa.Table(
    "external_action",
    metadata,
    _id(),
    _of_task(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, comment="the task's, after it was recorded"),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("recorded_by", sa.Text, nullable=False),
    _time("recorded_at", clock=True),
    sa.Column("answered_by", sa.Text, comment="who last said how it ended"),
    _time("answered_at"),
    sa.UniqueConstraint("task_id", "number"),
    sa.CheckConstraint(_one_of("status", ActionStatus), name="status_known"),
    sa.CheckConstraint("(status = 'in_progress') = (answered_by IS NULL)", name="answer_matches_status"),
    sa.CheckConstraint("description <> ''", name="description_given"),
)

task_note = sa.Table(
    "task_note",
    metadata,
    _id(),
    _of_task(),
    sa.Column("version", sa.Integer, nullable=False, comment="the task's, after it was written"),
    sa.Column("author_id", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    _time("created_at", clock=True),
    sa.CheckConstraint("text <> ''", name="text_given"),
    sa.Index(None, "task_id", "id"),
)

event = sa.Table(
    "event",
    metadata,
    _id(),
    _of_queue(),
    sa.Column("task_id", sa.BigInteger, sa.ForeignKey("dibs.task.id")),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("actor_id", sa.Text, comment="unset: the sweep"),
    _time("at", clock=True),
    sa.Column("version_before", sa.Integer),
    sa.Column("version_after", sa.Integer),
    sa.Column("version_seen", sa.Integer, comment="what the person's screen showed"),
    sa.Column("op_id", sa.Text, nullable=False, unique=True),
    sa.Column("why", sa.Text, comment="of a refusal"),
    sa.Column("detail", JSONB),
    sa.CheckConstraint("(right(kind, 9) = '_rejected') = (why IS NOT NULL)", name="refusal_says_why"),
    sa.CheckConstraint(
        "version_after = version_before + CASE WHEN why IS NULL THEN 1 ELSE 0 END", name="version_counted"
    ),
    sa.Index(None, "task_id", "id"),
)

release_card = sa.Table(
    "release_card",
    metadata,
    _id(),
    _of_task(),
    sa.Column("previous_owner", sa.Text, nullable=False),
    sa.Column("state_at_release", sa.Text, nullable=False),
    sa.Column("version_before", sa.Integer, nullable=False),
    sa.Column("version_after", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("handoff_note", sa.Text),
    sa.Column("external_action", sa.Text),
    _time("created_at", clock=True),
    sa.UniqueConstraint("task_id", "version_before"),
    sa.CheckConstraint("state_at_release IN ('claimed', 'started')", name="state_released"),
    sa.CheckConstraint("version_after = version_before + 1", name="version_counted"),
    sa.CheckConstraint("state_at_release = 'claimed' OR handoff_note <> ''", name="handoff_note_given"),
    sa.CheckConstraint("state_at_release = 'claimed' OR external_action IS NOT NULL", name="action_stated"),
    sa.CheckConstraint(_one_of("external_action", ExternalAnswer), name="action_known"),
)

card = sa.Table(
    "card",
    metadata,
    sa.Column("task_id", sa.BigInteger, sa.ForeignKey("dibs.task.id"), primary_key=True),
    sa.Column("channel_id", sa.Text, nullable=False),
    sa.Column("message_ts", sa.Text, comment="unset: not posted yet, or the message is gone"),
    sa.Column("shown_version", sa.Integer, nullable=False, server_default="0"),
    sa.Column("wanted_version", sa.Integer, nullable=False),
    sa.Column("sender", sa.Text, comment="the fence of the one sender that has this card now"),
    _time("sender_until"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tried_since", sa.TIMESTAMP(timezone=True), comment="the first of these attempts"),
    _time("next_try_at", clock=True),
    sa.Column(
        "overtaken",
        sa.Boolean,
        nullable=False,
        server_default=sa.false(),
        comment="another sender had it too and ended later, so it is sent once more",
    ),
    sa.Column("disabled", sa.Text, comment="why nothing more is sent, such as is_archived"),
    sa.Column("disabled_version", sa.Integer, comment="the version given up; a newer one is tried once more"),
    sa.CheckConstraint("(sender IS NULL) = (sender_until IS NULL)", name="sender_has_limit"),
    sa.Index(
        "card_due_idx",
        "next_try_at",
        postgresql_where=sa.text(
            "shown_version < wanted_version AND (disabled IS NULL OR disabled_version < wanted_version)"
        ),
    ),
)

outbox = sa.Table(
    "outbox",
    metadata,
    _id(),
    _of_queue(),
    sa.Column("key", sa.Text, nullable=False, unique=True, comment="task and version, or the breaker's trip"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("recipient", sa.Text, nullable=False),
    sa.Column("payload", JSONB, nullable=False),
    _time("created_at", clock=True),
    sa.Column("sender", sa.Text),
    _time("sender_until"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    _time("next_try_at", clock=True),
    _time("sent_at"),
    sa.Column("given_up", sa.Text, comment="why it is not tried again"),
    sa.CheckConstraint("(sender IS NULL) = (sender_until IS NULL)", name="sender_has_limit"),
    sa.Index(
        "outbox_due_idx", "next_try_at", postgresql_where=sa.text("sent_at IS NULL AND given_up IS NULL")
    ),
)

breaker = sa.Table(
    "breaker",
    metadata,
    sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), primary_key=True),
    sa.Column("open_since", sa.TIMESTAMP(timezone=True), comment="set: the sweep leaves this queue out"),
    _time("window_started_at", clock=True),
    sa.Column("expired_in_window", sa.Integer, nullable=False, server_default="0"),
    sa.CheckConstraint("expired_in_window >= 0", name="count_not_negative"),
)
