"""Methods about files: an upload in three steps, and what can be done with a file afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dibs.playground import files
from dibs.playground.errors import ApiError
from dibs.playground.payloads import message_event
from dibs.playground.webapi.chat import content, reply
from dibs.playground.webapi.conversations import direct, known

if TYPE_CHECKING:
    from dibs.playground.files import File
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import Channel, World

Json = dict[str, Any]

LONGEST_ALT_TEXT: Final = 1000
LARGEST_SNIPPET: Final = 1024 * 1024
LARGEST_FILE: Final = 1024 * 1024 * 1024
MOST_CHANNELS: Final = 100
# Those of Slack's file types that are text, which is what a snippet is.
SNIPPET_TYPES: Final = frozenset(
    [
        "applescript",
        "auto",
        "c",
        "cfm",
        "clojure",
        "coffeescript",
        "cpp",
        "csharp",
        "css",
        "csv",
        "d",
        "dart",
        "diff",
        "dockerfile",
        "erlang",
        "fortran",
        "fsharp",
        "go",
        "groovy",
        "handlebars",
        "haskell",
        "haxe",
        "html",
        "java",
        "javascript",
        "json",
        "kotlin",
        "latex",
        "lisp",
        "lua",
        "markdown",
        "matlab",
        "mumps",
        "objc",
        "ocaml",
        "pascal",
        "perl",
        "php",
        "pig",
        "powershell",
        "puppet",
        "python",
        "r",
        "ruby",
        "rust",
        "scala",
        "scheme",
        "shell",
        "smalltalk",
        "sql",
        "swift",
        "text",
        "tsv",
        "vb",
        "vbscript",
        "velocity",
        "verilog",
        "xml",
        "yaml",
    ]
)


def get_upload_url(world: World, args: Arguments) -> Json:
    """files.getUploadURLExternal: where the bytes of one file may be posted, once."""
    name = args.required("filename")
    length = args.number("length", 0)
    if length < 1:
        raise ApiError("missing_argument")
    if length > LARGEST_FILE:
        raise ApiError("file_upload_size_restricted")
    alt_txt, snippet_type = args.text("alt_txt"), args.text("snippet_type")
    if len(alt_txt) > LONGEST_ALT_TEXT:
        raise ApiError("alt_txt_too_large")
    if snippet_type and snippet_type not in SNIPPET_TYPES:
        raise ApiError("unknown_snippet_type")
    if snippet_type and length > LARGEST_SNIPPET:
        raise ApiError("snippet_too_large")
    file = files.expect(world, name, length, alt_txt=alt_txt, snippet_type=snippet_type)
    return {"upload_url": files.upload_url(world, file), "file_id": file.id}


def complete_upload(world: World, args: Arguments) -> Json:
    """files.completeUploadExternal: give uploaded files their titles, and share them if a channel is named.

    It works once for each file. Nothing is shared anywhere unless it can be shared everywhere.
    """
    named = _named(args)
    uploaded = [_uploaded(world, str(one["id"])) for one in named]
    channels = _channels(world, args)
    thread = args.text("thread_ts")
    if thread and len(channels) != 1:
        raise ApiError("invalid_arguments", messages=["[ERROR] thread_ts needs exactly one channel"])
    text, blocks = _comment(args)
    messages = [(channel, world.compose(text=text, blocks=blocks)) for channel in channels]
    for channel, message in messages:
        message["files"] = [{"id": file.id} for file in uploaded]
        if thread:
            reply(channel, message, thread)
    for file, told in zip(uploaded, named, strict=True):
        file.complete, file.title = True, str(told.get("title") or file.name)
    for channel, message in messages:
        world.post(channel, message)
        for file in uploaded:
            files.share(world, file, channel, message["ts"])
        world.news.append(message_event(channel, message, "file_share"))
    return {"files": [files.as_json(world, file) for file in uploaded]}


def info(world: World, args: Arguments) -> Json:
    """files.info: one file."""
    return {"file": files.as_json(world, _finished(world, args))}


def delete(world: World, args: Arguments) -> Json:
    """files.delete: take a file away; the messages that showed it say that it is gone."""
    file = _finished(world, args)
    file.deleted, file.content = True, None
    files.refresh(world, file)
    return {}


def _named(args: Arguments) -> list[Json]:
    named = args.structure("files", "invalid_arguments")
    if not isinstance(named, list) or not named:
        raise ApiError("invalid_arguments", messages=["[ERROR] missing required field: files"])
    if not all(isinstance(one, dict) and one.get("id") for one in named):
        raise ApiError("invalid_arguments", messages=["[ERROR] each file needs its id"])
    return named


def _uploaded(world: World, file_id: str) -> File:
    """Return a file whose bytes came and that was not completed yet."""
    file = world.files.get(file_id)
    if file is None or file.content is None or file.complete:
        raise ApiError("file_not_found")
    return file


def _finished(world: World, args: Arguments) -> File:
    file = world.files.get(args.required("file", "file_not_found"))
    if file is None or not file.complete:
        raise ApiError("file_not_found")
    if file.deleted:
        raise ApiError("file_deleted")
    return file


def _channels(world: World, args: Arguments) -> list[Channel]:
    """Return where to share: one channel's id, or several of channels or people."""
    single, several = args.text("channel_id"), args.ids("channels")
    if len(several) > MOST_CHANNELS:
        raise ApiError("channels_limit_exceeded")
    try:
        found = [known(world, one) for one in [single] if one]
        found += [direct(world, one) if one in world.people else known(world, one) for one in several]
    except ApiError as refusal:
        if refusal.code == "cannot_dm_bot":
            raise ApiError("posting_to_channel_denied") from None
        raise ApiError("channel_not_found" if single else "invalid_channel") from None
    found = list({channel.id: channel for channel in found}.values())
    for channel in found:
        if world.bot_user_id not in channel.members:
            raise ApiError("not_in_channel")
        if channel.is_archived:
            raise ApiError("posting_to_channel_denied")
    return found


def _comment(args: Arguments) -> tuple[str, list[Json] | None]:
    """Return what is said with the files; blocks count only where no comment is given."""
    if "initial_comment" in args:
        return args.text("initial_comment"), None
    if "blocks" in args:
        return content(args)
    return "", None
