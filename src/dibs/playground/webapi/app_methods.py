"""Methods about the app itself rather than a workspace: its connections, its tokens and its installation."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from dibs.playground.app import App
    from dibs.playground.webapi.arguments import Arguments

Json = dict[str, Any]

CODE_SECONDS: Final = 600.0


def connections_open(app: App, token: str, args: Arguments) -> Json:
    """apps.connections.open: where Socket Mode connects to, once."""
    del args
    if not token:
        raise ApiError("not_authed")
    if token != app.app_token:
        raise ApiError("not_allowed_token_type" if token in app.grants else "invalid_auth")
    if not app.socket_mode:
        raise ApiError("socket_mode_disabled")
    host = urlsplit(app.base()).netloc
    return {"url": f"ws://{host}/link/?ticket={app.sockets.ticket()}&app_id={app.app_id}"}


def auth_revoke(app: App, token: str, args: Arguments) -> Json:
    """auth.revoke: the token ends here; with `test` it only seems to."""
    grant = app.grant(token)
    if args.flag("test"):
        return {"revoked": False}
    app.revoke(grant)
    return {"revoked": True}


def oauth_access(app: App, token: str, args: Arguments) -> Json:
    """oauth.v2.access: a code from the installation page for a bot token, once."""
    del token
    if args.text("client_id") != app.client_id:
        raise ApiError("invalid_client_id")
    if args.text("client_secret") != app.client_secret:
        raise ApiError("bad_client_secret")
    code = app.codes.get(args.text("code"))
    if code is None:
        raise ApiError("invalid_code")
    if code.used:
        raise ApiError("code_already_used")
    if app.clock.now() - code.issued > CODE_SECONDS:
        raise ApiError("invalid_code")
    if code.redirect_uri != args.text("redirect_uri", code.redirect_uri if not code.told else ""):
        raise ApiError("bad_redirect_uri")
    code.used = True
    world = code.world
    world.people[world.bot_user_id].deleted = False
    grant = app.add_grant(f"xoxb-{secrets.token_hex(12)}", world, code.scopes)
    return {
        "access_token": grant.token,
        "token_type": "bot",
        "scope": ",".join(sorted(code.scopes)),
        "bot_user_id": world.bot_user_id,
        "app_id": app.app_id,
        "team": {"id": world.team_id, "name": world.team_name},
        "enterprise": None,
        "is_enterprise_install": False,
        "authed_user": {"id": code.user},
    }
