"""What a form is answered with that is not accepted: words at an input, with everything kept."""

from __future__ import annotations

from dibs.domain.outcomes import Refusal
from dibs.slack.ids import Field
from dibs.slack.payloads import Submission

Errors = dict[str, str]
"""What is wrong, by input; empty where a form was accepted."""

FIELD_OF = {
    Refusal.REASON_MISSING: Field.REASON,
    Refusal.COMMENT_MISSING: Field.COMMENT,
    Refusal.HANDOFF_NOTE_MISSING: Field.HANDOFF_NOTE,
    Refusal.ACTION_UNSTATED: Field.EXTERNAL_ACTION,
    Refusal.NEW_OWNER_NOT_ELIGIBLE: Field.NEW_OWNER,
    Refusal.THEIRS_ALREADY: Field.NEW_OWNER,
    Refusal.MEMBERSHIP_UNKNOWN: Field.NEW_OWNER,
}
"""The input that a refusal is about, where it is about one."""


def at(form: Submission, field: Field, said: str) -> Errors:
    """`said` at an input, or at the first one where the form does not have it: Slack shows no other."""
    return {field: said} if field in form.blocks else anywhere(form, said)


def anywhere(form: Submission, said: str) -> Errors:
    """`said` at the form's first input."""
    return {form.blocks[0]: said} if form.blocks else {}
