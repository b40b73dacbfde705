"""Block Kit's limits: what of a message or a view Slack would refuse, and where.

Pure functions of what was sent. The limits themselves are the tables in `blockkit_elements` and
`blockkit_blocks`; here stand only the rules that look at more than one block.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.blockkit_blocks import BLOCKS, SURFACES
from dibs.playground.blockkit_elements import plain
from dibs.playground.blockkit_rules import ByType, Choice, Fault, Flag, Rule, Shape, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Fault", "check_blocks", "check_view", "elements_of", "fill_in_ids"]

Json = dict[str, Any]

MOST_BLOCKS: Final = {"message": 50, "modal": 100, "home": 100}
MOST_MARKDOWN: Final = 12_000
ANY_BLOCK: Final = ByType(BLOCKS, wrapped=False)


class _Anything:
    """The blocks of a view are checked on their own."""

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield nothing."""
        del value, at
        yield from ()


SHARED_BY_VIEWS: Final[dict[str, Rule]] = {
    "type": Choice(("modal", "home")),
    "blocks": _Anything(),
    "callback_id": Text(255),
    "external_id": Text(255),
    "private_metadata": Text(3000),
}
VIEWS: Final[dict[str, Shape]] = {
    "home": Shape(SHARED_BY_VIEWS, ("type", "blocks")),
    "modal": Shape(
        {
            **SHARED_BY_VIEWS,
            "title": plain(24),
            "submit": plain(24),
            "close": plain(24),
            "clear_on_close": Flag(),
            "notify_on_close": Flag(),
        },
        ("type", "title", "blocks"),
    ),
}


def check_blocks(blocks: object, surface: str = "message", at: str = "/blocks") -> list[Fault]:
    """Return every fault of a list of blocks on a surface: message, modal or home."""
    if not isinstance(blocks, list):
        return [Fault(at, "must be an array")]
    found: list[Fault] = []
    if len(blocks) > MOST_BLOCKS[surface]:
        found.append(Fault(at, f"no more than {MOST_BLOCKS[surface]} items allowed"))
    for index, block in enumerate(blocks):
        found += _faults_of_block(block, surface, f"{at}/{index}")
    known = [(f"{at}/{index}", block) for index, block in enumerate(blocks) if isinstance(block, dict)]
    found += _repeated_block_ids(known)
    found += _too_much_together(known, at)
    return found


def check_view(view: object, at: str = "/view") -> list[Fault]:
    """Return every fault of a modal or a Home view."""
    if not isinstance(view, dict):
        return [Fault(at, "must provide an object")]
    kind = view.get("type")
    if kind is None:
        return [Fault(at, "missing required field: type")]
    if kind not in VIEWS:
        return [Fault(f"{at}/type", f"unsupported type: {kind}")]
    found = list(VIEWS[kind].faults(view, at))
    if "blocks" not in view:
        return found
    found += check_blocks(view["blocks"], kind, f"{at}/blocks")
    if not isinstance(view["blocks"], list):
        return found
    if not view["blocks"]:
        found.append(Fault(f"{at}/blocks", "must have at least 1 item"))
    blocks = [block for block in view["blocks"] if isinstance(block, dict)]
    if kind == "modal" and "submit" not in view and any(block.get("type") == "input" for block in blocks):
        found.append(Fault(at, "missing required field: submit"))
    if sum(bool(element.get("focus_on_load")) for block in blocks for element in elements_of(block)) > 1:
        found.append(Fault(f"{at}/blocks", "only one element may have focus_on_load"))
    return found


def elements_of(block: Json) -> list[Json]:
    """Every interactive or input element that a block holds."""
    held = [block.get("element"), block.get("accessory")]
    for name in ("elements", "actions"):
        members = block.get(name)
        held += members if isinstance(members, list) else []
    return [element for element in held if isinstance(element, dict)]


def fill_in_ids(blocks: list[Json], fresh: Iterator[str]) -> list[Json]:
    """Give every block and every interactive element that came without an id one, as Slack does."""
    for block in blocks:
        block.setdefault("block_id", next(fresh))
        for element in elements_of(block):
            if _is_interactive(element):
                element.setdefault("action_id", next(fresh))
    return blocks


def _is_interactive(element: Json) -> bool:
    kind = str(element.get("type", ""))
    return kind not in {"image", "plain_text", "mrkdwn", "card"} and not kind.startswith("rich_text_")


def _faults_of_block(block: object, surface: str, at: str) -> Iterator[Fault]:
    yield from ANY_BLOCK.faults(block, at)
    if not isinstance(block, dict):
        return
    kind = block.get("type")
    if isinstance(kind, str) and kind in SURFACES and surface not in SURFACES[kind]:
        yield Fault(at, f"unsupported block type: {kind} is not allowed in a {surface}")
    ids = Counter(e["action_id"] for e in elements_of(block) if isinstance(e.get("action_id"), str))
    for action_id, times in ids.items():
        if times > 1:
            yield Fault(at, f"`action_id` {action_id!r} already exists in this block")


def _repeated_block_ids(blocks: list[tuple[str, Json]]) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, block in blocks:
        block_id = block.get("block_id")
        if isinstance(block_id, str) and block_id in seen:
            yield Fault(at, f"`block_id` {block_id!r} already exists")
        if isinstance(block_id, str):
            seen.add(block_id)


def _too_much_together(blocks: list[tuple[str, Json]], at: str) -> Iterator[Fault]:
    if sum(block.get("type") == "table" for _, block in blocks) > 1:
        yield Fault(at, "only one table block is allowed")
    markdown = [block.get("text") for _, block in blocks if block.get("type") == "markdown"]
    if sum(len(text) for text in markdown if isinstance(text, str)) > MOST_MARKDOWN:
        yield Fault(at, f"markdown blocks must hold less than {MOST_MARKDOWN + 1} characters together")
