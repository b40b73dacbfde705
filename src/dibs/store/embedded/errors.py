"""What goes wrong with the embedded PostgreSQL, said in one line that tells what to do."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run. The message is one line that says why and what to do."""


@contextmanager
def explained(failure: str) -> Iterator[None]:
    """Turn an OSError about the data folder into an EmbeddedPostgresError that begins with `failure`."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise EmbeddedPostgresError(f"{failure}: {reason}. {advice(reason)}") from error


def advice(reason: str) -> str:
    """Tell what a person can do about `reason`, the words of the operating system or of PostgreSQL."""
    if any(os.strerror(number) in reason for number in (errno.ENOSPC, errno.EDQUOT)):
        return "Free some space on that disk, or set DIBS_DATA_DIR to a folder on another one."
    return "Set DIBS_DATA_DIR to a folder that Dibs may write to."
