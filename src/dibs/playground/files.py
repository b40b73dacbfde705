"""Files: what the bot uploads, where it is shared, and how a bot and a message are told of it."""

from __future__ import annotations

import copy
import mimetypes
import secrets
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from dibs.playground.world import Channel, World

Json = dict[str, Any]

UNKNOWN_KIND: Final = "application/octet-stream"
PNG_MARK: Final = b"\x89PNG\r\n\x1a\n"
PNG_SIZE: Final = slice(16, 24)
# Drawn on the page; every other kind is only offered as a download.
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass
class File:
    """A file from the moment that an upload was asked for; `content` is there once the bytes came.

    `shares` says where it was shared, as pairs of a channel and the message's timestamp.
    """

    id: str
    name: str
    length: int
    created: int
    alt_txt: str = ""
    snippet_type: str = ""
    title: str = ""
    ticket: str = ""
    content: bytes | None = None
    complete: bool = False
    deleted: bool = False
    shares: list[tuple[str, str]] = field(default_factory=list)

    @property
    def mimetype(self) -> str:
        """What kind of file it is, judged by its name as a browser would."""
        if self.snippet_type:
            return "text/plain"
        return mimetypes.guess_type(self.name)[0] or UNKNOWN_KIND


def expect(world: World, name: str, length: int, *, alt_txt: str, snippet_type: str) -> File:
    """Make room for a file that will be uploaded, with the ticket that lets its bytes in once."""
    found = File(
        world.unique_id("F"),
        name,
        length,
        int(world.clock.now()),
        alt_txt,
        snippet_type,
        title=name,
        ticket=secrets.token_urlsafe(16),
    )
    world.files[found.id] = found
    return found


def upload_url(world: World, file: File) -> str:
    """Return where the bytes of a file are posted to."""
    return f"{world.base()}upload/v1/{world.team_id}/{file.ticket}"


def take(world: World, ticket: str, content: bytes) -> File:
    """Take the bytes that were announced; raises LookupError or ValueError, with what is wrong."""
    file = next((one for one in world.files.values() if one.ticket == ticket), None)
    if file is None or file.content is not None:
        msg = "this upload URL is not known, or was used already"
        raise LookupError(msg)
    if len(content) != file.length:
        msg = f"{file.length} bytes were announced, and {len(content)} came"
        raise ValueError(msg)
    file.content = content
    return file


def share(world: World, file: File, channel: Channel, ts: str) -> None:
    """Note that a message shows a file, and tell every message that shows it."""
    file.shares.append((channel.id, ts))
    refresh(world, file)


def refresh(world: World, file: File) -> None:
    """Bring each message that shows a file in line with what there is to tell of it now."""
    told = tombstone(file) if file.deleted else as_json(world, file)
    for channel_id, ts in file.shares:
        message = world.channels[channel_id].messages.get(ts)
        if message:
            files = message.get("files", [])
            message["files"] = [copy.deepcopy(told) if one["id"] == file.id else one for one in files]
    world.changed()


def tombstone(file: File) -> Json:
    """Return what is left in a message of a file that was deleted."""
    return {"id": file.id, "mode": "tombstone"}


def sees(world: World, user: str, file: File) -> bool:
    """Whether a person can see a file: where it was shared, it goes by who can read there."""
    return any(
        user in channel.members or not (channel.is_im or channel.is_private)
        for channel in (world.channels[channel_id] for channel_id, _ in file.shares)
    )


def as_json(world: World, file: File) -> Json:
    """Return a file the way Slack does."""
    shared = [(world.channels[channel], ts) for channel, ts in file.shares]
    public = [(channel, ts) for channel, ts in shared if not (channel.is_im or channel.is_private)]
    private = [one for one in shared if one not in public]
    address = f"{world.base()}files-pri/{world.team_id}-{file.id}/"
    kind = file.snippet_type or file.name.rpartition(".")[2].lower() or "binary"
    shown: Json = {
        "id": file.id,
        "created": file.created,
        "timestamp": file.created,
        "name": file.name,
        "title": file.title,
        "mimetype": file.mimetype,
        "filetype": kind,
        "pretty_type": kind.upper(),
        "user": world.bot_user_id,
        "user_team": world.team_id,
        "editable": bool(file.snippet_type),
        "size": file.length,
        "mode": "snippet" if file.snippet_type else "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": bool(public),
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": f"{address}{quote(file.name)}",
        "url_private_download": f"{address}download/{quote(file.name)}",
        "permalink": f"https://playground.invalid/files/{world.bot_user_id}/{file.id}/{quote(file.name)}",
        "comments_count": 0,
        "is_starred": False,
        "shares": {
            name: _shares(world, places)
            for name, places in (("public", public), ("private", private))
            if places
        },
        "channels": [channel.id for channel, _ in public],
        "groups": [channel.id for channel, _ in private if not channel.is_im],
        "ims": [channel.id for channel, _ in private if channel.is_im],
        "has_rich_preview": False,
        "file_access": "visible",
    }
    if file.alt_txt:
        shown["alt_txt"] = file.alt_txt
    if file.content and file.content.startswith(PNG_MARK) and len(file.content) >= PNG_SIZE.stop:
        shown["original_w"], shown["original_h"] = struct.unpack(">II", file.content[PNG_SIZE])
    return shown


def _shares(world: World, places: list[tuple[Channel, str]]) -> Json:
    return {
        channel.id: [{"ts": ts, "channel_name": channel.name, "team_id": world.team_id}]
        for channel, ts in places
    }
