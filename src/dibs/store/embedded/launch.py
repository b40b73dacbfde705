"""The last steps between the bot's process and PostgreSQL's: give up root, tie the life, exec.

Run as a program of its own, by `python launch.py PARENT UID GID PROGRAM ARGUMENT...`. It stands between
them because these steps belong after the fork, and Python code that runs after a fork of a process with
threads (subprocess's preexec_fn) may find a lock held by a thread that no longer exists.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, uid: int, gid: int, command: list[str]) -> None:
    """Become `command` under `uid` and `gid`, to be sent SIGINT when the thread that started us ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.geteuid() != uid:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # The kernel forgets this wish when the user changes, so it comes after.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("The process that asked for this server has already ended.")
    os.execv(command[0], command)  # noqa: S606 (a fixed program, without a shell)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
