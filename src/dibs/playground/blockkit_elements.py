"""Block Kit's table, first half: text objects, options and the elements that people press and fill in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit_rules import (
    ByType,
    Choice,
    Fault,
    Flag,
    Items,
    Number,
    Rule,
    Shape,
    Text,
    Untyped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

MOST_TEXT: Final = 3000
ACTION_ID: Final = Text(255, 1)
ID: Final = Text(255, 1)
HTTP_URL: Final = Text(3000, 1, re.compile(r"https?://\S+"))
DATE: Final = Text(pattern=re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"))
TIME: Final = Text(pattern=re.compile(r"([01]\d|2[0-3]):[0-5]\d"))
COLOR: Final = Choice(("primary", "danger"))


def plain(most: int = MOST_TEXT) -> ByType:
    """Text that may only be plain_text."""
    return ByType({"plain_text": Shape({"text": Text(most, 1), "emoji": Flag()}, ("text",))})


def mrkdwn(most: int = MOST_TEXT) -> ByType:
    """Text that may only be mrkdwn."""
    return ByType({"mrkdwn": Shape({"text": Text(most, 1), "verbatim": Flag()}, ("text",))})


def either(most: int = MOST_TEXT) -> ByType:
    """Text that may be plain_text or mrkdwn."""
    return ByType({**plain(most).shapes, **mrkdwn(most).shapes})


def option(text: Rule) -> Untyped:
    """One choice of a select, of radio buttons, of checkboxes or of an overflow menu."""
    return Untyped(
        Shape(
            {"text": text, "value": Text(150, 1), "description": plain(75), "url": HTTP_URL},
            ("text", "value"),
        )
    )


PLAIN_OPTION: Final = option(plain(75))
RICH_OPTION: Final = option(either(75))
OPTIONS: Final = Items(PLAIN_OPTION, 100, 1)
GROUPS: Final = Items(Untyped(Shape({"label": plain(75), "options": OPTIONS}, ("label", "options"))), 100, 1)
CONFIRM: Final = Untyped(
    Shape(
        {"title": plain(100), "text": either(300), "confirm": plain(30), "deny": plain(30), "style": COLOR},
        ("text",),
    )
)
DISPATCH: Final = Untyped(
    Shape(
        {"trigger_actions_on": Items(Choice(("on_enter_pressed", "on_character_entered")), least=1)},
    )
)
FILTER: Final = Untyped(
    Shape(
        {
            "include": Items(Choice(("im", "mpim", "private", "public")), least=1),
            "exclude_bot_users": Flag(),
            "exclude_external_shared_channels": Flag(),
        }
    )
)
SLACK_FILE: Final = Untyped(Shape({"id": Text(), "url": Text()}))

ACTING: Final[dict[str, Rule]] = {"action_id": ACTION_ID, "confirm": CONFIRM}
FOCUS: Final[dict[str, Rule]] = {"focus_on_load": Flag()}
HINTED: Final[dict[str, Rule]] = {**FOCUS, "placeholder": plain(150)}
PICK: Final[dict[str, Rule]] = {**ACTING, **HINTED}
PICK_MANY: Final[dict[str, Rule]] = {**PICK, "max_selected_items": Number(1)}
TYPED: Final[dict[str, Rule]] = {**HINTED, "action_id": ACTION_ID, "dispatch_action_config": DISPATCH}
ANSWERING: Final[dict[str, Rule]] = {"response_url_enabled": Flag()}


def all_options(element: Json) -> list[Json]:
    """Every option of an element, whether it stands in a group or not."""
    groups = element.get("option_groups")
    grouped = (
        [group.get("options") for group in groups if isinstance(group, dict)]
        if isinstance(groups, list)
        else []
    )
    lists = [element.get("options"), *grouped]
    return [
        entry
        for options in lists
        if isinstance(options, list)
        for entry in options
        if isinstance(entry, dict)
    ]


def _options_or_groups(element: Json, at: str) -> Iterator[Fault]:
    if ("options" in element) == ("option_groups" in element):
        yield Fault(at, "must define exactly one of: options, option_groups")


def _initial_among_options(element: Json, at: str) -> Iterator[Fault]:
    chosen = element.get("initial_option")
    if chosen is not None and chosen not in all_options(element):
        yield Fault(f"{at}/initial_option", "initial_option must be one of the options")
    several = element.get("initial_options")
    for index, one in enumerate(several if isinstance(several, list) else []):
        if one not in all_options(element):
            yield Fault(f"{at}/initial_options/{index}", "initial_options must be among the options")


def _length_bounds_in_order(element: Json, at: str) -> Iterator[Fault]:
    least, most = element.get("min_length"), element.get("max_length")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Fault(f"{at}/min_length", "min_length must not be greater than max_length")


def one_image_source(element: Json, at: str) -> Iterator[Fault]:
    """Yield a fault unless the picture comes from exactly one place."""
    if ("image_url" in element) == ("slack_file" in element):
        yield Fault(at, "must define exactly one of: image_url, slack_file")


STATIC: Final = (_options_or_groups, _initial_among_options)
CHOICES: Final = (_initial_among_options,)
INITIAL_IDS: Final = Items(Text(least=1))

BUTTON: Final = Shape(
    {
        **ACTING,
        "text": plain(75),
        "value": Text(2000),
        "url": HTTP_URL,
        "style": COLOR,
        "accessibility_label": Text(75),
    },
    ("text",),
)
PICTURE: Final = Shape(
    {"alt_text": Text(2000), "image_url": HTTP_URL, "slack_file": SLACK_FILE},
    ("alt_text",),
    (one_image_source,),
)
WORKFLOW: Final = Untyped(
    Shape(
        {
            "trigger": Untyped(
                Shape(
                    {
                        "url": HTTP_URL,
                        "customizable_input_parameters": Items(
                            Untyped(Shape({"name": Text(), "value": Text()}, ("name", "value")))
                        ),
                    },
                    ("url",),
                )
            )
        },
        ("trigger",),
    )
)
FEEDBACK: Final = Untyped(
    Shape({"text": plain(75), "value": Text(2000), "accessibility_label": Text(75)}, ("text", "value"))
)

SELECTS: Final[dict[str, Rule]] = {
    "static_select": Shape(
        {**PICK, "options": OPTIONS, "option_groups": GROUPS, "initial_option": PLAIN_OPTION}, (), STATIC
    ),
    "external_select": Shape({**PICK, "initial_option": PLAIN_OPTION, "min_query_length": Number(0)}),
    "users_select": Shape({**PICK, "initial_user": Text(least=1)}),
    "conversations_select": Shape(
        {
            **PICK,
            **ANSWERING,
            "initial_conversation": Text(least=1),
            "default_to_current_conversation": Flag(),
            "filter": FILTER,
        }
    ),
    "channels_select": Shape({**PICK, **ANSWERING, "initial_channel": Text(least=1)}),
    "multi_static_select": Shape(
        {
            **PICK_MANY,
            "options": OPTIONS,
            "option_groups": GROUPS,
            "initial_options": Items(PLAIN_OPTION, 100, 1),
        },
        (),
        STATIC,
    ),
    "multi_external_select": Shape(
        {**PICK_MANY, "initial_options": Items(PLAIN_OPTION, 100, 1), "min_query_length": Number(0)}
    ),
    "multi_users_select": Shape({**PICK_MANY, "initial_users": INITIAL_IDS}),
    "multi_conversations_select": Shape(
        {
            **PICK_MANY,
            "initial_conversations": INITIAL_IDS,
            "default_to_current_conversation": Flag(),
            "filter": FILTER,
        }
    ),
    "multi_channels_select": Shape({**PICK_MANY, "initial_channels": INITIAL_IDS}),
}
CHOOSERS: Final[dict[str, Rule]] = {
    **SELECTS,
    "checkboxes": Shape(
        {
            **ACTING,
            **FOCUS,
            "options": Items(RICH_OPTION, 10, 1),
            "initial_options": Items(RICH_OPTION, 10, 1),
        },
        ("options",),
        CHOICES,
    ),
    "radio_buttons": Shape(
        {**ACTING, **FOCUS, "options": Items(RICH_OPTION, 10, 1), "initial_option": RICH_OPTION},
        ("options",),
        CHOICES,
    ),
    "datepicker": Shape({**PICK, "initial_date": DATE}),
    "timepicker": Shape({**PICK, "initial_time": TIME, "timezone": Text(least=1)}),
    "datetimepicker": Shape({**ACTING, **FOCUS, "initial_date_time": Number(1_000_000_000, 9_999_999_999)}),
}
OVERFLOW: Final = Shape({**ACTING, "options": Items(PLAIN_OPTION, 5, 1)}, ("options",))
WORKFLOW_BUTTON: Final = Shape({**BUTTON.fields, "workflow": WORKFLOW}, ("text", "workflow"))
PRESSED: Final[dict[str, Rule]] = {"button": BUTTON, "workflow_button": WORKFLOW_BUTTON, "overflow": OVERFLOW}
WRITTEN: Final[dict[str, Rule]] = {
    "plain_text_input": Shape(
        {
            **TYPED,
            "initial_value": Text(MOST_TEXT),
            "multiline": Flag(),
            "min_length": Number(0, 3000),
            "max_length": Number(1, 3000),
        },
        (),
        (_length_bounds_in_order,),
    ),
    "email_text_input": Shape({**TYPED, "initial_value": Text()}),
    "url_text_input": Shape({**TYPED, "initial_value": Text()}),
    "number_input": Shape(
        {
            **TYPED,
            "is_decimal_allowed": Flag(),
            "initial_value": Text(),
            "min_value": Text(),
            "max_value": Text(),
        },
        ("is_decimal_allowed",),
    ),
    "file_input": Shape(
        {"action_id": ACTION_ID, "filetypes": Items(Text(least=1)), "max_files": Number(1, 10)}
    ),
}
CONTEXT_ACTIONS: Final[dict[str, Rule]] = {
    "feedback_buttons": Shape(
        {"action_id": ACTION_ID, "positive_button": FEEDBACK, "negative_button": FEEDBACK},
        ("positive_button", "negative_button"),
    ),
    "icon_button": Shape(
        {
            **ACTING,
            "icon": Text(least=1),
            "text": plain(75),
            "value": Text(2000),
            "accessibility_label": Text(75),
            "visible_to_user_ids": INITIAL_IDS,
        },
        ("icon", "text"),
    ),
}
