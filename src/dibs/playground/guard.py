"""Keeps every web page but the stand-in's own from driving it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# What a link may lead to: looking at these pages changes nothing.
OPENED: Final = frozenset({"/", "/oauth/v2/authorize"})
NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class LoopbackOnly:
    """Refuses requests whose Host is not this machine, or that another site's page sends.

    The socket is bound to loopback, but a browser on this machine can be led there by any page; a Host under
    a foreign name, or an Origin other than the stand-in's own, gives that away.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "websocket" and not _allowed(scope):
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http" and not _allowed(scope):
            refusal = PlainTextResponse("This is only for this machine's own page.", 403)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _allowed(scope: Scope) -> bool:
    headers, port = Headers(scope=scope), scope["server"][1]
    host = headers.get("host", "")
    # Slack's own Socket Mode client leaves the port out; no browser does.
    portless = scope["type"] == "websocket" and host in NAMES
    if not portless and not _is_own(f"http://{host}", port):
        return False
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, port):
        return False
    return headers.get("sec-fetch-site", "none") in {"none", "same-origin"} or _follows_a_link(scope, headers)


def _follows_a_link(scope: Scope, headers: Headers) -> bool:
    """Whether somebody opens the page itself, in a tab of its own, from a link on another site."""
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return opened and scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in OPENED


def _is_own(url: str, port: int) -> bool:
    try:
        parts = urlsplit(url)
        named = (parts.hostname, parts.port or 80)
    except ValueError:
        return False
    return named[0] in NAMES and named[1] == port
