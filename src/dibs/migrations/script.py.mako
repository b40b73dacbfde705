"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go one step forward."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """There is no way back: append-only records are never dropped. Restore a backup instead."""
    raise NotImplementedError("Dibs migrates forward only; restore a backup to go back.")
