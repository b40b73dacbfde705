"""Who may claim in a queue: kept up to date, and looked up afresh before anyone is refused for it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.domain.task import Standing
from dibs.service.transitions import LookUpFailed
from dibs.store import members, queues
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

READ_AGAIN_AFTER_SECONDS = 60 * 60
"""Events keep the members up to date; reading them again mends what was missed while Dibs was away."""
QUEUES_AT_A_TIME = 5
ALL_QUEUES = 10_000
PEOPLE_AT_A_TIME = 20
BACKGROUND_SECONDS = 30.0


class Directory(Protocol):
    """Where people and the members of channels are looked up. Every method raises LookUpFailed."""

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the channel."""

    def standing(self, workspace: str, user_id: str, deadline: Deadline) -> Standing:
        """What a person who is in the channel may do: eligible, bot, other_workspace or deactivated."""


class MembershipService:
    """The members of the queues' channels, as `queue_member` keeps them."""

    def __init__(self, guard: Guard, directory: Directory) -> None:
        self._guard = guard
        self._directory = directory
        self._missed_something = False

    def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
        """Bring the person's row in the queue up to date. Raises LookUpFailed."""
        try:
            found = self._guard.run_once(queues.BY_ID, {"queue_id": queue_id}, deadline)
            if not found:
                raise LookUpFailed(f"there is no queue {queue_id}")
            queue = queues.as_queue(found[0])
            present = user_id in self._directory.members(queue.channel_id, deadline)
            standing = (
                self._directory.standing(queue.workspace, user_id, deadline) if present else Standing.LEFT
            )
            self._set(queue_id, user_id, standing, deadline)
        except StoreError as error:
            raise LookUpFailed(str(error)) from error

    def joined(self, workspace: str, channel_id: str, user_id: str) -> None:
        """Take note that somebody joined a channel. Who it is, is looked up when they first claim."""
        self._guard.run_once(members.JOINED, _of(workspace, channel_id, user_id), Deadline.after())

    def left(self, workspace: str, channel_id: str, user_id: str) -> None:
        """Take note that somebody left a channel."""
        self._guard.run_once(members.LEFT, _of(workspace, channel_id, user_id), Deadline.after())

    def read_again_soon(self) -> None:
        """Have every channel read again at the next `catch_up`, since a change was missed."""
        self._missed_something = True

    def catch_up(self) -> None:
        """Read the channels that were not read for long, and look up some people who are not known yet."""
        deadline = Deadline.after(BACKGROUND_SECONDS)
        missed, self._missed_something = self._missed_something, False
        age = (
            {"seconds": 0, "most": ALL_QUEUES}
            if missed
            else {"seconds": READ_AGAIN_AFTER_SECONDS, "most": QUEUES_AT_A_TIME}
        )
        for row in self._guard.run(members.READ_LONG_AGO, age, deadline):
            try:
                present = sorted(self._directory.members(row["channel_id"], deadline))
            except LookUpFailed as error:
                _log.warning("the members of %s could not be read: %s", row["channel_id"], error)
                continue
            values = {"queue_id": row["queue_id"], "present": present, "read_at": row["read_at"]}
            self._guard.run(members.READ_WHOLE, values, deadline)
        for row in self._guard.run(members.UNVERIFIED, {"most": PEOPLE_AT_A_TIME}, deadline):
            try:
                standing = self._directory.standing(row["workspace"], row["user_id"], deadline)
            except LookUpFailed as error:
                _log.warning("a person could not be looked up: %s", error)
                return
            found = {"queue_id": row["queue_id"], "user_id": row["user_id"], "standing": standing}
            self._guard.run_once(members.VERIFIED, found, deadline)

    def _set(self, queue_id: int, user_id: str, standing: Standing, deadline: Deadline) -> None:
        values = {"queue_id": queue_id, "user_id": user_id, "standing": standing}
        self._guard.run_once(members.SET_STANDING, values, deadline)


def _of(workspace: str, channel_id: str, user_id: str) -> dict[str, str]:
    return {"workspace": workspace, "channel_id": channel_id, "user_id": user_id}
