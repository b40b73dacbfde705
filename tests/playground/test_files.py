from __future__ import annotations

import json
import struct
import urllib.request
import zlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from slack_sdk.errors import SlackApiError, SlackRequestError
from tests.playground.test_install import manifest, missing
from tests.playground.tiny_bot import TOKEN, card
from tests.support.slack import request

from dibs.playground import File

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slack_sdk import WebClient
    from slack_sdk.web import SlackResponse
    from tests.playground.raw_bot import RawBot

    from dibs.playground import Channel, Person, SlackStandIn

Json = dict[str, Any]
CSV = b"task,owner\nSUP-1,Amal\n"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def png(width: int = 3, height: int = 2) -> bytes:
    """A picture of one colour, as small as they come."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\x00" + b"\x22\x70\x5a" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def error(call: Callable[[], object]) -> str:
    with pytest.raises(SlackApiError) as raised:
        call()
    return str(raised.value.response["error"])


def asked(client: WebClient, content: bytes = CSV) -> tuple[str, str]:
    """The upload URL and the id of a file that is asked for."""
    told = client.files_getUploadURLExternal(filename="report.csv", length=len(content))
    return str(told["upload_url"]), str(told["file_id"])


def uploaded(client: WebClient) -> str:
    """The id of a file whose bytes have come."""
    url, file_id = asked(client)
    assert request("POST", url, CSV)[0] == 200
    return file_id


def complete(client: WebClient, files: Sequence[str], **where: object) -> SlackResponse:
    """Complete files, each under its id as its title."""
    named = [{"id": one, "title": f"Title {one}"} for one in files]
    return client.api_call("files.completeUploadExternal", json={"files": named, **where})


# The whole way


def test_slacks_own_client_uploads_a_file_into_a_channel(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    answer = client.files_upload_v2(
        channel=support.id, filename="report.csv", content=CSV, title="October", initial_comment="Here it is"
    )
    [message] = slack.messages(support.id)
    assert (message["text"], message["user"]) == ("Here it is", slack.bot_user_id)
    [told] = message["files"]
    assert (told["id"], told["name"], told["title"]) == (answer["file"]["id"], "report.csv", "October")
    assert (told["mimetype"], told["size"], told["is_public"]) == ("text/csv", len(CSV), True)
    assert told["shares"]["public"][support.id][0]["ts"] == message["ts"]
    [file] = slack.files(support.id)
    assert isinstance(file, File)
    assert (file.name, file.title, file.content) == ("report.csv", "October", CSV)
    [listed] = client.conversations_history(channel=support.id)["messages"]
    assert listed["files"] == message["files"]


def test_a_picture_keeps_its_description_and_tells_its_size(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.files_upload_v2(channel=support.id, filename="load.png", file=png(), alt_txt="Load by day")
    [told] = slack.messages(support.id)[0]["files"]
    assert (told["alt_txt"], told["mimetype"], told["original_w"], told["original_h"]) == (
        "Load by day",
        "image/png",
        3,
        2,
    )


def test_a_file_goes_into_a_direct_message_and_only_its_person_sees_it(
    slack: SlackStandIn, client: WebClient, amal: Person, bilal: Person
) -> None:
    channel = client.conversations_open(users=[amal.id])["channel"]["id"]
    client.files_upload_v2(channel=channel, filename="mine.csv", content=CSV)
    [file] = slack.files(channel)
    assert slack.files(amal.id) == [file]
    assert slack.files(bilal.id) == []
    [message] = slack.direct_messages(amal.id)
    assert message["files"][0]["ims"] == [channel]
    assert not message["files"][0]["is_public"]
    address = f"{slack.page_url}page/files/{file.id}?user="
    assert request("GET", address + amal.id) == (200, CSV.decode())
    assert request("GET", address + bilal.id)[0] == 404
    assert request("GET", address)[0] == 404


def test_several_files_are_shared_in_several_places_by_id_or_by_person(
    slack: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    both = [uploaded(client), uploaded(client)]
    titles = [f"Title {one}" for one in both]
    answer = complete(client, both, channels=[support.id, amal.id])
    assert [one["title"] for one in answer["files"]] == titles
    assert [one.title for one in slack.files(support.id)] == titles
    [private] = slack.direct_messages(amal.id)
    assert [one["title"] for one in private["files"]] == titles


def test_a_file_that_is_shared_nowhere_is_nobodys(
    slack: SlackStandIn, client: WebClient, amal: Person
) -> None:
    file_id = uploaded(client)
    told = complete(client, [file_id])["files"][0]
    assert (told["id"], told["shares"], told["is_public"]) == (file_id, {}, False)
    assert request("GET", f"{slack.page_url}page/files/{file_id}?user={amal.id}")[0] == 404


def test_a_file_is_a_reply_in_a_thread(
    slack: SlackStandIn, client: WebClient, support: Channel, posted: str
) -> None:
    client.files_upload_v2(channel=support.id, filename="a.csv", content=CSV, thread_ts=posted)
    assert slack.messages(support.id)[-1]["thread_ts"] == posted
    files, two = [uploaded(client)], [support.id, slack.add_channel("other").id]
    assert error(lambda: complete(client, files, channels=two, thread_ts=posted)) == "invalid_arguments"
    unknown = error(lambda: complete(client, files, channel_id=support.id, thread_ts="1.1"))
    assert unknown == "thread_not_found"


def test_blocks_stand_with_a_file_unless_there_is_a_comment(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    complete(client, [uploaded(client)], channel_id=support.id, blocks=card())
    complete(client, [uploaded(client)], channel_id=support.id, blocks=card(), initial_comment="Words")
    with_blocks, with_words = slack.messages(support.id)
    assert with_blocks["blocks"][0]["block_id"] == "words"
    assert ("blocks" in with_words, with_words["text"]) == (False, "Words")
    bad, files = [{"type": "section"}], [uploaded(client)]
    assert error(lambda: complete(client, files, channel_id=support.id, blocks=bad)) == "invalid_blocks"


def test_a_file_stays_when_its_message_is_given_other_words(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.files_upload_v2(channel=support.id, filename="a.csv", content=CSV)
    client.chat_update(channel=support.id, ts=slack.messages(support.id)[0]["ts"], text="Other words")
    [message] = slack.messages(support.id)
    assert (message["text"], message["files"][0]["name"]) == ("Other words", "a.csv")


# Asking for an upload


@pytest.mark.parametrize(
    ("asked_for", "code"),
    [
        ({"length": 0}, "missing_argument"),
        ({"length": 10, "filename": ""}, "invalid_arguments"),
        ({"length": 10, "alt_txt": "y" * 1001}, "alt_txt_too_large"),
        ({"length": 10, "snippet_type": "cuneiform"}, "unknown_snippet_type"),
        ({"length": 1024 * 1024 + 1, "snippet_type": "python"}, "snippet_too_large"),
        ({"length": 1024 * 1024 * 1024 + 1}, "file_upload_size_restricted"),
    ],
)
def test_an_upload_that_cannot_be_is_refused_at_once(client: WebClient, asked_for: Json, code: str) -> None:
    told = {"filename": "a.csv", **asked_for}
    assert error(lambda: client.files_getUploadURLExternal(**told)) == code


def test_a_snippet_is_text_whatever_its_name(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.files_upload_v2(channel=support.id, filename="load.bin", content="print(1)", snippet_type="python")
    [told] = slack.messages(support.id)[0]["files"]
    assert (told["mode"], told["filetype"], told["mimetype"]) == ("snippet", "python", "text/plain")


# The bytes


def test_bytes_come_raw_or_in_a_form(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    content = png() + b"\r\n--x\r\n\x00\xff"
    url, file_id = asked(client, content)
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="channel"\r\n\r\nC1\r\n'
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + content + b"\r\n--edge--\r\n"
    )
    sent = request("POST", url, form, {"Content-Type": "multipart/form-data; boundary=edge"})
    assert sent == (200, f"OK - {len(content)}")
    complete(client, [file_id], channel_id=support.id)
    assert slack.files(support.id)[0].content == content


@pytest.mark.parametrize("content", [CSV[:-1], CSV + b"!", b""])
def test_another_length_than_was_announced_is_refused(client: WebClient, content: bytes) -> None:
    url, file_id = asked(client)
    status, words = request("POST", url, content)
    assert (status, f"{len(CSV)} bytes were announced" in words) == (400, True)
    assert error(lambda: complete(client, [file_id])) == "file_not_found"
    assert request("POST", url, CSV)[0] == 200


def test_an_upload_url_takes_bytes_once_and_a_made_up_one_never(
    slack: SlackStandIn, client: WebClient
) -> None:
    url, _ = asked(client)
    assert request("POST", url, CSV)[0] == 200
    assert request("POST", url, CSV)[0] == 400
    assert request("POST", url + "x", CSV)[0] == 400
    assert request("POST", f"{slack.page_url}upload/v1/T404/x", CSV)[0] == 404


def test_an_upload_url_is_for_this_machine_only(slack: SlackStandIn, client: WebClient) -> None:
    url, _ = asked(client)
    assert url.startswith(slack.page_url)
    assert urlsplit(url).hostname == "127.0.0.1"
    assert request("POST", url, CSV, {"Origin": "https://elsewhere.example"})[0] == 403


def test_an_upload_can_meet_trouble(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    def upload() -> None:
        client.files_upload_v2(channel=support.id, filename="a.csv", content=CSV)

    slack.faults.fail_next("upload_url", http_status=500)
    with pytest.raises((SlackRequestError, OSError)):
        upload()
    assert slack.messages(support.id) == []
    upload()
    assert [call.response.get("ok") for call in slack.calls_to("upload_url")] == [None, True]


# Completing


def test_an_upload_is_completed_once_and_not_before_its_bytes_came(
    client: WebClient, support: Channel
) -> None:
    _, empty = asked(client)
    assert error(lambda: complete(client, [empty])) == "file_not_found"
    assert error(lambda: complete(client, ["F404"])) == "file_not_found"
    assert error(lambda: complete(client, [])) == "invalid_arguments"
    done = [uploaded(client)]
    complete(client, done, channel_id=support.id)
    assert error(lambda: complete(client, done, channel_id=support.id)) == "file_not_found"


def test_a_file_is_shared_only_where_the_bot_is(
    slack: SlackStandIn, client: WebClient, support: Channel, amal: Person
) -> None:
    file_id = uploaded(client)

    def refused(**where: object) -> str:
        return error(lambda: complete(client, [file_id], **where))

    outside = slack.add_channel("outside", bot=False).id
    hidden = slack.add_channel("hidden", bot=False, private=True).id
    archived = slack.add_channel("archived").id
    slack.archive(archived)
    assert refused(channel_id=outside) == "not_in_channel"
    assert refused(channel_id=hidden) == "channel_not_found"
    assert refused(channel_id=amal.id) == "channel_not_found"
    assert refused(channels=["C404"]) == "invalid_channel"
    assert refused(channels=[support.id, outside]) == "not_in_channel"
    assert refused(channel_id=archived) == "posting_to_channel_denied"
    assert refused(channels=[f"C{number}" for number in range(101)]) == "channels_limit_exceeded"
    robot = slack.add_person("Robot", is_bot=True).id
    assert refused(channels=[robot]) == "posting_to_channel_denied"
    assert slack.messages(support.id) == []
    complete(client, [file_id], channel_id=support.id)


# Reading


def test_a_bot_reads_a_file_with_its_token_and_is_led_astray_without(
    slack: SlackStandIn, client: WebClient, support: Channel
) -> None:
    client.files_upload_v2(channel=support.id, filename="für Amal.csv", content=CSV)
    [told] = slack.messages(support.id)[0]["files"]
    for url in (told["url_private"], told["url_private_download"]):
        with urllib.request.urlopen(urllib.request.Request(url, headers=BEARER)) as answer:  # noqa: S310 - loopback
            assert (answer.read(), answer.headers["Content-Type"]) == (CSV, "text/csv; charset=utf-8")
        assert request("GET", url)[0] == 302
        assert request("GET", url, headers={"Authorization": "Bearer xoxb-other"})[0] == 302
    slack.install(manifest("files:write"))
    assert request("GET", told["url_private"], headers=BEARER)[0] == 302
    slack.install(manifest("files:write", "files:read"))
    assert request("GET", told["url_private"], headers=BEARER)[0] == 200


def test_a_page_in_a_file_is_never_run_here(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    client.files_upload_v2(channel=support.id, filename="a.html", content="<script>alert(1)</script>")
    [file] = slack.files(support.id)
    address = f"{slack.page_url}page/files/{file.id}?user={support.members[0]}"
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - loopback
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_a_file_is_looked_up_and_deleted(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    file_id = client.files_upload_v2(channel=support.id, filename="a.csv", content=CSV)["file"]["id"]
    assert client.files_info(file=file_id)["file"]["channels"] == [support.id]
    url = slack.messages(support.id)[0]["files"][0]["url_private"]
    client.files_delete(file=file_id)
    assert slack.messages(support.id)[0]["files"] == [{"id": file_id, "mode": "tombstone"}]
    assert slack.files(support.id) == []
    assert request("GET", url, headers=BEARER)[0] == 404
    assert error(lambda: client.files_info(file=file_id)) == "file_deleted"
    assert error(lambda: client.files_delete(file=file_id)) == "file_deleted"
    assert error(lambda: client.files_info(file="F404")) == "file_not_found"


# The manifest in use


def test_files_need_their_scopes(slack: SlackStandIn, client: WebClient, support: Channel) -> None:
    slack.install(manifest("chat:write"))
    ask = client.files_getUploadURLExternal
    assert missing(lambda: ask(filename="a", length=1))[0] == "files:write"
    assert missing(lambda: complete(client, ["F1"]))[0] == "files:write"
    assert missing(lambda: client.files_delete(file="F1"))[0] == "files:write"
    assert missing(lambda: client.files_info(file="F1"))[0] == "files:read"
    slack.install(manifest("files:write"))
    client.files_upload_v2(channel=support.id, filename="a.csv", content=CSV)


def test_a_bot_that_subscribed_to_messages_hears_of_its_own_file(
    quick: SlackStandIn, raw: RawBot, client_of: Callable[[SlackStandIn], WebClient]
) -> None:
    channel = quick.add_channel("support")
    quick.install(manifest("files:write", "channels:history", events=("message.channels",)))
    client_of(quick).files_upload_v2(channel=channel.id, filename="a.csv", content=CSV)
    quick.wait_until(lambda: raw.requests)
    event = json.loads(raw.requests[0][1])["event"]
    assert (event["subtype"], event["files"][0]["name"], "hidden" in event) == ("file_share", "a.csv", False)
