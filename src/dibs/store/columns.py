"""The parts that the tables are made of, and our own words as SQL."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

SCHEMA = "dibs"

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s",
    },
)

WITHIN_READABLE_TIMES = "BETWEEN '0001-01-03T00:00Z' AND '9999-01-01T00:00Z'"
"""What the times of a task lie within, or they could be stored and never be read again."""


def sql_list(values: Iterable[str]) -> str:
    """Our own words, such as states, as a list for IN."""
    return ", ".join(f"'{value}'" for value in values)


def one_of(column: str, values: Iterable[str]) -> str:
    """The condition that a column holds one of our own words."""
    return f"{column} IN ({sql_list(values)})"


def time(name: str, *, clock: bool = False, comment: str | None = None) -> sa.Column[object]:
    """A time; with `clock` it is always there, and set by the database's own clock."""
    default = sa.text("clock_timestamp()") if clock else None
    return sa.Column(
        name, sa.TIMESTAMP(timezone=True), nullable=not clock, server_default=default, comment=comment
    )


def flag(name: str, *, comment: str | None = None) -> sa.Column[bool]:
    """A yes or no, which is no at first."""
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false(), comment=comment)


def serial() -> sa.Column[int]:
    """The id of a row, which the database gives it."""
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)


def of_queue() -> sa.Column[int]:
    """The queue that a row belongs to."""
    return sa.Column("queue_id", sa.BigInteger, sa.ForeignKey("dibs.queue.id"), nullable=False)


def of_task(*, required: bool = True) -> sa.Column[int]:
    """The task that a row belongs to."""
    return sa.Column("task_id", sa.BigInteger, sa.ForeignKey("dibs.task.id"), nullable=not required)


def digest(name: str, comment: str) -> sa.Column[bytes]:
    """A SHA-256 of the chain of records (see `dibs.store.chain`)."""
    return sa.Column(name, sa.LargeBinary, comment=comment)
