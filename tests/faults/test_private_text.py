"""What people write is in the database and in Slack, and in no log, whatever goes wrong."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.support.bot import open_office
from tests.support.store import Desk
from tests.support.ways import at_version, started

from dibs.deadline import Deadline
from dibs.domain.errors import Refused
from dibs.store.embedded import EmbeddedPostgres
from dibs.store.guard import Guard

SECRET = "4111 1111 1111 1111"  # noqa: S105 - what somebody wrote into a note


def test_a_record_that_the_database_refuses_is_quoted_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="dibs")
    server = EmbeddedPostgres(tmp_path, fsync=False)
    with server, open_office(server.url, people=("Amal", "Sue")) as office:
        office.make_queue()
        card = started(office, "Amal")
        for table, text in (("release_card", "handoff_note"), ("task", "title")):
            office.execute(
                f"ALTER TABLE dibs.{table} ADD CONSTRAINT refused CHECK ({text} NOT LIKE '%4111%') NOT VALID"
            )
        office.press("Amal", card, "release")
        note = {"handoff_note": f"Paid with {SECRET}.", "external_action": "none"}
        form = office.submit("Amal", {"reason": "shift_ending", **note})
        assert "Nothing changed" in str(form.errors)
        assert "Nothing changed" in office.type("Sue", f"add Refund to {SECRET}")
        assert office.task()["version"] == 3
        at_version(office, card, 3)
    log = (tmp_path / "postgres.log").read_text()
    assert log.count("violates check constraint") == 2
    assert "4111" not in log
    assert "4111" not in caplog.text


def test_an_error_of_the_store_quotes_nothing_that_was_sent(desk: Desk) -> None:
    with pytest.raises(Refused) as refused:
        Guard(desk.engine).run(
            sa.text("UPDATE dibs.queue SET name = '', key = :key"), {"key": SECRET}, Deadline.after()
        )
    assert "4111" not in "".join(traceback.format_exception(refused.value))
