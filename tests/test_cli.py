"""The program as somebody starts it: `python app.py`, with settings in the environment."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from dibs.playground import SlackStandIn

_ROOT = Path(__file__).resolve().parent.parent
_SECRET, _TOKEN = "a-signing-secret", "xoxb-a-token"
PATIENCE = 60


def _environment(**settings: str) -> dict[str, str]:
    ours = ("SLACK_", "DIBS_", "DATABASE_URL", "HOST", "PORT")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**inherited, "PORT": "0", "DIBS_PLAYGROUND_PORT": "0", **settings}


@contextmanager
def _program(**settings: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "app.py"]
    with subprocess.Popen(  # noqa: S603 - the program under test
        command, cwd=_ROOT, env=_environment(**settings), stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def _first_address(program: subprocess.Popen[str]) -> str:
    """The first address that the program says, once it runs."""
    assert program.stdout is not None
    for line in program.stdout:
        words = [word.rstrip(";.") for word in line.split() if word.startswith("http://")]
        if words:
            return words[0]
    raise AssertionError("the program ended without a word of where it is")


def _stop(program: subprocess.Popen[str]) -> int:
    program.send_signal(signal.SIGTERM)
    return program.wait(PATIENCE)


def _refused(**settings: str) -> str:
    """The one line that the program says before it ends with an exit code that is not zero."""
    ended = subprocess.run(
        [sys.executable, "app.py"],
        cwd=_ROOT,
        env=_environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode != 0
    [line] = ended.stderr.splitlines()
    assert ended.stdout == ""
    return line


@pytest.mark.parametrize("over", ["http", "socket"])
def test_the_bot_serves_a_workspace_and_stops_when_told(database_url: str, over: str) -> None:
    app_token = "xapp-a-token" if over == "socket" else None
    with SlackStandIn(signing_secret=_SECRET, bot_token=_TOKEN, app_token=app_token) as slack:
        asked = {"SLACK_APP_TOKEN": app_token} if app_token else {"SLACK_SIGNING_SECRET": _SECRET}
        settings = {"SLACK_BOT_TOKEN": _TOKEN, "SLACK_API_URL": slack.api_url, "DATABASE_URL": database_url}
        with _program(**settings, **asked) as program:
            address = _first_address(program)
            slack.bot_url = address
            amal = slack.add_person("Amal")
            channel = slack.add_channel("support", members=[amal.id])
            slack.command(amal.id, channel.id, "/queue", "create")
            assert slack.submit(amal.id, {"name": "Support", "key": "SUP", "lease_minutes": "30"}).closed
            slack.command(amal.id, channel.id, "/queue", "add Refund order 1001")
            slack.wait_until(lambda: slack.messages(channel.id), PATIENCE)
            card = slack.messages(channel.id)[0]["ts"]
            assert slack.press(amal.id, channel.id, card, "task_claim").status == 200
            slack.wait_until(lambda: "owner <@" in slack.messages(channel.id)[0]["text"], PATIENCE)
            ready = address.removesuffix("/slack/events").removesuffix("/readyz") + "/readyz"
            with urllib.request.urlopen(ready, timeout=PATIENCE) as answer:  # noqa: S310 - an address of the test's own
                assert answer.status == 200
            assert _stop(program) == 0
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT owner_id, version FROM dibs.task").fetchone()
    assert row == (amal.id, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="signals one thread through Linux's own call")
def test_the_bot_stops_whichever_thread_is_given_the_signal(database_url: str) -> None:
    with SlackStandIn(signing_secret=_SECRET, bot_token=_TOKEN) as slack:
        settings = {"SLACK_BOT_TOKEN": _TOKEN, "SLACK_API_URL": slack.api_url, "DATABASE_URL": database_url}
        with _program(**settings, SLACK_SIGNING_SECRET=_SECRET) as program:
            _first_address(program)
            threads = {int(thread.name) for thread in Path(f"/proc/{program.pid}/task").iterdir()}
            another = min(threads - {program.pid})
            assert ctypes.CDLL(None).tgkill(program.pid, another, signal.SIGTERM) == 0
            assert program.wait(PATIENCE) == 0


def test_the_playground_starts_where_nothing_is_set_and_keeps_its_tasks(tmp_path: Path) -> None:
    for _ in range(2):
        with _program(DIBS_DATA_DIR=str(tmp_path)) as program:
            page = _first_address(program)
            with urllib.request.urlopen(page, timeout=PATIENCE) as answer:  # noqa: S310 - an address of the test's own
                assert b"Playground" in answer.read()
            assert _stop(program) == 0
    assert (tmp_path / "playground" / "postgres").is_dir()


def test_settings_that_are_there_in_part_are_one_line_and_no_demonstration(database_url: str) -> None:
    assert "SLACK_SIGNING_SECRET must be set" in _refused(SLACK_BOT_TOKEN=_TOKEN)
    assert "SLACK_BOT_TOKEN" in _refused(DATABASE_URL=database_url)


def test_a_database_or_a_slack_that_cannot_be_used_is_one_line(database_url: str) -> None:
    slack = {
        "SLACK_BOT_TOKEN": _TOKEN,
        "SLACK_SIGNING_SECRET": _SECRET,
        "SLACK_API_URL": "http://127.0.0.1:1/",
    }
    assert "could not be reached" in _refused(**slack, DATABASE_URL="postgresql://dibs@127.0.0.1:1/dibs")
    assert "is not a PostgreSQL address" in _refused(**slack, DATABASE_URL="mysql://dibs")
    assert "did not accept the bot" in _refused(**slack, DATABASE_URL=database_url)


def test_a_port_that_is_taken_is_one_line(database_url: str) -> None:
    with SlackStandIn(signing_secret=_SECRET, bot_token=_TOKEN) as slack:
        taken = str(urlsplit(slack.api_url).port)
        good = {
            "SLACK_BOT_TOKEN": _TOKEN,
            "SLACK_SIGNING_SECRET": _SECRET,
            "SLACK_API_URL": slack.api_url,
            "DATABASE_URL": database_url,
        }
        assert "Set HOST and PORT" in _refused(**good, PORT=taken)
        assert "Set DIBS_METRICS_PORT" in _refused(**good, DIBS_METRICS_PORT=taken)


def test_a_schema_of_a_newer_program_is_one_line_and_stays_as_it_is(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE dibs.alembic_version SET version_num = '9999'")
        slack = {"SLACK_BOT_TOKEN": _TOKEN, "SLACK_SIGNING_SECRET": _SECRET}
        said = _refused(**slack, SLACK_API_URL="http://127.0.0.1:1/", DATABASE_URL=database_url)
        assert "newer Dibs (schema 9999)" in said
        assert connection.execute("SELECT version_num FROM dibs.alembic_version").fetchall() == [("9999",)]


def test_a_second_bot_on_the_same_folder_is_told_so(tmp_path: Path) -> None:
    with _program(DIBS_DATA_DIR=str(tmp_path)) as program:
        _first_address(program)
        assert "Another Dibs is using the folder" in _refused(DIBS_DATA_DIR=str(tmp_path))
        assert _stop(program) == 0
