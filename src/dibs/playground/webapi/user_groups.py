"""Methods about user groups: usergroups.*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import UserGroup, World

Json = dict[str, Any]


def user_groups_list(world: World, args: Arguments) -> Json:
    """usergroups.list: the groups of the workspace, the disabled ones only when asked for."""
    groups = [
        group for group in world.user_groups.values() if args.flag("include_disabled") or not group.disabled
    ]
    users, count = args.flag("include_users"), args.flag("include_count")
    return {"usergroups": [as_json(world, group, users=users, count=count) for group in groups]}


def users_list(world: World, args: Arguments) -> Json:
    """usergroups.users.list: who is in a group."""
    group = world.user_groups.get(args.required("usergroup", "no_such_subteam"))
    if group is None or (group.disabled and not args.flag("include_disabled")):
        raise ApiError("no_such_subteam")
    return {"users": list(group.users)}


def as_json(world: World, group: UserGroup, *, users: bool = True, count: bool = True) -> Json:
    """Return a group the way Slack does, with its members and their number if they are asked for."""
    updated = group.updated or group.created
    shown: Json = {
        "id": group.id,
        "team_id": world.team_id,
        "is_usergroup": True,
        "is_subteam": True,
        "is_external": False,
        "name": group.name,
        "description": "",
        "handle": group.handle,
        "date_create": group.created,
        "date_update": updated,
        "date_delete": updated if group.disabled else 0,
        "auto_type": None,
        "auto_provision": False,
        "prefs": {"channels": [], "groups": []},
    }
    if users:
        shown["users"] = list(group.users)
    if count:
        shown["user_count"] = len(group.users)
    return shown
