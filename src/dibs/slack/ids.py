"""The ids of actions, views, inputs and commands. They stand here and nowhere else (design.md, section 4)."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """The buttons on a card."""

    CLAIM = "task_claim"
    START = "task_start"
    RENEW = "task_renew"
    DONE = "task_done"
    RELEASE = "task_release"
    NOTE = "task_note"
    RECORD_ACTION = "task_record_action"
    RESOLVE_ACTION = "task_resolve_action"
    CHECK = "task_check"
    HISTORY = "task_history"


class Audit(StrEnum):
    """The buttons below a page of records."""

    OLDER = "audit_older"
    NEWER = "audit_newer"
    CSV = "audit_csv"
    JSONL = "audit_jsonl"


class QueueAction(StrEnum):
    """The buttons that are about a whole queue."""

    RESUME = "queue_resume"
    """On an alert that something is paused; its value names the queue."""


class Supervise(StrEnum):
    """The buttons that a supervisor sees in the history of somebody's task."""

    TRANSFER = "supervise_transfer"
    FORCE_RELEASE = "supervise_force_release"


class View(StrEnum):
    """The modals, by callback_id."""

    RELEASE = "release"
    CHECK = "check"
    DONE = "done"
    RECORD_ACTION = "record_action"
    RESOLVE_ACTION = "resolve_action"
    NOTE = "note"
    NEW_TASK = "new_task"
    QUEUE_SETTINGS = "queue_settings"
    HISTORY = "history"
    TRANSFER = "transfer"
    FORCE_RELEASE = "force_release"


class Field(StrEnum):
    """The inputs of the modals; each is both the block_id and the action_id."""

    REASON = "reason"
    COMMENT = "comment"
    HANDOFF_NOTE = "handoff_note"
    EXTERNAL_ACTION = "external_action"
    QUEUE = "queue"
    TITLE = "title"
    DETAILS = "details"
    DEADLINE = "deadline"
    NAME = "name"
    KEY = "key"
    LEASE_MINUTES = "lease_minutes"
    ELIGIBLE_GROUP = "eligible_group"
    SUPERVISORS = "supervisors"
    ALERT_CHANNEL = "alert_channel"
    SPIKE_LIMIT = "spike_limit"
    SPIKE_MINUTES = "spike_minutes"
    SPIKE_SHARE = "spike_share"
    LONGEST_HOLD_MINUTES = "longest_hold_minutes"
    REASONS = "reasons"
    SUPERVISOR_OPERATIONS = "supervisor_operations"
    RESOLUTION = "resolution"
    DESCRIPTION = "description"
    TEXT = "text"
    STATUS = "status"
    FINDING = "finding"
    NEW_OWNER = "new_owner"


ANSWER_PREFIX = "answer_"
"""Before the id of an external action: the input that says how it ended."""


class Command(StrEnum):
    """The slash commands."""

    QUEUE = "/queue"
    RELEASE = "/release"
    AUDIT = "/audit"
    DIBS = "/dibs"


WRITTEN_OUT = frozenset({Command.AUDIT, Command.DIBS})
"""The commands whose mentions the manifests have Slack write out, since /audit looks people up.

What is typed after the others arrives as it was typed, and so do the titles of tasks.
"""
