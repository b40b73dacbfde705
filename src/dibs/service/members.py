"""Who may claim in a queue: kept up to date, and looked up afresh before anyone is refused for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

from dibs.deadline import Deadline
from dibs.domain.errors import LookUpFailed, StoreError
from dibs.domain.task import Standing
from dibs.store import members
from dibs.store.guard import Guard

_log = logging.getLogger(__name__)

READ_AGAIN_AFTER_SECONDS = 60 * 60
"""Events keep the members up to date; reading them again mends what was missed while Dibs was away."""
RETRY_AFTER_SECONDS = 5 * 60
"""How long a channel is left alone that could not be read."""
QUEUES_AT_A_TIME = 50
PEOPLE_AT_A_TIME = 20
CATCH_UP_SECONDS = 40.0
CHANNEL_SECONDS = 20.0
STATEMENT_SECONDS = 5.0


class Directory(Protocol):
    """Where people and the members of channels are looked up. Every method raises LookUpFailed."""

    def members(self, channel_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the channel."""

    def has_member(self, channel_id: str, user_id: str, deadline: Deadline) -> bool:
        """Whether the person is in the channel."""

    def group_members(self, group_id: str, deadline: Deadline) -> Collection[str]:
        """Everybody in the user group; nobody where it is turned off or gone."""

    def standing(self, workspace: str, user_id: str, deadline: Deadline) -> Standing:
        """What a person who is among the members may do: eligible, bot, other_workspace or deactivated."""


class MembershipService:
    """Who may claim in each queue, as `queue_member` keeps it: the members of its channel or of its group."""

    def __init__(self, guard: Guard, directory: Directory) -> None:
        self._guard = guard
        self._directory = directory
        self._to_read: set[int | None] = set()
        self._lock = threading.Lock()

    def look_up(self, queue_id: int, user_id: str, deadline: Deadline) -> None:
        """Bring the person's row in the queue up to date. Raises LookUpFailed.

        What Slack tells of the person meanwhile is newer than what is found, and stays.
        """
        who = {"queue_id": queue_id, "user_id": user_id}
        try:
            found = self._guard.run_once(members.TO_LOOK_UP, who, deadline)
            if not found:
                raise LookUpFailed(f"there is no queue {queue_id}")
            asked_at = found[0]["asked_at"]
            row = {**found[0], "queue_id": queue_id}
            # In a large channel nobody is found in time, and who is unverified was told or seen to be in it.
            present = found[0]["standing"] == Standing.UNVERIFIED or self._is_in(row, user_id, deadline)
            standing = Standing.LEFT
            if present:
                standing = self._directory.standing(found[0]["workspace"], user_id, deadline)
            values = {
                "standing": standing,
                "eligible_group": found[0]["eligible_group"],
                "asked_at": asked_at,
                "left_at": None if present else asked_at,
            }
            self._guard.run_once(members.SET_STANDING, who | values, deadline)
        except StoreError as error:
            raise LookUpFailed(str(error)) from error

    def joined(
        self, workspace: str, channel_id: str, user_id: str, at: datetime | None, deadline: Deadline
    ) -> None:
        """Take note that somebody joined a channel, `at` a moment by Slack's clock. Raises StoreError.

        Who it is, is looked up when they first claim. A join from before a known leave is passed over.
        """
        self._guard.run_once(members.JOINED, _told(workspace, channel_id, user_id, at), deadline)

    def left(
        self, workspace: str, channel_id: str, user_id: str, at: datetime | None, deadline: Deadline
    ) -> None:
        """Take note that somebody left a channel, unless they were heard to join since. Raises StoreError."""
        self._guard.run_once(members.LEFT, _told(workspace, channel_id, user_id, at), deadline)

    def group_changed(
        self, workspace: str, group_id: str, removed: Collection[str] | None, deadline: Deadline
    ) -> bool:
        """Take note that a user group was changed, and who was removed; None: anybody may have been.

        They are looked up before their next claim. Returns whether a queue has this group: then it is read
        again at the next `catch_up`. Raises StoreError.
        """
        told = {"workspace": workspace, "group_id": group_id}
        doubted = {"everybody": removed is None, "removed": sorted(removed or ())}
        return bool(self._guard.run_once(members.GROUP_CHANGED, told | doubted, deadline))

    def account_changed(self, workspace: str, user_id: str, deadline: Deadline, *, deactivated: bool) -> None:
        """Take note that an account was deactivated, or works. Raises StoreError."""
        told = {"workspace": workspace, "user_id": user_id, "deactivated": deactivated}
        self._guard.run_once(members.ACCOUNT_CHANGED, told, deadline)

    def read_again_soon(self, queue_id: int | None = None) -> None:
        """Have a queue's channel, or every one, read again at the next `catch_up`: a change was missed."""
        with self._lock:
            self._to_read.add(queue_id)

    def catch_up(self) -> None:
        """Read the channels and groups that are due for it, and look up some people who are not known yet.

        What fails is tried again later, after all the others. Raises StoreError.
        """
        self._hand_over_what_to_read()
        whole = Deadline.after(CATCH_UP_SECONDS)
        for _ in range(QUEUES_AT_A_TIME):
            if whole.remaining <= 0 or not self._read_next():
                break
        for row in self._guard.run(
            members.NEXT_TO_VERIFY, {"most": PEOPLE_AT_A_TIME}, Deadline.after(STATEMENT_SECONDS)
        ):
            try:
                standing = self._directory.standing(row["workspace"], row["user_id"], whole)
            except LookUpFailed as error:
                _log.warning("a person could not be looked up: %s", error)
                continue
            found = {"queue_id": row["queue_id"], "user_id": row["user_id"], "changed_at": row["changed_at"]}
            self._guard.run_once(
                members.VERIFIED, found | {"standing": standing}, Deadline.after(STATEMENT_SECONDS)
            )

    def _is_in(self, queue: Mapping[str, Any], user_id: str, deadline: Deadline) -> bool:
        try:
            if group := queue["eligible_group"]:
                return user_id in self._directory.group_members(group, deadline)
            return self._directory.has_member(queue["channel_id"], user_id, deadline)
        except LookUpFailed:
            # What takes too long for a press is done in the background, for the next press.
            self.read_again_soon(queue["queue_id"])
            raise

    def _members(self, queue: Mapping[str, Any], deadline: Deadline) -> Collection[str]:
        if group := queue["eligible_group"]:
            return self._directory.group_members(group, deadline)
        return self._directory.members(queue["channel_id"], deadline)

    def _hand_over_what_to_read(self) -> None:
        with self._lock:
            wanted, self._to_read = self._to_read, set()
        if not wanted:
            return
        values = {
            "every_queue": None in wanted,
            "queue_ids": [queue_id for queue_id in wanted if queue_id is not None],
        }
        try:
            self._guard.run_once(members.READ_SOON, values, Deadline.after(STATEMENT_SECONDS))
        except StoreError:
            with self._lock:
                self._to_read |= wanted
            raise

    def _read_next(self) -> bool:
        """Read the channel or the group whose turn it is. False where none is due."""
        after = {"again_after": READ_AGAIN_AFTER_SECONDS, "retry_after": RETRY_AFTER_SECONDS}
        due = self._guard.run(members.NEXT_TO_READ, after, Deadline.after(STATEMENT_SECONDS))
        for row in due:
            try:
                present = sorted(self._members(dict(row), Deadline.after(CHANNEL_SECONDS)))
            except LookUpFailed as error:
                where = row["eligible_group"] or row["channel_id"]
                _log.warning("the members of %s could not be read: %s", where, error)
                continue
            self._guard.run_once(
                members.READ_WHOLE, {**row, "present": present}, Deadline.after(STATEMENT_SECONDS)
            )
        return bool(due)


def _told(workspace: str, channel_id: str, user_id: str, at: datetime | None) -> dict[str, object]:
    return {"workspace": workspace, "channel_id": channel_id, "user_id": user_id, "at": at}
