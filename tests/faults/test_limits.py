"""A database that is short of connections or of room, at the start and at work."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.bot import Office, open_office
from tests.support.embedded import as_root, on_linux
from tests.support.replicas import lone_server
from tests.support.ways import at_version, started

from dibs.store.engine import DatabaseUnusable

PEOPLE = tuple(f"Person{number:02}" for number in range(1, 17))
UNKNOWN = "We could not confirm this; look at the card before pressing again."
ENOUGH, FEW = 40, 3


class Role:
    """A role that may open a limited number of connections; the bot's."""

    def __init__(self, admin: psycopg.Connection, url: str) -> None:
        given = conninfo_to_dict(url)
        self._admin = admin
        self._name = f"few_{given['dbname']}"
        self.url = "postgresql://?" + urlencode({**given, "user": self._name, "password": "few"})
        for statement in (
            f"CREATE ROLE {self._name} LOGIN PASSWORD 'few'",
            f"GRANT USAGE ON SCHEMA dibs TO {self._name}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dibs TO {self._name}",
        ):
            self._do(statement)

    def allow_numbers(self) -> None:
        self._do(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA dibs TO {self._name}")

    def allow(self, connections: int) -> None:
        self._do(f"ALTER ROLE {self._name} CONNECTION LIMIT {connections}")

    def hang_up(self) -> None:
        """End all of the bot's sessions."""
        self._admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (self._name,)
        )

    def drop(self) -> None:
        self._do(f"DROP OWNED BY {self._name}")
        self._do(f"DROP ROLE {self._name}")

    def _do(self, statement: str) -> None:
        self._admin.execute(statement.encode())


@pytest.fixture
def role(database_url: str) -> Iterator[Role]:
    with psycopg.connect(database_url, autocommit=True) as admin:
        role = Role(admin, database_url)
        yield role
        role.hang_up()
        role.drop()


def test_a_single_connection_is_told_at_the_start_in_one_line(database_url: str, role: Role) -> None:
    role.allow(1)
    with pytest.raises(DatabaseUnusable) as refused, open_office(database_url, people=(), bots_way=role.url):
        pass
    assert "too many connections for role" in str(refused.value)
    assert "CONNECTION LIMIT" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_too_few_connections_are_told_at_the_start_in_one_line(database_url: str, role: Role) -> None:
    role.allow(20)
    with (
        open_office(database_url, people=(), bots_way=role.url) as office,
        pytest.raises(DatabaseUnusable) as refused,
    ):
        office.bot.start()
    assert "too many connections for role" in str(refused.value)
    assert "give DIBS_THREADS + 18 (" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_right_that_is_missing_is_named_in_the_log_for_who_is_told_of_it(
    database_url: str, role: Role, caplog: pytest.LogCaptureFixture
) -> None:
    with open_office(database_url, people=("Amal", "Sue"), bots_way=role.url) as office:
        office.make_queue()
        answer = "The database refused this. Nothing changed. Please tell the people who run Dibs."
        assert office.type("Sue", "add Refund order 1001") == answer
        assert "permission denied for sequence" in caplog.text
        role.allow_numbers()
        office.add_task()


def test_presses_that_get_no_connection_are_told_the_truth_and_work_again(
    database_url: str, role: Role
) -> None:
    role.allow(ENOUGH)
    role.allow_numbers()
    with open_office(database_url, people=(*PEOPLE, "Sue"), bots_way=role.url) as office:
        office.make_queue()
        office.verify_members()
        card, second = office.add_task(), office.add_task()
        office.wait(lambda: office.count("card", shown_version=1) == 2)
        role.allow(FEW)
        role.hang_up()
        results = office.slack.together(
            [lambda name=name: office.press(name, card, "claim") for name in PEOPLE]  # type: ignore[misc]
        )
        assert [result for result in results if result.status != 200 or result.seconds >= 3] == []
        for name in PEOPLE:
            office.hears(name, "")
        role.allow(ENOUGH)
        for name in PEOPLE:
            told = office.heard(name)[0]
            if told == UNKNOWN:
                told = _settled(office, name)
            mine = office.id(name) == office.task(1)["owner_id"]
            assert ("is yours until" in told) == mine, told
            assert mine or "nothing changed" in told.lower(), told
        office.wait(lambda: _claims(office, second, "Person01"))


def _settled(office: Office, name: str) -> str:
    def settled() -> bool:
        # As the job does every few seconds, whether or not the database was away meanwhile.
        office.bot.outgoing.settle_once()
        return any(words.startswith("Your press ") for words in office.heard(name))

    office.wait(settled)
    return office.hears(name, "Your press ")


def _claims(office: Office, card: str, name: str) -> bool:
    """Whether the person has the task, after a press where nobody has it."""
    if office.task(2)["owner_id"] is None:
        office.press(name, card, "claim")
    return bool(office.task(2)["owner_id"] == office.id(name))


@contextmanager
def _small_disk(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dibs-disk-") as name:
        Path(name).chmod(0o755)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", name]
        if subprocess.run(mount, check=False, capture_output=True).returncode != 0:  # noqa: S603 - a fixed program
            pytest.skip("this machine lets us mount nothing")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)  # noqa: S603, S607 - a fixed program


@on_linux
@as_root
def test_a_disk_that_is_full_changes_nothing_and_says_so() -> None:
    with _small_disk(24) as disk, lone_server() as server:
        place = disk / "tables"
        place.mkdir()
        os.chown(place, server.folder.stat().st_uid, server.folder.stat().st_gid)
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
            admin.execute("CREATE DATABASE dibs TABLESPACE small")
        with open_office(server.url.replace("/postgres?", "/dibs?"), people=("Amal", "Sue")) as office:
            office.make_queue()
            card = started(office, "Amal")
            _fill(disk)
            office.press("Amal", card, "release")
            note = {"handoff_note": "The mail is written.", "external_action": "none"}
            # The first release card of all needs a page of its own.
            form = office.submit("Amal", {"reason": "shift_ending", **note})
            assert (form.status, form.closed, form.seconds < 3) == (200, False, True), form
            assert "Nothing changed. The task stays yours." in form.errors["reason"]
            assert (office.task()["version"], office.count("release_card")) == (3, 0)

            (disk / "filling").unlink()
            assert "a trial write has worked" in office.type("Sue", "resume")
            form = office.submit("Amal")
            assert form.closed, form
            at_version(office, card, 4)
            assert office.count("release_card") == 1


def _fill(disk: Path) -> None:
    page = bytes(1 << 12)
    with (disk / "filling").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(page):
            pass
