"""The slash commands, with and without keys, in channels with one queue, several and none."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.support import bodies
from tests.support.bot import Office

from dibs.playground import Channel
from dibs.slack import text


def _create(
    office: Office,
    key: str,
    values: dict[str, str] | None = None,
    *,
    by: str = "Sue",
    channel: Channel | None = None,
) -> dict[str, str]:
    """Send the form of /queue create; the errors by input."""
    where = (channel or office.channel).id
    assert office.slack.command(office.id(by), where, "/queue", "create").ephemeral is None
    given = {"name": f"The {key} queue", "key": key, "lease_minutes": "30"} | (values or {})
    result = office.submit(by, given)
    assert result.closed != bool(result.errors)
    return result.errors


def _type_in(office: Office, channel: Channel, name: str, words: str) -> str:
    result = office.slack.command(office.id(name), channel.id, "/queue", words)
    assert result.status == 200
    return str(result.ephemeral["text"]) if result.ephemeral else ""


@pytest.mark.parametrize("prefix", ["/queue", "/dibs queue"])
def test_add_list_mine_next_and_help(office: Office, prefix: str) -> None:
    name, _, first = prefix.partition(" ")

    def typed(who: str, words: str) -> str:
        return office.type(who, f"{first} {words}".strip(), name)

    assert typed("Sue", "list").startswith("*SUP* Support\nNothing is waiting and nobody holds anything.")
    assert "You hold no task." in typed("Amal", "mine")
    assert "Nothing is waiting that you may claim. Nothing changed." in typed("Amal", "next")
    assert typed("Sue", "add Refund order 1001") == (
        f"*SUP-1* is in the queue. Its card is in <#{office.channel.id}>."
    )
    assert "*SUP-2*" in typed("Sue", "add SUP Refund order 1002")
    assert "*SUP-3*" in typed("Sue", "ADD SUP Refund order 1003")
    assert [row["title"] for row in office.rows("SELECT title FROM dibs.task ORDER BY number")] == [
        "Refund order 1001", "Refund order 1002", "Refund order 1003"
    ]  # fmt: skip
    office.wait(lambda: len(office.slack.messages(office.channel.id)) == 3)
    told = typed("Amal", "next")
    assert "*SUP-1* is yours until" in told
    assert "> Refund order 1001" in told
    assert f"/archives/{office.channel.id}/p" in told
    assert "*SUP-2* is yours" in typed("Bilal", "next")
    mine = typed("Amal", "mine")
    assert "*SUP-1*" in mine
    assert "*SUP-2*" not in mine
    listed = typed("Hana", "list")
    for words in (
        f"Claimed · <@{office.id('Amal')}>",
        f"Claimed · <@{office.id('Bilal')}>",
        "Waiting for an owner",
    ):
        assert words in listed
    for words in ("help", "", "nobody knows this"):
        assert f"{prefix} create" in typed("Amal", words)
    assert "Dibs does not know “nobody”. Nothing changed." in typed("Amal", "nobody knows this")


def test_dibs_alone_and_with_an_unknown_word_helps(office: Office) -> None:
    for words in ("", "help", "nonsense", "  "):
        told = office.type("Amal", words, "/dibs")
        assert "*Dibs* gives every task" in told
        assert "`/dibs queue next` gives you" in told
        assert "`/dibs release SUP-12`" in told
        assert "`/dibs audit queue`" in told
        assert "`/queue next`" not in told
        assert "`/queue next` gives you" in office.type("Amal", words)


def test_two_people_who_ask_for_the_next_task_at_once_get_two(office: Office) -> None:
    for number in range(1, 7):
        office.add_task(f"Task {number}")
    people = ["Amal", "Bilal", "Hana", "Marek", "Dana"]
    office.verify_members()
    answers = office.slack.together([lambda name=name: office.type(name, "next") for name in people])  # type: ignore[misc]
    given = sorted(answer.split("*")[1] for answer in answers)
    assert given == ["SUP-1", "SUP-2", "SUP-3", "SUP-4", "SUP-5"]
    assert all("is yours" in answer for answer in answers)
    owners = office.rows("SELECT DISTINCT owner_id FROM dibs.task WHERE state = 'claimed'")
    assert len(owners) == 5


def test_several_queues_in_one_channel(office: Office) -> None:
    assert _create(office, "BIL") == {}
    told = office.type("Sue", "add An invoice <!here>")
    assert "This channel has several queues: `SUP`, `BIL`. Nothing changed." in told
    assert "`/queue add SUP An invoice &lt;!here&gt;`" in told
    assert office.count("task") == 0
    assert "*BIL-1*" in office.type("Sue", "add BIL An invoice")
    assert "*SUP-1*" in office.type("Sue", "add SUP A refund")
    # A key without a title is no key.
    assert "several queues" in office.type("Sue", "add BIL")
    listed = office.type("Amal", "list")
    assert "*SUP* Support and *BIL* The BIL queue" in listed
    office.verify_members()
    assert "*BIL-1* is yours" in office.type("Amal", "next")
    assert "*SUP-1* is yours" in office.type("Amal", "next")
    assert "*SUP-1*" in office.type("Amal", "mine")


def test_a_key_that_does_not_exist_is_part_of_the_title(office: Office) -> None:
    office.type("Sue", "add NOPE is what the customer said")
    assert office.task()["title"] == "NOPE is what the customer said"
    # Nor is a key one that is not in capitals: people write words.
    office.type("Sue", "add sup is what we eat")
    assert office.task(2)["title"] == "sup is what we eat"
    office.type("Sue", "add SUP")
    assert office.task(3)["title"] == "SUP"


def test_another_channel_reaches_a_queue_by_its_key_only(office: Office) -> None:
    elsewhere = office.slack.add_channel("elsewhere", members=[office.id("Sue"), office.id("Amal")])
    for words in ("add Something", "list", "add"):
        assert "This channel has no queue yet" in _type_in(office, elsewhere, "Sue", words)
    assert f"Its card is in <#{office.channel.id}>" in _type_in(office, elsewhere, "Sue", "add SUP Something")
    office.verify_members()
    # Somebody whom Dibs knows to be eligible is given the next task from anywhere.
    assert "*SUP-1* is yours" in _type_in(office, elsewhere, "Amal", "next")


def test_a_task_is_added_with_the_form_where_no_title_is_typed(office: Office) -> None:
    assert office.type("Sue", "add") == ""
    assert office.opened("Sue")["callback_id"] == "new_task"
    assert office.submit("Sue", {}).errors.keys() == {"title"}
    assert office.submit("Sue", {"title": "  "}).errors.keys() == {"title"}
    assert office.count("task") == 0
    given = {"title": "Refund", "details": "Order 1001\nby Friday", "deadline": 1798000000}
    assert office.submit("Sue", given).closed
    office.hears("Sue", "*SUP-1* is in the queue.")
    office.wait(lambda: office.slack.messages(office.channel.id))
    (card,) = office.slack.messages(office.channel.id)
    assert "Order 1001\nby Friday" in card["text"]
    assert "Wanted by <!date^1798000000^" in card["text"]
    assert "UTC>" in card["text"]


TITLES = [
    "<!channel> & <@U0BOT> <#C1|x> <https://evil.example|click> *bold*",
    "Refund 🎉👩\u200d👩\u200d👧\u200d👦 für Zoë — 退款 \u202eltr",
    "a" * 5000,
    "&" * 5000,
    "🎉" * 3000,
    "<" * 2999 + ">",
    "`" * 200 + "_~*" * 100,
    "line\none\r\nline two\ttab",
]


def test_titles_are_stored_whole_and_shown_escaped_and_cut(office: Office) -> None:
    for number, title in enumerate(TITLES, 1):
        assert f"*SUP-{number}*" in office.type("Sue", f"add {title}")
        assert office.task(number)["title"] == title
    office.wait(lambda: len(office.slack.messages(office.channel.id)) == len(TITLES))
    cards = {
        message["text"].split("*")[1]: message["text"] for message in office.slack.messages(office.channel.id)
    }
    for number, title in enumerate(TITLES, 1):
        shown = cards[f"SUP-{number}"].split("\n")[0]
        for unsafe in ("<!channel>", "<@U0BOT>", "<#C1", "<https"):
            assert unsafe not in shown
        assert shown.endswith(text.ELLIPSIS) == (text.length(text.escaped(" ".join(title.split()))) > 300), (
            shown[-20:]
        )
    assert "&lt;!channel&gt; &amp; &lt;@U0BOT&gt;" in cards["SUP-1"]
    listed = office.type("Sue", "list")
    assert "<!channel>" not in listed
    for number in range(1, len(TITLES) + 1):
        told = office.type("Amal", "next")
        assert f"*SUP-{number}* is yours" in told
        assert "<!channel>" not in told
    for name in ("SUP-1", "SUP-3", "SUP-4"):
        card = next(m for m in office.slack.messages(office.channel.id) if f"*{name}*" in m["text"])
        office.press("Bilal", card["ts"], "history")
        assert office.opened("Bilal")["title"]["text"] == f"History of {name}"


def test_characters_that_no_database_keeps_are_dropped(office: Office) -> None:
    for added, typed in enumerate(("add \0 zero", "add a\0b", "add \ud83d lone", "add K\0Y title"), 1):
        answer = office.slack.send_raw(_form(office, typed))
        assert answer.status == 200
        assert f"*SUP-{added}* is in the queue" in answer.body, typed
    assert office.slack.send_raw(_form(office, "\0")).status == 200


def _form(office: Office, typed: str) -> bytes:
    return urlencode(bodies.command(office, "Sue", typed), errors="surrogatepass").encode()


# --- making queues


IMPOSSIBLE: list[tuple[dict[str, str], str]] = [
    ({"key": "1AB"}, "key"),
    ({"key": "A"}, "key"),
    ({"key": "A-B"}, "key"),
    ({"key": "Ä1"}, "key"),
    ({"key": "  "}, "key"),
    ({"key": "SUP"}, "key"),
    ({"key": " sup "}, "key"),
    ({"name": "   "}, "name"),
    ({"lease_minutes": "0"}, "lease_minutes"),
    ({"lease_minutes": "1.5"}, "lease_minutes"),
    ({"lease_minutes": "-5"}, "lease_minutes"),
    ({"lease_minutes": "1000000"}, "lease_minutes"),
    ({"lease_minutes": "soon"}, "lease_minutes"),
]


def test_what_a_queue_cannot_be_made_with_is_named_at_its_input(office: Office) -> None:
    for values, at in IMPOSSIBLE:
        assert _create(office, "BIL", values).keys() == {at}, values
        assert office.count("queue") == 1
        kept = office.opened("Sue")["state"]["values"]["name"]["name"]["value"]
        assert kept == values.get("name", "The BIL queue")
    right = {"name": "Right", "key": "BIL", "lease_minutes": "15"}
    assert office.submit("Sue", right).closed
    assert office.count("queue", key="BIL", lease_seconds=900) == 1


def test_everything_that_is_wrong_is_named_at_once(office: Office) -> None:
    errors = _create(office, "!", {"name": " ", "lease_minutes": "0"})
    # Slack's own client sees an empty name; what it lets through, Dibs names.
    assert errors.keys() <= {"name", "key", "lease_minutes"}
    assert office.count("queue") == 1


def test_a_small_letter_key_is_made_large_and_names_the_tasks(office: Office) -> None:
    other = office.slack.add_channel("billing", members=[office.id("Dana")])
    assert _create(office, "bil2", by="Dana", channel=other) == {}
    office.hears("Dana", "The queue *BIL2*", "is ready in this channel")
    assert "*BIL2-1*" in _type_in(office, other, "Dana", "add An invoice")
    office.wait(lambda: office.slack.messages(other.id))
    assert office.count("queue_member", user_id=office.id("Dana"), supervisor=True) == 1


def test_a_queue_lives_in_a_channel_and_not_in_a_direct_message(office: Office) -> None:
    direct = office.slack.world.direct_channel(office.id("Amal"))
    told = _type_in(office, direct, "Amal", "create")
    assert "A queue lives in a channel. Nothing changed." in told
    assert office.slack.views(office.id("Amal")) == []
    assert "*SUP-1*" in _type_in(office, direct, "Amal", "add SUP From a direct message")
    assert (
        "*SUP-1* is yours" in _type_in(office, direct, "Amal", "next")
        or office.count("event", kind="claimed") == 0
    )
    assert "This channel has no queue yet" in _type_in(office, direct, "Amal", "list")


def test_a_window_that_does_not_open_for_a_command(office: Office) -> None:
    office.slack.faults.fail_next("views.open", error="expired_trigger_id")
    told = office.type("Sue", "create")
    assert told == "Slack did not open the window in time. Nothing changed. Please type it again."
