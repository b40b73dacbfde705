"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("event", "release_card")

REFUSE_REWRITING = """
CREATE FUNCTION dibs.refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'dibs.% is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA;
END
$$
"""


def upgrade() -> None:
    """Make the tables, and see to it that what was recorded stays as it was."""
    op.execute(REFUSE_REWRITING)
    op.create_table(
        "queue",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False, comment="the team id"),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("lease_seconds", sa.Integer(), nullable=False),
        sa.Column(
            "eligible_group",
            sa.Text(),
            nullable=True,
            comment="unset: the members of the channel are eligible",
        ),
        sa.Column("alert_channel", sa.Text(), nullable=True, comment="unset: alerts go to the supervisors"),
        sa.Column("spike_limit", sa.Integer(), server_default="10", nullable=False),
        sa.Column("spike_minutes", sa.Integer(), server_default="10", nullable=False),
        sa.Column(
            "last_number", sa.Integer(), server_default="0", nullable=False, comment="of the newest task"
        ),
        sa.Column(
            "members_read_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="when the channel was last read whole",
        ),
        sa.Column(
            "members_tried_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="when its last reading was begun",
        ),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("key ~ '^[A-Z][A-Z0-9]{1,9}$'", name=op.f("queue_key_form")),
        sa.CheckConstraint("name <> ''", name=op.f("queue_name_given")),
        sa.CheckConstraint("lease_seconds > 0", name=op.f("queue_lease_positive")),
        sa.CheckConstraint("spike_limit > 0 AND spike_minutes > 0", name=op.f("queue_spike_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("queue_pkey")),
        sa.UniqueConstraint("workspace", "key", name=op.f("queue_workspace_key_key")),
        schema="dibs",
    )
    op.create_index(
        op.f("queue_workspace_channel_id_idx"),
        "queue",
        ["workspace", "channel_id"],
        unique=False,
        schema="dibs",
    )
    op.create_table(
        "breaker",
        sa.Column("queue_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "open_since",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="set: the sweep leaves this queue out",
        ),
        sa.Column(
            "window_started_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("expired_in_window", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("expired_in_window >= 0", name=op.f("breaker_count_not_negative")),
        sa.ForeignKeyConstraint(["queue_id"], ["dibs.queue.id"], name=op.f("breaker_queue_id_fkey")),
        sa.PrimaryKeyConstraint("queue_id", name=op.f("breaker_pkey")),
        schema="dibs",
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("queue_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False, comment="task and version, or the breaker's trip"),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("sender", sa.Text(), nullable=True),
        sa.Column("sender_until", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "next_try_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("sent_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("given_up", sa.Text(), nullable=True, comment="why it is not tried again"),
        sa.CheckConstraint("(sender IS NULL) = (sender_until IS NULL)", name=op.f("outbox_sender_has_limit")),
        sa.ForeignKeyConstraint(["queue_id"], ["dibs.queue.id"], name=op.f("outbox_queue_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pkey")),
        sa.UniqueConstraint("key", name=op.f("outbox_key_key")),
        schema="dibs",
    )
    op.create_index(
        "outbox_due_idx",
        "outbox",
        ["next_try_at"],
        unique=False,
        schema="dibs",
        postgresql_where=sa.text("sent_at IS NULL AND given_up IS NULL"),
    )
    op.create_table(
        "queue_member",
        sa.Column("queue_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("standing", sa.Text(), nullable=False),
        sa.Column("supervisor", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "changed_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "joined_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="the newest join, by Slack's clock",
        ),
        sa.Column(
            "left_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="the newest leave, or when it was found out",
        ),
        sa.Column(
            "tried_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="when it was last looked up who it is",
        ),
        sa.CheckConstraint(
            "standing IN ('eligible', 'unverified', 'left', 'bot', 'other_workspace', 'deactivated')",
            name=op.f("queue_member_standing_known"),
        ),
        sa.ForeignKeyConstraint(["queue_id"], ["dibs.queue.id"], name=op.f("queue_member_queue_id_fkey")),
        sa.PrimaryKeyConstraint("queue_id", "user_id", name=op.f("queue_member_pkey")),
        schema="dibs",
    )
    op.create_index(
        op.f("queue_member_user_id_idx"), "queue_member", ["user_id"], unique=False, schema="dibs"
    )
    op.create_table(
        "task",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("queue_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False, comment="the fencing token"),
        sa.Column("needs_check", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("started_before", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "action_recorded",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="an external action was recorded since the last check",
        ),
        sa.Column(
            "deadline", sa.TIMESTAMP(timezone=True), nullable=True, comment="what the requester asked for"
        ),
        sa.Column(
            "committed_to", sa.TIMESTAMP(timezone=True), nullable=True, comment="what the owner promised"
        ),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "last_kind", sa.Text(), server_default="created", nullable=False, comment="the newest change"
        ),
        sa.Column("last_actor", sa.Text(), nullable=True, comment="unset: the sweep"),
        sa.Column(
            "last_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("(state = 'queued') = (owner_id IS NULL)", name=op.f("task_owner_matches_state")),
        sa.CheckConstraint(
            "(state IN ('claimed', 'started')) = (lease_until IS NOT NULL)",
            name=op.f("task_lease_matches_state"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'claimed', 'started', 'done')", name=op.f("task_state_known")
        ),
        sa.CheckConstraint("title <> ''", name=op.f("task_title_given")),
        sa.CheckConstraint(
            "(lease_until BETWEEN '0001-01-03T00:00Z' AND '9999-01-01T00:00Z')"
            " AND (committed_to BETWEEN '0001-01-03T00:00Z' AND '9999-01-01T00:00Z')"
            " AND (deadline BETWEEN '0001-01-03T00:00Z' AND '9999-01-01T00:00Z')",
            name=op.f("task_times_readable"),
        ),
        sa.CheckConstraint("version >= 1 AND number >= 1", name=op.f("task_counted_from_one")),
        sa.ForeignKeyConstraint(["queue_id"], ["dibs.queue.id"], name=op.f("task_queue_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("task_pkey")),
        sa.UniqueConstraint("queue_id", "number", name=op.f("task_queue_id_number_key")),
        schema="dibs",
    )
    op.create_index(
        "task_lease_until_idx",
        "task",
        ["lease_until"],
        unique=False,
        schema="dibs",
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_index(
        "task_owner_idx",
        "task",
        ["owner_id"],
        unique=False,
        schema="dibs",
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_index(
        "task_unfinished_idx",
        "task",
        ["queue_id", "created_at", "id"],
        unique=False,
        schema="dibs",
        postgresql_where=sa.text("state <> 'done'"),
    )
    op.create_table(
        "card",
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column(
            "message_ts", sa.Text(), nullable=True, comment="unset: not posted yet, or the message is gone"
        ),
        sa.Column("shown_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("wanted_version", sa.Integer(), nullable=False),
        sa.Column(
            "sender", sa.Text(), nullable=True, comment="the fence of the one sender that has this card now"
        ),
        sa.Column("sender_until", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "tried_since",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="the first of these attempts",
        ),
        sa.Column(
            "next_try_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "overtaken",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="another sender had it too and ended later, so it is sent once more",
        ),
        sa.Column(
            "disabled", sa.Text(), nullable=True, comment="why nothing more is sent, such as is_archived"
        ),
        sa.Column(
            "disabled_version",
            sa.Integer(),
            nullable=True,
            comment="the version given up; a newer one is tried once more",
        ),
        sa.CheckConstraint("(sender IS NULL) = (sender_until IS NULL)", name=op.f("card_sender_has_limit")),
        sa.ForeignKeyConstraint(["task_id"], ["dibs.task.id"], name=op.f("card_task_id_fkey")),
        sa.PrimaryKeyConstraint("task_id", name=op.f("card_pkey")),
        schema="dibs",
    )
    op.create_index(
        "card_due_idx",
        "card",
        ["next_try_at"],
        unique=False,
        schema="dibs",
        postgresql_where=sa.text(
            "shown_version < wanted_version AND (disabled IS NULL OR disabled_version < wanted_version)"
        ),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("queue_id", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=True, comment="unset: the sweep"),
        sa.Column(
            "at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("version_before", sa.Integer(), nullable=True),
        sa.Column("version_after", sa.Integer(), nullable=True),
        sa.Column("version_seen", sa.Integer(), nullable=True, comment="what the person's screen showed"),
        sa.Column("op_id", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=True, comment="of a refusal"),
        sa.Column("detail", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.CheckConstraint(
            "(right(kind, 9) = '_rejected') = (why IS NOT NULL)", name=op.f("event_refusal_says_why")
        ),
        sa.CheckConstraint(
            "version_after = version_before + CASE WHEN why IS NULL THEN 1 ELSE 0 END",
            name=op.f("event_version_counted"),
        ),
        sa.ForeignKeyConstraint(["queue_id"], ["dibs.queue.id"], name=op.f("event_queue_id_fkey")),
        sa.ForeignKeyConstraint(["task_id"], ["dibs.task.id"], name=op.f("event_task_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("event_pkey")),
        sa.UniqueConstraint("op_id", name=op.f("event_op_id_key")),
        schema="dibs",
    )
    op.create_index(op.f("event_task_id_id_idx"), "event", ["task_id", "id"], unique=False, schema="dibs")
    op.create_table(
        "external_action",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, comment="the task's, after it was recorded"),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("recorded_by", sa.Text(), nullable=False),
        sa.Column(
            "recorded_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("answered_by", sa.Text(), nullable=True, comment="who last said how it ended"),
        sa.Column("answered_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(status = 'in_progress') = (answered_by IS NULL)",
            name=op.f("external_action_answer_matches_status"),
        ),
        sa.CheckConstraint("description <> ''", name=op.f("external_action_description_given")),
        sa.CheckConstraint(
            "status IN ('in_progress', 'completed', 'not_completed', 'unknown')",
            name=op.f("external_action_status_known"),
        ),
        sa.ForeignKeyConstraint(["task_id"], ["dibs.task.id"], name=op.f("external_action_task_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("external_action_pkey")),
        sa.UniqueConstraint("task_id", "number", name=op.f("external_action_task_id_number_key")),
        schema="dibs",
    )
    op.create_table(
        "release_card",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("previous_owner", sa.Text(), nullable=False),
        sa.Column("state_at_release", sa.Text(), nullable=False),
        sa.Column("version_before", sa.Integer(), nullable=False),
        sa.Column("version_after", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("handoff_note", sa.Text(), nullable=True),
        sa.Column("external_action", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "external_action IN ('none', 'completed', 'not_completed', 'unknown')",
            name=op.f("release_card_action_known"),
        ),
        sa.CheckConstraint(
            "state_at_release = 'claimed' OR external_action IS NOT NULL",
            name=op.f("release_card_action_stated"),
        ),
        sa.CheckConstraint(
            "state_at_release = 'claimed' OR handoff_note <> ''", name=op.f("release_card_handoff_note_given")
        ),
        sa.CheckConstraint(
            "state_at_release IN ('claimed', 'started')", name=op.f("release_card_state_released")
        ),
        sa.CheckConstraint("version_after = version_before + 1", name=op.f("release_card_version_counted")),
        sa.ForeignKeyConstraint(["task_id"], ["dibs.task.id"], name=op.f("release_card_task_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("release_card_pkey")),
        sa.UniqueConstraint(
            "task_id", "version_before", name=op.f("release_card_task_id_version_before_key")
        ),
        schema="dibs",
    )
    op.create_table(
        "task_note",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, comment="the task's, after it was written"),
        sa.Column("author_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("text <> ''", name=op.f("task_note_text_given")),
        sa.ForeignKeyConstraint(["task_id"], ["dibs.task.id"], name=op.f("task_note_task_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("task_note_pkey")),
        schema="dibs",
    )
    op.create_index(
        op.f("task_note_task_id_id_idx"), "task_note", ["task_id", "id"], unique=False, schema="dibs"
    )
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON dibs.{table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION dibs.refuse_rewriting()"
        )


def downgrade() -> None:
    """There is no way back: append-only records are never dropped. Restore a backup instead."""
    raise NotImplementedError("Dibs migrates forward only; restore a backup to go back.")
