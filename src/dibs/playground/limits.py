"""Rate limits: how often each method may be called in a workspace, and one message a second in a channel."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.playground.clock import Clock

MINUTE: Final = 60.0

# How many calls a minute each tier allows. Slack promises at least so many, so a bot must do with these.
TIERS: Final[Mapping[str, int]] = {
    "Tier1": 1,
    "Tier2": 20,
    "Tier3": 50,
    "Tier4": 100,
    "SpecialTier_auth_test": 600,
    "SpecialTier_chat_getPermalink": 600,
    "SpecialTier_chat_postMessage": 300,
}
METHOD_TIERS: Final[Mapping[str, str]] = {
    "apps.connections.open": "Tier1",
    "auth.revoke": "Tier3",
    "auth.test": "SpecialTier_auth_test",
    "chat.delete": "Tier3",
    "chat.getPermalink": "SpecialTier_chat_getPermalink",
    "chat.postEphemeral": "Tier4",
    "chat.postMessage": "SpecialTier_chat_postMessage",
    "chat.update": "Tier3",
    "conversations.history": "Tier3",
    "conversations.info": "Tier3",
    "conversations.members": "Tier4",
    "conversations.open": "Tier3",
    "files.completeUploadExternal": "Tier4",
    "files.delete": "Tier3",
    "files.getUploadURLExternal": "Tier4",
    "files.info": "Tier4",
    "oauth.v2.access": "Tier4",
    "usergroups.list": "Tier2",
    "usergroups.users.list": "Tier2",
    "users.conversations": "Tier2",
    "users.info": "Tier4",
    "users.list": "Tier2",
    "views.open": "Tier4",
    "views.publish": "Tier4",
    "views.push": "Tier4",
    "views.update": "Tier4",
}
# A short burst is let through in a channel, as Slack does without saying how long one may be.
BURST: Final = 5


class RateLimited(ApiError):
    """Too many calls; the answer is a 429 that says when to come back."""

    def __init__(self, seconds: float) -> None:
        super().__init__("ratelimited")
        self.retry_after = max(math.ceil(seconds), 1)

    @property
    def headers(self) -> dict[str, str]:
        """Say when to come back."""
        return {"Retry-After": str(self.retry_after)}


class RateLimits:
    """Counts calls on the stand-in's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], deque[float]] = {}
        self._channels: dict[tuple[str, str], tuple[float, float]] = {}

    def count(self, team: str, method: str, channel: str) -> None:
        """Count one call, or refuse it."""
        now = self._clock.now()
        calls = self._calls.setdefault((team, method), deque())
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        if len(calls) >= TIERS[METHOD_TIERS[method]]:
            raise RateLimited(calls[0] + MINUTE - now)
        if method == "chat.postMessage":
            self._count_in_channel((team, channel), now)
        calls.append(now)

    def _count_in_channel(self, key: tuple[str, str], now: float) -> None:
        left, since = self._channels.get(key, (float(BURST), now))
        left = min(left + now - since, BURST)
        if left < 1:
            self._channels[key] = (left, now)
            raise RateLimited(1 - left)
        self._channels[key] = (left - 1, now)
