"""The page's own addresses: its files, what each pane shows, and what its two people do."""

from __future__ import annotations

import asyncio
import functools
import json
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dibs.playground.acts import carry_out
from dibs.playground.inspection import behind
from dibs.playground.shown import offered_commands, offered_shortcuts, pane, waiting, workspace

if TYPE_CHECKING:
    from starlette.requests import Request

    from dibs.playground.standin import SlackStandIn

Json = dict[str, Any]

STATIC: Final = Path(__file__).with_name("static")
POLL_SECONDS: Final = 20.0
GATHER_SECONDS: Final = 0.015
SIDES: Final = ("left", "right")
MOST_ACTS: Final = 2
NO_CACHE: Final = {"Cache-Control": "no-store"}
CONFINED: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class PageRoutes:
    """Shows the world to two people side by side and lets them act in it."""

    def __init__(self, slack: SlackStandIn) -> None:
        self._slack = slack
        self._waiting: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        slack.world.on_change(self._wake)

    def routes(self) -> list[Route | Mount]:
        """Return the addresses for Starlette."""
        return [
            Route("/", self._index),
            Route("/page/state", self._state),
            Route("/page/press", self._press),
            Route("/page/act", self._act, methods=["POST"]),
            Mount("/static", _Files(directory=STATIC)),
        ]

    def start(self) -> None:
        """Let people wait for news, also after an earlier stop."""
        self._stopping = False

    def stop(self) -> None:
        """Let everyone who waits for news go, so that the server can end."""
        self._stopping = True
        self._wake()

    def _wake(self) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for event in self._waiting:
            event.set()

    async def _index(self, request: Request) -> Response:
        del request
        return FileResponse(STATIC / "index.html", headers=NO_CACHE | CONFINED)

    async def _state(self, request: Request) -> Response:
        """Answer with the state, at once if it is newer than the page's, else when something changes."""
        self._loop = asyncio.get_running_loop()
        known = request.query_params.get("since", "")
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            if known == str(self._slack.world.version) and not self._stopping:
                await asyncio.wait_for(news.wait(), POLL_SECONDS)
                # News seldom comes alone: a press changes the card, answers and is noted in the strip.
                await asyncio.sleep(GATHER_SECONDS)
        except TimeoutError:
            return Response(status_code=204, headers=NO_CACHE)
        finally:
            self._waiting.discard(news)
        return JSONResponse(self._shown(request), headers=NO_CACHE)

    def _shown(self, request: Request) -> Json:
        world, opened = self._slack.world, request.query_params.get("opened", "")
        with world.lock:
            panes = {}
            for side in SIDES:
                user, _, channel = request.query_params.get(side, "").partition(",")
                if user in world.people:
                    panes[side] = pane(world, user, channel, since=opened)
            shown = {"version": world.version, "now": world.clock.ts(), **workspace(world), "panes": panes}
            return shown | self._offered()

    def _offered(self) -> Json:
        """Return what the app and whoever started the playground put beside the workspace."""
        slack = self._slack
        return {
            "commands": offered_commands(slack.commands, slack.manifest),
            "home_tab": slack.manifest is None or slack.manifest.home_tab,
            "events_on": slack.events_on,
            "shortcuts": offered_shortcuts(slack.manifest),
            "levers": [{"label": lever.label, "explanation": lever.explanation} for lever in slack.levers],
            "tour": slack.tour.shown(),
            "faults": waiting(slack.faults),
            "ahead": slack.clock.ahead,
            "connections": slack.sockets.connected if slack.socket_mode else None,
        }

    async def _press(self, request: Request) -> Response:
        """Answer with what was behind one of the last presses."""
        name = request.query_params.get("name", "")
        try:
            told = await run_in_threadpool(behind, self._slack.world, self._slack.traffic, name)
        except LookupError as error:
            return JSONResponse({"error": str(error)}, HTTPStatus.NOT_FOUND, NO_CACHE)
        return JSONResponse(told, headers=NO_CACHE)

    async def _act(self, request: Request) -> Response:
        """Carry out one act, or two at the very same moment."""
        if not request.headers.get("content-type", "").startswith("application/json"):
            # A form of another site can carry text, but not this type without asking first.
            return JSONResponse({"error": "JSON is expected"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        acts = _acts(await request.body())
        if not acts:
            return JSONResponse({"error": "one act, or two, are expected"}, HTTPStatus.BAD_REQUEST)
        told = await run_in_threadpool(self._carry_out, acts)
        good = any("error" not in one for one in told)
        return JSONResponse({"results": told}, HTTPStatus.OK if good else HTTPStatus.CONFLICT)

    def _carry_out(self, acts: list[Json]) -> list[Json]:
        calls = [functools.partial(carry_out, self._slack, act) for act in acts]
        return [calls[0]()] if len(calls) == 1 else self._slack.together(calls)


class _Files(StaticFiles):
    """Lets a browser keep the files, but ask each time whether they are still the same."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - passed on as they come
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _acts(body: bytes) -> list[Json]:
    """Return the acts that a request names, or none if it is not one or two."""
    try:
        told = json.loads(body)
    except ValueError:
        return []
    acts = told.get("acts") if isinstance(told, dict) else None
    if not isinstance(acts, list) or len(acts) > MOST_ACTS or not all(isinstance(act, dict) for act in acts):
        return []
    return acts
