"""Scopes: what a token must have been granted before a method does anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import Channel, World

FAMILIES: Final = ("channels", "groups", "im", "mpim")
KINDS: Final[Mapping[str, str]] = {
    "public_channel": "channels",
    "private_channel": "groups",
    "im": "im",
    "mpim": "mpim",
}

# The one scope that a method needs; methods that are not named here need none.
PLAIN: Final[Mapping[str, str]] = {
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "files.completeUploadExternal": "files:write",
    "files.delete": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "users.info": "users:read",
    "users.list": "users:read",
}
# What a method does with a conversation; the scope also names which kind of conversation it is.
BY_CONVERSATION: Final[Mapping[str, str]] = {
    "conversations.history": "history",
    "conversations.info": "read",
    "conversations.members": "read",
    "conversations.open": "write",
    "users.conversations": "read",
}


def check(world: World, granted: frozenset[str], name: str, args: Arguments) -> None:
    """Refuse a call that the token's scopes do not cover."""
    needed = _needed(world, granted, name, args)
    if needed:
        raise ApiError("missing_scope", needed=needed, provided=",".join(sorted(granted)))


def _needed(world: World, granted: frozenset[str], name: str, args: Arguments) -> str:
    """Return what is missing, as Slack words it; nothing where nothing is."""
    if name in PLAIN:
        return "" if PLAIN[name] in granted else PLAIN[name]
    if name not in BY_CONVERSATION:
        return ""
    act = BY_CONVERSATION[name]
    families = _families(world, name, args)
    missing = [f"{family}:{act}" for family in families if f"{family}:{act}" not in granted]
    if families == FAMILIES:
        # Which kind it is about is not known, so any one of them will do.
        return ",".join(missing) if len(missing) == len(families) else ""
    return ",".join(missing)


def _families(world: World, name: str, args: Arguments) -> tuple[str, ...]:
    """Return which kinds of conversation a call is about."""
    if name == "users.conversations":
        return tuple(KINDS[kind] for kind in args.ids("types") or ["public_channel"] if kind in KINDS)
    if name == "conversations.open" and "channel" not in args:
        return ("im",) if len(args.ids("users")) <= 1 else ("mpim",)
    channel = world.channels.get(args.text("channel"))
    return FAMILIES if channel is None else (family(channel),)


def family(channel: Channel) -> str:
    """Return how scopes call this kind of conversation."""
    if channel.is_im:
        return "im"
    return "groups" if channel.is_private else "channels"
