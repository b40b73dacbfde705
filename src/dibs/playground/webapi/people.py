"""Methods about people: auth.test and users.*."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from dibs.playground.errors import ApiError
from dibs.playground.webapi.arguments import page

if TYPE_CHECKING:
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import Person, World

Json = dict[str, Any]


def auth_test(world: World, args: Arguments) -> Json:
    """auth.test: who the token belongs to."""
    del args
    return {
        "url": "https://playground.invalid/",
        "team": world.team_name,
        "team_id": world.team_id,
        "user": world.people[world.bot_user_id].name.lower(),
        "user_id": world.bot_user_id,
        "bot_id": world.bot_id,
        "is_enterprise_install": False,
    }


def users_info(world: World, args: Arguments) -> Json:
    """users.info: one person."""
    person = world.people.get(args.required("user", "user_not_found"))
    if person is None:
        raise ApiError("user_not_found")
    return {"user": as_json(world, person)}


def users_list(world: World, args: Arguments) -> Json:
    """users.list: everybody, in pages."""
    found, metadata = page([as_json(world, person) for person in world.people.values()], args)
    return {"members": found, "cache_ts": int(world.clock.now()), "response_metadata": metadata}


def as_json(world: World, person: Person) -> Json:
    """Return a person the way Slack does."""
    offset = datetime.now(ZoneInfo(person.tz) if person.tz else UTC).utcoffset()
    shown: Json = {
        "id": person.id,
        "team_id": person.team_id,
        "name": person.name.lower(),
        "deleted": person.deleted,
        "real_name": person.name,
        "tz": person.tz or "Etc/UTC",
        "tz_offset": int(offset.total_seconds()) if offset else 0,
        "profile": {"real_name": person.name, "display_name": person.name, "team": person.team_id},
        "is_admin": person.is_owner,
        "is_owner": person.is_owner,
        "is_restricted": person.is_restricted,
        "is_ultra_restricted": person.is_ultra_restricted,
        "is_bot": person.is_bot,
        "is_app_user": person.is_app_user,
        "updated": int(world.clock.now()),
    }
    if person.team_id != world.team_id:
        shown["is_stranger"] = True
    if person.id == world.bot_user_id:
        shown["profile"] |= {"bot_id": world.bot_id, "api_app_id": world.app_id}
    return shown
