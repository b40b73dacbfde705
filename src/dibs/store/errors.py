"""Sorts what PostgreSQL and its driver say into the errors of `dibs.domain.errors`."""

from __future__ import annotations

from typing import Final

import psycopg
import sqlalchemy as sa

from dibs.domain.errors import AlreadyDone, Busy, Lost, Refused, StoreError
from dibs.store.tables import EVENT_OP_ID_KEY

_LOST_STATES: Final = ("08", "57P", "25006")
"""SQLSTATE prefixes of a connection or a server that went away, which does not say whether it committed; and
of a server that is the primary no more, whose connections are of no use."""
_BUSY_STATES: Final = frozenset({"55P03", "57014", "40001", "40P01"})


def sorted_out(error: sa.exc.DBAPIError) -> StoreError:
    """The StoreError that tells what is known after `error`, which arose while a statement was running."""
    cause = error.orig
    if not isinstance(cause, psycopg.Error):
        return Lost(str(cause))
    state = cause.sqlstate
    if state is None:
        # psycopg itself refused: a value that cannot be sent, or a connection that broke.
        return Refused(str(cause)) if isinstance(cause, psycopg.DataError) else Lost(str(cause))
    # Only the first line: what follows it may quote a row or a parameter, and with it what people wrote.
    message = cause.diag.message_primary or type(cause).__name__
    if state.startswith(_LOST_STATES):
        return Lost(message)
    if state in _BUSY_STATES:
        return Busy(message, sqlstate=state)
    if cause.diag.constraint_name == EVENT_OP_ID_KEY:
        return AlreadyDone(message)
    return Refused(message, table=cause.diag.table_name, sqlstate=state)
