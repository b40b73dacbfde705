"""What the embedded PostgreSQL promises, tried with real servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.support.embedded import (
    BOT,
    PATIENCE,
    as_root,
    bot,
    embedded,
    end_servers_in,
    freeze_servers_in,
    log_after,
    mode,
    on_linux,
    remember,
    remembered,
    run,
    spawn,
    wait_for_the_servers_end,
    wait_until,
)

from dibs.store.embedded import EmbeddedPostgres, process, server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder that is not there yet."""
    yield tmp_path / "data"
    end_servers_in(tmp_path / "data")


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
                # The bot's threads end one by one, so the server may be asked to shut down, and have done it,
                # before the container's end takes it.
                freeze_servers_in(data_dir)
                killed.kill()
                wait_for_the_servers_end(data_dir)
            assert (data_dir / "postgres" / "postmaster.pid").exists()
        with embedded(data_dir) as running:
            assert remembered(running.url) == "first second third"

    def test_where_the_kernel_does_not_tell_the_server_a_watcher_does(self) -> None:
        # Whatever this process was started with, the one in the server's place does not ignore SIGINT.
        listens = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print(flush=True); input()"
        with spawn([sys.executable, "-c", listens]) as stand_in:
            assert stand_in.stdout is not None
            stand_in.stdout.readline()
            watch = [sys.executable, str(process.HERE / "watch.py")]
            with subprocess.Popen(watch, stdin=subprocess.PIPE) as watcher:  # noqa: S603
                watcher.communicate(str(stand_in.pid).encode(), PATIENCE)
            assert stand_in.wait(PATIENCE) != 0

    def test_the_watcher_ends_with_the_server(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "KERNEL_ENDS_CHILDREN", False)
        before = set(threading.enumerate())
        with embedded(data_dir) as running:
            assert run(running.url, "SELECT 1") == 1
        assert set(threading.enumerate()) <= before
