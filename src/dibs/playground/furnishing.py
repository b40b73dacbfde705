"""What there is in a workspace, and what changes in it without anybody talking to the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.playground import payloads
from dibs.playground.looking import Looking
from dibs.playground.webapi import people, user_groups
from dibs.playground.world import Channel, Person, UserGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.playground.interactions import Interactions, Result
    from dibs.playground.world import World

Json = dict[str, Any]


class Furnishing(Looking):
    """Adds people, channels and user groups, and lets them come and go."""

    def __init__(self, world: World, acts: Interactions) -> None:
        super().__init__(world)
        self._acts = acts

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

    def add_person(
        self,
        name: str,
        *,
        is_bot: bool = False,
        team_id: str | None = None,
        deleted: bool = False,
        tz: str = "",
        is_restricted: bool = False,
        is_ultra_restricted: bool = False,
        is_owner: bool = False,
        is_app_user: bool = False,
    ) -> Person:
        """Add somebody; with another team_id, somebody of another workspace.

        Somebody restricted is a guest, ultra-restricted one of a single channel. Owners are administrators
        too. Without a time zone the page shows times in the reader's own.
        """
        with self.world.lock:
            person = Person(
                self.world.new_id("U"),
                name,
                team_id or self.team_id,
                tz=tz,
                is_bot=is_bot,
                deleted=deleted,
                is_restricted=is_restricted or is_ultra_restricted,
                is_ultra_restricted=is_ultra_restricted,
                is_owner=is_owner,
                is_app_user=is_app_user,
            )
            self.world.people[person.id] = person
            self.world.changed()
            return person

    def add_channel(
        self,
        name: str,
        *,
        members: Sequence[str] = (),
        bot: bool = True,
        private: bool = False,
        shared_with: Sequence[str] = (),
    ) -> Channel:
        """Add a channel with its members, the bot among them unless told otherwise.

        It is shared with the workspaces whose team ids are told.
        """
        with self.world.lock:
            everyone = [*members, *([self.bot_user_id] if bot else [])]
            channel = Channel(
                self.world.new_id("C"),
                name,
                is_private=private,
                members=everyone,
                shared_with=list(shared_with),
            )
            self.world.channels[channel.id] = channel
            self.world.changed()
            return channel

    def add_user_group(self, name: str, handle: str, users: Sequence[str] = ()) -> UserGroup:
        """Add a user group, as an administrator does."""
        with self.world.lock:
            group = UserGroup(self.world.new_id("S"), name, handle, int(self.world.clock.now()), list(users))
            self.world.user_groups[group.id] = group
            shown = user_groups.as_json(self.world, group, users=False)
            self.world.changed()
        self._acts.hear_if_subscribed({"type": "subteam_created", "subteam": shown})
        return group

    def set_user_group(self, group_id: str, users: Sequence[str], *, disabled: bool = False) -> None:
        """Change who is in a user group, or disable it; a bot that subscribed hears of both."""
        with self.world.lock:
            group = self.world.user_groups[group_id]
            added = [user for user in users if user not in group.users]
            removed = [user for user in group.users if user not in users]
            previous, now = group.updated or group.created, int(self.world.clock.now())
            group.users, group.disabled, group.updated = list(users), disabled, now
            shown = user_groups.as_json(self.world, group)
            self.world.changed()
        if added or removed:
            self._acts.hear_if_subscribed(
                {
                    "type": "subteam_members_changed",
                    "subteam_id": group.id,
                    "team_id": self.team_id,
                    "date_previous_update": previous,
                    "date_update": now,
                    "added_users": added,
                    "added_users_count": len(added),
                    "removed_users": removed,
                    "removed_users_count": len(removed),
                }
            )
        self._acts.hear_if_subscribed({"type": "subteam_updated", "subteam": shown})

    def join(self, user_id: str, channel_id: str) -> Result | None:
        """Let somebody join a channel; a bot that is in it hears of it."""
        return self._membership(user_id, channel_id, "member_joined_channel")

    def leave(self, user_id: str, channel_id: str) -> Result | None:
        """Let somebody leave a channel; a bot that was in it hears of it."""
        return self._membership(user_id, channel_id, "member_left_channel")

    def _membership(self, user_id: str, channel_id: str, kind: str) -> Result | None:
        with self.world.lock:
            channel = self.world.channels[channel_id]
            if kind == "member_joined_channel" and user_id not in channel.members:
                channel.members.append(user_id)
            elif kind == "member_left_channel" and user_id in channel.members:
                channel.members.remove(user_id)
            heard = self.bot_user_id in channel.members
            team = self.world.people[user_id].team_id
            self.world.changed()
        if user_id == self.bot_user_id and not heard:
            # Only members hear who left, so a bot that was removed is told so in another way.
            gone = "group_left" if channel.is_private else "channel_left"
            self._acts.hear_if_subscribed({"type": gone, "channel": channel_id})
        if not heard:
            return None
        told = {"type": kind, "user": user_id, "channel": channel_id, "channel_type": "C", "team": team}
        return self._acts.hear(told)

    def archive(self, channel_id: str) -> None:
        """Archive a channel."""
        with self.world.lock:
            channel = self.world.channels[channel_id]
            channel.is_archived = True
            self.world.changed()
        kind = "group_archive" if channel.is_private else "channel_archive"
        self._acts.hear_if_subscribed({"type": kind, "channel": channel_id})

    def delete_message(self, channel_id: str, ts: str) -> None:
        """Delete a message, as a person may."""
        with self.world.lock:
            channel = self.world.channels[channel_id]
            previous = channel.messages.pop(ts)
            self.world.changed()
        self._acts.hear_if_subscribed(payloads.message_deleted(self.world, channel, previous))

    def deactivate(self, user_id: str) -> None:
        """Deactivate somebody's account."""
        with self.world.lock:
            person = self.world.people[user_id]
            person.deleted = True
            self.world.changed()
        self._acts.hear_if_subscribed({"type": "user_change", "user": people.as_json(self.world, person)})
