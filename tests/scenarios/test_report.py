"""/queue report: the numbers at once, then the picture in a direct message."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image
from tests.support.bot import Office
from tests.support.holders import holder

from dibs.playground.files import File
from dibs.slack.plots import HEIGHT, WIDTH


@pytest.fixture
def worked(office: Office) -> Office:
    """A queue in which 25 tasks took 40 minutes each, one ran out and one was handed back."""
    office.execute(
        "INSERT INTO dibs.task (queue_id, number, title, created_by) "
        "SELECT q.id, n, 'Refund', 'U0SUE' FROM dibs.queue q, generate_series(1, 27) n"
    )
    office.execute(
        """
        INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, op_id)
        SELECT t.queue_id, t.id, e.kind, 'U0AMAL', now() - interval '2 days' + e.after,
               e.version, e.version + 1, 'report-' || t.id || '-' || e.version
        FROM dibs.task t CROSS JOIN LATERAL (VALUES
            (1, 'claimed', interval '0'),
            (2, 'started', interval '5 minutes'),
            (3, CASE t.number WHEN 26 THEN 'expired' WHEN 27 THEN 'released' ELSE 'done' END,
             interval '40 minutes')) AS e (version, kind, after)"""
    )
    office.verify_members()
    return office


def picture(office: Office, name: str) -> File:
    """The picture that this person gets in a direct message."""

    def files() -> list[File]:
        if not office.slack.direct_messages(office.id(name)):
            return []
        return office.slack.files(office.slack.world.direct_channel(office.id(name)).id)

    office.slack.wait_until(files, timeout=60)
    (found,) = files()
    return found


def blocks(office: Office, name: str, words: str) -> list[dict[str, Any]]:
    result = office.slack.command(office.id(name), office.channel.id, "/queue", words)
    assert result.ephemeral is not None
    return list(result.ephemeral["blocks"])


def test_the_numbers_come_at_once_and_the_picture_as_a_file(worked: Office) -> None:
    told = worked.type("Amal", "report")
    assert "*Lease review of SUP* Support" in told
    assert "*From claim to start*: 27 observed. Half took at most 5 min" in told
    assert "*From start to done*: 27 observed, 2 of them cut short. Half took at most 35 min" in told
    assert "1 lease ran out" in told
    assert "*Suggested lease*: 45 min. 9 in 10 tasks take at most 40 min" in told
    file = picture(worked, "Amal")
    assert (file.mimetype, file.title) == ("image/png", "Lease review of SUP, 30 days")
    assert file.name.startswith("lease-review-SUP-")
    assert "27 observed, median 5 min" in file.alt_txt
    with Image.open(io.BytesIO(file.content or b"")) as opened:
        opened.load()
        assert opened.size == (WIDTH, HEIGHT)
    (message,) = worked.slack.direct_messages(worked.id("Amal"))
    assert message["text"] == "The lease review of *SUP* that you asked for."


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("report SUP", "The last 30 days"),
        ("report sup 7", "The last 7 days"),
        ("report 90", "The last 90 days"),
        ("report SUP 90 days", "The last 90 days"),
        ("report SUP 365d", "The last 365 days"),
    ],
)
def test_the_queue_and_the_period_may_be_named(worked: Office, words: str, shown: str) -> None:
    assert shown in worked.type("Sue", words)
    picture(worked, "Sue")


@pytest.mark.parametrize(
    "words", ["SUP soon", "SUP 0", "SUP -3", "366", "1.5", "SUP 99999999999", "SUP 7 8", "<!here>"]
)
def test_a_period_that_is_none_gets_a_clear_answer(worked: Office, words: str) -> None:
    told = worked.type("Amal", f"report {words}")
    assert "Type a number of days from 1 to 365" in told
    assert "<!here>" not in told
    assert worked.slack.calls_to("files.getUploadURLExternal") == []


def test_a_queue_that_is_not_there_is_named(worked: Office) -> None:
    assert "There is no queue “NOPE”" in worked.type("Amal", "report NOPE")
    assert "This channel has `SUP`." in worked.type("Amal", "report NOPE")


def test_where_a_channel_has_several_queues_they_are_named(worked: Office) -> None:
    worked.make_queue(key="BIL")
    told = worked.type("Amal", "report 7")
    assert (
        "This channel has several queues: `SUP`, `BIL`. Nothing changed. Say which: `/queue report SUP 7`"
        in told
    )
    elsewhere = worked.slack.add_channel("elsewhere", members=[worked.id("Amal")])
    result = worked.slack.command(worked.id("Amal"), elsewhere.id, "/queue", "report")
    assert result.ephemeral is not None
    assert "This channel has no queue yet" in result.ephemeral["text"]


def test_a_queue_without_observations_gets_a_text_and_no_picture(office: Office) -> None:
    office.add_task()
    told = office.type("Sue", "report")
    assert "Nothing was claimed in *SUP* Support in the last 30 days" in told
    assert "`/queue report SUP 90`" in told
    office.bot.outgoing.close()
    assert office.slack.calls_to("files.getUploadURLExternal") == []


def test_only_members_and_supervisors_see_it(worked: Office) -> None:
    stranger = worked.slack.add_person("Eve")
    elsewhere = worked.slack.add_channel("elsewhere", members=[stranger.id, worked.id("Sue")])
    result = worked.slack.command(stranger.id, elsewhere.id, "/queue", "report SUP")
    assert result.ephemeral is not None
    told = result.ephemeral["text"]
    assert "Only members of the queue's channel and its supervisors may see the report of *SUP*" in told
    assert "observed" not in told
    allowed = worked.slack.command(worked.id("Sue"), elsewhere.id, "/queue", "report SUP")
    assert allowed.ephemeral is not None
    assert "27 observed" in allowed.ephemeral["text"]
    picture(worked, "Sue")
    assert worked.slack.direct_messages(stranger.id) == []


def test_a_picture_that_cannot_be_sent_leaves_the_numbers(worked: Office) -> None:
    worked.slack.faults.fail_next("files.getUploadURLExternal", error="file_uploads_disabled")
    assert "27 observed" in worked.type("Amal", "report")
    worked.hears("Amal", "The picture of this report could not be sent to you. The numbers above stand")


def test_a_picture_that_is_not_confirmed_is_told_as_such(worked: Office) -> None:
    worked.slack.faults.fail_next("files.completeUploadExternal", error="internal_error")
    worked.type("Amal", "report")
    worked.hears("Amal", "We could not confirm that the picture", "Look at your direct messages")


def test_what_takes_longer_than_an_answer_may_follows_by_itself(worked: Office, database_url: str) -> None:
    with holder(database_url) as other:
        other.do("LOCK TABLE dibs.event IN ACCESS EXCLUSIVE MODE")
        told = worked.type("Amal", "report")
        assert told.startswith("There is much to count in *SUP*, so its report takes a moment longer.")
        other.rollback()
    told = worked.hears("Amal", "*Lease review of SUP* Support", "27 observed")
    assert "*Suggested lease*: 45 min." in told
    picture(worked, "Amal")


def test_the_answer_is_made_of_blocks(worked: Office) -> None:
    assert [block["type"] for block in blocks(worked, "Amal", "report")] == ["section"] * 7 + ["context"]
    picture(worked, "Amal")


def test_a_report_quotes_commands_as_the_person_types_them(office: Office) -> None:
    assert "`/dibs queue report SUP 90`" in office.type("Amal", "queue report", "/dibs")
    office.press("Amal", office.add_task(), "claim")
    assert "`/dibs queue report SUP 90`" in office.type("Amal", "queue report", "/dibs")
