"""Files that Dibs sends to one person, in a direct message.

Slack takes a file in three steps: it gives a url, the bytes go there, and a last request shows the file in a
conversation. Only the last one can be seen by anybody, so whatever fails before it has sent nothing.
"""

from __future__ import annotations

import io
import logging
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from dibs.deadline import Deadline
from dibs.service.telemetry import Telemetry
from dibs.slack.calls import (
    FAILURES,
    Answered,
    Api,
    error_of,
    is_rate_limit,
    is_slacks_word,
    retry_after,
    told_of,
)
from dibs.slack.text import cut

_log = logging.getLogger(__name__)

_STEP_SECONDS = 10.0
_SHORTEST_SECONDS = 0.2
_LONGEST_ALT_TEXT = 1000
_LONGEST_COMMENT = 4000
_PERHAPS_DONE = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
"""Errors with which Slack says that it may have done a part."""


@dataclass(frozen=True, slots=True)
class FileSent:
    """What became of a file. `why` is what a person may be told where it was not taken."""

    answered: Answered
    why: str = ""
    lasting: bool = False
    """Whether Slack would refuse it again, such as for a scope that is missing."""

    @property
    def arrived(self) -> bool:
        """Whether Slack has confirmed that the person has it."""
        return self.answered is Answered.TAKEN


class FileSender:
    """Sends files through Slack's upload in three steps (`files.upload` is no longer offered)."""

    def __init__(self, token: str, api_url: str, telemetry: Telemetry | None = None) -> None:
        self._api = Api(token, api_url, telemetry)
        handlers = [_NoRedirect(), *([HTTPSHandler(context=self._api.trust)] if self._api.trust else [])]
        self._opener = build_opener(*handlers)

    def send_file(
        self,
        user_id: str,
        content: Path | bytes,
        *,
        filename: str,
        title: str,
        deadline: Deadline,
        alt_text: str = "",
        comment: str = "",
    ) -> FileSent:
        """Send a file to a person in a direct message, and wait for it until the deadline.

        `content` is the file's path or, for small ones, its bytes; a file is read piece by piece. `alt_text`
        is what a screen reader says of a picture, `comment` the message that the file comes with, in mrkdwn;
        each is cut to Slack's limit. A step that Slack asks to try later waits, if the deadline allows it.

        It does not raise for what goes wrong on the way: REFUSED means that the person has nothing, UNKNOWN
        that no word came back on the last step, so they may have it, and it must not be sent again unasked.
        Raises OSError where there is no such file, and ValueError where it is empty, which Slack refuses.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if not size:
            raise ValueError("an empty file cannot be sent")
        try:
            opened = self._ask("conversations.open", deadline, json={"users": user_id})
            asked = {"filename": filename, "length": size, "alt_txt": cut(alt_text, _LONGEST_ALT_TEXT)}
            ticket = self._ask(
                "files.getUploadURLExternal", deadline, params={k: v for k, v in asked.items() if v}
            )
            channel_id = str(opened["channel"]["id"])
            file_id, url = str(ticket["file_id"]), str(ticket["upload_url"])
            # The request's own thread opens the file, for it may outlast this call when it is given up.
            self._api.calls.within(
                _left(deadline, at_most=deadline.remaining),
                "upload",
                lambda: self._upload(url, content, size, deadline),
            )
        except (*FAILURES, KeyError, TypeError) as error:
            _log.warning("the file %s was not sent: %s", filename, error_of(error))
            return FileSent(Answered.REFUSED, told_of(error), lasting=_is_lasting(error))
        shown = {"files": [{"id": file_id, "title": title}], "channel_id": channel_id}
        if comment:
            shown["initial_comment"] = cut(comment, _LONGEST_COMMENT)
        try:
            self._ask("files.completeUploadExternal", deadline, json=shown)
        except FAILURES as error:
            _log.warning("it is not confirmed that the file %s was shown: %s", filename, error_of(error))
            refused = is_rate_limit(error) or _is_lasting(error)
            answered = Answered.REFUSED if refused else Answered.UNKNOWN
            return FileSent(answered, told_of(error), lasting=_is_lasting(error))
        return FileSent(Answered.TAKEN)

    def _ask(self, method: str, deadline: Deadline, **sent: Any) -> Any:  # noqa: ANN401 - Slack's answer
        """The answer, after as many waits as Slack asks for. Raises one of FAILURES."""
        while True:
            try:
                return self._api.ask(method, _left(deadline), **sent).data
            except FAILURES as error:
                wait = retry_after(error) if is_rate_limit(error) else 0.0
                if not wait or wait + _SHORTEST_SECONDS > deadline.remaining:
                    raise
                time.sleep(wait)

    def _upload(self, url: str, content: Path | bytes, size: int, deadline: Deadline) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError("Slack gave no web address to send the file to")
        with _opened(content) as body:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - checked above
            with self._opener.open(request, timeout=_left(deadline)) as answer:
                if answer.status != HTTPStatus.OK:
                    raise OSError(f"the upload was answered with {answer.status}")


def _is_lasting(error: Exception) -> bool:
    return is_slacks_word(error) and not is_rate_limit(error) and error_of(error) not in _PERHAPS_DONE


class _NoRedirect(HTTPRedirectHandler):
    """A redirected upload would go on as a GET without the file, and look as if it had arrived."""

    def redirect_request(
        self,
        req: Request,  # noqa: ARG002 - the handler's own signature, as are the others
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


def _opened(content: Path | bytes) -> IO[bytes]:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _left(deadline: Deadline, at_most: float = _STEP_SECONDS) -> float:
    """Seconds for the next step. Raises TimeoutError where none are left."""
    seconds = min(deadline.remaining, at_most)
    if seconds < _SHORTEST_SECONDS:
        raise TimeoutError("no time was left")
    return seconds
