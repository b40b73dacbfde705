"""How notices reach people in Slack: posted with their keys, redrawn, and found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dibs.deadline import Deadline
from dibs.domain.notices import Letter
from dibs.service.delivery import Delivered, Delivery, GivenUp, TryLater
from dibs.slack.sending import Sending, carried_by
from dibs.slack.views.notices import notice

NOTICE_EVENT = "dibs_notice"
"""The metadata that marks a notice and carries the keys of what it tells."""

_PEOPLE = ("U", "W")
_NOT_OPENED_SECONDS = 4.0
"""How soon a direct message is tried again that could not be opened."""


class SlackNotices:
    """A NoticeSender."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    def send(self, letters: Sequence[Letter], deadline: Deadline) -> Delivery:
        """Send a new message that carries the letters' keys."""
        keys = [letter.key for letter in letters]
        marked = {"event_type": NOTICE_EVENT, "event_payload": {"keys": keys}}
        channel = self._channel(letters[0].recipient, deadline)
        if isinstance(channel, TryLater):
            # Nothing was sent yet.
            return TryLater(_NOT_OPENED_SECONDS) if channel.seconds is None else channel
        if isinstance(channel, GivenUp):
            if channel.recipient_gone:
                return channel
            channel = letters[0].recipient
        return self._sending.post(channel, deadline, metadata=marked, **notice(letters).as_payload())

    def redraw(
        self, letters: Sequence[Letter], channel_id: str, message_ts: str, deadline: Deadline
    ) -> Delivery:
        """Draw a message anew that stands already."""
        return self._sending.update(channel_id, message_ts, deadline, **notice(letters).as_payload())

    def look_for(
        self, recipient: str, keys: Sequence[str], since: datetime, deadline: Deadline
    ) -> Mapping[str, Delivered] | TryLater:
        """Where the messages with these keys stand, and all keys they carry."""
        channel = self._channel(recipient, deadline)
        if isinstance(channel, TryLater):
            return channel
        if isinstance(channel, GivenUp):
            # Nobody can have been told there, and the post itself finds out that they are gone.
            return {}
        wanted = set(keys)
        found = self._sending.look_for(
            channel, since, lambda message: not wanted.isdisjoint(_keys(message)), deadline
        )
        if isinstance(found, TryLater):
            return found
        # The oldest of two that carry the same key is the one that was sent first.
        return {key: one.place for one in found for key in _keys(one.message)}

    def _channel(self, recipient: str, deadline: Deadline) -> str | GivenUp | TryLater:
        # A post to the id of somebody who was deactivated succeeds, and nobody reads it.
        if recipient.startswith(_PEOPLE):
            return self._sending.direct_channel(recipient, deadline)
        return recipient


def _keys(message: Mapping[str, Any]) -> list[str]:
    carried = carried_by(message, NOTICE_EVENT) or {}
    keys = carried.get("keys")
    return [str(key) for key in keys] if isinstance(keys, list) else []
