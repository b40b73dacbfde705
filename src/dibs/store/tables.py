"""The tables (schema `dibs`), with the named CHECK constraints that refuse impossible rows.

`event` and `release_card` are append-only: triggers made by the first migration refuse UPDATE, DELETE
and TRUNCATE. Every time is a timestamptz that the database's own clock has set.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from dibs.domain.task import ActionStatus, ExternalAnswer, Standing, State
from dibs.store.columns import (
    WITHIN_READABLE_TIMES,
    digest,
    flag,
    metadata,
    of_queue,
    of_task,
    one_of,
    serial,
    time,
)

__all__ = ["EVENT_OP_ID_KEY", "metadata"]

EVENT_OP_ID_KEY = "event_op_id_key"
"""The unique constraint that makes an operation happen at most once."""

queue = sa.Table(
    "queue",
    metadata,
    serial(),
    sa.Column("workspace", sa.Text, nullable=False, comment="the team id"),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("channel_id", sa.Text, nullable=False),
    sa.Column("lease_seconds", sa.Integer, nullable=False),
    sa.Column("eligible_group", sa.Text, comment="unset: the members of the channel are eligible"),
    sa.Column("alert_channel", sa.Text, comment="unset: alerts go to the supervisors"),
    sa.Column("spike_limit", sa.Integer, nullable=False, server_default="10"),
    sa.Column("spike_minutes", sa.Integer, nullable=False, server_default="10"),
    sa.Column("spike_share", sa.Integer, comment="percent of the leases held, where that is more"),
    sa.Column("longest_hold_seconds", sa.Integer, comment="unset: an owner may renew without end"),
    sa.Column("reasons", sa.ARRAY(sa.Text), comment="for handing back; unset: the usual ones"),
    flag("supervisor_operations", comment="supervisors may transfer and force a release"),
    sa.Column("settings_version", sa.Integer, nullable=False, server_default="1", comment="of the settings"),
    sa.Column("last_number", sa.Integer, nullable=False, server_default="0", comment="of the newest task"),
    time("members_read_at", comment="when the channel was last read whole"),
    time("members_tried_at", comment="when its last reading was begun"),
    sa.Column("created_by", sa.Text, nullable=False),
    time("created_at", clock=True),
    sa.UniqueConstraint("workspace", "key"),
    sa.CheckConstraint("key ~ '^[A-Z][A-Z0-9]{1,9}$'", name="key_form"),
    sa.CheckConstraint("name <> ''", name="name_given"),
    sa.CheckConstraint("lease_seconds > 0", name="lease_positive"),
    sa.CheckConstraint("spike_limit > 0 AND spike_minutes > 0", name="spike_positive"),
    sa.CheckConstraint("spike_share BETWEEN 1 AND 100", name="share_in_percent"),
    sa.CheckConstraint("longest_hold_seconds > 0", name="hold_positive"),
    sa.CheckConstraint("cardinality(reasons) > 0", name="reasons_given"),
    sa.Index(None, "workspace", "channel_id"),
)

queue_member = sa.Table(
    "queue_member",
    metadata,
    sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("standing", sa.Text, nullable=False),
    flag("supervisor"),
    time("changed_at", clock=True),
    time("joined_at", comment="the newest join, by Slack's clock"),
    time("left_at", comment="the newest leave, or when it was found out"),
    time("tried_at", comment="when it was last looked up who it is"),
    sa.CheckConstraint(one_of("standing", Standing), name="standing_known"),
    sa.Index(None, "user_id"),
)

task = sa.Table(
    "task",
    metadata,
    serial(),
    of_queue(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False, server_default=""),
    sa.Column("state", sa.Text, nullable=False, server_default=State.QUEUED),
    sa.Column("owner_id", sa.Text),
    time("lease_until"),
    time("held_since", comment="since when the present owner has it"),
    sa.Column("version", sa.Integer, nullable=False, server_default="1", comment="the fencing token"),
    flag("needs_check"),
    flag("started_before"),
    flag("action_recorded", comment="an external action was recorded since the last check"),
    time("deadline", comment="what the requester asked for"),
    time("committed_to", comment="what the owner promised"),
    sa.Column("resolution", sa.Text),
    sa.Column("created_by", sa.Text, nullable=False),
    time("created_at", clock=True),
    sa.Column("last_kind", sa.Text, nullable=False, server_default="created", comment="the newest change"),
    sa.Column("last_actor", sa.Text, comment="unset: the sweep"),
    time("last_at", clock=True),
    digest("head", "of the newest event, a refusal's apart"),
    sa.UniqueConstraint("queue_id", "number"),
    sa.CheckConstraint(one_of("state", State), name="state_known"),
    sa.CheckConstraint("(state = 'queued') = (owner_id IS NULL)", name="owner_matches_state"),
    sa.CheckConstraint("owner_id <> ''", name="owner_given"),
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
    sa.Index(
        "task_lease_idx", "queue_id", "lease_until", postgresql_where=sa.text("lease_until IS NOT NULL")
    ),
    sa.Index(
        "task_unfinished_idx", "queue_id", "created_at", "id", postgresql_where=sa.text("state <> 'done'")
    ),
    # Not of the same rows as task_lease_idx, or the planner may read all leases here to find what has ended.
    sa.Index(
        "task_owner_idx",
        "owner_id",
        postgresql_where=sa.text("owner_id IS NOT NULL AND lease_until IS NOT NULL"),
    ),
)

external_action = sa.Table(
    "external_action",
    metadata,
    serial(),
    of_task(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, comment="the task's, after it was recorded"),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("recorded_by", sa.Text, nullable=False),
    time("recorded_at", clock=True),
    sa.Column("answered_by", sa.Text, comment="who last said how it ended"),
    time("answered_at"),
    sa.UniqueConstraint("task_id", "number"),
    sa.Index(None, "task_id", "version"),
    sa.CheckConstraint(one_of("status", ActionStatus), name="status_known"),
    sa.CheckConstraint("(status = 'in_progress') = (answered_by IS NULL)", name="answer_matches_status"),
    sa.CheckConstraint("description <> ''", name="description_given"),
)

task_note = sa.Table(
    "task_note",
    metadata,
    serial(),
    of_task(),
    sa.Column("version", sa.Integer, nullable=False, comment="the task's, after it was written"),
    sa.Column("author_id", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    time("created_at", clock=True),
    sa.CheckConstraint("text <> ''", name="text_given"),
    sa.Index(None, "task_id", "id"),
    sa.Index(None, "task_id", "version"),
)

event = sa.Table(
    "event",
    metadata,
    serial(),
    of_queue(),
    sa.Column("task_id", sa.BigInteger, sa.ForeignKey("dibs.task.id")),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("actor_id", sa.Text, comment="unset: the sweep"),
    time("at", clock=True),
    sa.Column("version_before", sa.Integer),
    sa.Column("version_after", sa.Integer),
    sa.Column("version_seen", sa.Integer, comment="what the person's screen showed"),
    sa.Column("op_id", sa.Text, nullable=False, unique=True),
    sa.Column("why", sa.Text, comment="of a refusal"),
    sa.Column("detail", JSONB),
    sa.Column("private_text", sa.Text, comment="what a person wrote, where it stands nowhere else"),
    digest("content", "of what a person wrote, or of the release card"),
    digest("previous", "the hash of the event before it in its task"),
    digest("hash", "over this event and the one before it"),
    sa.CheckConstraint("(right(kind, 9) = '_rejected') = (why IS NOT NULL)", name="refusal_says_why"),
    sa.CheckConstraint(
        "version_after = version_before + CASE WHEN why IS NULL THEN 1 ELSE 0 END", name="version_counted"
    ),
    sa.CheckConstraint(
        "(version_before IS NULL) = (version_after IS NULL) "
        "AND (task_id IS NULL OR version_after IS NOT NULL)",
        name="task_has_versions",
    ),
    sa.Index(None, "task_id", "id"),
    sa.Index("event_queue_idx", "queue_id", "at", "id"),
    sa.Index("event_actor_idx", "actor_id", "at", "id"),
    *(
        sa.Index(
            f"event_{name}_idx",
            sa.text(f"(detail ->> '{key}')"),
            "at",
            "id",
            postgresql_where=sa.text(f"(detail ->> '{key}') IS NOT NULL"),
        )
        for name, key in (("former_owner", "former_owner"), ("new_owner", "to"))
    ),
    sa.Index("event_expired_idx", "queue_id", "at", postgresql_where=sa.text("kind = 'expired'")),
)

release_card = sa.Table(
    "release_card",
    metadata,
    serial(),
    of_task(),
    sa.Column("previous_owner", sa.Text, nullable=False),
    sa.Column("state_at_release", sa.Text, nullable=False),
    sa.Column("version_before", sa.Integer, nullable=False),
    sa.Column("version_after", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("handoff_note", sa.Text),
    sa.Column("external_action", sa.Text),
    sa.Column("forced_by", sa.Text, comment="the supervisor, where it was not the owner"),
    time("created_at", clock=True),
    digest("comment_digest", "of the comment"),
    digest("note_digest", "of the handoff note"),
    digest("previous", "the hash of the event before it in its task"),
    digest("hash", "over this card and the event before it"),
    sa.UniqueConstraint("task_id", "version_before"),
    sa.CheckConstraint("previous_owner <> ''", name="owner_given"),
    sa.CheckConstraint("reason <> ''", name="reason_given"),
    sa.CheckConstraint("state_at_release IN ('claimed', 'started')", name="state_released"),
    sa.CheckConstraint("version_after = version_before + 1", name="version_counted"),
    sa.CheckConstraint(
        "forced_by IS NOT NULL OR state_at_release = 'claimed' OR coalesce(handoff_note, '') <> ''",
        name="handoff_note_given",
    ),
    sa.CheckConstraint(
        "forced_by IS NOT NULL OR state_at_release = 'claimed' OR external_action IS NOT NULL",
        name="action_stated",
    ),
    sa.CheckConstraint(one_of("external_action", ExternalAnswer), name="action_known"),
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
    time("sender_until"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    time("tried_since", comment="the first of these attempts"),
    time("next_try_at", clock=True),
    flag("overtaken", comment="another sender had it too and ended later, so it is sent once more"),
    sa.Column("disabled", sa.Text, comment="why nothing more is sent, such as is_archived"),
    sa.Column("disabled_version", sa.Integer, comment="the version given up; a newer one is tried once more"),
    time("paced_until", comment="until then it is redrawn only through a press's own url"),
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
    serial(),
    of_queue(),
    of_task(required=False),
    sa.Column("key", sa.Text, nullable=False, unique=True, comment="what it is about and whom it is for"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("recipient", sa.Text, nullable=False, comment="a channel, or a person"),
    sa.Column("payload", JSONB, nullable=False),
    time("created_at", clock=True),
    flag("live", comment="it is drawn anew when its task changes"),
    sa.Column("shown", sa.Integer, nullable=False, server_default="0", comment="how often it was drawn"),
    sa.Column("wanted", sa.Integer, nullable=False, server_default="1", comment="how often it should be"),
    sa.Column("channel_id", sa.Text, comment="where the message stands"),
    sa.Column("message_ts", sa.Text, comment="unset: not sent yet"),
    sa.Column("sender", sa.Text, comment="the fence of the one sender that has this message now"),
    time("sender_until"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    time("tried_since", comment="the first of these attempts"),
    time("next_try_at", clock=True),
    time("sent_at"),
    sa.Column("given_up", sa.Text, comment="why it is not tried again"),
    sa.CheckConstraint("(sender IS NULL) = (sender_until IS NULL)", name="sender_has_limit"),
    sa.CheckConstraint("(channel_id IS NULL) = (message_ts IS NULL)", name="message_has_channel"),
    sa.Index(
        "outbox_due_idx", "next_try_at", postgresql_where=sa.text("shown < wanted AND given_up IS NULL")
    ),
    sa.Index("outbox_live_idx", "task_id", postgresql_where=sa.text("live")),
    sa.Index("outbox_message_idx", "channel_id", "message_ts"),
)

breaker = sa.Table(
    "breaker",
    metadata,
    sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), primary_key=True),
    time("open_since", comment="set: the sweep leaves this queue out"),
    sa.Column("opened_by", sa.Text, comment="unset: the sweep, because of a spike"),
    sa.Column("trip", sa.Integer, nullable=False, server_default="0", comment="how often it was opened"),
    time("window_started_at", clock=True),
    time("let_through_until", comment="leases that ended before are let through uncounted"),
    time("releases_paused_since", comment="set: a release or its record was refused by the database"),
    sa.Column("releases_paused_why", sa.Text),
    sa.Column("release_trip", sa.Integer, nullable=False, server_default="0"),
    sa.CheckConstraint(
        "(releases_paused_since IS NULL) = (releases_paused_why IS NULL)", name="pause_says_why"
    ),
)

clock = sa.Table(
    "clock",
    metadata,
    sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
    time("swept_at", comment="when owners could last renew, as far as any process knows"),
    time("stopped_since", comment="set: the clock jumped ahead, and no lease is ended"),
    sa.Column("jump_seconds", sa.Double, comment="how far"),
    sa.Column("trip", sa.Integer, nullable=False, server_default="0", comment="how often it was stopped"),
    sa.CheckConstraint("id = 1", name="one_row"),
)
