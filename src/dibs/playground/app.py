"""The bot's app as Slack knows it: its manifest, its tokens and where it is installed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dibs.playground.errors import ApiError
from dibs.playground.limits import RateLimits
from dibs.playground.subscriptions import Subscriptions
from dibs.playground.world import APP_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.clock import Clock
    from dibs.playground.manifest import Manifest
    from dibs.playground.sockets import Sockets
    from dibs.playground.world import World

Json = dict[str, Any]


@dataclass
class Grant:
    """A bot token: the workspace it is for, and its scopes; None stands for all of them."""

    token: str
    world: World
    scopes: frozenset[str] | None = None
    revoked: bool = False


@dataclass
class Code:
    """What the installation page hands out: it is exchanged for a token once."""

    world: World
    user: str
    scopes: frozenset[str]
    redirect_uri: str
    told: bool
    issued: float
    used: bool = False


class App:
    """One app, installed in one workspace or in several."""

    def __init__(
        self,
        clock: Clock,
        sockets: Sockets,
        app_token: str | None,
        *,
        base: Callable[[], str],
        happened: Callable[[World, Json], None],
    ) -> None:
        self.app_id = APP_ID
        self.clock = clock
        self.sockets = sockets
        self.app_token = app_token
        self.manifest: Manifest | None = None
        self.socket_mode = app_token is not None
        self.rate_limits = False
        self.limits = RateLimits(clock)
        self.subscriptions = Subscriptions(clock)
        self.client_id = f"{secrets.randbelow(10**10)}.{secrets.randbelow(10**12)}"
        self.client_secret = secrets.token_hex(16)
        self.grants: dict[str, Grant] = {}
        self.codes: dict[str, Code] = {}
        self.base = base
        self._happened = happened

    def add_grant(self, token: str, world: World, scopes: frozenset[str] | None = None) -> Grant:
        """Let a token be used for a workspace."""
        grant = self.grants[token] = Grant(token, world, scopes)
        return grant

    def grant(self, token: str) -> Grant:
        """Return what a bot token is good for, or refuse it."""
        if not token:
            raise ApiError("not_authed")
        grant = self.grants.get(token)
        if grant is None:
            raise ApiError("not_allowed_token_type" if token == self.app_token else "invalid_auth")
        if grant.revoked:
            raise ApiError("account_inactive")
        return grant

    def grants_of(self, world: World) -> list[Grant]:
        """Return the tokens that work in a workspace."""
        return [grant for grant in self.grants.values() if grant.world is world and not grant.revoked]

    def revoke(self, grant: Grant) -> None:
        """Let a token be of no more use: the bot leaves its channels, though the app stays; it is told."""
        world = grant.world
        grant.revoked = True
        with world.lock:
            world.people[world.bot_user_id].deleted = True
            for channel in world.channels.values():
                if world.bot_user_id in channel.members and not channel.is_im:
                    channel.members.remove(world.bot_user_id)
            world.changed()
        self._happened(world, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [world.bot_user_id]}})

    def hears(self, event: Json) -> bool:
        """Whether the app is told of an event; without a manifest it is told everything."""
        return self.manifest is None or self.manifest.hears(event)

    def tell_news(self, world: World) -> None:
        """Tell the app what it brought about itself, if its manifest asks for that."""
        with world.lock:
            news, world.news = world.news, []
        for event in news:
            if self.manifest and self.manifest.hears(event):
                self._happened(world, event)

    def installed_in(self, world: World) -> bool:
        """Whether a workspace has the app."""
        return bool(self.grants_of(world))
