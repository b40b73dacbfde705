"""Block Kit's table, second half: rich text, and every block with the surfaces that it may stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit_elements import (
    ACTION_ID,
    CHOOSERS,
    CONTEXT_ACTIONS,
    DISPATCH,
    HTTP_URL,
    ID,
    PICTURE,
    PRESSED,
    WRITTEN,
    either,
    mrkdwn,
    one_image_source,
    plain,
)
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

STYLE: Final = Untyped(Shape(dict.fromkeys(("bold", "italic", "strike", "code", "underline"), Flag())))
NAMED: Final = Text(least=1)


def _inline(fields: dict[str, Rule], *required: str) -> Shape:
    return Shape({**fields, "style": STYLE}, required)


INLINE: Final = ByType(
    {
        "text": _inline({"text": NAMED}, "text"),
        "link": _inline({"url": NAMED, "text": Text(), "unsafe": Flag()}, "url"),
        "user": _inline({"user_id": NAMED}, "user_id"),
        "channel": _inline({"channel_id": NAMED}, "channel_id"),
        "usergroup": _inline({"usergroup_id": NAMED}, "usergroup_id"),
        "team": _inline({"team_id": NAMED}, "team_id"),
        "emoji": _inline({"name": NAMED, "unicode": Text(), "url": Text()}, "name"),
        "color": _inline({"value": NAMED}, "value"),
        "broadcast": _inline({"range": Choice(("here", "channel", "everyone"))}, "range"),
        "date": _inline(
            {"timestamp": Number(0, 9_999_999_999), "format": NAMED, "url": Text(), "fallback": Text()},
            "timestamp",
            "format",
        ),
    }
)
SECTION_OF_TEXT: Final = Shape({"elements": Items(INLINE)}, ("elements",))
BORDER: Final = Choice((0, 1))
RICH: Final[dict[str, Rule]] = {
    "rich_text_section": SECTION_OF_TEXT,
    "rich_text_quote": Shape({"elements": Items(INLINE, least=1), "border": BORDER}, ("elements",)),
    "rich_text_preformatted": Shape(
        {
            "elements": Items(ByType({kind: INLINE.shapes[kind] for kind in ("text", "link")}), least=1),
            "border": BORDER,
        },
        ("elements",),
    ),
    "rich_text_list": Shape(
        {
            "elements": Items(ByType({"rich_text_section": SECTION_OF_TEXT}), least=1),
            "style": Choice(("bullet", "ordered")),
            "indent": Number(0, 8),
            "offset": Number(0),
            "border": BORDER,
        },
        ("elements", "style"),
    ),
}
RICH_TEXT: Final = Shape({"block_id": ID, "elements": Items(ByType(RICH))}, ("elements",))
RICH_TEXT_INPUT: Final = Shape(
    {
        "action_id": ACTION_ID,
        "initial_value": ByType({"rich_text": RICH_TEXT}),
        "dispatch_action_config": DISPATCH,
        "focus_on_load": Flag(),
        "placeholder": plain(150),
        "min_lines": Number(1),
        "max_lines": Number(1),
    }
)


def _text_or_fields(block: dict[str, Any], at: str) -> Iterator[Fault]:
    if not (block.get("text") or block.get("fields")):
        yield Fault(at, "must define either `text` or `fields`")


def _block(fields: dict[str, Rule], *required: str) -> Shape:
    return Shape({**fields, "block_id": ID}, required)


CELL: Final = ByType(
    {
        "raw_text": Shape({"text": Text()}, ("text",)),
        "raw_number": Shape({"value": Number(fraction=True), "text": Text()}, ("value", "text")),
        "rich_text": RICH_TEXT,
    }
)
IMAGE: Final = ByType({"image": PICTURE})
BUTTONS: Final = ByType({"button": PRESSED["button"]})
CARD: Final = _block(
    {
        "title": mrkdwn(150),
        "subtitle": mrkdwn(150),
        "body": mrkdwn(200),
        "icon": IMAGE,
        "hero_image": IMAGE,
        "actions": Items(BUTTONS),
    }
)
SOURCE: Final = ByType({"url": Shape({"url": NAMED, "text": NAMED}, ("url", "text"))})
TASK_CARD: Final = _block(
    {
        "task_id": NAMED,
        "title": NAMED,
        "status": Choice(("pending", "in_progress", "complete", "error")),
        "details": ByType({"rich_text": RICH_TEXT}),
        "output": ByType({"rich_text": RICH_TEXT}),
        "sources": Items(SOURCE),
    },
    "task_id",
    "title",
    "status",
)

PLAIN_BLOCKS: Final[dict[str, Rule]] = {
    "actions": _block(
        {"elements": Items(ByType({**PRESSED, **CHOOSERS, "rich_text_input": RICH_TEXT_INPUT}), 25, 1)},
        "elements",
    ),
    "alert": _block(
        {"text": either(), "level": Choice(("default", "info", "warning", "error", "success"))}, "text"
    ),
    "card": CARD,
    "carousel": _block({"elements": Items(ByType({"card": CARD}), 10, 1)}, "elements"),
    "context": _block({"elements": Items(ByType({**either().shapes, "image": PICTURE}), 10, 1)}, "elements"),
    "context_actions": _block({"elements": Items(ByType(CONTEXT_ACTIONS), 5, 1)}, "elements"),
    "data_table": _block(
        {
            "caption": NAMED,
            "rows": Items(Items(CELL), least=1),
            "page_size": Number(1),
            "row_header_column_index": Number(0),
        },
        "caption",
        "rows",
    ),
    "divider": _block({}),
    "file": _block({"external_id": NAMED, "source": NAMED}, "external_id", "source"),
    "header": _block({"text": plain(150)}, "text"),
    "image": Shape(
        {**PICTURE.fields, "block_id": ID, "title": plain(2000)}, ("alt_text",), (one_image_source,)
    ),
    "input": _block(
        {
            "label": plain(2000),
            "hint": plain(2000),
            "element": ByType({**CHOOSERS, **WRITTEN, "rich_text_input": RICH_TEXT_INPUT}),
            "optional": Flag(),
            "dispatch_action": Flag(),
        },
        "label",
        "element",
    ),
    "markdown": _block({"text": Text(12_000, 1)}, "text"),
    "plan": _block({"title": NAMED, "tasks": Items(ByType({"task_card": TASK_CARD}))}, "title"),
    "rich_text": RICH_TEXT,
    "section": Shape(
        {
            "block_id": ID,
            "text": either(3000),
            "fields": Items(either(2000), 10, 1),
            "accessory": ByType({**PRESSED, **CHOOSERS, "image": PICTURE}),
            "expand": Flag(),
        },
        (),
        (_text_or_fields,),
    ),
    "table": _block(
        {
            "rows": Items(Items(CELL, 20), 100, 1),
            "column_settings": Items(
                Untyped(Shape({"align": Choice(("left", "center", "right")), "is_wrapped": Flag()})), 20
            ),
        },
        "rows",
    ),
    "task_card": TASK_CARD,
    "video": _block(
        {
            "alt_text": NAMED,
            "title": plain(199),
            "title_url": HTTP_URL,
            "thumbnail_url": HTTP_URL,
            "video_url": HTTP_URL,
            "author_name": Text(49),
            "provider_name": Text(),
            "provider_icon_url": HTTP_URL,
            "description": plain(),
        },
        "alt_text",
        "title",
        "thumbnail_url",
        "video_url",
    ),
}
CHILDREN: Final = (
    "actions",
    "context",
    "divider",
    "file",
    "header",
    "image",
    "input",
    "rich_text",
    "section",
    "table",
    "video",
)
CONTAINER: Final = _block(
    {
        "title": plain(150),
        "rich_text_title": ByType({"rich_text": RICH_TEXT}),
        "subtitle": either(150),
        "icon": IMAGE,
        "child_blocks": Items(ByType({kind: PLAIN_BLOCKS[kind] for kind in CHILDREN}), 10, 1),
        "width": Choice(("narrow", "standard", "wide", "full")),
        "is_collapsible": Flag(),
        "default_collapsed": Flag(),
        "has_header_divider": Flag(),
    },
    "child_blocks",
)
BLOCKS: Final[dict[str, Rule]] = {**PLAIN_BLOCKS, "container": CONTAINER}

EVERYWHERE: Final = frozenset({"message", "modal", "home"})
SURFACES: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(BLOCKS, EVERYWHERE),
    **dict.fromkeys(
        ("container", "context_actions", "file", "markdown", "plan", "task_card"), frozenset({"message"})
    ),
    **dict.fromkeys(("carousel", "data_table", "table"), frozenset({"message", "home"})),
    "alert": frozenset({"modal"}),
}
