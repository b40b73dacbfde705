"""Modals and Home tabs: opened with a trigger, stacked three deep, updated under a hash."""

from __future__ import annotations

import copy
import secrets
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit import check_view, fill_in_ids
from dibs.playground.errors import ApiError, invalid_arguments
from dibs.playground.forms import State, carry_over, initial_state
from dibs.playground.world import View

if TYPE_CHECKING:
    from dibs.playground.world import Trigger, World

Json = dict[str, Any]

STACK_DEPTH: Final = 3
TRIGGER_SECONDS: Final = 3.0
LARGEST_VIEW: Final = 250_000


def exchange(world: World, trigger_id: object) -> Trigger:
    """Use a trigger_id up, or say why that cannot be."""
    trigger = world.triggers.get(trigger_id) if isinstance(trigger_id, str) else None
    if trigger is None:
        raise ApiError(
            "invalid_arguments", messages=["[ERROR] invalid `trigger_id` [json-pointer:/trigger_id]"]
        )
    if trigger.exchanged:
        raise ApiError("exchanged_trigger_id")
    if world.clock.now() - trigger.issued > TRIGGER_SECONDS:
        raise ApiError("expired_trigger_id")
    trigger.exchanged = True
    return trigger


def checked(world: World, view: object, kind: str) -> Json:
    """Return a copy of a view that Slack would take, its blocks with ids."""
    faults = check_view(view)
    if faults or not isinstance(view, dict):
        raise invalid_arguments(faults)
    if view["type"] != kind:
        raise ApiError("invalid_arguments", messages=[f"[ERROR] must be a {kind} [json-pointer:/view/type]"])
    if len(str(view)) > LARGEST_VIEW:
        raise ApiError("view_too_large")
    body = copy.deepcopy(view)
    fill_in_ids(body["blocks"], world.fresh_ids())
    return body


def new_hash(world: World) -> str:
    """Return a hash that no view had before."""
    return f"{world.clock.ts()}.{secrets.token_hex(4)}"


def open_root(world: World, user: str, body: Json, channel: str | None = None) -> View:
    """Open a modal in the place of whatever the person had open."""
    view = _new(world, user, body, channel)
    world.stacks[user] = [view]
    world.changed()
    return view


def push(world: World, user: str, body: Json) -> View:
    """Put a modal on top of the one that the person is in."""
    stack = world.stacks.get(user) or []
    if not stack:
        raise ApiError("not_found")
    if len(stack) >= STACK_DEPTH:
        raise ApiError("push_limit_reached")
    view = _new(world, user, body, stack[-1].channel)
    view.root_id, view.previous_id = stack[0].id, stack[-1].id
    stack.append(view)
    world.changed()
    return view


def replace(world: World, view: View, body: Json) -> View:
    """Give an open view a new body; what was typed into inputs that are still there stays."""
    view.body = body
    view.state = carry_over(view.state, body["blocks"], view.channel)
    view.hash = new_hash(world)
    world.changed()
    return view


def publish(world: World, user: str, body: Json) -> View:
    """Put up a person's Home tab."""
    shown = world.homes.get(user)
    if shown:
        return replace(world, shown, body)
    view = world.homes[user] = _new(world, user, body, None)
    world.changed()
    return view


def _new(world: World, user: str, body: Json, channel: str | None) -> View:
    external_id = body.get("external_id")
    if external_id and any(view.body.get("external_id") == external_id for view in all_open(world)):
        raise ApiError("duplicate_external_id")
    view_id = world.unique_id("V")
    return View(
        view_id,
        user,
        body,
        new_hash(world),
        root_id=view_id,
        channel=channel,
        state=initial_state(body["blocks"], channel),
    )


def all_open(world: World) -> list[View]:
    """Every view that somebody has before them."""
    return [view for stack in world.stacks.values() for view in stack] + list(world.homes.values())


def as_json(world: World, view: View, state: State | None = None) -> Json:
    """Return a view the way Slack sends it, to the bot and in answers."""
    body = copy.deepcopy(view.body)
    shown: Json = {
        "id": view.id,
        "team_id": world.team_id,
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "title": {"type": "plain_text", "text": world.people[world.bot_user_id].name, "emoji": True},
        "close": None,
        "submit": None,
        "clear_on_close": False,
        "notify_on_close": False,
        **body,
        "state": {"values": copy.deepcopy(view.state if state is None else state)},
        "hash": view.hash,
        "previous_view_id": view.previous_id,
        "root_view_id": view.root_id,
        "app_id": world.app_id,
        "app_installed_team_id": world.team_id,
        "bot_id": world.bot_id,
    }
    return shown
