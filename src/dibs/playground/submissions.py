"""What a bot may answer to a submitted modal, and what then becomes of the modals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dibs.playground import views
from dibs.playground.errors import ApiError

if TYPE_CHECKING:
    from dibs.playground.world import View, World

Json = dict[str, Any]


def take(world: World, view: View, body: str) -> tuple[dict[str, str], bool]:
    """Follow the answer to a submission; return the errors to show and whether the modal is gone."""
    answer = _parsed(body)
    action = answer.get("response_action")
    if action is None:
        pop(world, view)
        return {}, True
    if action == "errors":
        return _errors(view, answer.get("errors")), False
    if action == "clear":
        world.stacks.pop(view.user, None)
        world.changed()
        return {}, True
    if action not in ("update", "push"):
        raise ApiError("invalid_response_action")
    shown = views.checked(world, answer.get("view"), "modal")
    if action == "update":
        views.replace(world, view, shown)
    else:
        views.push(world, view.user, shown)
    return {}, False


def pop(world: World, view: View) -> None:
    """Take a modal off its person's stack; with `clear_on_close` the whole stack goes."""
    stack = world.stacks.get(view.user, [])
    if view in stack:
        stack.remove(view)
    if view.body.get("clear_on_close"):
        stack.clear()
    world.changed()


def _parsed(body: str) -> Json:
    if not body.strip():
        return {}
    try:
        answer = json.loads(body)
    except ValueError:
        raise ApiError("invalid_json") from None
    if not isinstance(answer, dict):
        raise ApiError("invalid_json")
    return answer


def _errors(view: View, errors: object) -> dict[str, str]:
    """Return the errors if each stands at an input of the view; Slack shows none of them otherwise."""
    inputs = {block["block_id"] for block in view.body["blocks"] if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors:
        raise ApiError("invalid_errors")
    for block_id, words in errors.items():
        if block_id not in inputs or not isinstance(words, str) or not words:
            raise ApiError("invalid_errors", messages=[f"{block_id} is no input of this view"])
    return dict(errors)
