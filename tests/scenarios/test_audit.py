"""/audit: who may look, what they see, and the pages of it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from tests.support.bot import Office

from dibs.playground import Channel
from dibs.playground.blockkit import check_blocks
from dibs.slack.views.history import MOST_EVENTS

FILL = """
INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, op_id, why)
SELECT t.queue_id, t.id, 'claim_rejected', :actor, t.created_at + n * interval '1 second', 1, 1,
       'filled-' || n, 'held'
FROM dibs.task t, generate_series(1, :number) AS n WHERE t.number = 1
"""


def audit(office: Office, name: str, words: str = "", *, channel: Channel | None = None) -> dict[str, Any]:
    """Type /audit; the ephemeral message that it was answered with, which must be one that Slack takes."""
    where = channel or office.channel
    result = office.slack.command(office.id(name), where.id, "/audit", words)
    assert result.status == 200, result
    assert result.ephemeral is not None
    message: dict[str, Any] = result.ephemeral
    assert len(message["text"]) <= 4000
    assert not [str(fault) for fault in check_blocks(message.get("blocks") or [], "message")]
    return message


def buttons(message: dict[str, Any]) -> list[str]:
    return [
        element["action_id"]
        for block in message.get("blocks") or []
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def turn(office: Office, name: str, message: dict[str, Any], button: str) -> dict[str, Any]:
    """Press Older or Newer, and wait for the page to be replaced in place."""
    before = message["text"]

    def now() -> dict[str, Any]:
        return next(one for one in office.slack.ephemerals(office.id(name)) if one["ts"] == message["ts"])

    office.slack.press(office.id(name), office.channel.id, message["ts"], f"audit_{button}")
    office.wait(lambda: now()["text"] != before, lambda: f"the page still shows {before!r}")
    assert not [str(fault) for fault in check_blocks(now()["blocks"], "message")]
    return now()


@pytest.fixture
def handed_back(office: Office) -> Office:
    """Amal has started a task and handed it back with everything that a release card can hold."""
    card = office.add_task("Refund order 1001")
    unclaimed = office.card(card)
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    office.slack.press_stale(office.id("Bilal"), unclaimed, "task_claim", channel_id=office.channel.id)
    office.hears("Bilal", "nothing changed")
    office.press("Amal", card, "start")
    office.shows(card, "In progress")
    office.press("Amal", card, "release")
    released = office.submit(
        "Amal",
        {
            "reason": "other",
            "comment": "The bank is closed",
            "handoff_note": "Call them on Monday",
            "external_action": "unknown",
        },
    )
    assert released.closed, released
    return office


def test_a_task_is_shown_newest_first_with_its_release_card_whole_and_refused_attempts(
    handed_back: Office,
) -> None:
    office = handed_back
    said = audit(office, "Bilal", "SUP-1")["text"]
    order = ["handed back", "started", "tried to claim", "claimed  ", "added"]
    assert sorted(order, key=said.index) == order
    for words in (
        "Another reason",
        "The bank is closed",
        "Call them on Monday",
        "External action: unknown",
        "in progress; version 3 became 4",
        "which changed nothing: somebody else had it",
        " UTC>",
    ):
        assert words in said
    assert said.count(f"<@{office.id('Bilal')}>") == 1


def test_names_are_read_in_any_case_and_the_other_command_does_the_same(handed_back: Office) -> None:
    said = audit(handed_back, "Hana", "sup-1")["text"]
    assert "*Audit of SUP-1*" in said
    assert handed_back.type("Hana", "audit SUP-1", "/dibs") == said


@pytest.mark.parametrize("words", ["", "queue", "SUP", "sup", "queue 7d", "24h"])
def test_a_queue_is_this_channels_or_the_one_that_is_named(handed_back: Office, words: str) -> None:
    said = audit(handed_back, "Hana", words)["text"]
    assert "*Audit of SUP*" in said
    assert "*SUP-1*" in said
    assert "handed back" in said


def test_a_person_is_shown_with_what_they_did_and_what_befell_their_tasks(handed_back: Office) -> None:
    office = handed_back
    card = office.add_task("Another")
    office.press("Bilal", card, "claim")
    office.shows(card, "Claimed")
    office.end_lease(2)
    office.sweep()
    said = audit(office, "Hana", f"<@{office.id('Bilal')}|bilal>")["text"]
    order = ["the sweep returned it to the queue", "claimed  ", "tried to claim"]
    assert sorted(order, key=said.index) == order
    assert "handed back" not in said
    assert f"It was <@{office.id('Bilal')}>'s." in said


@pytest.mark.parametrize("words", ["SUP-1", "SUP-99", "SUP", "NOPE", "NOPE-1", "@", "<@U1>"])
def test_an_outsider_is_told_the_rule_and_nothing_of_what_there_is(handed_back: Office, words: str) -> None:
    office = handed_back
    stranger = office.slack.add_person("Zoe")
    office.people["Zoe"] = stranger
    elsewhere = office.slack.add_channel("elsewhere", members=[stranger.id])
    said = audit(office, "Zoe", words, channel=elsewhere)["text"]
    if words == "@":
        assert "Slack did not say who" in said
    else:
        assert "Only members of a queue's channel or group and its supervisors may look at" in said
    assert "Refund" not in said


def test_who_joined_without_being_heard_of_is_looked_up_before_being_refused(handed_back: Office) -> None:
    office = handed_back
    office.verify_members()
    office.execute("DELETE FROM dibs.queue_member WHERE user_id = :u", u=office.id("Hana"))
    assert "*Audit of SUP-1*" in audit(office, "Hana", "SUP-1")["text"]
    office.execute("DELETE FROM dibs.queue_member WHERE user_id = :u", u=office.id("Marek"))
    office.slack.faults.fail_next("conversations.members", error="internal_error")
    said = audit(office, "Marek", f"<@{office.id('Amal')}>")["text"]
    assert "Dibs could not look up in Slack whether you may look" in said


def test_a_member_is_told_that_there_is_no_such_task(handed_back: Office) -> None:
    assert "There is no such task in this queue" in audit(handed_back, "Hana", "SUP-99")["text"]


@pytest.mark.parametrize(
    "words", ["SUP-1 soon", "what is this", "@amal", "SUP 2026-13-01", "yesterday x", "<b>"]
)
def test_nonsense_is_answered_with_examples(handed_back: Office, words: str) -> None:
    said = audit(handed_back, "Hana", words)["text"]
    assert "`/audit SUP-12` a task" in said
    assert "2026-11-01 14:00" in said


def test_days_begin_in_the_time_zone_of_who_asks(office: Office) -> None:
    office.slack.world.people[office.id("Hana")].tz = "Asia/Tokyo"
    said = audit(office, "Hana", "2026-01-02")["text"]
    midnight = int(datetime(2026, 1, 1, 15, tzinfo=UTC).timestamp())
    assert f"<!date^{midnight}^" in said
    office.verify_members()
    office.slack.faults.fail_next("users.info", error="internal_error")
    assert "could not look up your time zone" in audit(office, "Hana", "yesterday")["text"]


def test_pages_go_to_the_oldest_and_back_without_missing_or_repeating_one(office: Office) -> None:
    office.add_task()
    office.execute(FILL, actor=office.id("Bilal"), number=34)
    office.verify_members()
    stamps = [
        int(row["at"].timestamp())
        for row in office.rows(
            "SELECT at FROM dibs.event WHERE task_id IS NOT NULL ORDER BY at DESC, id DESC"
        )
    ]
    for words in ("SUP-1", "SUP", f"<@{office.id('Bilal')}>"):
        expected = stamps[:-1] if words.startswith("<") else stamps
        page = audit(office, "Amal", words)
        assert buttons(page) == ["audit_older"]
        seen = _stamps(page)
        while "audit_older" in buttons(page):
            page = turn(office, "Amal", page, "older")
            seen += _stamps(page)
        assert seen == expected
        while "audit_newer" in buttons(page):
            page = turn(office, "Amal", page, "newer")
        assert _stamps(page) == expected[: len(_stamps(page))]
        assert len(_stamps(page)) == 10


def _wait_for_version(office: Office, card: str, version: int) -> None:
    office.wait(
        lambda: json.loads(office.card(card)["blocks"][-1]["elements"][0]["value"])["version"] == version
    )


def _stamps(page: dict[str, Any]) -> list[int]:
    return [
        int(block["text"]["text"].split("^")[1]) for block in page["blocks"][1:] if block["type"] == "section"
    ]


def test_ten_thousand_events_of_a_task_are_answered_like_ten(office: Office) -> None:
    card = office.add_task()
    office.execute(FILL, actor=office.id("Bilal"), number=10_000)
    page = turn(office, "Amal", audit(office, "Amal", "SUP-1"), "older")
    assert len(_stamps(page)) == 10
    office.press("Amal", card, "history")
    shown = office.opened("Amal")["blocks"]
    assert len(shown) == MOST_EVENTS + 2
    assert f"Only the newest {MOST_EVENTS} are shown." in str(shown[-1])


def test_long_texts_make_shorter_pages_and_none_is_missed(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    for number in range(14):
        office.press("Amal", card, "note")
        assert office.submit("Amal", {"text": f"note {number}: " + "long & wide " * 200}).closed
        _wait_for_version(office, card, number + 3)
    page = audit(office, "Bilal", "SUP-1")
    seen = _stamps(page)
    notes = page["text"]
    while "audit_older" in buttons(page):
        page = turn(office, "Bilal", page, "older")
        seen += _stamps(page)
        notes += page["text"]
        assert len(_stamps(page)) < 10
    assert len(seen) == 16
    assert all(f"note {number}:" in notes for number in range(14))
    while "audit_newer" in buttons(page):
        page = turn(office, "Bilal", page, "newer")
    assert "note 13:" in page["text"]


def test_who_has_left_is_refused_at_the_next_page_and_the_page_stays(office: Office) -> None:
    office.add_task()
    office.execute(FILL, actor=office.id("Bilal"), number=12)
    page = audit(office, "Amal", "SUP")
    office.slack.leave(office.id("Amal"), office.channel.id)
    office.wait(lambda: office.count("queue_member", user_id=office.id("Amal"), standing="left"))
    office.slack.press(office.id("Amal"), office.channel.id, page["ts"], "audit_older")
    office.hears("Amal", "Only members of a queue's channel")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "{}",
        "[]",
        '{"task":"1"}',
        '{"task":1,"at":1}',
        '{"queue":1,"at":4611686018427387904,"id":1}',
        "x" * 2000,
    ],
)
def test_a_button_that_cannot_be_read_changes_nothing_and_says_so(office: Office, value: str) -> None:
    office.add_task()
    office.execute(FILL, actor=office.id("Bilal"), number=12)
    page = audit(office, "Amal", "SUP")
    for block in page["blocks"]:
        for element in block.get("elements", []):
            element["value"] = value
    office.slack.press_stale(office.id("Amal"), page, "audit_older", channel_id=office.channel.id)
    office.hears("Amal", "Dibs could not read this button")


def test_a_page_that_slack_does_not_take_is_told(office: Office) -> None:
    office.add_task()
    office.execute(FILL, number=20, actor=office.id("Amal"))
    message = audit(office, "Sue", "SUP-1")
    office.slack.faults.fail_next("response_url", error="used_url", http_status=404, times=2)
    office.slack.press(office.id("Sue"), office.channel.id, message["ts"], "audit_older")
    office.hears("Sue", "Slack did not take this page, so the one above stays as it was.")
    assert message in office.slack.ephemerals(office.id("Sue"))


def test_what_people_write_in_a_title_is_kept_as_they_typed_it(office: Office) -> None:
    hana = office.id("Hana")
    sent = (
        f"Ask <@{hana}|hana> in <#{office.channel.id}|support>, see <https://a.example/x?a=1&amp;b=2> or "
        "<http://b.example|b.example> &lt;soon&gt; <!subteam^S1|@helpers>"
    )
    office.type("Sue", f"queue add {sent}", command="/dibs")
    assert office.task()["title"] == (
        "Ask @hana in #support, see https://a.example/x?a=1&b=2 or b.example <soon> @helpers"
    )
    office.type("Sue", f"queue add Ask <@{hana}> too", command="/dibs")
    assert office.task(2)["title"] == "Ask @Hana too"
    # Slack does not write mentions out for /queue, so what looks like one was typed just so.
    office.type("Sue", "add Ask @hana &lt;soon&gt; <!channel>")
    assert office.task(3)["title"] == "Ask @hana <soon> <!channel>"


def test_what_happened_to_the_queue_itself_stands_among_the_rest(office: Office) -> None:
    office.type("Sue", "settings")
    assert office.submit("Sue", {"lease_minutes": "45"}).closed
    office.type("Sue", "pause")
    office.type("Amal", "resume")
    office.type("Sue", "resume")
    said = audit(office, "Hana", "queue")["text"]
    order = ["let the queue go on", "tried to resume", "paused the return", "changed the queue's settings"]
    assert sorted(order, key=said.index) == order
    assert "Lease: 30 minutes → 45 minutes" in said


@pytest.mark.parametrize(("button", "form"), [("audit_csv", "csv"), ("audit_jsonl", "jsonl")])
def test_a_supervisor_gets_the_whole_selection_as_a_file(handed_back: Office, button: str, form: str) -> None:
    office = handed_back
    office.execute(FILL, actor=office.id("Bilal"), number=40)
    page = audit(office, "Sue", "SUP-1")
    assert buttons(page) == ["audit_older", "audit_csv", "audit_jsonl"]
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], button)
    office.hears("Sue", "The file is being made")
    office.wait(lambda: office.slack.files(office.id("Sue")))
    [file] = office.slack.files(office.id("Sue"))
    assert file.name.startswith("audit-SUP-1-")
    assert file.name.endswith(f".{form}")
    written = (file.content or b"").decode("utf-8")
    if form == "csv":
        rows: list[dict[str, Any]] = list(csv.DictReader(written.removeprefix("\ufeff").splitlines()))
    else:
        rows = [json.loads(line) for line in written.splitlines()]
    assert len(rows) == office.count("event", task_id=office.task()["id"])
    [released] = [row for row in rows if row["kind"] == "released"]
    assert released["handoff_note"] == "Call them on Monday"
    assert released["comment"] == "The bank is closed"


def test_a_file_about_a_person_names_them_and_shows_the_time_in_the_readers_zone(handed_back: Office) -> None:
    office, amal = handed_back, handed_back.id("Amal")
    page = audit(office, "Sue", f"<@{amal}> 2026-01-01T12:30Z")
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_jsonl")
    office.wait(lambda: office.slack.files(office.id("Sue")))
    [message] = [one for one in office.slack.direct_messages(office.id("Sue")) if one.get("files")]
    assert f"The records of <@{amal}> since <!date^1767270600^" in message["text"]
    assert "2026-01-01 12:30 UTC>" in message["text"]
    [file] = office.slack.files(office.id("Sue"))
    assert file.title == f"Audit of {amal} since 2026-01-01 12:30 UTC"


def test_where_nothing_was_recorded_no_file_is_promised(office: Office) -> None:
    message = audit(office, "Sue", "<@U0NOBODY>")
    assert "Nothing was recorded." in message["text"]
    assert "file" not in message["text"]
    assert buttons(message) == []


def test_a_file_is_for_supervisors_and_found_out_anew(handed_back: Office) -> None:
    office = handed_back
    assert buttons(audit(office, "Hana", "SUP-1")) == []
    page = audit(office, "Sue", "SUP-1")
    office.execute("UPDATE dibs.queue_member SET supervisor = false")
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_csv")
    office.hears("Sue", "Only a supervisor of the queue may export its records")
    assert office.slack.files(office.id("Sue")) == []


def test_a_file_that_slack_does_not_take_is_told(handed_back: Office) -> None:
    office = handed_back
    page = audit(office, "Sue", "queue")
    office.slack.faults.fail_next("files.getUploadURLExternal", error="file_uploads_disabled")
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_csv")
    office.hears("Sue", "Slack did not take it: file_uploads_disabled", "dibs audit export", "does not help")
    begun, came_of_it = office.heard("Sue")[-2:]
    assert "The file is being made." in begun
    assert "press again in a moment" not in came_of_it


def test_a_file_that_may_have_arrived_is_not_said_to_be_lost(handed_back: Office) -> None:
    office = handed_back
    page = audit(office, "Sue", "queue")
    office.slack.faults.fail_next("files.completeUploadExternal", error="internal_error")
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_csv")
    office.hears("Sue", "We could not confirm that the file has reached you")


def test_few_files_are_made_at_once_and_a_database_that_does_not_answer_is_told(
    handed_back: Office,
) -> None:
    office = handed_back
    page = audit(office, "Sue", "queue")
    with office.engine.connect().execution_options(isolation_level="READ COMMITTED") as holder:
        holder.execute(sa.text("LOCK TABLE dibs.event IN ACCESS EXCLUSIVE MODE"))
        for _ in range(3):
            office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_csv")
        office.hears("Sue", "Other exports are being made just now")
        office.wait(lambda: sum("could not be made" in said for said in office.heard("Sue")) == 2)
        holder.rollback()
    office.slack.press(office.id("Sue"), office.channel.id, page["ts"], "audit_jsonl")
    office.wait(lambda: len(office.slack.files(office.id("Sue"))) == 1)
