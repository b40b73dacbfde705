"""Who may claim in which queue."""

from __future__ import annotations

import sqlalchemy as sa

from dibs.domain.outcomes import Refusal
from dibs.domain.task import Standing

REFUSAL = {
    Standing.LEFT: Refusal.NOT_A_MEMBER,
    Standing.UNVERIFIED: Refusal.MEMBERSHIP_UNKNOWN,
    Standing.BOT: Refusal.BOT,
    Standing.OTHER_WORKSPACE: Refusal.OTHER_WORKSPACE,
    Standing.DEACTIVATED: Refusal.DEACTIVATED,
}
"""The refusal that names each standing which may not claim."""

STANDINGS = sa.text(
    "SELECT queue_id, standing, supervisor FROM dibs.queue_member "
    "WHERE queue_id = ANY(:queue_ids) AND user_id = :user_id ORDER BY queue_id"
).bindparams(sa.bindparam("queue_ids", type_=sa.ARRAY(sa.BigInteger())))
