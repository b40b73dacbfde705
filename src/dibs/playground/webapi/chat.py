"""Methods that write messages: chat.*."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit import check_blocks
from dibs.playground.errors import ApiError, invalid_blocks
from dibs.playground.payloads import message_changed, message_deleted, message_event
from dibs.playground.webapi.conversations import direct, joined, known

if TYPE_CHECKING:
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import Channel, World

Json = dict[str, Any]

TRUNCATED_AT: Final = 40_000
LONGEST_UPDATE: Final = 4_000


def post_message(world: World, args: Arguments) -> Json:
    """chat.postMessage: a new message, in a channel, in a thread or to a person."""
    channel = _destination(world, args)
    text, blocks = content(args)
    message = world.compose(text=text[:TRUNCATED_AT], blocks=blocks)
    metadata = _metadata(args)
    if metadata:
        message["metadata"] = metadata
    thread = args.text("thread_ts")
    if thread:
        reply(channel, message, thread)
    world.post(channel, message)
    world.news.append(message_event(channel, message))
    return {"channel": channel.id, "ts": message["ts"], "message": copy.deepcopy(message)}


def reply(channel: Channel, message: Json, thread: str) -> None:
    """Make a message a reply in a thread, or say that there is no such thread."""
    parent = channel.messages.get(thread)
    if parent is None:
        raise ApiError("thread_not_found")
    root = parent.get("thread_ts", thread)
    message["thread_ts"] = root
    channel.messages[root].setdefault("thread_ts", root)


def update(world: World, args: Arguments) -> Json:
    """chat.update: new content for one of the bot's own messages."""
    channel = known(world, args.required("channel", "channel_not_found"))
    message = own_message(world, channel, args.required("ts", "message_not_found"), "cant_update_message")
    if channel.is_archived:
        raise ApiError("is_inactive")
    text, blocks = content(args)
    if len(text) > LONGEST_UPDATE:
        raise ApiError("msg_too_long")
    before, metadata = copy.deepcopy(message), _metadata(args)
    if "metadata" in args:
        message["metadata"] = metadata
    world.replace(message, text=text, blocks=blocks)
    world.news.append(message_changed(world, channel, before, message))
    return {"channel": channel.id, "ts": message["ts"], "text": text, "message": copy.deepcopy(message)}


def delete(world: World, args: Arguments) -> Json:
    """chat.delete: take one of the bot's own messages away."""
    channel = known(world, args.required("channel", "channel_not_found"))
    message = own_message(world, channel, args.required("ts", "message_not_found"), "cant_delete_message")
    del channel.messages[message["ts"]]
    world.changed()
    world.news.append(message_deleted(world, channel, message))
    return {"channel": channel.id, "ts": message["ts"]}


def post_ephemeral(world: World, args: Arguments) -> Json:
    """chat.postEphemeral: a message that one member of the channel sees."""
    channel = _open_for_posting(joined(world, args.required("channel", "channel_not_found")))
    user = args.required("user", "user_not_found")
    if user not in world.people:
        raise ApiError("user_not_found")
    if user not in channel.members:
        raise ApiError("user_not_in_channel")
    text, blocks = content(args)
    if len(text) > TRUNCATED_AT:
        raise ApiError("msg_too_long")
    message = world.whisper(user, channel.id, world.compose(text=text, blocks=blocks))
    return {"message_ts": message["ts"]}


def get_permalink(world: World, args: Arguments) -> Json:
    """chat.getPermalink: the address of a message."""
    channel = known(world, args.required("channel", "channel_not_found"))
    ts = args.required("message_ts", "message_not_found")
    if ts not in channel.messages:
        raise ApiError("message_not_found")
    link = f"https://playground.invalid/archives/{channel.id}/p{ts.replace('.', '')}"
    return {"channel": channel.id, "permalink": link}


def content(args: Arguments) -> tuple[str, list[Json] | None]:
    """Return a message's text and checked blocks; one of them must be there."""
    if "attachments" in args:
        raise ApiError("invalid_attachments")
    text = args.text("text")
    blocks = args.structure("blocks", "invalid_blocks_format")
    if blocks is not None and not isinstance(blocks, list):
        raise ApiError("invalid_blocks_format")
    faults = check_blocks(blocks or [], "message")
    if faults:
        raise invalid_blocks(faults)
    if not text and not blocks:
        raise ApiError("no_text")
    return text, blocks


def own_message(world: World, channel: Channel, ts: str, not_mine: str) -> Json:
    """Return a message that the bot wrote itself; a private one is never found."""
    message = channel.messages.get(ts)
    if message is None:
        raise ApiError("message_not_found")
    if message["user"] != world.bot_user_id:
        raise ApiError(not_mine)
    return message


def _destination(world: World, args: Arguments) -> Channel:
    target = args.required("channel", "channel_not_found")
    channel = direct(world, target) if target in world.people else joined(world, target)
    return _open_for_posting(channel)


def _open_for_posting(channel: Channel) -> Channel:
    if channel.is_archived:
        raise ApiError("is_archived")
    return channel


def _metadata(args: Arguments) -> Json | None:
    metadata = args.structure("metadata", "invalid_metadata_format")
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise ApiError("invalid_metadata_format")
    if metadata and not (
        isinstance(metadata.get("event_type"), str) and isinstance(metadata.get("event_payload"), dict)
    ):
        raise ApiError("invalid_metadata_schema")
    return copy.deepcopy(metadata)
