"""Whom the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from dibs.store.embedded.errors import EmbeddedPostgresError

if sys.platform != "win32":
    import pwd

UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group of this machine. `borrowed` tells that it is not the one Dibs runs as."""

    uid: int
    gid: int
    borrowed: bool


def account_for(cluster: Path) -> Account:
    """Choose the account for the server of `cluster`, a folder that need not exist yet.

    An ordinary user's server runs as that user. Root's server runs as whoever owns the cluster, so that
    a folder that an ordinary user began stays theirs, and else as `nobody`. PostgreSQL looks its user up
    by name, so a uid without an account is refused here.
    """
    uid = os.geteuid()
    if uid != 0:
        return _existing_account(uid, borrowed=False)
    if not Path("/proc/self/cwd").exists():
        raise EmbeddedPostgresError(
            "PostgreSQL does not run as root, and handing it over to another user needs Linux with /proc. "
            "Start Dibs as an ordinary user, or set DATABASE_URL."
        )
    owner = cluster.stat().st_uid if cluster.exists() else 0
    if owner != 0:
        return _existing_account(owner, borrowed=True)
    try:
        nobody = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise EmbeddedPostgresError(
            f"PostgreSQL does not run as root, and this machine has no user {UNPRIVILEGED!r} to run it as. "
            "Start Dibs as an ordinary user, or set DATABASE_URL."
        ) from None
    return Account(nobody.pw_uid, nobody.pw_gid, borrowed=True)


def _existing_account(uid: int, *, borrowed: bool) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedPostgresError(
            f"PostgreSQL needs an account for user id {uid}, and this machine has none. "
            "Add one to /etc/passwd, or set DATABASE_URL."
        ) from None
    return Account(uid, entry.pw_gid if borrowed else os.getegid(), borrowed=borrowed)
