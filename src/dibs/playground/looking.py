"""What can be seen in the stand-in: by its people, and by tests that read the log of the bot's calls."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.views import as_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.files import File
    from dibs.playground.world import Call, Failure, World

Json = dict[str, Any]

LOOK_EVERY: Final = 0.01


class Looking:
    """Reads the world; everything it returns is a copy."""

    def __init__(self, world: World) -> None:
        self.world = world

    def messages(self, channel_id: str) -> list[Json]:
        """Return a channel's messages as they stand now, oldest first."""
        with self.world.lock:
            return copy.deepcopy(list(self.world.channels[channel_id].messages.values()))

    def ephemerals(self, user_id: str, channel_id: str | None = None) -> list[Json]:
        """Return the messages that only this person sees, oldest first."""
        with self.world.lock:
            return [
                copy.deepcopy(e.message)
                for e in self.world.ephemerals
                if e.user == user_id and channel_id in (None, e.channel)
            ]

    def direct_messages(self, user_id: str) -> list[Json]:
        """Return what the bot and this person wrote to each other, oldest first."""
        with self.world.lock:
            found = [c for c in self.world.channels.values() if c.is_im and user_id in c.members]
            return [copy.deepcopy(message) for channel in found for message in channel.messages.values()]

    def files(self, where: str) -> list[File]:
        """Return the files shared in a channel, or with one person, whichever id is told, oldest first."""
        with self.world.lock:
            places = [c.id for c in self.world.channels.values() if c.is_im and where in c.members]
            shared = [
                (ts, file)
                for file in self.world.files.values()
                for place, ts in file.shares
                if place in (where, *places) and not file.deleted
            ]
            return [copy.deepcopy(file) for _, file in sorted(shared, key=lambda one: one[0])]

    def views(self, user_id: str) -> list[Json]:
        """Return the modals that this person has open, the top one last."""
        with self.world.lock:
            return [as_json(self.world, view) for view in self.world.stacks.get(user_id, [])]

    def home(self, user_id: str) -> Json | None:
        """Return this person's Home tab."""
        with self.world.lock:
            view = self.world.homes.get(user_id)
            return as_json(self.world, view) if view else None

    def failures(self, user_id: str) -> list[Failure]:
        """Return the failure marks that this person sees."""
        with self.world.lock:
            return [failure for failure in self.world.failures if failure.user == user_id]

    @property
    def calls(self) -> list[Call]:
        """Every Web API and response_url call of the bot, oldest first."""
        with self.world.lock:
            return list(self.world.calls)

    def calls_to(self, method: str) -> list[Call]:
        """Return the calls of one method; `response_url` is a name like any other."""
        return [call for call in self.calls if call.method == method]

    def wait_until(self, predicate: Callable[[], object], timeout: float = 30.0) -> None:
        """Wait until something holds, or raise TimeoutError."""
        end = time.monotonic() + timeout
        while not predicate():
            if time.monotonic() > end:
                msg = f"it did not come about within {timeout} seconds"
                raise TimeoutError(msg)
            time.sleep(LOOK_EVERY)

    def _seen(self, user_id: str, channel_id: str, ts: str) -> Json:
        with self.world.lock:
            message = self.world.channels[channel_id].messages.get(ts)
            private = self.world.ephemeral(user_id, ts)
            if message is None and private is None:
                msg = f"{user_id} sees no message {ts} in {channel_id}"
                raise LookupError(msg)
            return copy.deepcopy(message if message is not None else private.message if private else {})

    def _channel_of(self, ts: str) -> str:
        with self.world.lock:
            for channel in self.world.channels.values():
                if ts in channel.messages:
                    return channel.id
        msg = f"no channel holds the message {ts}: say which it was"
        raise LookupError(msg)
