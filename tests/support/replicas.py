"""Servers of the tests' own, by whichever programs: one alone, or a primary and its standby to promote."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from tests.support.embedded import PATIENCE, wait_until
from tests.support.proxy import closed_port

from dibs.store.embedded.account import Account, account_for
from dibs.store.embedded.binaries import binaries_for
from dibs.store.embedded.process import child_environment, launch_command

TEST_POSTGRES_BIN = "DIBS_TEST_POSTGRES_BIN"
"""Names the folder of another PostgreSQL's programs than the embedded one's."""

_ROLE = "dibs"
_STANDBY = "standby"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    # What a full disk holds stays as it is.
    "autovacuum": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "cluster_name": _STANDBY,
}


class Server:
    """A PostgreSQL server in a folder of its own, which runs as an ordinary user."""

    def __init__(self, bin_dir: Path, account: Account, folder: Path) -> None:
        self._bin_dir = bin_dir
        self._account = account
        self.folder = folder
        self.port = closed_port()
        self.environment: dict[str, str] = {}
        """What is set for the server itself, beside what every server needs."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """This server alone."""
        return address([self], "postgres")

    def create(self) -> None:
        self._own()
        asked = ["-D", str(self.folder), "-U", _ROLE, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(  # noqa: S603 - a fixed program
            self._command("initdb", *asked), env=child_environment(), check=True, stdout=subprocess.DEVNULL
        )

    def copy_to(self, other: Server) -> None:
        """Make `other` a standby of this server, which is stopped just now."""
        other._own()
        for source in self.folder.iterdir():
            target = other.folder / source.name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        (other.folder / "standby.signal").touch()
        with (other.folder / "postgresql.auto.conf").open("a") as settings:
            # The standby is known by its cluster_name.
            settings.write(f"primary_conninfo = 'host=127.0.0.1 port={self.port} user={_ROLE}'\n")
        for place, folders, files in os.walk(other.folder):
            for name in (*folders, *files):
                os.chown(Path(place, name), self._account.uid, self._account.gid)

    def start(self) -> None:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        asked = ["-D", str(self.folder), "-p", str(self.port), *settings]
        with self.folder.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a fixed program
                self._command("postgres", *asked, **self.environment),
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers)

    def ask(self, statement: LiteralString) -> object:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def kill(self) -> None:
        """End the server and all its sessions at once, as a machine that loses its power does."""
        if self._process is not None:
            first = self._process.pid
            # Each of a server's processes leads a session of its own.
            for pid in (first, *_children(first)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._end()

    def stop(self) -> None:
        """Shut the server down in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.wait(PATIENCE)
            self._process = None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _own(self) -> None:
        self.folder.mkdir(mode=0o700)
        os.chown(self.folder, self._account.uid, self._account.gid)

    def _command(self, program: str, *asked: str, **environment: str) -> list[str]:
        # Set by env, as its own user: what steps in before the program must not run as root.
        setting = [f"{name}={value}" for name, value in environment.items()]
        by = ["/usr/bin/env", *setting] if setting else []
        return launch_command(self._account, [*by, str(self._bin_dir / program), *asked])


@dataclass(frozen=True)
class Pair:
    """A primary that confirms nothing before its standby has it, too."""

    primary: Server
    standby: Server

    @property
    def url(self) -> str:
        """The database on whichever of the two is the primary."""
        return address([self.primary, self.standby])

    def fail_over(self) -> None:
        """Make the standby the primary."""
        self.standby.ask("SELECT pg_promote()")


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def address(servers: Sequence[Server], database: str = _ROLE) -> str:
    """The libpq URI of a database on one of several servers."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://{_ROLE}@{hosts}/{database}?sslmode=disable"


@contextmanager
def _servers(*names: str) -> Iterator[list[Server]]:
    account = account_for(Path("/nowhere"))
    programs = Path(os.environ.get(TEST_POSTGRES_BIN) or binaries_for(account).bin_dir)
    with tempfile.TemporaryDirectory(prefix="dibs-servers-") as folder:
        # The servers' user need not be the one that runs the tests, whose own temporary folder is closed.
        Path(folder).chmod(0o755)
        servers = [Server(programs, account, Path(folder, name)) for name in names]
        try:
            yield servers
        finally:
            for server in servers:
                server.kill()


@contextmanager
def lone_server() -> Iterator[Server]:
    """A server that runs."""
    with _servers("server") as (server,):
        server.create()
        server.start()
        yield server


@contextmanager
def pair_of_servers() -> Iterator[Pair]:
    """A primary with the empty database `dibs`, and a synchronous standby."""
    with _servers("primary", _STANDBY) as (primary, standby):
        primary.create()
        primary.start()
        primary.ask("CREATE DATABASE dibs")
        primary.stop()
        primary.copy_to(standby)
        primary.start()
        standby.start()
        primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.ask("SELECT pg_reload_conf()")
        wait_until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync")
        yield Pair(primary, standby)
