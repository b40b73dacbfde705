"""Methods about channels and direct messages."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from dibs.playground.errors import ApiError
from dibs.playground.webapi.arguments import page

if TYPE_CHECKING:
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import Channel, World

Json = dict[str, Any]


def known(world: World, channel_id: str) -> Channel:
    """Return a channel that the bot can see; a private one that it is not in does not exist for it."""
    channel = world.channels.get(channel_id)
    hidden = channel is not None and channel.is_private and world.bot_user_id not in channel.members
    if channel is None or hidden:
        raise ApiError("channel_not_found")
    return channel


def joined(world: World, channel_id: str) -> Channel:
    """Return a channel that the bot is a member of."""
    channel = known(world, channel_id)
    if world.bot_user_id not in channel.members:
        raise ApiError("not_in_channel")
    return channel


def info(world: World, args: Arguments) -> Json:
    """conversations.info: one channel."""
    channel = known(world, args.required("channel", "channel_not_found"))
    shown = as_json(world, channel)
    if args.flag("include_num_members"):
        shown["num_members"] = len(channel.members)
    return {"channel": shown}


def members(world: World, args: Arguments) -> Json:
    """conversations.members: who is in a channel, in pages."""
    channel = known(world, args.required("channel", "channel_not_found"))
    found, metadata = page(list(channel.members), args)
    return {"members": found, "response_metadata": metadata}


def open_direct(world: World, args: Arguments) -> Json:
    """conversations.open: the direct message with one person."""
    if "channel" in args:
        return {"channel": {"id": known(world, args.text("channel")).id}}
    users = args.ids("users")
    if not users:
        raise ApiError("users_list_not_supplied")
    if len(users) > 1:
        raise ApiError("method_not_supported_for_channel_type")
    if users[0] in world.people and world.people[users[0]].deleted:
        raise ApiError("user_disabled")
    already = {"no_op": True, "already_open": True} if _opened(world, users[0]) else {}
    channel = direct(world, users[0])
    shown = as_json(world, channel) if args.flag("return_im") else {"id": channel.id}
    return already | {"channel": shown}


def _opened(world: World, user: str) -> bool:
    return any(channel.is_im and user in channel.members for channel in world.channels.values())


def direct(world: World, user: str) -> Channel:
    """Return the direct message with a person, or say why there can be none.

    A message to somebody who was deactivated arrives where nobody reads it: Slack takes it and says nothing.
    """
    person = world.people.get(user)
    if person is None:
        raise ApiError("user_not_found")
    if person.is_bot:
        raise ApiError("cannot_dm_bot")
    return world.direct_channel(user)


def history(world: World, args: Arguments) -> Json:
    """conversations.history: a channel's messages, newest first, without private ones and replies."""
    channel = joined(world, args.required("channel", "channel_not_found"))
    oldest, latest = args.text("oldest", "0"), args.text("latest") or "9999999999"
    inclusive = args.flag("inclusive")
    within = [
        message
        for ts, message in reversed(channel.messages.items())
        if message.get("thread_ts", ts) == ts and _between(ts, oldest, latest, inclusive=inclusive)
    ]
    found, metadata = page(within, args)
    shown = copy.deepcopy(found)
    if not args.flag("include_all_metadata"):
        for message in shown:
            message.pop("metadata", None)
    answer: Json = {"messages": shown, "has_more": bool(metadata["next_cursor"])}
    return answer | ({"response_metadata": metadata} if metadata["next_cursor"] else {})


def _between(ts: str, oldest: str, latest: str, *, inclusive: bool) -> bool:
    try:
        at, first, last = float(ts), float(oldest), float(latest)
    except ValueError:
        raise ApiError("invalid_ts_oldest") from None
    return first <= at <= last if inclusive else first < at < last


def users_conversations(world: World, args: Arguments) -> Json:
    """users.conversations: the channels that a person, or else the bot, is a member of."""
    user = args.text("user", world.bot_user_id)
    types = set(args.ids("types") or ["public_channel"])
    found = [
        as_json(world, channel)
        for channel in world.channels.values()
        if user in channel.members
        and _kind(channel) in types
        and not (channel.is_archived and args.flag("exclude_archived"))
    ]
    shown, metadata = page(found, args)
    return {"channels": shown, "response_metadata": metadata}


def _kind(channel: Channel) -> str:
    if channel.is_im:
        return "im"
    return "private_channel" if channel.is_private else "public_channel"


def as_json(world: World, channel: Channel) -> Json:
    """Return a channel the way Slack does."""
    shown: Json = {
        "id": channel.id,
        "is_im": channel.is_im,
        "is_mpim": False,
        "is_archived": channel.is_archived,
        "context_team_id": world.team_id,
    }
    if channel.is_im:
        other = next((user for user in channel.members if user != world.bot_user_id), "")
        return shown | {"user": other, "is_open": True}
    return shown | {
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private,
        "is_private": channel.is_private,
        "is_general": False,
        "is_shared": bool(channel.shared_with),
        "is_ext_shared": bool(channel.shared_with),
        "shared_team_ids": [world.team_id, *channel.shared_with],
        "is_member": world.bot_user_id in channel.members,
        "creator": world.bot_user_id,
    }
