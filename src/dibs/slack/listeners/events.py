"""What Slack tells of its own accord: who joins or leaves a channel or a group, and whose account ends."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from slack_bolt import App, BoltContext

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.slack.front import Front
from dibs.slack.payloads import UnreadableError

_log = logging.getLogger(__name__)

Event = Mapping[str, Any]
Handler = Callable[[Front, str, Event, Deadline], None]
"""Takes note of an event in a workspace. Raises StoreError, or UnreadableError where something is missing."""


def register(app: App, front: Front) -> None:
    """Keep who may claim up to date, and send again to a channel that is back, through one listener."""

    @app.event(re.compile(f"^({'|'.join(HANDLERS)})$"))
    def on_event(body: dict[str, Any], context: BoltContext) -> None:
        event = body.get("event") or {}
        if event.get("type") == "member_joined_channel" and event.get("user") == context.bot_user_id:
            front.outgoing.invited(str(event.get("channel")))
        try:
            HANDLERS[event["type"]](front, _text(body, "team_id"), event, context["deadline"])
        except UnreadableError as error:
            _log.warning("an event %s could not be read: %s", event.get("type"), error)
        except StoreError as error:
            # Slack would repeat the event, but not for long enough; everything is read again instead.
            _log.warning("a change of members was not stored: %s", error)
            front.membership.read_again_soon()


def _back(front: Front, _workspace: str, event: Event, _deadline: Deadline) -> None:
    front.outgoing.invited(_text(event, "channel"))


def _joined(front: Front, workspace: str, event: Event, deadline: Deadline) -> None:
    front.membership.joined(
        workspace, _text(event, "channel"), _text(event, "user"), _moment(event.get("event_ts")), deadline
    )


def _left(front: Front, workspace: str, event: Event, deadline: Deadline) -> None:
    front.membership.left(
        workspace, _text(event, "channel"), _text(event, "user"), _moment(event.get("event_ts")), deadline
    )


def _group_members_changed(front: Front, workspace: str, event: Event, deadline: Deadline) -> None:
    removed = event.get("removed_users")
    known = isinstance(removed, list) and str(event.get("removed_users_count", len(removed))) == str(
        len(removed)
    )
    _group(front, workspace, _text(event, "subteam_id"), removed if known else None, deadline)


def _group_updated(front: Front, workspace: str, event: Event, deadline: Deadline) -> None:
    group = event.get("subteam") or {}
    front.web.lookups.forget_handles()
    # Of a group that is turned off nobody may claim; who was removed from another one is told apart.
    _group(front, workspace, _text(group, "id"), None if group.get("date_delete") else [], deadline)


def _group(
    front: Front, workspace: str, group_id: str, removed: list[Any] | None, deadline: Deadline
) -> None:
    people = None if removed is None else [str(user) for user in removed]
    if front.membership.group_changed(workspace, group_id, people, deadline):
        front.outgoing.submit(front.membership.catch_up)


def _account_changed(front: Front, workspace: str, event: Event, deadline: Deadline) -> None:
    user = event.get("user") or {}
    deactivated = user.get("deleted") is True
    front.membership.account_changed(workspace, _text(user, "id"), deadline, deactivated=deactivated)


HANDLERS: Mapping[str, Handler] = {
    "channel_unarchive": _back,
    "group_unarchive": _back,
    "member_joined_channel": _joined,
    "member_left_channel": _left,
    "subteam_members_changed": _group_members_changed,
    "subteam_updated": _group_updated,
    "user_change": _account_changed,
}
"""What is subscribed to. A new group is in no queue yet, and who is new in the workspace in no channel."""


def _text(told: Event, name: str) -> str:
    value = told.get(name)
    if isinstance(value, str) and value:
        return value
    raise UnreadableError(f"there is no {name}")


def _moment(stamp: object) -> datetime | None:
    """The time that Slack gives an event, by which a late one is told from a new one."""
    try:
        return datetime.fromtimestamp(float(str(stamp)), UTC)
    except (ValueError, OverflowError, OSError):
        return None
