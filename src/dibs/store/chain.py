"""The chain of records: each event and release card holds a hash over itself and the event before it.

The newest event's hash is the task's `head`; a refusal hashes the head without moving it, since a refusal
changes no task. What people wrote enters by a digest of its own, so that it can be erased and the chain
still holds. Nothing is locked or read for it but the task's own row.

It shows that somebody rewrote, removed or added a record without writing all later hashes of the task anew.
Who owns the database can do that too: a head that is kept elsewhere shows even this. A refusal that was
removed without a trace is not noticed, as no later record names it.
"""

from __future__ import annotations

from collections.abc import Mapping

_EVENT = (
    "task_id",
    "kind",
    "actor_id",
    "at",
    "version_before",
    "version_after",
    "version_seen",
    "op_id",
    "why",
    "detail",
    "content",
)
_CARD = (
    "task_id",
    "previous_owner",
    "state_at_release",
    "version_before",
    "version_after",
    "reason",
    "comment_digest",
    "note_digest",
    "external_action",
    "forced_by",
    "created_at",
)
_TIMES = frozenset({"at", "created_at"})
_DIGESTS = frozenset({"content", "comment_digest", "note_digest"})

ERASED = "[erased]"
"""What stands for a text that was erased, where it may not be null; its digest stays, and the chain holds."""

WORDS_OF_TASK = "CAST(jsonb_build_array(CAST({} AS text), CAST({} AS text)) AS text)"
"""The SQL of a task's title and details as one text, whose digest its first event holds."""


def digest(text: str) -> str:
    """The SQL of the digest of a text, which is null where there is none."""
    return f"sha256(convert_to(CAST({text} AS text), 'UTF8'))"


def event_hash(values: Mapping[str, str], previous: str) -> str:
    """The SQL of an event's hash. `values` gives the SQL of each of its columns."""
    return _hash(_EVENT, values, previous)


def card_hash(values: Mapping[str, str], previous: str) -> str:
    """The SQL of a release card's hash. `values` gives the SQL of each of its columns."""
    return _hash(_CARD, values, previous)


def stored_event_hash(alias: str) -> str:
    """The SQL of the hash that a stored event should have."""
    return event_hash({column: f"{alias}.{column}" for column in _EVENT}, f"{alias}.previous")


def stored_card_hash(alias: str) -> str:
    """The SQL of the hash that a stored release card should have."""
    return card_hash({column: f"{alias}.{column}" for column in _CARD}, f"{alias}.previous")


def _hash(columns: tuple[str, ...], values: Mapping[str, str], previous: str) -> str:
    fields = ", ".join(_canonical(column, values[column]) for column in columns)
    return (
        f"sha256(coalesce({previous}, '') || convert_to(CAST(jsonb_build_array({fields}) AS text), 'UTF8'))"
    )


def _canonical(column: str, value: str) -> str:
    if column in _TIMES:
        # A time is written by its number, or it would read otherwise in another time zone.
        return f"extract(epoch FROM {value})"
    if column in _DIGESTS:
        return f"encode({value}, 'hex')"
    return value
