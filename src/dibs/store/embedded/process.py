"""The server as a child process whose life is tied to the bot's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.store.embedded.account import Account

HERE = Path(__file__).parent
KERNEL_ENDS_CHILDREN = sys.platform == "linux"
# PostgreSQL's names: a fast shutdown keeps the cluster clean; an immediate one is repaired at the next start.
FAST, IMMEDIATE, KILL = signal.SIGINT, signal.SIGQUIT, signal.SIGKILL
STOP_STEPS = ((FAST, 60.0), (IMMEDIATE, 10.0), (KILL, 10.0))


def launch_command(account: Account, command: Sequence[str]) -> list[str]:
    """Wrap `command` so that it runs under `account` and ends with the thread that starts it."""
    launcher = [sys.executable, "-I", "-S", str(HERE / "launch.py")]
    who = [str(os.getpid()), str(account.uid), str(account.gid)]
    return [*launcher, *who, *command]


def child_environment() -> dict[str, str]:
    """Return an environment with neither Dibs' secrets nor the PG* variables of whoever starts it."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", **kept}


class ServerProcess:
    """A running server, started by and looked after in a thread of its own.

    The parent-death signal fires when the thread that started the child ends, not only when the process
    does. The thread here does nothing but start the child and wait for it, so it lives as long.
    """

    def __init__(self, command: list[str], *, folder: Path, log: IO[bytes], lock_fd: int) -> None:
        self._command = command
        self._folder = folder
        self._log = log
        self._lock_fd = lock_fd
        started: Future[subprocess.Popen[bytes]] = Future()
        self._thread = threading.Thread(
            target=self._attend, args=(started,), name="dibs-postgres", daemon=True
        )
        self._thread.start()
        self._process = started.result()

    @property
    def pid(self) -> int:
        """The number of the server's first process."""
        return self._process.pid

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the server to end, and tell whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Shut the server down and wait until it is gone; harder only where asking does not help."""
        for request, patience in STOP_STEPS:
            self._process.send_signal(request)
            if self.wait(patience):
                return

    def _attend(self, started: Future[subprocess.Popen[bytes]]) -> None:
        with ExitStack() as ended:
            try:
                watcher = None if KERNEL_ENDS_CHILDREN else ended.enter_context(_start_watcher())
                process = self._start_server()
            except OSError as error:
                started.set_exception(error)
                return
            if watcher is not None:
                ended.callback(watcher.kill)
                _tell(watcher, process.pid)
            started.set_result(process)
            process.wait()

    def _start_server(self) -> subprocess.Popen[bytes]:
        # In a session of its own it does not get the terminal's Ctrl-C: the bot stops it, as the last.
        return subprocess.Popen(  # noqa: S603 (a fixed program, without a shell)
            self._command,
            cwd=self._folder,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(self._lock_fd,),
            start_new_session=True,
        )


def _start_watcher() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (a fixed program, without a shell)
        [sys.executable, "-I", "-S", str(HERE / "watch.py")],
        cwd="/",
        env=child_environment(),
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _tell(watcher: subprocess.Popen[bytes], pid: int) -> None:
    if watcher.stdin is not None:
        watcher.stdin.write(str(pid).encode())
        watcher.stdin.flush()
