"""SlackStandIn: the whole stand-in as one object, for the command line that shows it and for tests."""

from __future__ import annotations

import json
import secrets
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from starlette.applications import Starlette

from dibs.playground import manifest as manifests
from dibs.playground.app import App
from dibs.playground.bot import ANSWER_WITHIN, JSON, Bot, together
from dibs.playground.clock import Clock
from dibs.playground.control import ControlRoutes
from dibs.playground.file_routes import FileRoutes
from dibs.playground.guard import LoopbackOnly
from dibs.playground.interactions import Interactions
from dibs.playground.oauth import OAuthRoutes
from dibs.playground.page import PageRoutes
from dibs.playground.payloads import VERIFICATION_TOKEN
from dibs.playground.routes import BotRoutes
from dibs.playground.server import HOST, Connections, Server
from dibs.playground.sockets import Sockets
from dibs.playground.tour import Tour
from dibs.playground.traffic import Traffic, WatchedCalls, WatchedDelivery
from dibs.playground.workspace import Workspace
from dibs.playground.world import APP_ID, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dibs.playground.bot import Answer
    from dibs.playground.manifest import Manifest
    from dibs.playground.tour import Lever

Json = dict[str, Any]

Outcome = TypeVar("Outcome")


class SlackStandIn(Workspace):
    """A stand-in for Slack on this machine, reachable on loopback only.

    It speaks the Web API under `api_url`, sends signed requests to `bot_url` or, with an `app_token`, over
    Socket Mode, and shows its people on the page at `page_url`. Its refusals are Slack's. It is a workspace
    itself; others can be added. `commands` are offered to who writes on the page, as pairs of a
    beginning and words; `levers` are offered beside it, and `tour` tells a newcomer what to try.
    """

    def __init__(
        self,
        *,
        signing_secret: str,
        bot_token: str,
        app_token: str | None = None,
        port: int = 0,
        bot_name: str = "Dibs",
        clock: Clock | None = None,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self.clock = clock or Clock()
        self.bot_token = bot_token
        self.commands: list[tuple[str, str]] = []
        self.levers: list[Lever] = []
        self.traffic = Traffic(self.clock)
        self._bot = Bot(signing_secret, answer_within)
        connections = Connections()
        self.sockets = Sockets(APP_ID, self.clock, connections.cut, self._connections_changed)
        self.app = App(self.clock, self.sockets, app_token, base=lambda: self._base, happened=self._happened)
        self._way = WatchedDelivery(self._bot, self.sockets, lambda: self.app.socket_mode, self.traffic)
        self.faults = self._way.faults
        world = World(self.clock, bot_name, base=lambda: self._base)
        super().__init__(world, Interactions(world, self.app, self._way, lambda: f"{self._base}hooks/"))
        self.app.add_grant(bot_token, world)
        self.workspaces: dict[str, Workspace] = {world.team_id: self}
        bot_routes = BotRoutes(self.app, self.workspaces, self.faults, connections)
        self.tour = Tour(self.world)
        self._page = PageRoutes(self)
        file_routes = FileRoutes(self.app, self.workspaces, bot_routes)
        oauth = OAuthRoutes(self.app, self.workspaces)
        control = ControlRoutes(self)
        routes = [
            *bot_routes.routes(),
            *file_routes.routes(),
            *oauth.routes(),
            *control.routes(),
            *self.sockets.routes(),
            *self._page.routes(),
        ]
        app = LoopbackOnly(WatchedCalls(Starlette(routes=routes), self.traffic))
        self._server = Server(app, connections, port, sockets=app_token is not None)

    # Starting and stopping

    def start(self) -> None:
        """Listen on 127.0.0.1."""
        self._page.start()
        self._server.start()

    def stop(self) -> None:
        """Stop listening, and forget what was still to be sent."""
        self.clock.forget()
        self._page.stop()
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _base(self) -> str:
        return f"http://{HOST}:{self._server.port}/"

    @property
    def api_url(self) -> str:
        """The base of the Web API, for SLACK_API_URL."""
        return f"{self._base}api/"

    @property
    def page_url(self) -> str:
        """The address of the page."""
        return self._base

    @property
    def bot_url(self) -> str:
        """Where the bot takes Slack's requests."""
        return self._bot.url

    @bot_url.setter
    def bot_url(self, url: str) -> None:
        self._bot.url = url

    @property
    def signing_secret(self) -> str:
        """The secret that requests to the bot are signed with."""
        return self._bot.signing_secret

    # The app

    @property
    def authorize_url(self) -> str:
        """The page on which an administrator installs the app."""
        return f"{self._base}oauth/v2/authorize"

    @property
    def client_id(self) -> str:
        """The app's public name in the installation dance."""
        return self.app.client_id

    @property
    def client_secret(self) -> str:
        """What the app proves itself with in the installation dance."""
        return self.app.client_secret

    @property
    def socket_mode(self) -> bool:
        """Whether requests go over Socket Mode; turning it off ends the connections."""
        return self.app.socket_mode

    @socket_mode.setter
    def socket_mode(self, on: bool) -> None:
        self.app.socket_mode = on
        if not on:
            self.sockets.disable()

    @property
    def rate_limits(self) -> bool:
        """Whether calls that come too fast are refused, on the stand-in's clock."""
        return self.app.rate_limits

    @rate_limits.setter
    def rate_limits(self, on: bool) -> None:
        self.app.rate_limits = on

    @property
    def events_on(self) -> bool:
        """Whether events are delivered; Slack stops when an address fails nearly always."""
        return self.app.subscriptions.on

    def resume_events(self) -> None:
        """Have events delivered again, as the app's owner does in its settings."""
        self.app.subscriptions.resume()
        with self.world.lock:
            self.world.changed()

    @property
    def manifest(self) -> Manifest | None:
        """The manifest in use, with its commands and shortcuts; None while everything is granted."""
        return self.app.manifest

    def install(self, manifest: Json) -> Manifest:
        """Install the app by its manifest: from now on only what it grants and names is there."""
        found = manifests.read(manifest)
        self.app.manifest = found
        for grant in self.app.grants_of(self.world):
            grant.scopes = found.scopes
        if self.socket_mode != found.socket_mode:
            self.socket_mode = found.socket_mode
        return found

    def verify_url(self) -> bool:
        """Challenge the bot's address, as Slack does before it keeps one; whether it was answered."""
        challenge = secrets.token_hex(16)
        told = {"token": VERIFICATION_TOKEN, "challenge": challenge, "type": "url_verification"}
        answer = self._bot.send(json.dumps(told).encode(), content_type=JSON)
        return answer.good and challenge in answer.body

    def add_workspace(self, name: str, *, bot_token: str | None = None) -> Workspace:
        """Add another workspace; with a token, the app is installed there already."""
        world = World(self.clock, self.world.people[self.bot_user_id].name, name, lambda: self._base)
        acts = Interactions(world, self.app, self._way, lambda: f"{self._base}hooks/")
        if world.team_id in self.workspaces:
            msg = f"there is a workspace {world.team_id} already; the first four letters tell them apart"
            raise ValueError(msg)
        workspace = self.workspaces[world.team_id] = Workspace(world, acts)
        if bot_token:
            self.app.add_grant(bot_token, world, self.app.manifest.scopes if self.app.manifest else None)
        return workspace

    def uninstall(self, workspace: Workspace | None = None) -> None:
        """Remove the app from a workspace, as an administrator does: its tokens end, and it hears of it."""
        world = (workspace or self).world
        for grant in self.app.grants_of(world):
            self.app.revoke(grant)
        self._happened(world, {"type": "app_uninstalled"})

    def _connections_changed(self) -> None:
        with self.world.lock:
            self.world.changed()

    def _happened(self, world: World, event: Json) -> None:
        """Tell the bot of something that it may have brought about itself, so it must not wait for that."""
        if self._way.there:
            told = partial(self.workspaces[world.team_id].tell, event)
            threading.Thread(target=told, name=str(event["type"]), daemon=True).start()

    def together(self, acts: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
        """Carry out acts so that their requests are all on their way before any is answered."""
        return together(acts)

    def send_raw(self, body: bytes, headers: Mapping[str, str] | None = None, *, sign: bool = True) -> Answer:
        """Send the bot whatever bytes, signed or not."""
        return self._bot.send(body, headers, sign=sign)
