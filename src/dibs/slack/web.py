"""What Dibs asks of Slack's Web API: people, channels, cards, modals and answers.

No retries of the client's own: a retry after a lost connection could post twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slack_sdk.errors import SlackApiError
from slack_sdk.web import SlackResponse
from slack_sdk.webhook import WebhookClient

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.queue import Facts
from dibs.domain.task import Standing
from dibs.service.delivery import Delivered, Delivery, MessageGone, TryLater
from dibs.service.telemetry import Telemetry
from dibs.slack.calls import (
    FAILURES,
    Answered,
    Api,
    SlackUnusable,
    error_of,
)
from dibs.slack.lookups import Lookups
from dibs.slack.sending import Sending, carried_by
from dibs.slack.views.card import card

_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
_SHORTEST_TIMEOUT_SECONDS = 0.2
_SIGN_OF_LIFE_SECONDS = 15.0
_LEFT_FOR_THE_REST_SECONDS = 0.7
_NAMES_LAST_SECONDS = 60 * 60.0
_DAY_SECONDS = 24 * 60 * 60
_MEMBERS_PER_PAGE = 1000
_TRIGGER_USED = "exchanged_trigger_id"

CARD_EVENT = "dibs_card"
"""The metadata that marks a card, so that a post whose answer was lost can be found again."""


class SlackWeb:
    """Slack, as the services see it: a Directory, a CardSender, and where modals and answers go."""

    def __init__(
        self,
        token: str,
        api_url: str,
        *,
        names_last_seconds: float = _NAMES_LAST_SECONDS,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._api = Api(token, api_url, telemetry)
        self.sending = Sending(self._api)
        self._names: dict[str, tuple[str, float]] = {}
        self._names_last = names_last_seconds
        self.lookups = Lookups(self._look_up)

    def _ask(self, method: str, seconds: float, **sent: Any) -> SlackResponse:  # noqa: ANN401 - the client's
        return self._api.ask(method, seconds, **sent)

    def auth_test(self) -> dict[str, Any]:
        """Who the bot is. Raises SlackUnusable where Slack does not know it or does not answer."""
        try:
            answer = self._ask("auth.test", _TIMEOUT_SECONDS).data
        except FAILURES as error:
            raise SlackUnusable(error_of(error)) from error
        return answer if isinstance(answer, dict) else {}

    @property
    def answers(self) -> bool:
        """Whether Slack answered when it was last asked, be it with a refusal."""
        return self._api.calls.answers

    def probe_once(self) -> None:
        """Ask Slack for a sign of life, unless it gave one a moment ago."""
        calls = self._api.calls
        if calls.answers and time.monotonic() - calls.heard_at < _SIGN_OF_LIFE_SECONDS:
            return
        try:
            self.auth_test()
        except SlackUnusable as error:
            _log.warning("Slack gives no sign of life: %s", error)

    # The Directory

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the channel. Raises LookUpFailed."""
        return {member for page in self._members(channel_id, deadline) for member in page}

    def has_member(self, channel_id: str, user_id: str, deadline: Deadline) -> bool:
        """Whether the person is in the channel; reads no further once they are found. Raises LookUpFailed."""
        return any(user_id in page for page in self._members(channel_id, deadline))

    def _members(self, channel_id: str, deadline: Deadline) -> Iterator[list[str]]:
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
            yield [str(member) for member in members if member] if isinstance(members, list) else []
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return

    def group_members(self, group_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the user group; nobody where it is turned off or gone. Raises LookUpFailed."""
        return self.lookups.group_members(group_id, deadline)

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
        if user.get("is_stranger") or workspace not in _workspaces_of(user, workspace):
            return Standing.OTHER_WORKSPACE
        return Standing.ELIGIBLE

    def name_of(self, user_id: str, deadline: Deadline) -> str:
        """A person's name for plain text; looked up once an hour, and `somebody` where that fails."""
        name, known_until = self._names.get(user_id, ("", 0.0))
        if name and time.monotonic() < known_until:
            return name
        try:
            user = self._look_up("users.info", deadline, user=user_id).get("user")
        except LookUpFailed:
            return "somebody"
        return self._remember(user_id, user if isinstance(user, dict) else {})

    def zone_of(self, user_id: str, deadline: Deadline) -> tzinfo:
        """The time zone that a person has set in Slack; UTC where Slack tells none. Raises LookUpFailed."""
        user = self._look_up("users.info", deadline, user=user_id).get("user")
        found = user if isinstance(user, dict) else {}
        try:
            return ZoneInfo(str(found.get("tz") or ""))
        except (ValueError, OSError, ZoneInfoNotFoundError):
            # Slack's names may be newer than this machine's; the hours from UTC come with them.
            offset = found.get("tz_offset")
            if isinstance(offset, int) and abs(offset) < _DAY_SECONDS:
                return timezone(timedelta(seconds=offset))
            return UTC

    def _remember(self, user_id: str, user: dict[str, Any]) -> str:
        profile = user.get("profile") or {}
        names = (
            profile.get("display_name"),
            user.get("real_name"),
            profile.get("real_name"),
            user.get("name"),
        )
        found = next((str(name) for name in names if name), user_id)
        self._names[user_id] = (found, time.monotonic() + self._names_last)
        return found

    def _look_up(self, method: str, deadline: Deadline, **arguments: object) -> dict[str, Any]:
        seconds = min(deadline.remaining - _LEFT_FOR_THE_REST_SECONDS, _TIMEOUT_SECONDS)
        if seconds < _SHORTEST_TIMEOUT_SECONDS:
            raise LookUpFailed("no time was left to ask Slack")
        try:
            answer = self._ask(method, seconds, params=arguments).data
        except FAILURES as error:
            raise LookUpFailed(f"{method}: {error_of(error)}") from error
        return answer if isinstance(answer, dict) else {}

    # The CardSender

    def post(self, facts: Facts, deadline: Deadline) -> Delivery:
        """Post a card."""
        task = facts.task
        marked = {"event_type": CARD_EVENT, "event_payload": {"task": task.id, "name": task.name}}
        message = card(facts).as_payload()
        return self.sending.post(facts.channel_id, deadline, metadata=marked, **message)

    def update(self, facts: Facts, message_ts: str, answer_url: str | None, deadline: Deadline) -> Delivery:
        """Redraw a card, through the press's own url where there is one, which no rate limit counts."""
        message = card(facts).as_payload()
        if answer_url:
            # Where no word comes back, the card is drawn once more: to draw it twice does no harm.
            seconds = min(deadline.remaining, _TIMEOUT_SECONDS)
            if self._answer(answer_url, seconds, replace_original=True, **message) is Answered.TAKEN:
                return Delivered(message_ts)
        return self.sending.update(facts.channel_id, message_ts, deadline, **message)

    def find(self, facts: Facts, since: datetime, deadline: Deadline) -> Delivered | MessageGone | TryLater:
        """The card of a post whose answer was lost, if it stands in the channel after all."""

        def is_it(message: Mapping[str, Any]) -> bool:
            carried = carried_by(message, CARD_EVENT)
            return carried is not None and carried.get("task") == facts.task.id

        found = self.sending.look_for(facts.channel_id, since, is_it, deadline)
        if isinstance(found, TryLater):
            return found
        return found[0].place if found else MessageGone()

    # Modals and answers

    def open_view(self, trigger_id: str, view: dict[str, Any], deadline: Deadline) -> bool:
        """Open a modal. False where Slack did not in time, such as when the trigger had expired."""
        return self._show_view("views.open", trigger_id, view, deadline)

    def push_view(self, trigger_id: str, view: dict[str, Any], deadline: Deadline) -> bool:
        """Put a modal on top of the one that the person pressed in. False where Slack did not in time."""
        return self._show_view("views.push", trigger_id, view, deadline)

    def _show_view(self, method: str, trigger_id: str, view: dict[str, Any], deadline: Deadline) -> bool:
        seconds = max(deadline.remaining, _SHORTEST_TIMEOUT_SECONDS)
        try:
            self._ask(method, seconds, json={"trigger_id": trigger_id, "view": view})
        except FAILURES as error:
            name = error_of(error)
            if name == _TRIGGER_USED:
                # An earlier delivery of the same press has opened it.
                return True
            _log.warning("the modal %s was not opened: %s", view.get("callback_id"), name)
            return False
        return True

    def answer(self, answer_url: str, **message: object) -> Answered:
        """Answer a press or a command through its response_url."""
        return self._answer(answer_url, _TIMEOUT_SECONDS, **message)

    def _answer(self, answer_url: str, seconds: float, **message: object) -> Answered:
        timeout: Any = max(seconds, _SHORTEST_TIMEOUT_SECONDS)
        client = WebhookClient(answer_url, timeout=timeout, ssl=self._api.trust, retry_handlers=[])
        try:
            response = self._api.calls.within(
                timeout, "response_url", lambda: client.send_dict(dict(message))
            )
        except FAILURES as error:
            _log.warning("an answer got no word back: %s", error_of(error))
            return Answered.UNKNOWN
        if response.status_code == HTTPStatus.OK:
            return Answered.TAKEN
        _log.warning("an answer was not taken: %s %s", response.status_code, response.body[:200])
        # A 5xx may come from something on the way, after Slack has taken the answer.
        refused = HTTPStatus.BAD_REQUEST <= response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        return Answered.REFUSED if refused else Answered.UNKNOWN

    def tell(self, channel_id: str, user_id: str, text: str) -> bool:
        """Tell one person in a channel, or directly where they are not in it."""
        told = {"channel": channel_id, "user": user_id, "text": text}
        try:
            self._ask("chat.postEphemeral", _TIMEOUT_SECONDS, json=told)
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
            self._ask("chat.postMessage", _TIMEOUT_SECONDS, json={"channel": user_id, "text": text})
        except FAILURES as error:
            _log.warning("a direct message was not sent: %s", error_of(error))
            return False
        return True


def _workspaces_of(user: dict[str, Any], usual: str) -> tuple[object, ...]:
    """Where an account belongs; one of an organization belongs to several workspaces."""
    several = (user.get("enterprise_user") or {}).get("teams")
    return (user.get("team_id", usual), *(several if isinstance(several, list) else ()))
