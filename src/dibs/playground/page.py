"""The page's own addresses: its files, what each pane shows, and what its two people do."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dibs.playground.views import as_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from dibs.playground.interactions import Result
    from dibs.playground.standin import SlackStandIn
    from dibs.playground.world import Channel, World

Json = dict[str, Any]

STATIC: Final = Path(__file__).with_name("static")
POLL_SECONDS: Final = 20.0
GATHER_SECONDS: Final = 0.015
SIDES: Final = ("left", "right")
MOST_ACTS: Final = 2
MOST_MESSAGES: Final = 200
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
            Route("/page/act", self._act, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
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
        world = self._slack.world
        with world.lock:
            panes = {}
            for side in SIDES:
                user, _, channel = request.query_params.get(side, "").partition(",")
                if user in world.people:
                    panes[side] = pane(world, user, channel)
            shown = {"version": world.version, **workspace(world), "panes": panes}
            return shown | {"commands": self._slack.commands}

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
        calls = [functools.partial(self._told, act) for act in acts]
        return [calls[0]()] if len(calls) == 1 else self._slack.together(calls)

    def _told(self, act: Json) -> Json:
        """Carry out one act and tell what came of it; what is gone cannot be pressed."""
        try:
            result = ACTS[act["kind"]](self._slack, act)()
        except (LookupError, ValueError, TypeError) as error:
            return {"error": str(error)}
        return _outcome(result) if result else {}


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


def _press(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.press(
        act["user"],
        act["channel"],
        act["ts"],
        act["action_id"],
        block_id=act.get("block_id"),
        choice=act.get("choice"),
    )


def _press_in_view(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    place = slack.press_in_home if act.get("home") else slack.press_in_view

    def pressed() -> Result:
        if act.get("values"):
            slack.fill_in(act["user"], act["values"])
        return place(act["user"], act["action_id"], block_id=act.get("block_id"), choice=act.get("choice"))

    return pressed


def _write(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    text = mentions(slack.world, str(act["text"]).strip())
    if not text:
        msg = "there is nothing to send"
        raise ValueError(msg)
    if text.startswith("/"):
        name, _, rest = text.partition(" ")
        return lambda: slack.command(act["user"], act["channel"], name, rest.strip())

    def plainly() -> None:
        slack.say(act["user"], act["channel"], text)

    return plainly


def _submit(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.submit(act["user"], act["values"])


def _close(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.close_view(act["user"])


def _home(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.open_home(act["user"])


def _dismiss(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    def waved_away() -> None:
        slack.dismiss(act["user"], act["ts"])

    return waved_away


ACTS: Final[dict[str, Callable[[SlackStandIn, Json], Callable[[], Result | None]]]] = {
    "press": _press,
    "press_in_view": _press_in_view,
    "write": _write,
    "submit": _submit,
    "close": _close,
    "home": _home,
    "dismiss": _dismiss,
}


def workspace(world: World) -> Json:
    """Return what both panes share: who there is, where, and the last presses."""
    return {
        "bot": {"name": world.people[world.bot_user_id].name, "user_id": world.bot_user_id},
        "people": [
            {
                "id": person.id,
                "name": person.name,
                "is_bot": person.is_bot,
                "deleted": person.deleted,
                "foreign": person.team_id != world.team_id,
                "tz": person.tz,
            }
            for person in world.people.values()
        ],
        "channels": [
            {
                "id": channel.id,
                "name": channel.name,
                "is_im": channel.is_im,
                "is_private": channel.is_private,
                "is_archived": channel.is_archived,
                "members": list(channel.members),
            }
            for channel in world.channels.values()
        ],
        "presses": [
            {
                "who": press.who,
                "what": press.what,
                "status": press.status,
                "ms": press.milliseconds,
                "words": press.words,
                "at": press.at,
            }
            for press in world.presses
        ],
    }


def pane(world: World, user: str, channel_id: str) -> Json:
    """Return what one person sees: a channel with the messages meant for their eyes, and their modal."""
    channel = world.channels.get(channel_id)
    stack = world.stacks.get(user, [])
    home = world.homes.get(user)
    return {
        "user": user,
        "channel": channel_id,
        "messages": timeline(world, user, channel) if channel else [],
        "view": as_json(world, stack[-1]) if stack else None,
        "depth": len(stack),
        "latest": {
            one.id: newest(world, user, one) for one in world.channels.values() if user in one.members
        },
        "home": as_json(world, home) if home else None,
        "failures": [
            {"container": f.container, "block_id": f.block_id, "action_id": f.action_id, "words": f.words}
            for f in world.failures
            if f.user == user
        ],
    }


def newest(world: World, user: str, channel: Channel) -> str:
    """Return the timestamp of the last thing that a person was told in a channel."""
    private = [e.message["ts"] for e in world.ephemerals if e.user == user and e.channel == channel.id]
    return max([*list(channel.messages)[-1:], *private[-1:]], default="")


def timeline(world: World, user: str, channel: Channel) -> list[Json]:
    """Return a channel's messages and this person's private ones, in the order they came."""
    seen = (
        list(channel.messages.values())[-MOST_MESSAGES:]
        if user in channel.members or not channel.is_im
        else []
    )
    private = [e.message for e in world.ephemerals if e.user == user and e.channel == channel.id]
    return copy.deepcopy(sorted([*seen, *private], key=lambda message: float(message["ts"])))


def _outcome(result: Result) -> Json:
    return {
        "status": result.status,
        "seconds": result.seconds,
        "failed": result.failed,
        "words": result.words,
        "errors": result.errors,
        "closed": result.closed,
    }


def mentions(world: World, text: str) -> str:
    """Return what a person typed as Slack's composer sends it: escaped, with names turned into mentions."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    with world.lock:
        named = {f"@{person.name}": f"<@{person.id}>" for person in world.people.values()}
        named |= {
            f"#{one.name}": f"<#{one.id}|{one.name}>" for one in world.channels.values() if not one.is_im
        }
    for name in sorted(named, key=len, reverse=True):
        text = re.sub(rf"(?<!\S){re.escape(name)}(?!\w)", named[name], text, flags=re.IGNORECASE)
    return text
