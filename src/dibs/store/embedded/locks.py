"""Locks on files, which the kernel drops when the last process that holds them is gone."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform != "win32":
    import fcntl

POLL_SECONDS = 0.02


class FileLock:
    """An exclusive lock on `path`, with the number of the process that it stands for written inside.

    Unlike a file with a process number alone it cannot be stale: it belongs to an open file, is shared
    with the children that inherit `fd`, and ends with the last of them, however they end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        """The descriptor that holds the lock."""
        if self._fd is None:
            raise RuntimeError(f"{self._path} is not locked")
        return self._fd

    def acquire(self, patience: float = 0) -> bool:
        """Take the lock, waiting up to `patience` seconds, and tell whether it was taken."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience
        while not _try_lock(fd):
            if time.monotonic() >= deadline:
                os.close(fd)
                return False
            time.sleep(POLL_SECONDS)
        self._fd = fd
        return True

    def name_holder(self, pid: int) -> None:
        """Write down, for the message of whoever finds the lock taken, which process holds it."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{pid}\n".encode(), 0)

    def holder(self) -> str:
        """Return the number of the process that holds the lock, as it was written down."""
        return self._path.read_text().strip() or "unknown"

    def release(self) -> None:
        """Let go of the lock; children that inherited it keep it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
