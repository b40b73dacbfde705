"""The page on which an administrator installs the app, and the way back to the app with a code."""

from __future__ import annotations

import html
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dibs.playground.app import Code
from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from dibs.playground.app import App
    from dibs.playground.workspace import Workspace

PATH: Final = "/oauth/v2/authorize"
CONFINED: Final = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


class OAuthRoutes:
    """Shows what the app asks for, and sends whoever agrees or not back to the app."""

    def __init__(self, app: App, workspaces: Mapping[str, Workspace]) -> None:
        self._app = app
        self._workspaces = workspaces

    def routes(self) -> list[Route]:
        """Return the addresses for Starlette."""
        return [Route(PATH, self._ask, methods=["GET"]), Route(PATH, self._answered, methods=["POST"])]

    async def _ask(self, request: Request) -> Response:
        asked = dict(request.query_params)
        try:
            redirect_uri, scopes = self._checked(asked)
        except ApiError as refusal:
            return _page(f"<p>{html.escape(refusal.code)}</p>", HTTPStatus.BAD_REQUEST)
        hidden = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in asked.items()
        )
        choices = "".join(
            f'<option value="{one.team_id}">{html.escape(one.world.team_name)}</option>'
            for one in self._workspaces.values()
        )
        listed = "".join(f"<li>{html.escape(scope)}</li>" for scope in sorted(scopes))
        return _page(
            f"<h1>Install this app?</h1><p>It then returns to {html.escape(redirect_uri)}, and may use:</p>"
            f'<ul>{listed}</ul><form method="post" action="{PATH}">{hidden}'
            f'<label>Workspace <select name="team">{choices}</select></label> '
            '<button name="answer" value="allow">Allow</button> '
            '<button name="answer" value="cancel">Cancel</button></form>',
            HTTPStatus.OK,
        )

    async def _answered(self, request: Request) -> Response:
        told = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
        try:
            back = self.answer(told, allow=told.get("answer") == "allow")
        except ApiError as refusal:
            return _page(f"<p>{html.escape(refusal.code)}</p>", HTTPStatus.BAD_REQUEST)
        return RedirectResponse(back, HTTPStatus.FOUND)

    def answer(self, asked: Mapping[str, str], *, allow: bool) -> str:
        """Return the address that an administrator's browser is sent back to."""
        redirect_uri, scopes = self._checked(asked)
        workspace = self._workspaces.get(asked.get("team", "")) or next(iter(self._workspaces.values()))
        state = {"state": asked["state"]} if "state" in asked else {}
        if not allow:
            return _with_query(redirect_uri, {"error": "access_denied", **state})
        code = secrets.token_hex(16)
        world = workspace.world
        user = next((one.id for one in world.people.values() if not one.is_bot), world.bot_user_id)
        told = "redirect_uri" in asked
        self._app.codes[code] = Code(world, user, scopes, redirect_uri, told, self._app.clock.now())
        return _with_query(redirect_uri, {"code": code, **state})

    def _checked(self, asked: Mapping[str, str]) -> tuple[str, frozenset[str]]:
        """Return where to go back to and what is asked for, or say why the page cannot be shown."""
        if asked.get("client_id") != self._app.client_id:
            raise ApiError("invalid_client_id")
        manifest = self._app.manifest
        known = manifest.redirect_urls if manifest else ()
        redirect_uri = asked.get("redirect_uri") or next(iter(known), "")
        if urlsplit(redirect_uri).scheme not in {"http", "https"}:
            raise ApiError("bad_redirect_uri")
        # Slack takes any address that begins with a registered one.
        if manifest and not redirect_uri.startswith(tuple(known)):
            raise ApiError("bad_redirect_uri")
        scopes = frozenset(one for one in asked.get("scope", "").split(",") if one)
        if not scopes:
            raise ApiError("invalid_scope")
        if manifest and not scopes <= manifest.scopes:
            raise ApiError("invalid_scope")
        return redirect_uri, scopes


def _page(body: str, status: HTTPStatus) -> HTMLResponse:
    return HTMLResponse(
        f'<!doctype html><html lang="en"><title>Install</title><body>{body}', status, headers=CONFINED
    )


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *more.items()])
    return urlunsplit(parts._replace(query=query))
