"""The embedded database for a command: the server of the bot that runs, or one of its own meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dibs.store.embedded.errors import EmbeddedPostgresError
from dibs.store.embedded.locks import FileLock
from dibs.store.embedded.server import EmbeddedPostgres


@contextlib.contextmanager
def reached(data_dir: Path) -> Iterator[str]:
    """The address of the database in `data_dir`, whether a Dibs is running there or not.

    Where one is, its server is used and left alone. Where none is, a server is started and stopped again.
    Raises EmbeddedPostgresError, also where there is no database yet: none is made.
    """
    server = EmbeddedPostgres(data_dir)
    if not server.exists:
        raise EmbeddedPostgresError(
            f"There is no database of Dibs in {data_dir}. Set DIBS_DATA_DIR or DATABASE_URL as for the bot."
        )
    lock = FileLock(data_dir / "dibs.lock")
    if lock.acquire():
        lock.release()
        with server:
            yield server.url
    else:
        with server.address_of_running() as address:
            yield address
