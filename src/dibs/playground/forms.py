"""What a person types and chooses: made into the state that Slack sends, checked as its client does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit_elements import all_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = dict[str, Any]
State = dict[str, dict[str, Json]]

REQUIRED: Final = "Please complete this required field."

# What each kind of element calls its value, in the state and where it starts.
TEXT_INPUTS: Final = ("plain_text_input", "email_text_input", "url_text_input", "number_input")
ONE_ID: Final = {
    "users_select": ("selected_user", "initial_user"),
    "conversations_select": ("selected_conversation", "initial_conversation"),
    "channels_select": ("selected_channel", "initial_channel"),
    "datepicker": ("selected_date", "initial_date"),
    "timepicker": ("selected_time", "initial_time"),
    "datetimepicker": ("selected_date_time", "initial_date_time"),
    **dict.fromkeys(TEXT_INPUTS, ("value", "initial_value")),
}
MANY_IDS: Final = {
    "multi_users_select": ("selected_users", "initial_users"),
    "multi_conversations_select": ("selected_conversations", "initial_conversations"),
    "multi_channels_select": ("selected_channels", "initial_channels"),
}
CURRENT: Final = "default_to_current_conversation"
ONE_OPTION: Final = ("static_select", "radio_buttons", "external_select", "overflow")
MANY_OPTIONS: Final = ("checkboxes", "multi_static_select", "multi_external_select")


def inputs_of(view: Json) -> Iterator[tuple[Json, Json]]:
    """Yield each input block of a view with its element."""
    for block in view["blocks"]:
        if block["type"] == "input":
            yield block, block["element"]


def stateful_elements(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Yield every element that has a value, with its block."""
    for block in blocks:
        held = [block.get("element"), block.get("accessory"), *block.get("elements", [])]
        for element in held:
            if isinstance(element, dict) and value_key(element):
                yield block, element


def value_key(element: Json) -> str:
    """Return the name under which the state holds this element's value, or nothing for a plain button."""
    kind = element["type"]
    if kind in ONE_ID:
        return ONE_ID[kind][0]
    if kind in MANY_IDS:
        return MANY_IDS[kind][0]
    if kind in ONE_OPTION and kind != "overflow":
        return "selected_option"
    return "selected_options" if kind in MANY_OPTIONS else ""


def initial_state(blocks: list[Json], here: str | None = None) -> State:
    """Return the state of blocks in which nobody has typed yet; `here` is the channel they came up in."""
    state: State = {}
    for block, element in stateful_elements(blocks):
        kind = element["type"]
        if kind in ONE_ID:
            value = element.get(ONE_ID[kind][1], here if element.get(CURRENT) else None)
        elif kind in MANY_IDS:
            value = element.get(MANY_IDS[kind][1], [here] if here and element.get(CURRENT) else [])
        elif kind in MANY_OPTIONS:
            value = element.get("initial_options", [])
        else:
            value = element.get("initial_option")
        state.setdefault(block["block_id"], {})[element["action_id"]] = {
            "type": kind,
            value_key(element): value,
        }
    return state


def carry_over(old: State, blocks: list[Json], here: str | None = None) -> State:
    """Return the state of blocks that replace others: what was typed into the same input stays."""
    state = initial_state(blocks, here)
    for block_id, elements in state.items():
        for action_id, fresh in elements.items():
            kept = old.get(block_id, {}).get(action_id)
            if kept and kept["type"] == fresh["type"]:
                elements[action_id] = kept
    return state


def chosen(element: Json, value: object) -> Json:
    """Return what the state says once a person has given the element a value."""
    kind = element["type"]
    if kind in ONE_OPTION:
        key = "selected_option"
        return {"type": kind, key: None if value is None else _option(element, value)}
    if kind in MANY_OPTIONS:
        return {"type": kind, "selected_options": [_option(element, one) for one in _several(value)]}
    if kind in MANY_IDS:
        return {"type": kind, MANY_IDS[kind][0]: _several(value)}
    if kind in ONE_ID:
        return {"type": kind, ONE_ID[kind][0]: None if value == "" else value}
    msg = f"a {kind} takes no value"
    raise ValueError(msg)


def _several(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def _option(element: Json, value: object) -> Json:
    for option in all_options(element):
        if option.get("value") == value:
            return option
    msg = f"{value!r} is not among the options of {element.get('action_id')}"
    raise ValueError(msg)


def typed(view: Json, state: State, values: Mapping[str, object]) -> State:
    """Return the state after a person has filled in values, named by block_id or block_id/action_id."""
    after = {block_id: dict(elements) for block_id, elements in state.items()}
    for name, value in values.items():
        block_id, _, action_id = name.partition("/")
        matches = [
            (block, element)
            for block, element in stateful_elements(view["blocks"])
            if block["block_id"] == block_id and action_id in ("", element["action_id"])
        ]
        if len(matches) != 1:
            msg = f"the view has {len(matches)} inputs named {name!r}"
            raise LookupError(msg)
        element = matches[0][1]
        after.setdefault(block_id, {})[element["action_id"]] = chosen(element, value)
    return after


def complaints(view: Json, state: State) -> dict[str, str]:
    """Return what Slack's own client says, by block, before it sends anything."""
    found: dict[str, str] = {}
    for block, element in inputs_of(view):
        value = state.get(block["block_id"], {}).get(element["action_id"], {}).get(value_key(element))
        if value is None or value in ("", []):
            if not block.get("optional", False):
                found[block["block_id"]] = REQUIRED
            continue
        words = _complaint(element, value)
        if words:
            found[block["block_id"]] = words
    return found


def _complaint(element: Json, value: Any) -> str:  # noqa: ANN401 - the value has the type its element gives it
    check = CHECKS.get(element["type"])
    return check(element, value) if check else ""


def _text_fits(element: Json, value: str) -> str:
    most, least = element.get("max_length", 3000), element.get("min_length", 0)
    if len(value) > most:
        return f"Must be {most} characters or fewer."
    return f"Must be at least {least} characters." if len(value) < least else ""


def _number_fits(element: Json, value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return "Must be a number."
    if not element["is_decimal_allowed"] and not number.is_integer():
        return "Must be a whole number."
    if "min_value" in element and number < float(element["min_value"]):
        return f"Must be {element['min_value']} or more."
    if "max_value" in element and number > float(element["max_value"]):
        return f"Must be {element['max_value']} or less."
    return ""


def _selection_fits(element: Json, value: list[object]) -> str:
    most = element.get("max_selected_items")
    return f"Choose {most} or fewer." if most is not None and len(value) > most else ""


CHECKS: Final[dict[str, Callable[[Json, Any], str]]] = {
    "plain_text_input": _text_fits,
    "number_input": _number_fits,
    **dict.fromkeys((*MANY_IDS, *MANY_OPTIONS), _selection_fits),
}
