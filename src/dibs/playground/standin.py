"""SlackStandIn: the whole stand-in as one object, for the command line that shows it and for tests."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from starlette.applications import Starlette

from dibs.playground.bot import ANSWER_WITHIN, together
from dibs.playground.faults import Faults
from dibs.playground.forms import typed
from dibs.playground.guard import LoopbackOnly
from dibs.playground.interactions import Interactions, Result, top_view
from dibs.playground.looking import Looking
from dibs.playground.page import PageRoutes
from dibs.playground.routes import BotRoutes
from dibs.playground.server import HOST, Connections, Server
from dibs.playground.tour import Tour
from dibs.playground.traffic import Traffic, WatchedBot, WatchedCalls
from dibs.playground.views import as_json
from dibs.playground.world import Channel, Person, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dibs.playground.bot import Answer
    from dibs.playground.clock import Clock
    from dibs.playground.tour import Lever

Json = dict[str, Any]

Outcome = TypeVar("Outcome")

LOOK_EVERY: Final = 0.01


class SlackStandIn(Looking):
    """A stand-in for Slack on this machine, reachable on loopback only.

    It speaks the Web API under `api_url`, sends signed requests to `bot_url`, and shows its people on the
    page at `page_url`. Its refusals are Slack's. Every act of a person is a method here, too, so tests read
    as what people do and see. `commands` are offered to who writes on the page, as pairs of a beginning and
    words; `levers` are offered beside it, and `tour` tells a newcomer what to try.
    """

    def __init__(
        self,
        *,
        signing_secret: str,
        bot_token: str,
        port: int = 0,
        bot_name: str = "Dibs",
        clock: Clock | None = None,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        super().__init__(World(clock, bot_name))
        self.clock = self.world.clock
        self.faults = Faults()
        self.bot_token = bot_token
        self.commands: list[tuple[str, str]] = []
        self.levers: list[Lever] = []
        self.tour = Tour(self.world)
        self.traffic = Traffic(self.clock)
        self._bot = WatchedBot(signing_secret, answer_within, self.traffic)
        self._acts = Interactions(self.world, self._bot, lambda: f"{self._base}hooks/")
        connections = Connections()
        bot_routes = BotRoutes(self.world, self.faults, connections, bot_token)
        self._page = PageRoutes(self)
        app = Starlette(routes=[*bot_routes.routes(), *self._page.routes()])
        self._server = Server(LoopbackOnly(WatchedCalls(app, self.traffic)), connections, port)

    # Starting and stopping

    def start(self) -> None:
        """Listen on 127.0.0.1."""
        self._page.start()
        self._server.start()

    def stop(self) -> None:
        """Stop listening."""
        self._page.stop()
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _base(self) -> str:
        return f"http://{HOST}:{self._server.port}/"

    @property
    def api_url(self) -> str:
        """The base of the Web API, for SLACK_API_URL."""
        return f"{self._base}api/"

    @property
    def page_url(self) -> str:
        """The address of the page."""
        return self._base

    @property
    def bot_url(self) -> str:
        """Where the bot takes Slack's requests."""
        return self._bot.url

    @bot_url.setter
    def bot_url(self, url: str) -> None:
        self._bot.url = url

    @property
    def signing_secret(self) -> str:
        """The secret that requests to the bot are signed with."""
        return self._bot.signing_secret

    @property
    def team_id(self) -> str:
        """The workspace."""
        return self.world.team_id

    @property
    def app_id(self) -> str:
        """The bot's app."""
        return self.world.app_id

    @property
    def bot_id(self) -> str:
        """The bot, as the author of messages."""
        return self.world.bot_id

    @property
    def bot_user_id(self) -> str:
        """The bot, as a member of channels."""
        return self.world.bot_user_id

    # The world

    def add_person(
        self,
        name: str,
        *,
        is_bot: bool = False,
        team_id: str | None = None,
        deleted: bool = False,
        tz: str = "",
    ) -> Person:
        """Add somebody; with another team_id, somebody of another workspace.

        Without a time zone the page shows times in the reader's own.
        """
        with self.world.lock:
            person = Person(
                self.world.new_id("U"), name, team_id or self.team_id, tz=tz, is_bot=is_bot, deleted=deleted
            )
            self.world.people[person.id] = person
            self.world.changed()
            return person

    def add_channel(
        self, name: str, *, members: Sequence[str] = (), bot: bool = True, private: bool = False
    ) -> Channel:
        """Add a channel with its members, the bot among them unless told otherwise."""
        with self.world.lock:
            everyone = [*members, *([self.bot_user_id] if bot else [])]
            channel = Channel(self.world.new_id("C"), name, is_private=private, members=everyone)
            self.world.channels[channel.id] = channel
            self.world.changed()
            return channel

    def join(self, user_id: str, channel_id: str) -> Result | None:
        """Let somebody join a channel; a bot that is in it hears of it."""
        return self._membership(user_id, channel_id, "member_joined_channel")

    def leave(self, user_id: str, channel_id: str) -> Result | None:
        """Let somebody leave a channel; a bot that was in it hears of it."""
        return self._membership(user_id, channel_id, "member_left_channel")

    def _membership(self, user_id: str, channel_id: str, kind: str) -> Result | None:
        with self.world.lock:
            channel = self.world.channels[channel_id]
            heard = self.bot_user_id in channel.members
            if kind == "member_joined_channel" and user_id not in channel.members:
                channel.members.append(user_id)
            elif kind == "member_left_channel" and user_id in channel.members:
                channel.members.remove(user_id)
            heard = heard or self.bot_user_id in channel.members
            team = self.world.people[user_id].team_id
            self.world.changed()
        if not heard or not self.bot_url:
            return None
        told = {"type": kind, "user": user_id, "channel": channel_id, "channel_type": "C", "team": team}
        return self._acts.tell(told)

    def archive(self, channel_id: str) -> None:
        """Archive a channel."""
        with self.world.lock:
            self.world.channels[channel_id].is_archived = True
            self.world.changed()

    def delete_message(self, channel_id: str, ts: str) -> None:
        """Delete a message, as a person may."""
        with self.world.lock:
            del self.world.channels[channel_id].messages[ts]
            self.world.changed()

    def deactivate(self, user_id: str) -> None:
        """Deactivate somebody's account."""
        with self.world.lock:
            self.world.people[user_id].deleted = True
            self.world.changed()

    # People acting

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

    def say(self, user_id: str, channel_id: str, text: str, *, thread_ts: str = "") -> Json:
        """Write a plain message, in a channel or in the thread of a message there."""
        with self.world.lock:
            message = self.world.compose(text=text, user=user_id)
            if thread_ts:
                parent = self.world.channels[channel_id].messages[thread_ts]
                message["thread_ts"] = parent.setdefault("thread_ts", thread_ts)
            return copy.deepcopy(self.world.post(self.world.channels[channel_id], message))

    def dismiss(self, user_id: str, ts: str) -> None:
        """Wave a private message away; nobody but its reader ever knew of it."""
        with self.world.lock:
            kept = [e for e in self.world.ephemerals if (e.user, e.message["ts"]) != (user_id, ts)]
            self.world.ephemerals[:] = kept
            self.world.changed()

    def tell(self, event: Json) -> Result:
        """Send any event to the bot."""
        return self._acts.tell(event)

    def together(self, acts: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
        """Carry out acts so that their requests are all on their way before any is answered."""
        return together(acts)

    def send_raw(self, body: bytes, headers: Mapping[str, str] | None = None, *, sign: bool = True) -> Answer:
        """Send the bot whatever bytes, signed or not."""
        return self._bot.send(body, headers, sign=sign)
