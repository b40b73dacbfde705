"""Methods that show modals and Home tabs: views.*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.playground import views
from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from dibs.playground.webapi.arguments import Arguments
    from dibs.playground.world import View, World

Json = dict[str, Any]


def _body(world: World, args: Arguments, kind: str) -> Json:
    return views.checked(world, args.structure("view", "invalid_arguments"), kind)


def _answer(world: World, view: View) -> Json:
    return {"view": views.as_json(world, view)}


def open_view(world: World, args: Arguments) -> Json:
    """views.open: a new modal for the person whose trigger it is."""
    body = _body(world, args, "modal")
    trigger = views.exchange(world, args.text("trigger_id"))
    return _answer(world, views.open_root(world, trigger.user, body, trigger.channel))


def push_view(world: World, args: Arguments) -> Json:
    """views.push: a modal on top of the one that the person is in."""
    body = _body(world, args, "modal")
    trigger = views.exchange(world, args.text("trigger_id"))
    return _answer(world, views.push(world, trigger.user, body))


def update_view(world: World, args: Arguments) -> Json:
    """views.update: new content for an open view, unless it has changed since the hash was taken."""
    view = _find(world, args)
    body = _body(world, args, view.body["type"])
    _compare_hash(view, args)
    return _answer(world, views.replace(world, view, body))


def publish_view(world: World, args: Arguments) -> Json:
    """views.publish: a person's Home tab."""
    user = args.required("user_id")
    if user not in world.people:
        raise ApiError("user_not_found")
    body = _body(world, args, "home")
    shown = world.homes.get(user)
    if shown:
        _compare_hash(shown, args)
    return _answer(world, views.publish(world, user, body))


def _find(world: World, args: Arguments) -> View:
    view_id, external_id = args.text("view_id"), args.text("external_id")
    if not view_id and not external_id:
        raise ApiError(
            "invalid_arguments", messages=["[ERROR] must provide exactly one of: view_id, external_id"]
        )
    for view in views.all_open(world):
        if view.id == view_id or (external_id and view.body.get("external_id") == external_id):
            return view
    raise ApiError("not_found")


def _compare_hash(view: View, args: Arguments) -> None:
    if "hash" in args and args.text("hash") != view.hash:
        raise ApiError("hash_conflict")
