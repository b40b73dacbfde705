"""Look-ups about user groups and channels, which Dibs asks of Slack now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Any

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed
from dibs.domain.settings import UserGroup
from dibs.slack.calls import error_of

LookUp = Callable[..., dict[str, Any]]
"""Calls a method of Slack's by a deadline. Raises LookUpFailed from what went wrong."""

_HANDLES_LAST_SECONDS = 60 * 60.0
_NO_SUCH_GROUP = frozenset({"no_such_subteam", "subteam_disabled"})


class ChannelAccess(Enum):
    """Whether Dibs can post in a channel."""

    MEMBER = auto()
    NOT_MEMBER = auto()
    """Also a private channel of which Dibs, not being in it, is told that it does not exist."""
    ARCHIVED = auto()


class Lookups:
    """User groups and channels. Every method raises LookUpFailed, unless it says otherwise."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._handles: dict[str, str] = {}
        self._handles_until = 0.0

    def groups(self, deadline: Deadline) -> tuple[UserGroup, ...]:
        """The user groups of the workspace that are turned on, by their handles."""
        listed = self._look_up("usergroups.list", deadline).get("usergroups")
        found = [
            UserGroup(str(group["id"]), str(group.get("handle") or ""), str(group.get("name") or ""))
            for group in (listed if isinstance(listed, list) else [])
            if isinstance(group, dict) and group.get("id") and not group.get("date_delete")
        ]
        self._handles |= {group.id: group.handle for group in found}
        self._handles_until = time.monotonic() + _HANDLES_LAST_SECONDS
        return tuple(sorted(found, key=lambda group: (group.handle, group.id)))

    def handle_of(self, group_id: str, deadline: Deadline) -> str | None:
        """What people write after the @ for a group; None where that is not known. Raises nothing."""
        if group_id not in self._handles or time.monotonic() > self._handles_until:
            # Where Slack does not answer, the one that was known an hour ago is better than none.
            with contextlib.suppress(LookUpFailed):
                self.groups(deadline)
        return self._handles.get(group_id) or None

    def forget_handles(self) -> None:
        """Ask anew the next time: a group was changed."""
        self._handles_until = 0.0

    def group_members(self, group_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in a user group; nobody where it is turned off or gone."""
        try:
            users = self._look_up("usergroups.users.list", deadline, usergroup=group_id).get("users")
        except LookUpFailed as error:
            if isinstance(error.__cause__, Exception) and error_of(error.__cause__) in _NO_SUCH_GROUP:
                return ()
            raise
        return {str(user) for user in users if user} if isinstance(users, list) else ()

    def access_to(self, channel_id: str, deadline: Deadline) -> ChannelAccess:
        """Whether Dibs can post in a channel."""
        try:
            channel = self._look_up("conversations.info", deadline, channel=channel_id).get("channel")
        except LookUpFailed as error:
            if isinstance(error.__cause__, Exception) and error_of(error.__cause__) == "channel_not_found":
                return ChannelAccess.NOT_MEMBER
            raise
        known = channel if isinstance(channel, dict) else {}
        if known.get("is_archived"):
            return ChannelAccess.ARCHIVED
        return ChannelAccess.MEMBER if known.get("is_member") else ChannelAccess.NOT_MEMBER
