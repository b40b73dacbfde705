"""Block Kit's parts, as plain data. Every limit of Slack's is kept here, by cutting with a visible mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from dibs.slack.text import cut, cut_formatted

Block = dict[str, Any]
Element = dict[str, Any]

SECTION_TEXT = 3000
BUTTON_TEXT = 75
OPTION_TEXT = 75
LABEL_TEXT = 2000
TITLE_TEXT = 24
LONGEST_INPUT = 3000
MOST_OPTIONS = 100


def plain(text: str, limit: int) -> Element:
    """Plain text."""
    return {"type": "plain_text", "text": cut(text, limit), "emoji": True}


def mrkdwn(text: str, limit: int = SECTION_TEXT) -> Element:
    """Formatted text; what people wrote in it must be escaped already.

    Verbatim, or Slack would make links and mentions of words that look like them.
    """
    return {"type": "mrkdwn", "text": cut_formatted(text, limit), "verbatim": True}


def section(text: str, accessory: Element | None = None) -> Block:
    """A paragraph, with a button or the like beside it."""
    block: Block = {"type": "section", "text": mrkdwn(text)}
    return block | {"accessory": accessory} if accessory else block


def context(text: str) -> Block:
    """A small grey line."""
    return {"type": "context", "elements": [mrkdwn(text)]}


def actions(block_id: str, buttons: Iterable[Element]) -> Block:
    """A row of buttons."""
    return {"type": "actions", "block_id": block_id, "elements": list(buttons)}


def button(
    action_id: str,
    text: str,
    value: str,
    *,
    style: Literal["primary", "danger"] | None = None,
    label: str | None = None,
) -> Element:
    """A button; `label` is what a screen reader says in place of `text`."""
    element: Element = {
        "type": "button",
        "action_id": action_id,
        "text": plain(text, BUTTON_TEXT),
        "value": value,
    }
    if style:
        element["style"] = style
    if label:
        element["accessibility_label"] = cut(label, BUTTON_TEXT)
    return element


def option(value: str, text: str) -> Element:
    """One choice."""
    return {"text": plain(text, OPTION_TEXT), "value": value}


def field(
    field_id: str, label: str, element: Mapping[str, Any], *, hint: str = "", optional: bool = False
) -> Block:
    """An input whose block_id and action_id are both `field_id`."""
    block: Block = {
        "type": "input",
        "block_id": field_id,
        "label": plain(label, LABEL_TEXT),
        "element": {**element, "action_id": field_id},
        "optional": optional,
    }
    if hint:
        block["hint"] = plain(hint, LABEL_TEXT)
    return block


def text_input(*, multiline: bool = False, initial: str = "", most: int = LONGEST_INPUT) -> Element:
    """A field to write in."""
    element: Element = {"type": "plain_text_input", "multiline": multiline, "max_length": most}
    if initial:
        element["initial_value"] = initial[:most]
    return element


def select(options: Sequence[Element], *, placeholder: str, initial: Element | None = None) -> Element:
    """A list to choose one from."""
    element: Element = {
        "type": "static_select",
        "placeholder": plain(placeholder, 150),
        "options": list(options[:MOST_OPTIONS]),
    }
    if initial:
        element["initial_option"] = initial
    return element


def radios(options: Sequence[Element]) -> Element:
    """Choices side by side, nothing preselected."""
    return {"type": "radio_buttons", "options": list(options)}


def number_input(initial: int | None, *, most: int) -> Element:
    """A field for a whole number from 1 to `most`."""
    element: Element = {
        "type": "number_input",
        "is_decimal_allowed": False,
        "min_value": "1",
        "max_value": str(most),
    }
    if initial is not None:
        element["initial_value"] = str(initial)
    return element


def tick(text: str, *, ticked: bool) -> Element:
    """One box to tick."""
    choice = option("on", text)
    element: Element = {"type": "checkboxes", "options": [choice]}
    if ticked:
        element["initial_options"] = [choice]
    return element


def modal(
    callback_id: str,
    title: str,
    blocks: list[Block],
    *,
    metadata: str = "",
    submit: str | None = None,
    close: str = "Cancel",
) -> dict[str, Any]:
    """A modal; without `submit` it is for reading only."""
    view: dict[str, Any] = {
        "type": "modal",
        "callback_id": callback_id,
        "title": plain(title, TITLE_TEXT),
        "close": plain(close, TITLE_TEXT),
        "blocks": blocks,
        "private_metadata": metadata,
    }
    if submit:
        view["submit"] = plain(submit, TITLE_TEXT)
    return view
