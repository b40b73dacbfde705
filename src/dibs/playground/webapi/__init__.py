"""The Web API: one table of methods, and the one place that checks tokens, scopes and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.playground.errors import ApiError
from dibs.playground.webapi import (
    app_methods,
    chat,
    conversations,
    file_methods,
    people,
    scopes,
    user_groups,
    view_methods,
)
from dibs.playground.webapi.arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.playground.app import App
    from dibs.playground.world import World

Json = dict[str, Any]

__all__ = ["APP_METHODS", "METHODS", "answer"]

METHODS: Mapping[str, Callable[[World, Arguments], Json]] = {
    "auth.test": people.auth_test,
    "users.info": people.users_info,
    "users.list": people.users_list,
    "users.conversations": conversations.users_conversations,
    "usergroups.list": user_groups.user_groups_list,
    "usergroups.users.list": user_groups.users_list,
    "conversations.info": conversations.info,
    "conversations.members": conversations.members,
    "conversations.open": conversations.open_direct,
    "conversations.history": conversations.history,
    "chat.postMessage": chat.post_message,
    "chat.update": chat.update,
    "chat.delete": chat.delete,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.getPermalink": chat.get_permalink,
    "files.getUploadURLExternal": file_methods.get_upload_url,
    "files.completeUploadExternal": file_methods.complete_upload,
    "files.info": file_methods.info,
    "files.delete": file_methods.delete,
    "views.open": view_methods.open_view,
    "views.push": view_methods.push_view,
    "views.update": view_methods.update_view,
    "views.publish": view_methods.publish_view,
}

APP_METHODS: Mapping[str, Callable[[App, str, Arguments], Json]] = {
    "apps.connections.open": app_methods.connections_open,
    "auth.revoke": app_methods.auth_revoke,
    "oauth.v2.access": app_methods.oauth_access,
}


def answer(app: App, name: str, token: str, params: Json) -> Json:
    """Carry out one method for a token and return the body that Slack would answer, or raise ApiError."""
    args = Arguments(params)
    if name in APP_METHODS:
        if app.rate_limits:
            app.limits.count("", name, "")
        return {"ok": True, **APP_METHODS[name](app, token, args)}
    if name not in METHODS:
        raise ApiError("unknown_method", req_method=name)
    grant = app.grant(token)
    world = grant.world
    with world.lock:
        if app.rate_limits:
            app.limits.count(world.team_id, name, _place(world, args))
        if grant.scopes is not None:
            scopes.check(world, grant.scopes, name, args)
        if name == "views.publish" and app.manifest and not app.manifest.home_tab:
            raise ApiError("not_enabled")
        told = METHODS[name](world, args)
        # A bot that subscribed to messages hears of its own, too, and must know them.
        app.tell_news(world)
        return {"ok": True, **told}


def _place(world: World, args: Arguments) -> str:
    """Return where a call writes: a direct message is the same place by its own id and by its person's."""
    channel = world.channels.get(args.text("channel"))
    if channel is None or not channel.is_im:
        return args.text("channel")
    return next(user for user in channel.members if user != world.bot_user_id)
