"""What the page shows, as plain data: the workspace, and what one person sees of it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.inspection import name_of
from dibs.playground.views import as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.playground.faults import Fault, Faults, Mishap
    from dibs.playground.manifest import Manifest
    from dibs.playground.world import Channel, World

Json = dict[str, Any]

MOST_MESSAGES: Final = 200


def workspace(world: World) -> Json:
    """Return what both panes share: who there is, where, and the last presses."""
    return {
        "bot": {"name": world.people[world.bot_user_id].name, "user_id": world.bot_user_id},
        "people": [
            {
                "id": person.id,
                "name": person.name,
                "is_bot": person.is_bot,
                "deleted": person.deleted,
                "foreign": person.team_id != world.team_id,
                "tz": person.tz,
            }
            for person in world.people.values()
        ],
        "channels": [
            {
                "id": channel.id,
                "name": channel.name,
                "is_im": channel.is_im,
                "is_private": channel.is_private,
                "is_archived": channel.is_archived,
                "members": list(channel.members),
            }
            for channel in world.channels.values()
        ],
        "presses": [
            {
                "name": name_of(press),
                "who": press.who,
                "what": press.what,
                "status": press.status,
                "ms": press.milliseconds,
                "words": press.words,
                "at": press.at,
            }
            for press in world.presses
        ],
    }


def pane(world: World, user: str, channel_id: str, *, since: str = "") -> Json:
    """Return what one person sees: a channel with the messages meant for their eyes, and their modal.

    Private messages older than `since`, when the page was loaded, are gone from it as they are in Slack.
    """
    channel = world.channels.get(channel_id)
    stack = world.stacks.get(user, [])
    home = world.homes.get(user)
    return {
        "user": user,
        "channel": channel_id,
        "messages": timeline(world, user, channel, since) if channel else [],
        "view": as_json(world, stack[-1]) if stack else None,
        "depth": len(stack),
        "latest": {
            one.id: newest(world, user, one, since) for one in world.channels.values() if user in one.members
        },
        "home": as_json(world, home) if home else None,
        "failures": [
            {"container": f.container, "block_id": f.block_id, "action_id": f.action_id, "words": f.words}
            for f in world.failures
            if f.user == user
        ],
    }


def offered_commands(chosen: Sequence[tuple[str, str]], manifest: Manifest | None) -> list[tuple[str, str]]:
    """Return what may be typed, with words on it: what was chosen for the page, then what the app names."""
    named = manifest.commands.values() if manifest else ()
    return [
        *chosen,
        *((f"{one.name} ", f"{one.usage_hint}: {one.description}".lstrip(": ")) for one in named),
    ]


def offered_shortcuts(manifest: Manifest | None) -> list[Json]:
    """Return the shortcuts that the app names, for everywhere and for the menu of a message."""
    return [
        {"callback_id": one.callback_id, "name": one.name, "on_message": one.on_message}
        for one in (manifest.shortcuts.values() if manifest else ())
    ]


def waiting(faults: Faults) -> list[Json]:
    """Return the trouble that waits for calls of the bot and for requests to it."""
    return [
        *({"name": method, "trouble": _trouble_of_call(fault)} for method, fault in faults.waiting),
        *({"name": name, "trouble": _trouble_of_request(mishap)} for name, mishap in faults.mishaps),
    ]


def _trouble_of_call(fault: Fault) -> str:
    marks = {
        "lost": fault.lose_answer,
        "silent": fault.silence,
        "garbage": fault.garbage,
        "cut": fault.cut,
        "limited": fault.retry_after,
        "slow": fault.delay,
    }
    return next((name for name, there in marks.items() if there), "broken")


def _trouble_of_request(mishap: Mishap) -> str:
    return "twice" if mishap.twice else "late" if mishap.late else "unanswered"


def newest(world: World, user: str, channel: Channel, since: str) -> str:
    """Return the timestamp of the last thing that a person was told in a channel."""
    private = [message["ts"] for message in whispered(world, user, channel, since)]
    return max([*list(channel.messages)[-1:], *private[-1:]], default="")


def whispered(world: World, user: str, channel: Channel, since: str) -> list[Json]:
    """Return the private messages that a person still sees in a channel."""
    return [
        one.message
        for one in world.ephemerals
        if one.user == user and one.channel == channel.id and one.message["ts"] > since
    ]


def timeline(world: World, user: str, channel: Channel, since: str) -> list[Json]:
    """Return a channel's messages and this person's private ones, in the order they came."""
    seen = (
        list(channel.messages.values())[-MOST_MESSAGES:]
        if user in channel.members or not channel.is_im
        else []
    )
    private = whispered(world, user, channel, since)
    return copy.deepcopy(sorted([*seen, *private], key=lambda message: float(message["ts"])))
