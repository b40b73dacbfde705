"""Good blocks of every kind, and ways to spoil one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]


def plain(text: str = "words") -> Json:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str = "*words*") -> Json:
    return {"type": "mrkdwn", "text": text}


def option(value: str = "a") -> Json:
    return {"text": plain(value), "value": value}


IMAGE = {"type": "image", "image_url": "https://example.org/a.png", "alt_text": "a picture"}
CONFIRM = {
    "title": plain(),
    "text": mrkdwn(),
    "confirm": plain("Yes"),
    "deny": plain("No"),
    "style": "danger",
}
RICH_TEXT = {
    "type": "rich_text",
    "elements": [
        {
            "type": "rich_text_section",
            "elements": [
                {"type": "text", "text": "hello ", "style": {"bold": True}},
                {"type": "user", "user_id": "U1"},
                {"type": "link", "url": "https://example.org"},
            ],
        },
        {
            "type": "rich_text_list",
            "style": "bullet",
            "elements": [{"type": "rich_text_section", "elements": [{"type": "emoji", "name": "x"}]}],
        },
        {"type": "rich_text_quote", "elements": [{"type": "text", "text": "q"}]},
        {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "p"}]},
    ],
}
BUTTON = {
    "type": "button",
    "text": plain(),
    "action_id": "b",
    "value": "v",
    "style": "primary",
    "confirm": CONFIRM,
}
OVERFLOW = {"type": "overflow", "action_id": "o", "options": [option("a"), option("b")]}
SELECTS: list[Json] = [
    {"type": "static_select", "options": [option("a"), option("b")], "initial_option": option("b")},
    {"type": "static_select", "option_groups": [{"label": plain(), "options": [option("a")]}]},
    {"type": "external_select", "min_query_length": 1},
    {"type": "users_select", "initial_user": "U1", "placeholder": plain("Who?")},
    {
        "type": "conversations_select",
        "filter": {"include": ["public"]},
        "default_to_current_conversation": True,
    },
    {"type": "channels_select", "initial_channel": "C1"},
    {"type": "multi_static_select", "options": [option("a")], "initial_options": [option("a")]},
    {"type": "multi_users_select", "initial_users": ["U1"], "max_selected_items": 3},
    {"type": "multi_conversations_select", "initial_conversations": ["C1"]},
    {"type": "multi_channels_select", "initial_channels": ["C1"]},
    {"type": "multi_external_select", "initial_options": [option("a")]},
    {"type": "checkboxes", "options": [option("a"), {**option("b"), "text": mrkdwn("b")}]},
    {"type": "radio_buttons", "options": [option("a")], "initial_option": option("a")},
    {"type": "datepicker", "initial_date": "2026-12-31"},
    {"type": "timepicker", "initial_time": "23:59"},
]
TYPED: list[Json] = [
    {"type": "datetimepicker", "initial_date_time": 1_800_000_000},
    {
        "type": "plain_text_input",
        "multiline": True,
        "min_length": 1,
        "max_length": 3000,
        "initial_value": "x",
    },
    {"type": "email_text_input", "placeholder": plain()},
    {"type": "url_text_input", "focus_on_load": True},
    {"type": "number_input", "is_decimal_allowed": False, "min_value": "1"},
    {"type": "file_input", "filetypes": ["pdf"], "max_files": 2},
    {"type": "rich_text_input"},
]
BLOCKS: list[Json] = [
    {"type": "divider"},
    {"type": "header", "text": plain()},
    {"type": "section", "text": mrkdwn(), "expand": True},
    {"type": "section", "fields": [mrkdwn(), plain()]},
    {"type": "section", "text": plain(), "accessory": IMAGE},
    {"type": "section", "text": plain(), "accessory": BUTTON},
    {"type": "section", "text": plain(), "accessory": OVERFLOW},
    {"type": "context", "elements": [mrkdwn(), IMAGE]},
    {"type": "actions", "elements": [BUTTON, OVERFLOW]},
    {**IMAGE, "title": plain()},
    RICH_TEXT,
    {"type": "markdown", "text": "# words"},
    {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, RICH_TEXT]]},
    {"type": "file", "external_id": "x", "source": "remote"},
    {
        "type": "video",
        "title": plain(),
        "alt_text": "a film",
        "thumbnail_url": "https://example.org/a.png",
        "video_url": "https://example.org/a",
    },
    {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "positive_button": {"text": plain(), "value": "up"},
                "negative_button": {"text": plain(), "value": "down"},
            },
            {"type": "icon_button", "icon": "trash", "text": plain()},
        ],
    },
    {"type": "card", "title": mrkdwn(), "actions": [BUTTON]},
    {"type": "carousel", "elements": [{"type": "card", "body": mrkdwn()}]},
    {"type": "container", "title": plain(), "child_blocks": [{"type": "divider"}]},
    {"type": "task_card", "task_id": "1", "title": "t", "status": "pending"},
    {
        "type": "plan",
        "title": "t",
        "tasks": [{"type": "task_card", "task_id": "1", "title": "t", "status": "error"}],
    },
    {"type": "data_table", "caption": "c", "rows": [[{"type": "raw_number", "value": 1.5, "text": "1.5"}]]},
    *[{"type": "actions", "elements": [{**one, "action_id": "s"}]} for one in SELECTS],
    *[
        {"type": "input", "label": plain(), "element": {**one, "action_id": "s"}}
        for one in [*SELECTS, *TYPED]
    ],
]


def places(value: object) -> Iterator[tuple[Json | list[Any], Any]]:
    """Yield every member of a structure as its container and its key."""
    members = list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    )
    for key, member in members:
        yield value, key  # type: ignore[misc]
        yield from places(member)


@st.composite
def spoiled(draw: st.DrawFn) -> Json:
    """Draw a good block with one thing changed, usually for the worse."""
    block = copy.deepcopy(draw(st.sampled_from([block for block in BLOCKS if block["type"] != "plan"])))
    container, key = draw(st.sampled_from(list(places(block))))
    change = draw(st.sampled_from(("drop", "add", "lengthen", "empty", "retype", "repeat", "keep")))
    value = container[key]
    if change == "drop" and isinstance(container, dict):
        del container[key]
    elif change == "add" and isinstance(value, dict):
        value["unheard_of"] = 1
    elif change == "lengthen" and isinstance(value, str):
        container[key] = value + "y" * draw(st.sampled_from((30, 75, 150, 255, 300, 2000, 3000, 12_000)))
    elif change == "empty" and isinstance(value, str):
        container[key] = ""
    elif change == "retype":
        container[key] = draw(
            st.sampled_from((None, 7, "words", [], {}, True, "mrkdwn", "plain_text", "modal"))
        )
    elif change == "repeat" and isinstance(value, list):
        container[key] = value * draw(st.sampled_from((6, 11, 26, 101)))
    return block
