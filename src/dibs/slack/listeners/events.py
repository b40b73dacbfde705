"""What Slack tells of its own accord: who joins and who leaves a channel."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from typing import Any

from slack_bolt import App, BoltContext

from dibs.domain.errors import StoreError
from dibs.slack.front import Front

_log = logging.getLogger(__name__)

JOINED, LEFT = "member_joined_channel", "member_left_channel"
BACK = ("channel_unarchive", "group_unarchive")


def register(app: App, front: Front) -> None:
    """Keep the members of the queues' channels up to date, and send again to a channel that is back."""

    @app.event(re.compile(f"^({JOINED}|{LEFT})$"))
    def on_member(body: dict[str, Any], context: BoltContext) -> None:
        event = body.get("event") or {}
        whereabouts = (body.get("team_id"), event.get("channel"), event.get("user"))
        if not all(isinstance(part, str) and part for part in whereabouts):
            return
        workspace, channel, user = (str(part) for part in whereabouts)
        if event.get("type") == JOINED and user == context.bot_user_id:
            front.outgoing.invited(channel)
        heard = front.membership.joined if event.get("type") == JOINED else front.membership.left
        try:
            heard(workspace, channel, user, _moment(event.get("event_ts")), context["deadline"])
        except StoreError as error:
            # Slack would repeat the event, but not for long enough; the channel is read again instead.
            _log.warning("a change of members was not stored: %s", error)
            front.membership.read_again_soon()

    @app.event(re.compile(f"^({'|'.join(BACK)})$"))
    def on_channel_back(body: dict[str, Any]) -> None:
        channel = (body.get("event") or {}).get("channel")
        if isinstance(channel, str) and channel:
            front.outgoing.invited(channel)


def _moment(stamp: object) -> datetime | None:
    """The time that Slack gives an event, by which a late one is told from a new one."""
    try:
        return datetime.fromtimestamp(float(str(stamp)), UTC)
    except (ValueError, OverflowError, OSError):
        return None
