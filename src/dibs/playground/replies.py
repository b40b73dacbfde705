"""What the bot says back outside the Web API: in a command's answer and through response_urls."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.errors import ApiError
from dibs.playground.payloads import message_changed, message_deleted, message_event
from dibs.playground.webapi.arguments import Arguments
from dibs.playground.webapi.chat import content

if TYPE_CHECKING:
    from dibs.playground.world import ResponseUrl, World

Json = dict[str, Any]

USES: Final = 5
LIFETIME: Final = 30 * 60
GONE: Final = {"used_url", "expired_url", "message_not_found", "channel_not_found"}


def through_response_url(world: World, token: str, params: Json) -> Json:
    """Carry out what was posted to a response_url and return the message that came of it."""
    with world.lock:
        url = world.response_urls.get(token)
        if url is None:
            raise ApiError("channel_not_found")
        if url.uses >= USES:
            raise ApiError("used_url")
        if world.clock.now() - url.issued > LIFETIME:
            raise ApiError("expired_url")
        url.uses += 1
        return say(world, url, params)


def say(world: World, url: ResponseUrl, params: Json) -> Json:
    """Show an answer: in place of the original, to everyone, or, unless asked otherwise, to one person."""
    args = Arguments(params)
    if args.flag("delete_original"):
        return _delete_original(world, url)
    text, blocks = content(args)
    if args.flag("replace_original") and url.message_ts:
        return _replace_original(world, url, text, blocks)
    message = world.compose(text=text, blocks=blocks)
    if args.text("response_type", "ephemeral") == "in_channel":
        channel = world.channels[url.channel]
        world.post(channel, message)
        world.news.append(message_event(channel, message))
        return message
    return world.whisper(url.user, url.channel, message)


def _original(world: World, url: ResponseUrl) -> Json:
    """Return the message that the press came from; it may be gone by now."""
    ts = url.message_ts or ""
    message = world.channels[url.channel].messages.get(ts)
    if message is None:
        private = world.ephemeral(url.user, ts)
        if private is None:
            raise ApiError("message_not_found")
        message = private.message
    return message


def _replace_original(world: World, url: ResponseUrl, text: str, blocks: list[Json] | None) -> Json:
    message = _original(world, url)
    before = copy.deepcopy(message)
    world.replace(message, text=text, blocks=blocks)
    if not message.get("is_ephemeral"):
        world.news.append(message_changed(world, world.channels[url.channel], before, message))
    return message


def _delete_original(world: World, url: ResponseUrl) -> Json:
    if not url.message_ts:
        raise ApiError("message_not_found")
    message = _original(world, url)
    channel = world.channels[url.channel]
    if channel.messages.pop(url.message_ts, None):
        world.news.append(message_deleted(world, channel, message))
    world.ephemerals[:] = [e for e in world.ephemerals if e.message is not message]
    world.changed()
    return message
