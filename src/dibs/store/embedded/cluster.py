"""The cluster: the folder of files that PostgreSQL keeps its databases in."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from dibs.store.embedded.errors import EmbeddedPostgresError, advice, explained
from dibs.store.embedded.process import child_environment, launch_command

if TYPE_CHECKING:
    from pathlib import Path

    from dibs.store.embedded.account import Account
    from dibs.store.embedded.binaries import Binaries

SUPERUSER = "dibs"
# Named through the process's own working directory, the folder is found by a user who may not pass through
# the folders above it: the kernel follows this link without looking at them.
WORKING_FOLDER = "/proc/self/cwd"


def name_for_server(folder: Path, account: Account) -> str:
    """How a server that runs as `account`, in the working directory `folder`, shall call that folder."""
    return WORKING_FOLDER if account.borrowed else str(folder)


def exists(cluster: Path, binaries: Binaries) -> bool:
    """Tell whether `cluster` holds databases that these binaries can run; raises if others wrote them."""
    with explained(f"The folder {cluster} cannot be read"):
        if not cluster.exists() or not any(cluster.iterdir()):
            return False
        version_file = cluster / "PG_VERSION"
        if not version_file.is_file():
            raise EmbeddedPostgresError(
                f"The folder {cluster} holds something other than Dibs' database. "
                "Move it away, or set DIBS_DATA_DIR to another folder."
            )
        version = version_file.read_text().strip()
    if version != binaries.major:
        raise EmbeddedPostgresError(
            f"The database in {cluster} was written by PostgreSQL {version}, and this Dibs brings "
            f"{binaries.version}. Start the Dibs that wrote it and move the data with pg_dump, "
            "or set DIBS_DATA_DIR to another folder."
        )
    return True


def create(
    cluster: Path, binaries: Binaries, account: Account, *, password: str, fsync: bool, lock_fd: int
) -> None:
    """Create an empty cluster, whole or not at all: it takes its name only when it is complete."""
    fresh = cluster.with_name(cluster.name + ".new")
    with explained(f"No database can be created in the folder {cluster.parent}"):
        # What an interrupted attempt left behind.
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        try:
            if account.borrowed:
                os.chown(fresh, account.uid, account.gid, follow_symlinks=False)
            _run_initdb(fresh, binaries, account, password=password, fsync=fsync, lock_fd=lock_fd)
            fresh.rename(cluster)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        if fsync:
            _sync_folder(cluster.parent)


def password_in(file: Path, *, create: bool) -> str:
    """Read the password from `file`, which only its owner may read; `create` makes one that is missing."""
    with explained(f"The file {file} cannot be used"):
        known = file.read_text().strip() if file.exists() else ""
        if known:
            return known
        if not create:
            raise EmbeddedPostgresError(
                f"The file {file} is missing or empty, and the database beside it opens to nothing else. "
                "Put it back from a backup, or set DIBS_DATA_DIR to another folder."
            )
        return _new_password(file)


def _new_password(file: Path) -> str:
    password = secrets.token_urlsafe(24)
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as content:
        content.write(password)
        content.flush()
        os.fsync(fd)
    fresh.rename(file)
    return password


def _run_initdb(
    folder: Path, binaries: Binaries, account: Account, *, password: str, fsync: bool, lock_fd: int
) -> None:
    command = [
        str(binaries.bin_dir / "initdb"),
        f"--pgdata={name_for_server(folder, account)}",
        f"--username={SUPERUSER}",
        "--auth=scram-sha-256",
        "--pwfile=/dev/stdin",
        "--encoding=UTF8",
        "--no-locale",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--text-search-config=simple",
        "--no-instructions",
        *([] if fsync else ["--no-sync"]),
    ]
    # A file, because another user may not open a pipe of ours by its name.
    with tempfile.TemporaryFile("w", dir=folder.parent) as password_file:
        password_file.write(password)
        password_file.flush()
        if account.borrowed:
            os.fchown(password_file.fileno(), account.uid, account.gid)
        result = subprocess.run(  # noqa: S603 (a fixed program, without a shell)
            launch_command(account, command),
            cwd=folder,
            env=child_environment(),
            stdin=password_file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=(lock_fd,),
            start_new_session=True,
            check=False,
        )
    if result.returncode != 0:
        reason = _reason(result.stdout).replace(WORKING_FOLDER, str(folder))
        raise EmbeddedPostgresError(
            f"No database can be created in the folder {folder.parent}: {reason}. {advice(reason)}"
        )


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if any(mark in line for mark in ("error: ", "FATAL: ", "PANIC: "))]
    return (errors[:1] or lines[-1:] or ["initdb said nothing"])[0].rstrip(".")


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
