"""Events: sent to whoever subscribed, and sent again at once, after one minute and after five."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dibs.playground import payloads
from dibs.playground.bot import alone

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.app import App
    from dibs.playground.bot import Answer
    from dibs.playground.delivery import Delivery
    from dibs.playground.world import World

Json = dict[str, Any]

# The first retry comes at once; the second and the third come so long after the first try.
LATER: Final = ((2, 60.0), (3, 300.0))
# What an app is told although it is not installed any more.
FAREWELLS: Final = frozenset({"tokens_revoked", "app_uninstalled"})


class Events:
    """Tells the bot what happens in one workspace."""

    def __init__(self, world: World, app: App, way: Delivery, note: Callable[[Json, Answer], None]) -> None:
        self._world = world
        self._app = app
        self._way = way
        self._note = note

    def tell(self, told: Json) -> Answer | None:
        """Send an event and return how its last try for now was answered; nothing if nobody is told."""
        farewell = told["type"] in FAREWELLS
        if not self._app.hears(told) or not (farewell or self._app.installed_in(self._world)):
            return None
        if not self._app.subscriptions.on:
            return None
        with self._world.lock:
            body = payloads.event(self._world, told)
        answer = self._try(told, body, 0, "")
        if again(answer):
            with alone():
                answer = self._try(told, body, 1, reason(answer))
            if again(answer):
                self._later(told, body, answer)
        return answer

    def _try(self, told: Json, body: Json, attempt: int, why: str) -> Answer:
        answer = self._way.event(body, attempt, why)
        self._note(told, answer)
        if not self._app.socket_mode and self._app.subscriptions.count(good=answer.good):
            with self._world.lock:
                self._world.changed()
        return answer

    def _later(self, told: Json, body: Json, last: Answer) -> None:
        tried = [last]

        def once_more(attempt: int) -> None:
            if again(tried[-1]) and self._app.subscriptions.on:
                tried.append(self._try(told, body, attempt, reason(tried[-1])))

        for attempt, seconds in LATER:
            self._world.clock.after(seconds, partial(once_more, attempt))


def again(answer: Answer) -> bool:
    """Whether an event has to be sent once more: it was not taken, and nobody asked for no retry."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return not answer.good and headers.get("x-slack-no-retry") != "1"


def reason(answer: Answer) -> str:
    """Return Slack's word for what went wrong."""
    if answer.timed_out:
        return "http_timeout"
    return "http_error" if answer.status else "connection_failed"
