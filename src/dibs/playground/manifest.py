"""The app's manifest: what it was granted, which commands it has and which events it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

# Which scopes let an app subscribe to an event; one of each is enough. An event without an entry needs none.
EVENT_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "app_mention": ("app_mentions:read",),
    "channel_archive": ("channels:read",),
    "channel_deleted": ("channels:read",),
    "channel_left": ("channels:read",),
    "channel_rename": ("channels:read",),
    "channel_unarchive": ("channels:read",),
    "group_archive": ("groups:read",),
    "group_left": ("groups:read",),
    "group_unarchive": ("groups:read",),
    "member_joined_channel": ("channels:read", "groups:read"),
    "member_left_channel": ("channels:read", "groups:read"),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
    "message.im": ("im:history",),
    "message.mpim": ("mpim:history",),
    "reaction_added": ("reactions:read",),
    "subteam_created": ("usergroups:read",),
    "subteam_members_changed": ("usergroups:read",),
    "subteam_updated": ("usergroups:read",),
    "team_join": ("users:read",),
    "user_change": ("users:read",),
}
MESSAGE_KINDS: Final[Mapping[str, str]] = {
    "channel": "channels",
    "group": "groups",
    "im": "im",
    "mpim": "mpim",
}
MOST_COMMANDS: Final = 50
MOST_SHORTCUTS: Final = 10


class ManifestRefused(ValueError):
    """Slack would not take this manifest; the message says why."""


@dataclass(frozen=True)
class Command:
    """A slash command as people are offered it."""

    name: str
    description: str
    usage_hint: str
    should_escape: bool


@dataclass(frozen=True)
class Shortcut:
    """A shortcut: global, or in the menu of a message."""

    callback_id: str
    name: str
    description: str
    on_message: bool


@dataclass(frozen=True)
class Manifest:
    """What a manifest says, as far as it concerns the stand-in."""

    name: str
    scopes: frozenset[str]
    commands: Mapping[str, Command]
    shortcuts: Mapping[str, Shortcut]
    events: frozenset[str]
    interactive: bool
    socket_mode: bool
    home_tab: bool
    redirect_urls: tuple[str, ...]

    def hears(self, event: Json) -> bool:
        """Whether the app subscribed to an event; messages go by the kind of their channel."""
        kind = str(event["type"])
        if kind == "message":
            where = str(event.get("channel_type", "channel"))
            kind = f"message.{MESSAGE_KINDS.get(where, where)}"
        return kind in self.events


def read(manifest: Json) -> Manifest:
    """Read a manifest, or say why Slack would refuse it."""
    features, settings = manifest.get("features", {}), manifest.get("settings", {})
    oauth = manifest.get("oauth_config", {})
    found = Manifest(
        name=str(manifest["display_information"]["name"]),
        scopes=frozenset(oauth.get("scopes", {}).get("bot", [])),
        commands={one["command"]: _command(one) for one in features.get("slash_commands", [])},
        shortcuts={one["callback_id"]: _shortcut(one) for one in features.get("shortcuts", [])},
        events=frozenset(settings.get("event_subscriptions", {}).get("bot_events", [])),
        interactive=bool(settings.get("interactivity", {}).get("is_enabled")),
        socket_mode=bool(settings.get("socket_mode_enabled")),
        home_tab=bool(features.get("app_home", {}).get("home_tab_enabled")),
        redirect_urls=tuple(oauth.get("redirect_urls", [])),
    )
    for fault in _faults(manifest, found):
        raise ManifestRefused(fault)
    return found


def _command(told: Json) -> Command:
    return Command(
        told["command"],
        told["description"],
        told.get("usage_hint", ""),
        should_escape=bool(told.get("should_escape")),
    )


def _shortcut(told: Json) -> Shortcut:
    return Shortcut(
        told["callback_id"], told["name"], told["description"], on_message=told["type"] == "message"
    )


def _faults(manifest: Json, found: Manifest) -> list[str]:
    """Return what is wrong with a manifest."""
    settings = manifest.get("settings", {})
    faults = [
        f"the event {event} needs the scope {' or '.join(EVENT_SCOPES[event])}"
        for event in sorted(found.events & EVENT_SCOPES.keys())
        if not found.scopes & set(EVENT_SCOPES[event])
    ]
    if (found.commands or found.shortcuts) and "commands" not in found.scopes:
        faults.append("slash commands and shortcuts need the scope commands")
    if len(found.commands) > MOST_COMMANDS or len(found.shortcuts) > MOST_SHORTCUTS:
        faults.append(f"there may be {MOST_COMMANDS} slash commands and {MOST_SHORTCUTS} shortcuts")
    if found.events and not found.socket_mode and not settings["event_subscriptions"].get("request_url"):
        faults.append("events need a request_url where Socket Mode is off")
    if "app_home_opened" in found.events and not found.home_tab:
        faults.append("the event app_home_opened needs the Home tab")
    return faults
