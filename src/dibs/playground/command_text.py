"""The words of a slash command, as Slack sends them on: with names as ids only where the manifest asks so."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dibs.playground.world import World

USER: Final = re.compile(r"<@(\w+)(?:\|[^>]*)?>")
CHANNEL: Final = re.compile(r"<#(\w+)(?:\|[^>]*)?>")


def as_sent(world: World, text: str, *, escape: bool) -> str:
    """Return a command's text with every mention written out as `should_escape` says."""
    with world.lock:
        people = {person.id: person.name for person in world.people.values()}
        channels = {channel.id: channel.name for channel in world.channels.values()}

    def user(found: re.Match[str]) -> str:
        name = people.get(found[1], found[1])
        return f"<@{found[1]}|{name.lower()}>" if escape else f"@{name}"

    def channel(found: re.Match[str]) -> str:
        name = channels.get(found[1], found[1])
        return f"<#{found[1]}|{name}>" if escape else f"#{name}"

    text = CHANNEL.sub(channel, USER.sub(user, text))
    return text if escape else html.unescape(text)
