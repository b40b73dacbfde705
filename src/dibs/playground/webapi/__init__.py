"""The Web API: one table of methods, and the one place that checks the token and words the refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.playground.errors import ApiError
from dibs.playground.webapi import chat, conversations, people, view_methods
from dibs.playground.webapi.arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.playground.world import World

__all__ = ["METHODS", "answer"]

METHODS: Mapping[str, Callable[[World, Arguments], dict[str, Any]]] = {
    "auth.test": people.auth_test,
    "users.info": people.users_info,
    "users.list": people.users_list,
    "users.conversations": conversations.users_conversations,
    "conversations.info": conversations.info,
    "conversations.members": conversations.members,
    "conversations.open": conversations.open_direct,
    "conversations.history": conversations.history,
    "chat.postMessage": chat.post_message,
    "chat.update": chat.update,
    "chat.delete": chat.delete,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.getPermalink": chat.get_permalink,
    "views.open": view_methods.open_view,
    "views.push": view_methods.push_view,
    "views.update": view_methods.update_view,
    "views.publish": view_methods.publish_view,
}


def answer(world: World, bot_token: str, name: str, token: str, params: dict[str, Any]) -> dict[str, Any]:
    """Carry out one method for a token and return the body that Slack would answer."""
    if name not in METHODS:
        return {"ok": False, "error": "unknown_method", "req_method": name}
    if not token:
        return {"ok": False, "error": "not_authed"}
    if token != bot_token:
        return {"ok": False, "error": "invalid_auth"}
    try:
        with world.lock:
            return {"ok": True, **METHODS[name](world, Arguments(params))}
    except ApiError as refusal:
        return refusal.as_json()
