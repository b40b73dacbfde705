"""What can go wrong between Dibs and PostgreSQL, sorted by what is known of the write.

StoreError
├── NothingSent          the database was not asked: nothing changed
├── Refused              the database answered and rolled back: nothing changed
│   ├── Busy             it could not get to it in time (a lock or statement time-out)
│   └── AlreadyDone      the operation id was used before
└── Lost                 no answer came after sending: it is not known what happened
"""

from __future__ import annotations

from typing import Final

import psycopg
import sqlalchemy as sa

from dibs.store.tables import EVENT_OP_ID_KEY

_LOST_STATES: Final = ("08", "57P")
"""SQLSTATE prefixes of a connection or a server that went away, which does not say whether it committed."""
_BUSY_STATES: Final = frozenset({"55P03", "57014", "40001", "40P01"})


class StoreError(Exception):
    """The database did not carry out a statement."""


class NothingSent(StoreError):
    """The database was not asked."""


class Refused(StoreError):
    """The database answered that it did not do it. `table` names the table that refused, where known."""

    def __init__(self, message: str, *, table: str | None = None) -> None:
        super().__init__(message)
        self.table = table


class Busy(Refused):
    """The database gave up waiting and rolled back."""


class AlreadyDone(Refused):
    """An event with this operation id exists already."""


class Lost(StoreError):
    """The connection went away after the statement was sent."""


def sorted_out(error: sa.exc.DBAPIError) -> StoreError:
    """The StoreError that tells what is known after `error`, which arose while a statement was running."""
    cause = error.orig
    if not isinstance(cause, psycopg.Error):
        return Lost(str(cause))
    state = cause.sqlstate
    if state is None:
        # psycopg itself refused: a value that cannot be sent, or a connection that broke.
        return Refused(str(cause)) if isinstance(cause, psycopg.DataError) else Lost(str(cause))
    if state.startswith(_LOST_STATES):
        return Lost(str(cause))
    if state in _BUSY_STATES:
        return Busy(str(cause))
    if cause.diag.constraint_name == EVENT_OP_ID_KEY:
        return AlreadyDone(str(cause))
    return Refused(str(cause), table=cause.diag.table_name)
