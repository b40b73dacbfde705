"""The requests that Slack sends to a bot, as plain data."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from dibs.playground import views

if TYPE_CHECKING:
    from dibs.playground.forms import State
    from dibs.playground.world import Channel, Person, View, World

Json = dict[str, Any]

VERIFICATION_TOKEN = "legacy-verification-token"  # noqa: S105 - Slack still sends one; nothing may rely on it

# Messages about messages, which no client shows.
HIDDEN = frozenset({"message_changed", "message_deleted"})


def common(world: World, kind: str, person: Person) -> Json:
    """Return what every interaction tells: who acted, in which workspace, on which app."""
    return {
        "type": kind,
        "user": {
            "id": person.id,
            "username": person.name.lower(),
            "name": person.name.lower(),
            "team_id": person.team_id,
        },
        "api_app_id": world.app_id,
        "token": VERIFICATION_TOKEN,
        "team": {"id": world.team_id, "domain": world.team_name.lower()},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def action(world: World, block_id: str, element: Json, choice: Json | None) -> Json:
    """Return one entry of `actions`: what was pressed, its value and the press's own timestamp."""
    names = ("action_id", "type", "value", "text", "style", "confirm", "placeholder")
    told: Json = {name: copy.deepcopy(element[name]) for name in names if name in element}
    return told | {"block_id": block_id, "action_ts": world.clock.ts()} | (choice or {})


def press_on_message(
    world: World,
    person: Person,
    channel: Channel,
    message: Json,
    *,
    pressed: Json,
    response_url: str,
    state: State,
) -> Json:
    """Return block_actions for a press on a message."""
    private = bool(message.get("is_ephemeral"))
    payload = common(world, "block_actions", person) | {
        "container": {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": channel.id,
            "is_ephemeral": private,
        },
        "trigger_id": world.issue_trigger(person.id, channel.id),
        "channel": {"id": channel.id, "name": channel.name},
        "state": {"values": state},
        "response_url": response_url,
        "actions": [pressed],
    }
    if not private:
        payload["message"] = copy.deepcopy(message)
    return payload


def press_in_view(world: World, person: Person, view: View, pressed: Json) -> Json:
    """Return block_actions for a press in a modal or in the Home tab."""
    return common(world, "block_actions", person) | {
        "container": {"type": "view", "view_id": view.id},
        "trigger_id": world.issue_trigger(person.id, view.channel),
        "view": views.as_json(world, view),
        "actions": [pressed],
    }


def submission(world: World, person: Person, view: View) -> Json:
    """Return view_submission for a modal with what was typed into it."""
    return common(world, "view_submission", person) | {
        "trigger_id": world.issue_trigger(person.id, view.channel),
        "view": views.as_json(world, view),
        "response_urls": [],
    }


def closing(world: World, person: Person, view: View, *, cleared: bool) -> Json:
    """Return view_closed for a modal that its person left."""
    return common(world, "view_closed", person) | {
        "view": views.as_json(world, view),
        "is_cleared": cleared,
    }


def shortcut(world: World, person: Person, callback_id: str) -> Json:
    """Return what a global shortcut sends; it happens nowhere, so it names no channel."""
    return common(world, "shortcut", person) | {
        "callback_id": callback_id,
        "action_ts": world.clock.ts(),
        "trigger_id": world.issue_trigger(person.id),
    }


def message_shortcut(
    world: World, person: Person, channel: Channel, callback_id: str, message: Json, response_url: str
) -> Json:
    """Return what a shortcut in a message's menu sends."""
    return common(world, "message_action", person) | {
        "callback_id": callback_id,
        "action_ts": world.clock.ts(),
        "trigger_id": world.issue_trigger(person.id, channel.id),
        "channel": {"id": channel.id, "name": channel.name},
        "message_ts": message["ts"],
        "message": copy.deepcopy(message),
        "response_url": response_url,
    }


def command(
    world: World, person: Person, channel: Channel, *, name: str, text: str, response_url: str
) -> Json:
    """Return a slash command, as a form."""
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": world.team_id,
        "team_domain": world.team_name.lower(),
        "channel_id": channel.id,
        "channel_name": channel.name,
        "user_id": person.id,
        "user_name": person.name.lower(),
        "command": name,
        "text": text,
        "api_app_id": world.app_id,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": world.issue_trigger(person.id, channel.id),
    }


def message_event(channel: Channel, message: Json, subtype: str = "") -> Json:
    """Return what a bot is told of a message in a channel."""
    kind = "im" if channel.is_im else "group" if channel.is_private else "channel"
    told = {**copy.deepcopy(message), "type": "message", "channel": channel.id, "channel_type": kind}
    if subtype:
        told["subtype"] = subtype
    return told | ({"hidden": True} if subtype in HIDDEN else {})


def message_changed(world: World, channel: Channel, before: Json, after: Json) -> Json:
    """Return what a bot is told of a message that has new content."""
    told = {"ts": world.clock.ts(), "message": after, "previous_message": before}
    return message_event(channel, told, "message_changed")


def message_deleted(world: World, channel: Channel, gone: Json) -> Json:
    """Return what a bot is told of a message that is no more."""
    told = {"ts": world.clock.ts(), "deleted_ts": gone["ts"], "previous_message": gone}
    return message_event(channel, told, "message_deleted")


def event(world: World, told: Json) -> Json:
    """Return an Events API request about one thing that happened."""
    at = world.clock.ts()
    where = told.get("channel")
    channel = world.channels.get(where) if isinstance(where, str) else None
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": world.team_id,
        "context_team_id": world.team_id,
        "api_app_id": world.app_id,
        "event": {**told, "event_ts": at},
        "type": "event_callback",
        "event_id": world.unique_id("Ev"),
        "event_time": int(float(at)),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": world.team_id,
                "user_id": world.bot_user_id,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": bool(channel and channel.shared_with),
        "event_context": f"1-{told['type']}-{world.team_id}-{world.app_id}",
    }
