"""A file reaches one person, or it is known that it did not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.bot import SECRET, TOKEN

from dibs.deadline import Deadline
from dibs.playground import SlackStandIn
from dibs.slack.calls import Answered
from dibs.slack.files import FileSender, FileSent


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN) as slack:
        yield slack


@pytest.fixture
def amal(slack: SlackStandIn) -> str:
    return slack.add_person("Amal").id


def send(slack: SlackStandIn, to: str, content: Path | bytes = b"a,b\n", *, seconds: float = 5) -> FileSent:
    return FileSender(TOKEN, slack.api_url).send_file(
        to,
        content,
        filename="audit.csv",
        title="Audit of SUP",
        alt_text="figures",
        comment="Here it is",
        deadline=Deadline.after(seconds),
    )


def received(slack: SlackStandIn, person: str) -> list[bytes | None]:
    return [file.content for file in slack.files(slack.world.direct_channel(person).id)]


def test_it_comes_in_a_direct_message_with_its_title_and_its_words(slack: SlackStandIn, amal: str) -> None:
    assert send(slack, amal).arrived
    (message,) = slack.direct_messages(amal)
    assert message["text"] == "Here it is"
    (file,) = slack.files(slack.world.direct_channel(amal).id)
    assert (file.name, file.title, file.alt_txt, file.content) == (
        "audit.csv", "Audit of SUP", "figures", b"a,b\n",
    )  # fmt: skip


def test_a_large_file_is_sent_from_the_disk(slack: SlackStandIn, amal: str, tmp_path: Path) -> None:
    path = tmp_path / "audit.csv"
    path.write_bytes(b"0123456789abcdef" * (1 << 18))
    assert send(slack, amal, path, seconds=30).arrived
    assert received(slack, amal) == [path.read_bytes()]


def test_a_longer_description_than_slack_takes_is_cut(slack: SlackStandIn, amal: str) -> None:
    sent = FileSender(TOKEN, slack.api_url).send_file(
        amal, b"x", filename="x.png", title="x", alt_text="é🎉" * 1000, deadline=Deadline.after(5)
    )
    assert sent.arrived
    (file,) = slack.files(slack.world.direct_channel(amal).id)
    assert file.alt_txt.endswith("…")


@pytest.mark.parametrize(
    "method", ["conversations.open", "files.getUploadURLExternal", "files.completeUploadExternal"]
)
def test_what_slack_refuses_is_told_with_slacks_word_and_sends_nothing(
    slack: SlackStandIn, amal: str, method: str
) -> None:
    slack.faults.fail_next(method, error="restricted_action")
    assert send(slack, amal) == FileSent(Answered.REFUSED, "restricted_action", lasting=True)
    assert slack.direct_messages(amal) == []


def test_a_step_that_is_to_be_tried_later_is_tried_later(slack: SlackStandIn, amal: str) -> None:
    slack.faults.fail_next("files.completeUploadExternal", error="ratelimited", retry_after=1)
    assert send(slack, amal).arrived
    assert received(slack, amal) == [b"a,b\n"]


def test_a_wait_that_is_longer_than_the_deadline_is_not_begun(slack: SlackStandIn, amal: str) -> None:
    slack.faults.fail_next("files.getUploadURLExternal", error="ratelimited", retry_after=60)
    assert send(slack, amal).answered is Answered.REFUSED
    assert slack.direct_messages(amal) == []


def test_an_error_after_which_slack_may_have_done_it_is_unknown(slack: SlackStandIn, amal: str) -> None:
    slack.faults.fail_next("files.completeUploadExternal", error="internal_error")
    assert send(slack, amal) == FileSent(Answered.UNKNOWN, "internal_error")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"garbage": True}, "its answer could not be read"),
        ({"http_status": 502}, "its answer could not be read"),
        ({"cut": True}, "the connection to it failed"),
    ],
)
def test_what_is_no_word_of_slacks_is_quoted_to_nobody_and_settles_nothing(
    slack: SlackStandIn, amal: str, fault: dict[str, Any], why: str
) -> None:
    slack.faults.fail_next("conversations.open", **fault)
    assert send(slack, amal) == FileSent(Answered.REFUSED, why)
    slack.faults.fail_next("files.completeUploadExternal", **fault)
    assert send(slack, amal) == FileSent(Answered.UNKNOWN, why)


def test_no_time_left_sends_nothing(slack: SlackStandIn, amal: str) -> None:
    assert send(slack, amal, seconds=0.1).answered is Answered.REFUSED
    assert slack.calls_to("files.getUploadURLExternal") == []


def test_what_cannot_be_sent_at_all_is_an_error(slack: SlackStandIn, amal: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        send(slack, amal, b"")
    with pytest.raises(FileNotFoundError):
        send(slack, amal, tmp_path / "gone.csv")
