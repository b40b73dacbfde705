"""The chain of records, messages that follow their task, the brakes, and what a queue can set."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STANDINGS = "'eligible', 'unverified', 'unknown', 'left', 'bot', 'other_workspace', 'deactivated'"
RULES_OF = """
CREATE FUNCTION dibs.rules_of(queue_id bigint)
RETURNS TABLE (lease_seconds integer, longest_hold_seconds integer, reasons text[],
               supervisor_operations boolean, releases_paused boolean)
LANGUAGE plpgsql VOLATILE ROWS 1 AS $$
BEGIN
    RETURN QUERY
    SELECT q.lease_seconds, q.longest_hold_seconds, q.reasons, q.supervisor_operations,
           b.releases_paused_since IS NOT NULL
    FROM dibs.queue q LEFT JOIN dibs.breaker b ON b.queue_id = q.id
    WHERE q.id = rules_of.queue_id;
END $$"""
"""What a queue allows now; it is volatile, and so not bound to the snapshot of the statement that asks."""

VERSIONS = (
    "(version_before IS NULL) = (version_after IS NULL) AND (task_id IS NULL OR version_after IS NOT NULL)"
)
FORCED = "forced_by IS NOT NULL OR state_at_release = 'claimed' OR "


def _time(name: str, comment: str | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.TIMESTAMP(timezone=True), nullable=True, comment=comment)


def _digest(name: str, comment: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=True, comment=comment)


def _text(name: str, comment: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True, comment=comment)


def _count(name: str, start: int, comment: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default=str(start), nullable=False, comment=comment)


def _flag(name: str, comment: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False, comment=comment)


def _add(table: str, *columns: sa.Column[Any]) -> None:
    for column in columns:
        op.add_column(table, column, schema="dibs")


def _check(table: str, name: str, condition: str) -> None:
    op.create_check_constraint(op.f(f"{table}_{name}"), table, condition, schema="dibs")


def _index(name: str, table: str, columns: list[Any], where: str | None = None) -> None:
    op.create_index(name, table, columns, schema="dibs", postgresql_where=sa.text(where) if where else None)


def upgrade() -> None:
    """Add to the tables; nothing that stands in them is changed."""
    _queue_and_task()
    _records()
    _messages()
    _brakes()
    op.execute(RULES_OF)


def _queue_and_task() -> None:
    _add(
        "queue",
        sa.Column(
            "spike_share",
            sa.Integer(),
            nullable=True,
            comment="percent of the leases held, where that is more",
        ),
        sa.Column(
            "longest_hold_seconds",
            sa.Integer(),
            nullable=True,
            comment="unset: an owner may renew without end",
        ),
        sa.Column(
            "reasons",
            sa.ARRAY(sa.Text()),
            nullable=True,
            comment="for handing back; unset: the usual ones",
        ),
        _flag("supervisor_operations", "supervisors may transfer and force a release"),
        _count("settings_version", 1, "of the settings"),
    )
    _check("queue", "share_in_percent", "spike_share BETWEEN 1 AND 100")
    _check("queue", "hold_positive", "longest_hold_seconds > 0")
    _check("queue", "reasons_given", "cardinality(reasons) > 0")
    op.drop_constraint(op.f("queue_member_standing_known"), "queue_member", schema="dibs")
    _check("queue_member", "standing_known", f"standing IN ({STANDINGS})")
    _add(
        "task",
        _time("held_since", "since when the present owner has it"),
        _digest("head", "of the newest event, a refusal's apart"),
    )
    op.execute(
        "UPDATE dibs.task t SET held_since = (SELECT max(e.at) FROM dibs.event e "
        "WHERE e.task_id = t.id AND e.kind = 'claimed') WHERE t.lease_until IS NOT NULL"
    )
    _check("task", "owner_given", "owner_id <> ''")
    op.drop_index("task_lease_until_idx", table_name="task", schema="dibs")
    op.drop_index("task_owner_idx", table_name="task", schema="dibs")
    _index("task_owner_idx", "task", ["owner_id"], "owner_id IS NOT NULL AND lease_until IS NOT NULL")
    _index("task_lease_idx", "task", ["queue_id", "lease_until"], "lease_until IS NOT NULL")


def _records() -> None:
    _add(
        "event",
        _text("private_text", "what a person wrote, where it stands nowhere else"),
        _digest("content", "of what a person wrote, or of the release card"),
        _digest("previous", "the hash of the event before it in its task"),
        _digest("hash", "over this event and the one before it"),
    )
    _check("event", "task_has_versions", VERSIONS)
    _index("event_queue_idx", "event", ["queue_id", "at", "id"])
    _index("event_actor_idx", "event", ["actor_id", "at", "id"])
    for name, key in (("former_owner", "former_owner"), ("new_owner", "to")):
        whom = f"(detail ->> '{key}')"
        _index(f"event_{name}_idx", "event", [sa.text(whom), "at", "id"], f"{whom} IS NOT NULL")
    for table in ("task_note", "external_action"):
        _index(f"{table}_task_id_version_idx", table, ["task_id", "version"])
    _index("event_expired_idx", "event", ["queue_id", "at"], "kind = 'expired'")
    _add(
        "release_card",
        _text("forced_by", "the supervisor, where it was not the owner"),
        _digest("comment_digest", "of the comment"),
        _digest("note_digest", "of the handoff note"),
        _digest("previous", "the hash of the event before it in its task"),
        _digest("hash", "over this card and the event before it"),
    )
    _check("release_card", "owner_given", "previous_owner <> ''")
    _check("release_card", "reason_given", "reason <> ''")
    for name in ("handoff_note_given", "action_stated"):
        op.drop_constraint(op.f(f"release_card_{name}"), "release_card", schema="dibs")
    _check("release_card", "handoff_note_given", FORCED + "coalesce(handoff_note, '') <> ''")
    _check("release_card", "action_stated", FORCED + "external_action IS NOT NULL")


def _messages() -> None:
    _add("card", _time("paced_until", "until then it is redrawn only through a press's own url"))
    _add(
        "outbox",
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        _flag("live", "it is drawn anew when its task changes"),
        _count("shown", 0, "how often it was drawn"),
        _count("wanted", 1, "how often it should be"),
        _text("channel_id", "where the message stands"),
        _text("message_ts", "unset: not sent yet"),
        _time("tried_since", "the first of these attempts"),
    )
    op.alter_column("outbox", "key", comment="what it is about and whom it is for", schema="dibs")
    op.alter_column("outbox", "recipient", comment="a channel, or a person", schema="dibs")
    op.alter_column(
        "outbox", "sender", comment="the fence of the one sender that has this message now", schema="dibs"
    )
    op.create_foreign_key(
        op.f("outbox_task_id_fkey"),
        "outbox",
        "task",
        ["task_id"],
        ["id"],
        source_schema="dibs",
        referent_schema="dibs",
    )
    _check("outbox", "message_has_channel", "(channel_id IS NULL) = (message_ts IS NULL)")
    op.drop_index("outbox_due_idx", table_name="outbox", schema="dibs")
    _index("outbox_due_idx", "outbox", ["next_try_at"], "shown < wanted AND given_up IS NULL")
    _index("outbox_live_idx", "outbox", ["task_id"], "live")
    _index("outbox_message_idx", "outbox", ["channel_id", "message_ts"])


def _brakes() -> None:
    op.drop_constraint(op.f("breaker_count_not_negative"), "breaker", schema="dibs")
    op.drop_column("breaker", "expired_in_window", schema="dibs")
    _add(
        "breaker",
        _text("opened_by", "unset: the sweep, because of a spike"),
        _count("trip", 0, "how often it was opened"),
        _time("let_through_until", "leases that ended before are let through uncounted"),
        _time("releases_paused_since", "set: a release or its record was refused by the database"),
        _text("releases_paused_why"),
        _count("release_trip", 0),
    )
    _check("breaker", "pause_says_why", "(releases_paused_since IS NULL) = (releases_paused_why IS NULL)")
    op.create_table(
        "clock",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        _time("swept_at", "when owners could last renew, as far as any process knows"),
        _time("stopped_since", "set: the clock jumped ahead, and no lease is ended"),
        sa.Column("jump_seconds", sa.Double(), nullable=True, comment="how far"),
        _count("trip", 0, "how often it was stopped"),
        sa.CheckConstraint("id = 1", name=op.f("clock_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("clock_pkey")),
        schema="dibs",
    )
    op.execute("INSERT INTO dibs.clock (id) VALUES (1)")
    op.execute("INSERT INTO dibs.breaker (queue_id) SELECT q.id FROM dibs.queue q ON CONFLICT DO NOTHING")


def downgrade() -> None:
    """There is no way back: append-only records are never dropped. Restore a backup instead."""
    raise NotImplementedError("Dibs migrates forward only; restore a backup to go back.")
