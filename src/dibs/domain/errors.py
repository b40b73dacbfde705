"""What can go wrong between Dibs and its database, sorted by what is known of the write.

StoreError
├── NothingSent          the database was not asked: nothing changed
├── Refused              the database answered and rolled back: nothing changed
│   ├── Busy             it could not get to it in time (a lock or statement time-out)
│   └── AlreadyDone      the operation id was used before
└── Lost                 no answer came after sending: it is not known what happened
"""

from __future__ import annotations


class StoreError(Exception):
    """The database did not carry out a statement."""


class NothingSent(StoreError):
    """The database was not asked."""


class Refused(StoreError):
    """The database answered that it did not do it.

    `table` names the table that refused, where known; `sqlstate` is the database's code for why, and None
    where a value could not even be sent.
    """

    def __init__(self, message: str, *, table: str | None = None, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.table = table
        self.sqlstate = sqlstate


class Busy(Refused):
    """The database gave up waiting and rolled back."""


class AlreadyDone(Refused):
    """An event with this operation id exists already.

    `of_this_try`: it is of this very call, whose first answer was lost.
    """

    of_this_try = False


class Lost(StoreError):
    """The connection went away after the statement was sent."""


class LookUpFailed(Exception):
    """Whether a person may claim could not be found out."""
