"""Trouble on purpose by HTTP: faults are listed, set and cleared, connections cut, and the clock moved on."""

from __future__ import annotations

import dataclasses
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from dibs.playground.faults import Fault, Mishap
    from dibs.playground.standin import SlackStandIn

Json = dict[str, Any]

PATH: Final = "/playground/faults"
BOOL: Final = (bool,)
NUMBER: Final = (int, float)

FAULT: Final[Mapping[str, tuple[type, ...]]] = {
    "method": (str,),
    "error": (str,),
    "http_status": (int,),
    "retry_after": (int,),
    "silence": BOOL,
    "lose_answer": BOOL,
    "garbage": BOOL,
    "cut": BOOL,
    "delay": NUMBER,
    "times": (int,),
}
MISHAP: Final[Mapping[str, tuple[type, ...]]] = {
    "name": (str,),
    "twice": BOOL,
    "late": BOOL,
    "lose_answer": BOOL,
    "times": (int,),
}


class ControlRoutes:
    """One address. A GET tells what waits; a POST of JSON changes it and tells the same."""

    def __init__(self, slack: SlackStandIn) -> None:
        self._slack = slack

    def routes(self) -> list[Route]:
        """Return the addresses for Starlette."""
        return [Route(PATH, self._show, methods=["GET"]), Route(PATH, self._change, methods=["POST"])]

    async def _show(self, request: Request) -> Response:
        del request
        return JSONResponse(shown(self._slack))

    async def _change(self, request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            # A form of another site can carry text, but not this type without asking first.
            return JSONResponse({"error": "JSON is expected"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        try:
            changes = _changes(self._slack, json.loads(await request.body()))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        for change in changes:
            await run_in_threadpool(change)
        return JSONResponse(shown(self._slack))


def shown(slack: SlackStandIn) -> Json:
    """Return what waits and how things stand."""
    return {
        "fail_next": [{"method": method, **_told(fault)} for method, fault in slack.faults.waiting],
        "deliver_next": [{"name": name, **_told(mishap)} for name, mishap in slack.faults.mishaps],
        "ahead": slack.clock.ahead,
        "rate_limits": slack.rate_limits,
        "events_on": slack.events_on,
        "socket_mode": slack.socket_mode,
        "connected": slack.sockets.connected,
    }


def _told(fault: Fault | Mishap) -> Json:
    """Return only what was asked for."""
    return {
        one.name: getattr(fault, one.name)
        for one in dataclasses.fields(fault)
        if getattr(fault, one.name) != one.default
    }


def _changes(slack: SlackStandIn, told: object) -> list[Callable[[], object]]:
    """Return what a request asks for, or raise ValueError before anything was done."""
    if not isinstance(told, dict) or not told:
        msg = f"expected one or more of {', '.join(CHANGES)}"
        raise ValueError(msg)
    unknown = [str(name) for name in told if name not in CHANGES]
    if unknown:
        msg = f"unknown: {', '.join(unknown)}; expected one or more of {', '.join(CHANGES)}"
        raise ValueError(msg)
    return [CHANGES[name](slack, value) for name, value in told.items()]


def _fail_next(slack: SlackStandIn, value: object) -> Callable[[], object]:
    told = _checked("fail_next", value, FAULT, "method")
    return lambda: slack.faults.fail_next(**told)


def _deliver_next(slack: SlackStandIn, value: object) -> Callable[[], object]:
    told = _checked("deliver_next", value, MISHAP, "name")
    return lambda: slack.faults.deliver_next(**told)


def _checked(what: str, value: object, fields: Mapping[str, tuple[type, ...]], needed: str) -> Json:
    if not isinstance(value, dict) or needed not in value:
        msg = f"{what} needs {needed}"
        raise ValueError(msg)
    for name, one in value.items():
        kinds = fields.get(name)
        # A bool is an int for Python, but nobody means it as one.
        if kinds is None or not isinstance(one, kinds) or (isinstance(one, bool) and kinds != BOOL):
            msg = f"{what} knows no {name} of that kind; it knows {', '.join(fields)}"
            raise ValueError(msg)
    return value


def _clear(slack: SlackStandIn, value: object) -> Callable[[], object]:
    del value
    return slack.faults.clear


def _advance(slack: SlackStandIn, value: object) -> Callable[[], object]:
    if isinstance(value, bool) or not isinstance(value, NUMBER):
        msg = "advance is a number of seconds"
        raise ValueError(msg)  # noqa: TRY004 - all that a request can have wrong is told in one way
    return lambda: slack.clock.advance(value)


def _rate_limits(slack: SlackStandIn, value: object) -> Callable[[], object]:
    def switched() -> None:
        slack.rate_limits = value is True

    return switched


def _connections(slack: SlackStandIn, value: object) -> Callable[[], object]:
    known = {"warn": slack.sockets.warn, "refresh": slack.sockets.refresh, "cut": slack.sockets.cut}
    if value not in known:
        msg = f"connections is one of {', '.join(known)}"
        raise ValueError(msg)
    return known[str(value)]


CHANGES: Final[Mapping[str, Callable[[SlackStandIn, object], Callable[[], object]]]] = {
    "fail_next": _fail_next,
    "deliver_next": _deliver_next,
    "clear": _clear,
    "advance": _advance,
    "rate_limits": _rate_limits,
    "connections": _connections,
}
