"""Requests to Slack that end in time, and what their failures mean."""

from __future__ import annotations

import re
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum, auto
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web import SlackResponse
from slack_sdk.webhook import WebhookResponse

from dibs.service.telemetry import Telemetry

T = TypeVar("T")

FAILURES = (SlackClientError, URLError, OSError, HTTPException, ValueError)
"""What a request raises when Slack refuses, does not answer, or answers with garbage."""

_MOST_UNDER_WAY = 100
_NOT_SERVING = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout"})
_A_WORD = re.compile("[a-z][a-z0-9_]{0,49}")


class SlackUnusable(Exception):
    """Slack does not let Dibs in or does not answer. The message is Slack's word for it, or the network's."""


class Answered(Enum):
    """What became of an answer that was sent to a response_url."""

    TAKEN = auto()
    REFUSED = auto()
    """Slack said no, such as when the url was used up: the person has not heard it."""
    UNKNOWN = auto()
    """No word came back: the person may have heard it."""


class Calls:
    """Runs requests, each no longer than it may take.

    The network's time-outs count for each read, so that a server that answers drop by drop could hold a press
    for ever. A request that is given up ends by itself, on its own thread.
    """

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._free = threading.BoundedSemaphore(_MOST_UNDER_WAY)
        self._telemetry = telemetry or Telemetry()
        self.answers = True
        """Whether Slack answered when it was last asked, be it with a refusal."""
        self.heard_at = time.monotonic()
        """When it last answered."""

    def within(self, seconds: float, method: str, call: Callable[[], T]) -> T:
        """What `call` returns or raises. Raises TimeoutError once the seconds are over.

        `method` names what is asked of Slack, for who measures.
        """
        begun, word = time.monotonic(), None
        try:
            result = self._within(seconds, call)
        except Exception as error:
            word = _word_of(error)
            self._heard(_status_of(error))
            raise
        else:
            self._heard(getattr(result, "status_code", None))
            if isinstance(result, WebhookResponse) and result.status_code != HTTPStatus.OK:
                word = _as_word(result.body, f"http_{result.status_code}")
            return result
        finally:
            self._telemetry.asked_slack(method, time.monotonic() - begun, word)

    def _heard(self, status: int | None) -> None:
        self.answers = status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR
        if self.answers:
            self.heard_at = time.monotonic()

    def _within(self, seconds: float, call: Callable[[], T]) -> T:
        if not self._free.acquire(blocking=False):
            raise TimeoutError("too many requests to Slack are under way")
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(call())
            except BaseException as error:  # noqa: BLE001 - told to whoever waits
                result.set_exception(error)
            finally:
                self._free.release()

        try:
            threading.Thread(target=run, name="dibs-slack-call", daemon=True).start()
        except RuntimeError as error:
            self._free.release()
            raise OSError("no thread was left to ask Slack") from error
        return result.result(seconds)


class Api:
    """Slack's Web API under one address, with one token."""

    def __init__(self, token: str, url: str, telemetry: Telemetry | None = None) -> None:
        self._token = token
        self._url = url
        self.calls = Calls(telemetry)
        # One for all: Python 3.11's urllib reads every certificate of the system again for each connection,
        # which took 25 of the 28 ms of processor time that an answer cost.
        self.trust = ssl.create_default_context() if url.startswith("https:") else None

    def ask(self, method: str, seconds: float, **sent: Any) -> SlackResponse:  # noqa: ANN401 - the client's
        """Call a method and wait so long for its answer. Raises one of FAILURES."""
        # The client's time-out is typed as whole seconds and takes fractions just as well.
        timeout: Any = seconds
        client = WebClient(
            token=self._token, base_url=self._url, timeout=timeout, ssl=self.trust, retry_handlers=[]
        )
        return self.calls.within(seconds, method, lambda: client.api_call(method, **sent))


def error_of(error: Exception) -> str:
    """Slack's own word for what went wrong, or the exception's."""
    if isinstance(error, SlackApiError):
        response = error.response
        found = response.get("error") if hasattr(response, "get") else None
        return str(found or error)
    return f"{type(error).__name__}: {error}"


def _word_of(error: Exception) -> str:
    """One word for what went wrong: Slack's own, or the kind of exception."""
    if isinstance(error, SlackApiError):
        return _as_word(error_of(error), "unreadable")
    return "no_answer" if isinstance(error, TimeoutError) else type(error).__name__


def _as_word(said: str, otherwise: str) -> str:
    return said if _A_WORD.fullmatch(said) else otherwise


def _status_of(error: Exception) -> int | None:
    """The status of Slack's answer that an error is about; None where it gave none or could not serve."""
    word = error_of(error)
    if not isinstance(error, SlackApiError) or word in _NOT_SERVING or not _A_WORD.fullmatch(word):
        return None
    return getattr(error.response, "status_code", None)


def is_slacks_word(error: Exception) -> bool:
    """Whether Slack itself refused, and not something on the way to it that answers in its place."""
    return (
        isinstance(error, SlackApiError)
        and getattr(error.response, "status_code", None) == HTTPStatus.OK
        and _A_WORD.fullmatch(error_of(error)) is not None
    )


def told_of(error: Exception) -> str:
    """What went wrong, as a person may be told: Slack's own word for it, or that there was none."""
    match error:
        case SlackApiError():
            return _as_word(error_of(error), "its answer could not be read")
        case TimeoutError():
            return "it did not answer in time"
        case _:
            return "the connection to it failed"


def is_rate_limit(error: Exception) -> bool:
    """Whether Slack asked to wait."""
    if not isinstance(error, SlackApiError):
        return False
    status = getattr(error.response, "status_code", None)
    return status == HTTPStatus.TOO_MANY_REQUESTS or error_of(error) == "ratelimited"


def retry_after(error: Exception) -> float:
    """How many seconds Slack asked to wait."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    found = next((value for key, value in headers.items() if key.lower() == "retry-after"), "1")
    try:
        return max(float(found), 0.5)
    except ValueError:
        return 1.0
