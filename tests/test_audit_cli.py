"""`dibs audit` as an operator types it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.embedded import bot, run
from tests.support.store import AMAL, Desk, open_desk

from dibs.service.transitions import TransitionService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, make_engine

_ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 100
A_BOT = {"SLACK_BOT_TOKEN": "xoxb-x"}
"""Some settings of a bot, without which an embedded database is the playground's."""


def dibs(*arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run `dibs audit`; without Slack's settings, which it does not need."""
    ours = ("SLACK_", "DIBS_", "DATABASE_URL", "HOST", "PORT")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(  # noqa: S603 - the program under test
        [sys.executable, "app.py", "audit", *map(str, arguments)],
        cwd=_ROOT,
        env={**inherited, **settings},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def storied(desk: Desk, service: TransitionService) -> Desk:
    task = desk.task("=Refund ümläut")
    assert service.claim(task.id, AMAL, 1).changed
    assert service.release(task.id, AMAL, 2, reason="shift_ending", comment="-1").changed
    desk.task("Another")
    return desk


@pytest.mark.usefixtures("storied")
def test_export_streams_to_the_standard_output_and_into_a_file(database_url: str, tmp_path: Path) -> None:
    ended = dibs("export", "--task", "sup-1", DATABASE_URL=database_url)
    assert (ended.returncode, ended.stderr) == (0, b"3 events were written.\n")
    assert ended.stdout.startswith(b"\xef\xbb\xbfat,queue,task,title,kind")
    sheet = csv.DictReader(io.StringIO(ended.stdout.decode("utf-8-sig"), newline=""))
    assert [(row["kind"], row["title"], row["comment"]) for row in sheet] == [
        ("created", "'=Refund ümläut", ""),
        ("claimed", "'=Refund ümläut", ""),
        ("released", "'=Refund ümläut", "'-1"),
    ]
    file = tmp_path / "records.jsonl"
    for selection, number in (
        ([], 4),
        (["--queue", "SUP"], 4),
        (["--user", AMAL], 2),
        (["--since", "1h"], 4),
        (["--since", "2020-01-01", "--task", "SUP-2"], 1),
    ):
        ended = dibs("export", *selection, "--format", "jsonl", "--output", file, DATABASE_URL=database_url)
        assert (ended.returncode, ended.stdout) == (0, b""), ended
        assert len([json.loads(line) for line in file.read_text("utf-8").splitlines()]) == number, selection
    assert list(tmp_path.iterdir()) == [file]


def test_who_reads_only_the_beginning_ends_the_export_quietly(storied: Desk, database_url: str) -> None:
    storied.execute(
        "INSERT INTO dibs.event (queue_id, kind, op_id, why) "
        "SELECT q.id, 'claim_rejected', repeat('x', 100) || n, 'held' "
        "FROM dibs.queue q, generate_series(1, 5000) AS n"
    )
    command = f"{sys.executable} app.py audit export --format jsonl | head -n 1"
    ended = subprocess.run(  # noqa: S602 - a pipe of a shell is what is tried
        command,
        cwd=_ROOT,
        env={**os.environ, "DATABASE_URL": database_url},
        shell=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.stderr == b""
    assert json.loads(ended.stdout)["kind"] == "created"


def test_verify_tells_of_everything_and_names_what_does_not_fit(
    storied: Desk, database_url: str, tmp_path: Path
) -> None:
    kept = tmp_path / "heads"
    ended = dibs("verify", "--save", kept, DATABASE_URL=database_url)
    assert ended.returncode == 0, ended
    said = ended.stdout.decode()
    assert "Everything fits: 2 tasks, 4 events, 1 release cards." in said
    assert hashlib.sha256(kept.read_bytes()).hexdigest() in said
    storied.task("A third")
    assert dibs("verify", "--against", kept, DATABASE_URL=database_url).returncode == 0
    storied.execute("ALTER TABLE dibs.release_card DISABLE TRIGGER ALL")
    storied.execute("UPDATE dibs.release_card SET reason = 'other'")
    ended = dibs("verify", "--save", tmp_path / "no", DATABASE_URL=database_url)
    assert ended.returncode == 1
    released = storied.value("SELECT id FROM dibs.event WHERE kind = 'released'")
    assert ended.stdout.decode() == (
        f"Does not fit: SUP-1, event {released}: released: its release card was altered.\n"
    )
    assert not (tmp_path / "no").exists()
    assert dibs("verify", "--task", "SUP-2", DATABASE_URL=database_url).returncode == 0
    assert dibs("verify", "--queue", "sup", DATABASE_URL=database_url).returncode == 1


@pytest.mark.usefixtures("storied")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "--task", "SUP-9"], "There is no task SUP-9."),
        (["export", "--queue", "NOPE"], "There is no queue NOPE."),
        (["export", "--task", "12"], "a task is written like SUP-12"),
        (["export", "--task", "SUP-1", "--user", "U1"], "leave out --task, or --user"),
        (["export", "--since", "soon"], "a time is written like 2026-11-01"),
        (["export", "--output", "/nowhere/x"], "/nowhere/"),
        (["verify", "--against", "/nowhere/x"], "/nowhere/x"),
        (["verify", "--against", "README.md"], "line 1 is not one that `verify --save` wrote"),
        (["verify", "--against", "README.md", "--queue", "SUP"], "leave out --task and --queue"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(database_url: str, arguments: list[str], words: str) -> None:
    ended = dibs(*arguments, DATABASE_URL=database_url)
    assert ended.returncode == 2
    assert words in ended.stderr.decode().splitlines()[-1]
    assert ended.stdout == b""


def test_a_database_that_is_not_there_or_of_another_version_is_told(tmp_path: Path) -> None:
    ended = dibs("verify", DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert ended.returncode == 2
    assert b"could not be reached" in ended.stderr
    ended = dibs("verify", DIBS_DATA_DIR=str(tmp_path), **A_BOT)
    assert ended.returncode == 2
    assert b"There is no database of Dibs" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_embedded_database_is_read_beside_the_bot_and_without_it(tmp_path: Path) -> None:
    settings = {"DIBS_DATA_DIR": str(tmp_path), **A_BOT}
    with bot(tmp_path) as running:
        engine = make_engine(running.said["url"], BACKGROUND, pool_size=1)
        schema.upgrade(engine)
        open_desk(engine).task()
        engine.dispose()
        ended = dibs("verify", **settings)
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert b"1 tasks, 1 events" in ended.stdout
        assert run(running.said["url"], "SELECT 'the server is left alone'") == "the server is left alone"
    ended = dibs("export", "--format", "jsonl", **settings)
    assert (ended.returncode, ended.stdout.count(b"\n")) == (0, 1), ended
