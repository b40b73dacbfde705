"""What Dibs asks of Slack's Web API: people, channels, cards, modals and answers.

One WebClient without retries of its own: a retry after a lost connection could post twice.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Collection
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.webhook import WebhookClient

from dibs.deadline import Deadline
from dibs.domain.queue import Facts
from dibs.domain.task import Standing
from dibs.service.delivery import Delivered, Delivery, GivenUp, MessageGone, TryLater
from dibs.service.transitions import LookUpFailed
from dibs.slack.views.card import card

_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10
_SHORTEST_TIMEOUT_SECONDS = 0.2
_LEFT_FOR_THE_REST_SECONDS = 0.4
_MEMBERS_PER_PAGE = 1000
_POSTS_TO_LOOK_THROUGH = 100
_RATE_LIMITED = 429

CARD_EVENT = "dibs_card"
"""The metadata that marks a card, so that a post whose answer was lost can be found again."""

FAILURES = (SlackClientError, URLError, OSError, HTTPException, ValueError)
"""What the client raises when Slack refuses, does not answer, or answers with garbage."""

_NEVER_AGAIN = frozenset(
    {
        "channel_not_found",
        "is_archived",
        "is_inactive",
        "not_in_channel",
        "user_disabled",
        "account_inactive",
        "token_revoked",
        "invalid_blocks",
        "msg_too_long",
        "restricted_action",
    }
)
_TRIGGER_USED = "exchanged_trigger_id"
_MESSAGE_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_PASSING = frozenset(
    {"ratelimited", "fatal_error", "internal_error", "service_unavailable", "request_timeout"}
)


class SlackUnusable(Exception):
    """Slack did not answer who the bot is. The message is Slack's word for it, or the network's."""


class SlackWeb:
    """Slack, as the services see it: a Directory, a CardSender, and where modals and answers go."""

    def __init__(self, token: str, api_url: str) -> None:
        self._token = token
        self._api_url = api_url
        # One for all: Python 3.11's urllib reads every certificate of the system again for each connection,
        # which took 25 of the 28 ms of processor time that an answer cost.
        self._trust = ssl.create_default_context() if api_url.startswith("https:") else None
        self._client = self._client_within(_TIMEOUT_SECONDS)
        self._wait_until: dict[str, float] = {}
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()

    def _client_within(self, seconds: float) -> WebClient:
        # The client's time-out is typed as whole seconds and takes fractions just as well.
        timeout: Any = seconds
        return WebClient(
            token=self._token, base_url=self._api_url, timeout=timeout, ssl=self._trust, retry_handlers=[]
        )

    def auth_test(self) -> dict[str, Any]:
        """Who the bot is. Raises SlackUnusable where Slack does not know it or does not answer."""
        try:
            answer = self._client.auth_test().data
        except FAILURES as error:
            raise SlackUnusable(error_of(error)) from error
        return answer if isinstance(answer, dict) else {}

    # The Directory

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the channel. Raises LookUpFailed."""
        found: set[str] = set()
        cursor = ""
        while True:
            page = self._look_up(
                "conversations.members",
                deadline,
                channel=channel_id,
                limit=_MEMBERS_PER_PAGE,
                **({"cursor": cursor} if cursor else {}),
            )
            members = page.get("members")
            found.update(str(member) for member in members if member) if isinstance(members, list) else None
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return found

    def standing(self, workspace: str, user_id: str, deadline: Deadline) -> Standing:
        """What a person who is in the channel may do. Raises LookUpFailed."""
        user = self._look_up("users.info", deadline, user=user_id).get("user")
        if not isinstance(user, dict):
            raise LookUpFailed("users.info gave no user")
        self._remember(user_id, user)
        if user.get("deleted"):
            return Standing.DEACTIVATED
        if user.get("is_bot") or user_id == "USLACKBOT":
            return Standing.BOT
        if user.get("is_stranger") or user.get("team_id", workspace) != workspace:
            return Standing.OTHER_WORKSPACE
        return Standing.ELIGIBLE

    def name_of(self, user_id: str, deadline: Deadline) -> str:
        """A person's name for plain text; looked up once, and `somebody` where that fails."""
        if user_id not in self._names:
            try:
                user = self._look_up("users.info", deadline, user=user_id).get("user")
            except LookUpFailed:
                return "somebody"
            self._remember(user_id, user if isinstance(user, dict) else {})
        return self._names[user_id]

    def _remember(self, user_id: str, user: dict[str, Any]) -> None:
        profile = user.get("profile") or {}
        names = (
            profile.get("display_name"),
            user.get("real_name"),
            profile.get("real_name"),
            user.get("name"),
        )
        self._names[user_id] = next((str(name) for name in names if name), user_id)

    def _look_up(self, method: str, deadline: Deadline, **arguments: object) -> dict[str, Any]:
        seconds = min(deadline.remaining - _LEFT_FOR_THE_REST_SECONDS, _TIMEOUT_SECONDS)
        if seconds < _SHORTEST_TIMEOUT_SECONDS:
            raise LookUpFailed("no time was left to ask Slack")
        try:
            answer = self._client_within(seconds).api_call(method, params=arguments).data
        except FAILURES as error:
            raise LookUpFailed(f"{method}: {error_of(error)}") from error
        return answer if isinstance(answer, dict) else {}

    # The CardSender

    def post(self, facts: Facts) -> Delivery:
        """Post a card."""
        task = facts.task
        marked = {"event_type": CARD_EVENT, "event_payload": {"task": task.id, "name": task.name}}
        message = card(facts).as_payload()
        return self._send("chat.postMessage", channel=facts.channel_id, metadata=marked, **message)

    def update(self, facts: Facts, message_ts: str, answer_url: str | None) -> Delivery:
        """Redraw a card, through the press's own url where there is one, which no rate limit counts."""
        message = card(facts).as_payload()
        if answer_url and self.answer(answer_url, replace_original=True, **message):
            return Delivered(message_ts)
        return self._send("chat.update", channel=facts.channel_id, ts=message_ts, **message)

    def find(self, facts: Facts) -> Delivered | MessageGone | TryLater:
        """The card of a post whose answer was lost, if it stands in the channel after all."""
        method = "conversations.history"
        if wait := self._wait_for(method):
            return TryLater(wait)
        try:
            answer = self._client.conversations_history(
                channel=facts.channel_id, limit=_POSTS_TO_LOOK_THROUGH, include_all_metadata=True
            )
        except FAILURES as error:
            name = error_of(error)
            _log.warning("could not look for the card of %s: %s", facts.task.name, name)
            if _is_rate_limit(error):
                return TryLater(self._limited(method, error))
            return MessageGone() if _is_slacks_word(error) and name not in _PASSING else TryLater()
        for message in answer.get("messages") or []:
            metadata = message.get("metadata") or {}
            payload = metadata.get("event_payload") or {}
            if metadata.get("event_type") == CARD_EVENT and payload.get("task") == facts.task.id:
                return Delivered(str(message["ts"]))
        return MessageGone()

    def _send(self, method: str, **message: object) -> Delivery:
        if wait := self._wait_for(method):
            return TryLater(wait)
        try:
            answer = self._client.api_call(method, json=message)
        except SlackApiError as error:
            return self._refused(method, error)
        except FAILURES as error:
            _log.warning("%s got no answer: %s", method, error_of(error))
            return TryLater()
        return Delivered(str(answer.get("ts") or message.get("ts")))

    def _refused(self, method: str, error: SlackApiError) -> Delivery:
        name = error_of(error)
        if name in _MESSAGE_GONE:
            return MessageGone()
        if name in _NEVER_AGAIN:
            return GivenUp(name)
        if _is_rate_limit(error):
            return TryLater(self._limited(method, error))
        _log.warning("%s was refused: %s", method, name)
        return TryLater()

    def _wait_for(self, method: str) -> float:
        """Seconds until a method may be called again; zero where it may be now."""
        with self._lock:
            return max(self._wait_until.get(method, 0.0) - time.monotonic(), 0.0)

    def _limited(self, method: str, error: Exception) -> float:
        seconds = _retry_after(error)
        with self._lock:
            self._wait_until[method] = time.monotonic() + seconds
        return seconds

    # Modals and answers

    def open_view(self, trigger_id: str, view: dict[str, Any], deadline: Deadline) -> bool:
        """Open a modal. False where Slack did not, such as when the trigger had expired."""
        seconds = max(deadline.remaining, _SHORTEST_TIMEOUT_SECONDS)
        try:
            self._client_within(seconds).views_open(trigger_id=trigger_id, view=view)
        except FAILURES as error:
            name = error_of(error)
            if name == _TRIGGER_USED:
                # An earlier delivery of the same press has opened it.
                return True
            _log.warning("the modal %s was not opened: %s", view.get("callback_id"), name)
            return False
        return True

    def answer(self, answer_url: str, **message: object) -> bool:
        """Answer a press or a command through its response_url. False where Slack did not take it."""
        try:
            response = WebhookClient(
                answer_url, timeout=_TIMEOUT_SECONDS, ssl=self._trust, retry_handlers=[]
            ).send_dict(dict(message))
        except FAILURES as error:
            _log.warning("an answer was not taken: %s", error_of(error))
            return False
        if response.status_code != 200:  # noqa: PLR2004 - HTTP's own number for a request that was taken
            _log.warning("an answer was refused: %s %s", response.status_code, response.body[:200])
            return False
        return True

    def tell(self, channel_id: str, user_id: str, text: str) -> bool:
        """Tell one person in a channel, or directly where they are not in it."""
        try:
            self._client.chat_postEphemeral(channel=channel_id, user=user_id, text=text)
        except SlackApiError as error:
            return error_of(error) in {"user_not_in_channel", "not_in_channel", "channel_not_found"} and (
                self._tell_directly(user_id, text)
            )
        except FAILURES as error:
            _log.warning("an answer was not sent: %s", error_of(error))
            return False
        return True

    def _tell_directly(self, user_id: str, text: str) -> bool:
        try:
            self._client.chat_postMessage(channel=user_id, text=text)
        except FAILURES as error:
            _log.warning("a direct message was not sent: %s", error_of(error))
            return False
        return True


def error_of(error: Exception) -> str:
    """Slack's own word for what went wrong, or the exception's."""
    if isinstance(error, SlackApiError):
        response = error.response
        found = response.get("error") if hasattr(response, "get") else None
        return str(found or error)
    return f"{type(error).__name__}: {error}"


def _is_slacks_word(error: Exception) -> bool:
    """Whether Slack itself refused, and not something on the way to it."""
    return isinstance(error, SlackApiError) and getattr(error.response, "status_code", None) == HTTPStatus.OK


def _is_rate_limit(error: Exception) -> bool:
    if not isinstance(error, SlackApiError):
        return False
    return getattr(error.response, "status_code", None) == _RATE_LIMITED or error_of(error) == "ratelimited"


def _retry_after(error: Exception) -> float:
    headers = getattr(getattr(error, "response", None), "headers", {})
    found = next((value for key, value in headers.items() if key.lower() == "retry-after"), "1")
    try:
        return max(float(found), 0.5)
    except ValueError:
        return 1.0
