"""Embedded servers and bots for tests: to start, to ask, to kill."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from dibs.store.embedded import EmbeddedPostgres, EmbeddedPostgresError
from dibs.store.embedded.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE = 60

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
as_ordinary_user = pytest.mark.skipif(os.geteuid() == 0, reason="needs an ordinary user")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

# A bot of its own process: it starts the server, says so in one line, and ends with its input.
BOT = """
import json, sys
from pathlib import Path
from dibs.store.embedded import EmbeddedPostgres, EmbeddedPostgresError

server = EmbeddedPostgres(Path(sys.argv[1]), fsync=False)
try:
    url = server.start()
except EmbeddedPostgresError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit(1)
print(json.dumps({"url": url, "pid": server.pid}), flush=True)
sys.stdin.read()
server.stop()
"""


class Bot:
    """A process that runs BOT, and what it said."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        assert child.stdout is not None
        self.said: dict[str, Any] = json.loads(child.stdout.readline())

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(PATIENCE)


@contextmanager
def bot(data_dir: Path, command: Sequence[str] = (sys.executable,), **how: Any) -> Iterator[Bot]:  # noqa: ANN401
    with spawn([*command, "-c", BOT, str(data_dir)], **how) as child:
        yield Bot(child)


@contextmanager
def spawn(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[str]]:  # noqa: ANN401
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how
    ) as child:
        try:
            yield child
        finally:
            if child.stdin is not None:
                child.stdin.close()
            try:
                child.wait(PATIENCE)
            finally:
                child.kill()


@contextmanager
def embedded(data_dir: Path, **options: Any) -> Iterator[EmbeddedPostgres]:  # noqa: ANN401
    with EmbeddedPostgres(data_dir, **{"fsync": False, **options}) as running:
        yield running


def run(url: str, statement: str) -> Any:  # noqa: ANN401
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[arg-type,unused-ignore]
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def remember(url: str, word: str) -> None:
    run(url, "CREATE TABLE IF NOT EXISTS memory (word text)")
    run(url, f"INSERT INTO memory VALUES ('{word}')")  # noqa: S608


def remembered(url: str) -> Any:  # noqa: ANN401
    return run(url, "SELECT string_agg(word, ' ' ORDER BY word) FROM memory")


def wait_for_the_servers_end(data_dir: Path) -> None:
    lock = FileLock(data_dir / "postgres.lock")
    assert lock.acquire(PATIENCE), "the server outlived its bot"
    lock.release()


def refusal(data_dir: Path) -> str:
    with pytest.raises(EmbeddedPostgresError) as caught:
        EmbeddedPostgres(data_dir, fsync=False).start()
    message = str(caught.value)
    assert "\n" not in message
    return message


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def end_servers_in(data_dir: Path) -> None:
    """Kill a server that broke its promise to end, so that it does not outlive its test."""
    _signal_servers_in(data_dir, signal.SIGKILL)


def freeze_servers_in(data_dir: Path) -> None:
    """Keep a server from shutting down: what is asked of it now waits until it is killed."""
    _signal_servers_in(data_dir, signal.SIGSTOP)


def _signal_servers_in(data_dir: Path, number: signal.Signals) -> None:
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == data_dir / "postgres":
                os.kill(int(link.parent.name), number)


def log_after(data_dir: Path, mark: str) -> str:
    return (data_dir / "postgres.log").read_text().partition(mark)[2]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
