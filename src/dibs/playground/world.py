"""What there is in the stand-in's workspace: people, channels, messages, views, and what was handed out.

One lock guards all of it. Whoever holds it never calls the bot.
"""

from __future__ import annotations

import copy
import itertools
import re
import secrets
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit import fill_in_ids
from dibs.playground.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.playground.files import File

Json = dict[str, Any]

APP_ID: Final = "A0PLAY"
SYSTEM_USER: Final = "USLACKBOT"
PRESSES_KEPT: Final = 30
CALLS_KEPT: Final = 50_000


@dataclass
class Person:
    """Somebody in the workspace, or somebody of another one."""

    id: str
    name: str
    team_id: str
    tz: str = ""
    is_bot: bool = False
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_owner: bool = False
    is_app_user: bool = False


@dataclass
class Channel:
    """A channel or a direct message with the bot: its members and its messages, oldest first."""

    id: str
    name: str
    is_im: bool = False
    is_private: bool = False
    is_archived: bool = False
    shared_with: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    messages: dict[str, Json] = field(default_factory=dict)


@dataclass
class UserGroup:
    """A group of people under one handle."""

    id: str
    name: str
    handle: str
    created: int
    users: list[str] = field(default_factory=list)
    updated: int = 0
    disabled: bool = False


@dataclass
class Ephemeral:
    """A message that one person sees, until they reload."""

    user: str
    channel: str
    message: Json


@dataclass
class Trigger:
    """A trigger_id: who acted, in which channel if in any, and whether it was exchanged already."""

    user: str
    issued: float
    channel: str | None
    exchanged: bool = False


@dataclass
class ResponseUrl:
    """A response_url: where its answers go and how often it was used."""

    user: str
    channel: str
    issued: float
    message_ts: str | None
    uses: int = 0


@dataclass
class View:
    """A modal or a Home tab as it stands, with what was typed into it."""

    id: str
    user: str
    body: Json
    hash: str
    root_id: str
    previous_id: str | None = None
    channel: str | None = None
    state: dict[str, dict[str, Json]] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Slack's failure mark: it stands beside what was pressed, for the person who pressed it."""

    user: str
    container: str
    block_id: str
    action_id: str
    words: str


@dataclass(frozen=True)
class Press:
    """One request to the bot, as the page's strip shows it."""

    at: float
    who: str
    what: str
    status: int
    milliseconds: float
    words: str


@dataclass(frozen=True)
class Call:
    """One request of the bot: a Web API method or a response_url, and what it was answered."""

    method: str
    params: Json
    response: Json
    at: float


class World:
    """Everything that the stand-in remembers."""

    def __init__(
        self,
        clock: Clock | None = None,
        bot_name: str = "Dibs",
        name: str = "Playground",
        base: Callable[[], str] = str,
    ) -> None:
        # Ids tell the workspaces apart; the app is the same in each.
        self._mark = re.sub(r"[^A-Z0-9]", "", name.upper())[:4]
        self.clock = clock or Clock()
        self.lock = threading.RLock()
        self.version = 0
        # The address under which the world is served, once it is.
        self.base = base
        self.team_id = f"T0{self._mark}"
        self.team_name = name
        self.app_id = APP_ID
        self.bot_id = f"B0{self._mark}"
        self.bot_user_id = "U0BOT" if name == "Playground" else f"U0{self._mark}BOT"
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.user_groups: dict[str, UserGroup] = {}
        self.files: dict[str, File] = {}
        # What the bot brought about itself and is told of, if it subscribed, once it has its answer.
        self.news: list[Json] = []
        self.ephemerals: list[Ephemeral] = []
        self.stacks: dict[str, list[View]] = {}
        self.homes: dict[str, View] = {}
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.failures: list[Failure] = []
        self.presses: deque[Press] = deque(maxlen=PRESSES_KEPT)
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT)
        self._numbers = itertools.count(1)
        self._listeners: list[Callable[[], None]] = []
        self.people[self.bot_user_id] = Person(self.bot_user_id, bot_name, self.team_id, is_bot=True)

    def new_id(self, prefix: str) -> str:
        """Return an id that this world never used, the same in every run that does the same.

        A bot that keeps its data between runs so finds its people and channels again.
        """
        return f"{prefix}0{self._mark}{next(self._numbers):04d}"

    def unique_id(self, prefix: str) -> str:
        """Return an id that no run ever used, for what happens once."""
        return f"{prefix}0{secrets.token_hex(6).upper()}"

    def fresh_ids(self) -> Iterator[str]:
        """Yield ids for blocks and elements that came without one."""
        return (secrets.token_urlsafe(4) for _ in itertools.count())

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have the listener called, under the lock, after every change."""
        self._listeners.append(listener)

    def changed(self) -> None:
        """Tell whoever watches that something is new. Called under the lock."""
        self.version += 1
        for listener in self._listeners:
            listener()

    def direct_channel(self, user: str) -> Channel:
        """Return the direct message between a person and the bot, opening it if it is not there."""
        with self.lock:
            for channel in self.channels.values():
                if channel.is_im and user in channel.members:
                    return channel
            channel = Channel(self.new_id("D"), "directmessage", is_im=True, members=[user, self.bot_user_id])
            self.channels[channel.id] = channel
            self.changed()
            return channel

    def compose(self, *, text: str, blocks: list[Json] | None = None, user: str | None = None) -> Json:
        """Return a message as it is stored: stamped, signed by its author, its blocks with ids."""
        author = user or self.bot_user_id
        message: Json = {"type": "message", "user": author, "ts": self.clock.ts(), "text": text}
        if author == self.bot_user_id:
            message |= {"bot_id": self.bot_id, "app_id": self.app_id, "team": self.team_id}
        if blocks:
            message["blocks"] = fill_in_ids(copy.deepcopy(blocks), self.fresh_ids())
        return message

    def post(self, channel: Channel, message: Json) -> Json:
        """Put a message at the end of a channel."""
        with self.lock:
            channel.messages[message["ts"]] = message
            self.changed()
            return message

    def replace(self, message: Json, *, text: str, blocks: list[Json] | None) -> Json:
        """Give a message new content; blocks that are not sent again are gone."""
        with self.lock:
            message["text"] = text
            message.pop("blocks", None)
            if blocks:
                message["blocks"] = fill_in_ids(copy.deepcopy(blocks), self.fresh_ids())
            message["edited"] = {"user": self.bot_user_id, "ts": self.clock.ts()}
            self.changed()
            return message

    def whisper(self, user: str, channel: str, message: Json) -> Json:
        """Show a message to one person only."""
        with self.lock:
            message |= {"is_ephemeral": True, "channel": channel}
            self.ephemerals.append(Ephemeral(user, channel, message))
            self.changed()
            return message

    def ephemeral(self, user: str, ts: str) -> Ephemeral | None:
        """Find the private message that a person sees under a timestamp."""
        return next((e for e in self.ephemerals if e.user == user and e.message["ts"] == ts), None)

    def issue_trigger(self, user: str, channel: str | None = None) -> str:
        """Hand out a trigger_id, which works once and for a few seconds."""
        with self.lock:
            trigger_id = f"{self.clock.ts()}.{secrets.token_hex(8)}"
            self.triggers[trigger_id] = Trigger(user, self.clock.now(), channel)
            return trigger_id

    def issue_response_url(self, user: str, channel: str, message_ts: str | None = None) -> str:
        """Hand out the last part of a response_url."""
        with self.lock:
            token = secrets.token_urlsafe(12)
            self.response_urls[token] = ResponseUrl(user, channel, self.clock.now(), message_ts)
            return token

    def mark_failure(self, failure: Failure) -> None:
        """Put the failure mark beside what was pressed."""
        with self.lock:
            self.clear_failure(failure.user, failure.container, failure.block_id, failure.action_id)
            self.failures.append(failure)
            self.changed()

    def clear_failure(self, user: str, container: str, block_id: str, action_id: str) -> None:
        """Take the failure mark away, because the same thing is pressed again."""
        with self.lock:
            key = (user, container, block_id, action_id)
            before = len(self.failures)
            self.failures[:] = [
                f for f in self.failures if (f.user, f.container, f.block_id, f.action_id) != key
            ]
            if len(self.failures) != before:
                self.changed()

    def note_press(self, press: Press) -> None:
        """Remember a request to the bot for the page's strip."""
        with self.lock:
            self.presses.append(press)
            self.changed()
