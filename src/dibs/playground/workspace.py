"""A workspace and its people: each act of theirs is a method, so tests read as what people do and see."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from dibs.playground import payloads
from dibs.playground.forms import typed
from dibs.playground.furnishing import Furnishing
from dibs.playground.interactions import top_view
from dibs.playground.views import as_json
from dibs.playground.webapi.chat import reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.playground.interactions import Result

Json = dict[str, Any]


class Workspace(Furnishing):
    """One workspace that the app is installed in."""

    def press(
        self,
        user_id: str,
        channel_id: str,
        message_ts: str,
        action_id: str,
        *,
        block_id: str | None = None,
        choice: object = None,
        deliveries: int = 1,
    ) -> Result:
        """Press something on a message as it stands now; `choice` is what a select or the like is set to."""
        message = self._seen(user_id, channel_id, message_ts)
        return self._acts.press(
            user_id,
            channel_id,
            message,
            action_id,
            block_id=block_id,
            choice=choice,
            deliveries=deliveries,
        )

    def press_stale(
        self, user_id: str, message_snapshot: Json, action_id: str, *, channel_id: str | None = None
    ) -> Result:
        """Press a button of an older state of a message, as on a screen that has not caught up."""
        channel = channel_id or message_snapshot.get("channel") or self._channel_of(message_snapshot["ts"])
        return self._acts.press(user_id, channel, copy.deepcopy(message_snapshot), action_id)

    def command(self, user_id: str, channel_id: str, name: str, text: str = "") -> Result:
        """Type a slash command."""
        return self._acts.command(user_id, channel_id, name, text)

    def press_in_view(
        self, user_id: str, action_id: str, *, block_id: str | None = None, choice: object = None
    ) -> Result:
        """Press something in the modal that the person has before them."""
        with self.world.lock:
            view = top_view(self.world, user_id)
        return self._acts.press_in_view(user_id, view, action_id, block_id=block_id, choice=choice)

    def press_in_home(
        self, user_id: str, action_id: str, *, block_id: str | None = None, choice: object = None
    ) -> Result:
        """Press something in the person's Home tab."""
        with self.world.lock:
            view = self.world.homes[user_id]
        return self._acts.press_in_view(user_id, view, action_id, block_id=block_id, choice=choice)

    def fill_in(self, user_id: str, values: Mapping[str, object]) -> None:
        """Type into the modal that the person has before them, without sending it."""
        with self.world.lock:
            view = top_view(self.world, user_id)
            view.state = typed(view.body, view.state, values)
            self.world.changed()

    def submit(self, user_id: str, values: Mapping[str, object] | None = None) -> Result:
        """Fill in and send the modal that the person has before them.

        Values are named by block_id or block_id/action_id: text, an option's value, an id, or a list of them.
        """
        with self.world.lock:
            view = top_view(self.world, user_id)
        return self._acts.submit(user_id, view, values or {})

    def close_view(self, user_id: str) -> Result:
        """Leave the modal that the person has before them."""
        with self.world.lock:
            view = top_view(self.world, user_id)
        return self._acts.close(user_id, view)

    def open_home(self, user_id: str) -> Result:
        """Look at the bot's Home tab; the bot hears of it."""
        with self.world.lock:
            channel = self.world.direct_channel(user_id)
            told: Json = {"type": "app_home_opened", "user": user_id, "channel": channel.id, "tab": "home"}
            shown = self.world.homes.get(user_id)
            if shown:
                told["view"] = as_json(self.world, shown)
        return self._acts.tell(told)

    def shortcut(self, user_id: str, callback_id: str) -> Result:
        """Use a global shortcut, from the menu that is at hand everywhere."""
        return self._acts.shortcut(user_id, callback_id)

    def message_shortcut(self, user_id: str, channel_id: str, message_ts: str, callback_id: str) -> Result:
        """Use a shortcut in the menu of a message."""
        message = self._seen(user_id, channel_id, message_ts)
        return self._acts.shortcut(user_id, callback_id, channel_id, message)

    def say(self, user_id: str, channel_id: str, text: str, *, thread_ts: str = "") -> Json:
        """Write a plain message; a bot that is there and has subscribed hears of it."""
        with self.world.lock:
            channel = self.world.channels[channel_id]
            message = self.world.compose(text=text, user=user_id)
            if thread_ts:
                reply(channel, message, thread_ts)
            said = copy.deepcopy(self.world.post(channel, message))
        if self.bot_user_id in channel.members:
            self._acts.hear_if_subscribed(payloads.message_event(channel, said))
            if f"<@{self.bot_user_id}>" in text:
                self._acts.hear_if_subscribed(said | {"type": "app_mention", "channel": channel_id})
        return said

    def dismiss(self, user_id: str, ts: str) -> None:
        """Wave a private message away; nobody but its reader ever knew of it."""
        with self.world.lock:
            kept = [e for e in self.world.ephemerals if (e.user, e.message["ts"]) != (user_id, ts)]
            self.world.ephemerals[:] = kept
            self.world.changed()

    def reload(self, user_id: str) -> None:
        """Load the client anew: private messages are gone with it, and so are open modals."""
        with self.world.lock:
            self.world.ephemerals[:] = [e for e in self.world.ephemerals if e.user != user_id]
            self.world.stacks.pop(user_id, None)
            self.world.failures[:] = [f for f in self.world.failures if f.user != user_id]
            self.world.changed()

    def tell(self, event: Json) -> Result:
        """Send any event to the bot."""
        return self._acts.tell(event)
