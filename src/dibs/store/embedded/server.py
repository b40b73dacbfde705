"""The embedded server from the bot's side: start, address, stop."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self
from urllib.parse import quote, urlencode

import psycopg

from dibs.store.embedded import cluster
from dibs.store.embedded.account import Account, account_for
from dibs.store.embedded.binaries import Binaries, binaries_for, installed_bin_dir
from dibs.store.embedded.errors import EmbeddedPostgresError, explained
from dibs.store.embedded.locks import FileLock
from dibs.store.embedded.process import ServerProcess, launch_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

DATABASE = "dibs"
# The shorter of Linux's and macOS's limits on the path of a Unix socket.
LONGEST_SOCKET_PATH = 103
LARGEST_LOG = 8 * 1024 * 1024
READY_SECONDS = 300
READY_POLL_SECONDS = 0.005
EARLIER_SERVER_SECONDS = 90
STATUS_LINE = 8
COMPLAINT = re.compile(r"(?:FATAL|PANIC):\s+")

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "huge_pages": "off",
    "io_method": "sync",
    "log_checkpoints": "off",
    # The details of a refusal quote the row, and with it what people wrote.
    "log_error_verbosity": "terse",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "cluster_name": "dibs",
}


class EmbeddedPostgres:
    """PostgreSQL in `data_dir`, started as a child of this process and never outliving it.

    The data stay in `data_dir`/postgres between runs, and the server's log is `data_dir`/postgres.log,
    emptied at a start that finds it larger than 8 MB. With `fsync` off a power cut may lose everything;
    that is for tests. `extra_settings` are settings of PostgreSQL that win over the ones chosen here.

    Nothing listens on the network. The socket lies inside `data_dir`/postgres, a folder that only its
    owner may enter, and the server also asks for a password (scram), which is kept in
    `data_dir`/postgres.password, readable by its owner alone: as root, the folder belongs to `nobody`, and
    other programs that run as `nobody` are not trusted. Dibs' role is the superuser of this cluster,
    which holds nothing but Dibs.

    As root the server runs as `nobody`, or as the owner of the cluster that it finds. No folder is
    opened for that user: it gets its own folder handed as its working directory, and programs it cannot
    reach are copied to /var/cache/dibs or another place that is root's.

    The server is sent a fast shutdown when this process ends, also by kill -9: by the kernel on Linux,
    elsewhere by a small process that watches a pipe. May be started from any thread, because the server
    belongs to a thread of its own. Runs on Linux and macOS.
    """

    def __init__(
        self, data_dir: Path, *, fsync: bool = True, extra_settings: Mapping[str, str] | None = None
    ) -> None:
        self._data_dir = Path(os.path.abspath(data_dir))  # noqa: PTH100 (a link in the path stays as given)
        self._cluster = self._data_dir / "postgres"
        self._log = self._data_dir / "postgres.log"
        self._settings = {**SETTINGS, "fsync": "on" if fsync else "off", **(extra_settings or {})}
        self._fsync = fsync
        self._socket = f".s.PGSQL.{self._settings['port']}"
        self._process: ServerProcess | None = None
        self._url = ""
        self._held = ExitStack()

    @property
    def url(self) -> str:
        """The libpq URI of the database `dibs`, with its password; only while the server runs."""
        if self._process is None:
            raise RuntimeError("The embedded PostgreSQL is not running.")
        return self._url

    @property
    def pid(self) -> int:
        """The number of the server's first process; only while the server runs."""
        if self._process is None:
            raise RuntimeError("The embedded PostgreSQL is not running.")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server has been started, and has neither been stopped nor ended by itself."""
        return self._process is not None and not self._process.wait(0)

    @property
    def bin_dir(self) -> Path:
        """The folder of PostgreSQL's programs (psql, pg_dump, pgbench), as installed."""
        return installed_bin_dir()

    @property
    def exists(self) -> bool:
        """Whether there is a database in `data_dir` already."""
        return (self._cluster / "PG_VERSION").is_file()

    @contextmanager
    def address_of_running(self) -> Iterator[str]:
        """The URI of the database whose server another process has started here, as `url` would be.

        Raises EmbeddedPostgresError where the folder cannot be read.
        """
        password = cluster.password_in(self._data_dir / "postgres.password", create=False)
        with ExitStack() as held, explained(f"The data folder {self._data_dir} cannot be used"):
            yield self._address(self._short_socket_folder(held), password, DATABASE)

    def start(self) -> str:
        """Start the server, create what is missing, and return `url` when the database answers.

        Raises EmbeddedPostgresError, with nothing left running and nothing half made. A server that runs
        is left alone, and one that has died is started again.
        """
        if self.is_running:
            return self._url
        self.stop()
        if sys.platform == "win32":
            raise EmbeddedPostgresError(
                "Dibs' own PostgreSQL runs on Linux and macOS only. Set DATABASE_URL to a PostgreSQL server."
            )
        with ExitStack() as held:
            self._url = self._start(held)
            self._held = held.pop_all()
        return self._url

    def stop(self) -> None:
        """Shut the server down fast and wait until it is gone; does nothing if it is not running."""
        self._held.close()

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    def _start(self, held: ExitStack) -> str:
        with explained(f"The data folder {self._data_dir} cannot be used"):
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_folder(held)
            server_lock = self._lock_server(held)
        with explained(f"The database's folder {self._cluster} cannot be used"):
            account = account_for(self._cluster)
        binaries = binaries_for(account)
        is_new = not cluster.exists(self._cluster, binaries)
        password = cluster.password_in(self._data_dir / "postgres.password", create=is_new)
        if is_new:
            cluster.create(
                self._cluster, binaries, account, password=password, fsync=self._fsync, lock_fd=server_lock.fd
            )
        with explained(f"The data folder {self._data_dir} cannot be used"):
            self._remove_leftovers()
            address = self._short_socket_folder(held)
            with self._open_log() as log:
                self._process = self._run(binaries, account, log, server_lock)
        held.callback(self._stop_process)
        server_lock.name_holder(self._process.pid)
        self._wait_until_ready(self._process)
        return self._ensure_database(address, password)

    def _lock_folder(self, held: ExitStack) -> None:
        lock = FileLock(self._data_dir / "dibs.lock")
        if not lock.acquire():
            raise EmbeddedPostgresError(
                f"Another Dibs is using the folder {self._data_dir} (process {lock.holder()}). "
                "Stop it, or set DIBS_DATA_DIR to another folder."
            )
        held.callback(lock.release)
        lock.name_holder(os.getpid())

    def _lock_server(self, held: ExitStack) -> FileLock:
        """Take the lock that every process of a server inherits, so that having it means that none lives.

        A bot that was killed leaves a server that is still shutting down: that one is waited for.
        """
        lock = FileLock(self._data_dir / "postgres.lock")
        if not lock.acquire(patience=EARLIER_SERVER_SECONDS):
            raise EmbeddedPostgresError(
                f"The PostgreSQL of an earlier Dibs is still using the folder {self._data_dir} "
                f"(process {lock.holder()}). Stop it (kill -INT), or set DIBS_DATA_DIR to another folder."
            )
        held.callback(lock.release)
        return lock

    def _remove_leftovers(self) -> None:
        """Remove what a killed server left to tell that it runs.

        The lock has told that none does. The process number in these files may meanwhile be that of
        another process, which happens at once where the bot is process 1 of a container. A server that
        somebody started here by hand is still found, by its shared memory, and the start refused.
        """
        for name in ("postmaster.pid", self._socket, f"{self._socket}.lock"):
            (self._cluster / name).unlink(missing_ok=True)

    def _short_socket_folder(self, held: ExitStack) -> Path:
        """Return the socket's folder, by a short name where its own is too long or not one libpq can take."""
        path = os.fsencode(self._cluster / self._socket)
        if len(path) <= LONGEST_SOCKET_PATH and b"," not in path:
            return self._cluster
        short = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="dibs-"))) / "socket"
        short.symlink_to(self._cluster)
        return short

    def _open_log(self) -> IO[bytes]:
        log = os.fdopen(os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
        if log.tell() > LARGEST_LOG:
            log.truncate(0)
        return log

    def _run(self, binaries: Binaries, account: Account, log: IO[bytes], lock: FileLock) -> ServerProcess:
        folder = cluster.name_for_server(self._cluster, account)
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        command = launch_command(account, [str(binaries.bin_dir / "postgres"), "-D", folder, *settings])
        return ServerProcess(command, folder=self._cluster, log=log, lock_fd=lock.fd)

    def _stop_process(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _wait_until_ready(self, process: ServerProcess) -> None:
        """Wait for the server's own word, which it writes into its file once it takes connections."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready(process.pid):
            if process.wait(READY_POLL_SECONDS):
                raise EmbeddedPostgresError(
                    f"PostgreSQL stopped while starting: {self._last_complaint()}. See {self._log}."
                )
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL was not ready after {READY_SECONDS} seconds. "
                    f"See {self._log}, and start Dibs again."
                )

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return (
            len(lines) >= STATUS_LINE and lines[0] == str(pid) and lines[STATUS_LINE - 1].strip() == "ready"
        )

    def _last_complaint(self) -> str:
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        complaints = [line for line in lines if COMPLAINT.search(line)]
        last = (complaints or lines or ["it said nothing"])[-1].rstrip(".")
        return COMPLAINT.split(last)[-1]

    def _ensure_database(self, socket_folder: Path, password: str) -> str:
        """Create the database unless it is there, and return its address."""
        try:
            maintenance = self._address(socket_folder, password, "postgres")
            with psycopg.connect(maintenance, autocommit=True) as connection:
                known = connection.execute(
                    "SELECT FROM pg_database WHERE datname = %s", (DATABASE,)
                ).fetchone()
                if known is None:
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.Error as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise EmbeddedPostgresError(f"Dibs' own PostgreSQL runs but refuses Dibs: {reason}.") from error
        return self._address(socket_folder, password, DATABASE)

    def _address(self, socket_folder: Path, password: str, database: str) -> str:
        where = urlencode({"host": str(socket_folder), "port": self._settings["port"]}, quote_via=quote)
        return f"postgresql://{cluster.SUPERUSER}:{quote(password, safe='')}@/{database}?{where}"
