"""The addresses that the bot calls: the Web API and the response_urls."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dibs.playground import replies, webapi
from dibs.playground.errors import ApiError
from dibs.playground.world import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from dibs.playground.faults import Fault, Faults
    from dibs.playground.server import Connections
    from dibs.playground.world import World

Json = dict[str, Any]

SILENCE_SECONDS: Final = 60.0


class BotRoutes:
    """Takes what the bot sends, lets the faults have their way, and logs every call."""

    def __init__(self, world: World, faults: Faults, connections: Connections, bot_token: str) -> None:
        self._world = world
        self._faults = faults
        self._connections = connections
        self._bot_token = bot_token

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

        def work() -> Response:
            answer = webapi.answer(self._world, self._bot_token, name, token, params)
            self._log(name, params, answer)
            return JSONResponse(answer)

        return await self._faulty(name, params, request, work)

    async def _hook(self, request: Request) -> Response:
        params = await _params(request)
        if params is None:
            return PlainTextResponse("invalid_payload", 400)
        token = request.path_params["token"]

        def work() -> Response:
            try:
                replies.through_response_url(self._world, token, params)
            except ApiError as refusal:
                self._log("response_url", params, refusal.as_json())
                return JSONResponse(refusal.as_json(), 404 if refusal.code in replies.GONE else 400)
            self._log("response_url", params, {"ok": True})
            return PlainTextResponse("ok")

        return await self._faulty("response_url", params, request, work)

    async def _faulty(
        self, name: str, params: Json, request: Request, work: Callable[[], Response]
    ) -> Response:
        fault = self._faults.take(name)
        if fault is None:
            return work()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.silence:
            self._log(name, params, {"fault": "silence"})
            await _silence(request)
            return Response()
        if fault.lose_answer:
            work()
            if request.client:
                self._connections.cut((request.client.host, request.client.port))
            return Response()
        return self._refusal(name, params, fault) or work()

    def _refusal(self, name: str, params: Json, fault: Fault) -> Response | None:
        headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
        if fault.error:
            answer = {"ok": False, "error": fault.error}
            self._log(name, params, answer)
            return JSONResponse(answer, fault.http_status, headers)
        if fault.http_status != 200:  # noqa: PLR2004 - the status that means no fault
            self._log(name, params, {"fault": fault.http_status})
            return PlainTextResponse("the stand-in was asked to fail", fault.http_status, headers)
        return None

    def _log(self, name: str, params: Json, answer: Json) -> None:
        with self._world.lock:
            self._world.calls.append(Call(name, params, answer, self._world.clock.now()))


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
    in_body = str(params.pop("token", "") or "")
    return token.strip() if scheme.lower() == "bearer" and token else in_body


async def _silence(request: Request) -> None:
    """Say nothing until the caller has given up."""
    for _ in range(int(SILENCE_SECONDS / 0.05)):
        if await request.is_disconnected():
            return
        await asyncio.sleep(0.05)
