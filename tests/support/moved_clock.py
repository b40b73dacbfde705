"""A PostgreSQL whose clock is really moved while it runs, by libfaketime (Debian's package faketime)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.clocks import Clocks
from tests.support.replicas import Server, address

from dibs.store.embedded.account import account_for
from dibs.store.embedded.binaries import binaries_for

_LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)

needs_faketime = pytest.mark.skipif(_LIBRARY is None, reason="needs Debian's package faketime")


@dataclass
class ServerClocks(Clocks):
    """The clock of a running server, and a process's own."""

    file: Path = field(default_factory=Path)
    ahead: float = 0.0

    def step_database(self, seconds: float) -> None:
        self.ahead += seconds
        # Read again by the server each time that it asks for the time, so it must never be half written.
        written = self.file.with_suffix(".new")
        written.write_text(f"{self.ahead:+.6f}\n")
        written.chmod(0o644)
        written.replace(self.file)

    def start_at(self, moment: float) -> None:
        """Set the clocks of a machine on which both run to a time of day, in seconds since 1970."""
        self.step_both(moment - self.wall())


@contextmanager
def server_with_movable_clock() -> Iterator[ServerClocks]:
    """A server with the empty database `dibs`. Its monotonic clock is left as it is, as a step leaves it."""
    account = account_for(Path("/nowhere"))
    with tempfile.TemporaryDirectory(prefix="dibs-clock-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = Server(binaries_for(account).bin_dir, account, folder / "server")
        clocks = ServerClocks(address([server]), file=folder / "clock")
        clocks.step_database(0)
        server.environment = {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(clocks.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        try:
            server.create()
            server.start()
            server.ask("CREATE DATABASE dibs")
            yield clocks
        finally:
            server.kill()


def now() -> float:
    """The true time, in seconds, which no test moves."""
    return time.monotonic()
