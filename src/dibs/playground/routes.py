"""The addresses that the bot calls: the Web API and the response_urls."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dibs.playground import replies, webapi
from dibs.playground.errors import ApiError
from dibs.playground.world import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from dibs.playground.app import App
    from dibs.playground.faults import Fault, Faults
    from dibs.playground.server import Connections
    from dibs.playground.workspace import Workspace
    from dibs.playground.world import World

Json = dict[str, Any]

SILENCE_SECONDS: Final = 60.0
HEADER_ONLY: Final = frozenset({"apps.connections.open"})
POST_ONLY: Final = frozenset({"apps.connections.open"})
GARBAGE: Final = b'{"ok": tr<html>'


class BotRoutes:
    """Takes what the bot sends, lets the faults have their way, and logs every call."""

    def __init__(
        self, app: App, workspaces: Mapping[str, Workspace], faults: Faults, connections: Connections
    ) -> None:
        self._app = app
        self._workspaces = workspaces
        self._faults = faults
        self._connections = connections

    def routes(self) -> list[Route]:
        """Return the addresses for Starlette."""
        return [
            Route("/api/{method}", self._method, methods=["GET", "POST"]),
            Route("/hooks/{kind}/{team}/{token}", self._hook, methods=["POST"]),
        ]

    async def _method(self, request: Request) -> Response:
        name = request.path_params["method"]
        params = await _params(request)
        if params is None:
            return JSONResponse({"ok": False, "error": "invalid_json"})
        token = _token(request, params)
        if name in HEADER_ONLY and "authorization" not in request.headers:
            # Slack takes an app-level token from nowhere but the header.
            token = ""
        world = self._world_of(token)

        def work() -> Response:
            status, headers = HTTPStatus.OK, self._scopes(token)
            try:
                answer = self._answer(request.method, name, token, params)
            except ApiError as refusal:
                answer = refusal.as_json()
                if refusal.headers:
                    status, headers = HTTPStatus.TOO_MANY_REQUESTS, headers | refusal.headers
            _log(world, name, params, answer)
            return JSONResponse(answer, status, headers)

        return await self.faulty(world, name, params, request, work)

    def _answer(self, verb: str, name: str, token: str, params: Json) -> Json:
        if name in POST_ONLY and verb != "POST":
            raise ApiError("insecure_request")
        return webapi.answer(self._app, name, token, params)

    def _scopes(self, token: str) -> dict[str, str]:
        """Return the header that tells a bot with every answer what it was granted."""
        grant = self._app.grants.get(token)
        return {"X-OAuth-Scopes": ",".join(sorted(grant.scopes))} if grant and grant.scopes else {}

    def _world_of(self, token: str) -> World:
        """Return the workspace whose log a call belongs in."""
        grant = self._app.grants.get(token)
        return grant.world if grant else next(iter(self._workspaces.values())).world

    async def _hook(self, request: Request) -> Response:
        params = await _params(request)
        if params is None:
            return PlainTextResponse("invalid_payload", 400)
        token = request.path_params["token"]
        workspace = self._workspaces.get(request.path_params["team"])
        if workspace is None:
            return PlainTextResponse("no_team", 404)
        world = workspace.world

        def work() -> Response:
            try:
                replies.through_response_url(world, token, params)
                self._app.tell_news(world)
            except ApiError as refusal:
                _log(world, "response_url", params, refusal.as_json())
                return JSONResponse(refusal.as_json(), 404 if refusal.code in replies.GONE else 400)
            _log(world, "response_url", params, {"ok": True})
            return PlainTextResponse("ok")

        return await self.faulty(world, "response_url", params, request, work)

    async def faulty(
        self, world: World, name: str, params: Json, request: Request, work: Callable[[], Response]
    ) -> Response:
        """Do the work of a request, unless a fault that waits for it has its way."""
        fault = self._faults.take(name)
        if fault is None:
            return work()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.silence:
            _log(world, name, params, {"fault": "silence"})
            await _silence(request)
            return Response()
        if fault.garbage:
            _log(world, name, params, {"fault": "garbage"})
            return Response(GARBAGE, media_type="application/json")
        if fault.lose_answer or fault.cut:
            if fault.lose_answer:
                work()
            if request.client:
                self._connections.cut((request.client.host, request.client.port))
            return Response()
        return _refusal(world, name, params, fault) or work()


def _refusal(world: World, name: str, params: Json, fault: Fault) -> Response | None:
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    if fault.error:
        answer = {"ok": False, "error": fault.error}
        _log(world, name, params, answer)
        return JSONResponse(answer, fault.http_status, headers)
    if fault.http_status != 200:  # noqa: PLR2004 - the status that means no fault
        _log(world, name, params, {"fault": fault.http_status})
        return PlainTextResponse("the stand-in was asked to fail", fault.http_status, headers)
    return None


def _log(world: World, name: str, params: Json, answer: Json) -> None:
    with world.lock:
        world.calls.append(Call(name, params, answer, world.clock.now()))


async def _params(request: Request) -> Json | None:
    """Return the arguments of a call, from the query, a form or JSON; nothing if they cannot be read."""
    params: Json = dict(request.query_params)
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            told = json.loads(body or b"{}")
        except ValueError:
            return None
        return params | told if isinstance(told, dict) else None
    return params | dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _token(request: Request, params: Json) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        # An app that installs itself so says who it is.
        with contextlib.suppress(binascii.Error):
            told = base64.b64decode(token).decode("utf-8", "replace")
            params["client_id"], _, params["client_secret"] = told.partition(":")
        return ""
    in_body = str(params.pop("token", "") or "")
    return token.strip() if scheme.lower() == "bearer" and token else in_body


async def _silence(request: Request) -> None:
    """Say nothing until the caller has given up."""
    for _ in range(int(SILENCE_SECONDS / 0.05)):
        if await request.is_disconnected():
            return
        await asyncio.sleep(0.05)
