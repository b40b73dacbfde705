"""Messages to Slack and what its answers mean: sent, gone, given up, or to be tried again, and when.

Slack's words are sorted here and nowhere else. A rate limit is obeyed for what Slack counts it for: a method
in the workspace, and for posts the channel too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slack_sdk.errors import SlackApiError

from dibs.deadline import Deadline
from dibs.service.delivery import Delivered, Delivery, GivenUp, MessageGone, TryLater
from dibs.slack.calls import FAILURES, Api, error_of, is_rate_limit, is_slacks_word, retry_after
from dibs.slack.limits import IN_CHANNEL, Limits

_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
_SHORTEST_TIMEOUT_SECONDS = 0.2
_POSTS_PER_PAGE = 200
_CLOCKS_APART_SECONDS = 300
"""How far the database's clock and Slack's may be apart when a lost post is looked for."""
_LONG_WAIT_SECONDS = 300.0

_RECIPIENT_GONE = frozenset(
    {
        "channel_not_found",
        "is_archived",
        "is_inactive",
        "not_in_channel",
        "user_disabled",
        "user_not_found",
        "cannot_dm_bot",
        "messages_tab_disabled",
        # Only some may post there, and Dibs is none of them.
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
    }
)
_CANNOT_BE_SHOWN = frozenset(
    {
        # What Slack will not show whatever the time: the next version may be another matter.
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
    }
)
_ANOTHER_TOKEN_IS_NEEDED = frozenset(
    {"account_inactive", "token_revoked", "token_expired", "invalid_auth", "not_authed", "missing_scope"}
)
"""The people who run Dibs are told, by the log. Nothing is given up: a new token sends it all."""
_MESSAGE_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_PASSING = frozenset(
    {"ratelimited", "fatal_error", "internal_error", "service_unavailable", "request_timeout"}
)


@dataclass(frozen=True, slots=True)
class Found:
    """A message in a channel's history."""

    place: Delivered
    message: Mapping[str, Any]


def carried_by(message: Mapping[str, Any], event_type: str) -> Mapping[str, Any] | None:
    """What the metadata of a message carries, if it is of this type."""
    metadata = message.get("metadata") or {}
    return (metadata.get("event_payload") or {}) if metadata.get("event_type") == event_type else None


class Sending:
    """Posts, updates and looks for messages. Ends by the deadline, and raises for nothing Slack does."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.limits = Limits()

    def post(self, recipient: str, deadline: Deadline, **message: object) -> Delivery:
        """Post a message to a channel or a person."""
        # Slack lets one post a second into a channel, so each channel waits for itself.
        limits = ("chat.postMessage", f"{IN_CHANNEL}{recipient}")
        return self._send("chat.postMessage", deadline, limits, channel=recipient, **message)

    def update(self, channel_id: str, message_ts: str, deadline: Deadline, **message: object) -> Delivery:
        """Draw a message of our own anew."""
        sent = self._send(
            "chat.update", deadline, ("chat.update",), channel=channel_id, ts=message_ts, **message
        )
        return replace(sent, counted=True) if isinstance(sent, Delivered) else sent

    def direct_channel(self, user_id: str, deadline: Deadline) -> str | GivenUp | TryLater:
        """The direct message with a person, which Slack refuses to open with somebody who is gone."""
        method = "conversations.open"
        answer = self._read(method, deadline, "json", users=user_id)
        if isinstance(answer, GivenUp | TryLater):
            return answer
        channel = (answer.get("channel") or {}).get("id")
        return str(channel) if channel else TryLater()

    def look_for(
        self,
        channel_id: str,
        since: datetime,
        is_it: Callable[[Mapping[str, Any]], bool],
        deadline: Deadline,
    ) -> list[Found] | TryLater:
        """The messages after `since` in a channel for which `is_it` holds, newest first.

        Empty too where Slack does not let Dibs read the channel: it does not let it post there either.
        """
        asked: dict[str, object] = {
            "channel": channel_id,
            "oldest": f"{since.timestamp() - _CLOCKS_APART_SECONDS:.6f}",
            "limit": _POSTS_PER_PAGE,
            "include_all_metadata": True,
        }
        found: list[Found] = []
        while True:
            answer = self._read("conversations.history", deadline, "params", **asked)
            if isinstance(answer, TryLater):
                return answer
            if isinstance(answer, GivenUp):
                return []
            found += [
                Found(Delivered(str(message["ts"]), channel_id), message)
                for message in answer.get("messages") or []
                if is_it(message)
            ]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return found
            asked["cursor"] = str(cursor)

    def _read(
        self, method: str, deadline: Deadline, how: str, **asked: object
    ) -> dict[str, Any] | GivenUp | TryLater:
        if wait := self.limits.take((method,)):
            return TryLater(wait)
        seconds = min(deadline.remaining, _TIMEOUT_SECONDS)
        if seconds < _SHORTEST_TIMEOUT_SECONDS:
            return TryLater()
        try:
            answer = self._api.ask(method, seconds, **{how: asked}).data
        except FAILURES as error:
            name = error_of(error)
            _log.warning("%s: %s", method, name)
            if is_rate_limit(error):
                return TryLater(self.limits.hold(method, retry_after(error)))
            if not is_slacks_word(error) or name in _PASSING:
                return TryLater()
            return GivenUp(name, recipient_gone=name in _RECIPIENT_GONE)
        return answer if isinstance(answer, dict) else {}

    def _send(self, method: str, deadline: Deadline, limits: tuple[str, ...], **message: object) -> Delivery:
        """Send a message; `limits` name what Slack counts it for, the last one what a refusal is about."""
        if wait := self.limits.take(limits):
            return TryLater(wait)
        seconds = min(deadline.remaining, _TIMEOUT_SECONDS)
        if seconds < _SHORTEST_TIMEOUT_SECONDS:
            return TryLater(_SHORTEST_TIMEOUT_SECONDS)
        try:
            answer = self._api.ask(method, seconds, json=message)
        except SlackApiError as error:
            return self._refused(method, limits[-1], error)
        except FAILURES as error:
            _log.warning("%s got no answer: %s", method, error_of(error))
            return TryLater()
        return Delivered(
            str(answer.get("ts") or message.get("ts")), str(answer.get("channel") or message["channel"])
        )

    def _refused(self, method: str, limit: str, error: SlackApiError) -> Delivery:
        name = error_of(error)
        if name in _MESSAGE_GONE:
            return MessageGone()
        if name in _RECIPIENT_GONE or name in _CANNOT_BE_SHOWN:
            return GivenUp(name, recipient_gone=name in _RECIPIENT_GONE)
        if is_rate_limit(error):
            return TryLater(self.limits.hold(limit, retry_after(error)))
        if name in _ANOTHER_TOKEN_IS_NEEDED:
            _log.error(
                "Slack does not let Dibs use %s: %s. Check SLACK_BOT_TOKEN and the scopes", method, name
            )
            return TryLater(_LONG_WAIT_SECONDS)
        _log.warning("%s was refused: %s", method, name)
        return TryLater()
