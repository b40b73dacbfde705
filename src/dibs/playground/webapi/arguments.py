"""The arguments of a Web API call, as they come in a form or in JSON."""

from __future__ import annotations

import json
from typing import Any

from dibs.playground.errors import ApiError


class Arguments:
    """Reads arguments by name, whichever way they were encoded."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def __contains__(self, name: str) -> bool:
        return self._params.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """Return an argument as text."""
        value = self._params.get(name)
        return default if value is None else str(value)

    def required(self, name: str, error: str = "invalid_arguments") -> str:
        """Return an argument that must be there."""
        value = self.text(name)
        if not value:
            raise ApiError(error, messages=[f"[ERROR] missing required field: {name}"])
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return an argument as true or false."""
        value = self.text(name).lower()
        return value in {"1", "true"} if value else default

    def number(self, name: str, default: int) -> int:
        """Return an argument as a whole number."""
        try:
            return int(self.text(name) or default)
        except ValueError:
            raise ApiError(f"invalid_{name}") from None

    def structure(self, name: str, error: str) -> object:
        """Return an argument that is JSON, be it as a structure or as a string that holds one."""
        value = self._params.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ApiError(error) from None

    def ids(self, name: str) -> list[str]:
        """Return an argument that lists ids, with commas or as a JSON array."""
        value = self._params.get(name)
        if isinstance(value, list):
            return [str(one) for one in value]
        return [one.strip() for one in str(value or "").split(",") if one.strip()]


def page(
    found: list[Any], args: Arguments, *, default: int = 100, most: int = 1000
) -> tuple[list[Any], dict[str, Any]]:
    """Return one page of a list and the metadata that leads to the next."""
    limit = min(args.number("limit", default), most)
    if limit < 1:
        raise ApiError("invalid_limit")
    cursor = args.text("cursor")
    if cursor and not (cursor.startswith("next:") and cursor[5:].isdigit()):
        raise ApiError("invalid_cursor")
    start = int(cursor[5:]) if cursor else 0
    end = start + limit
    return found[start:end], {"next_cursor": f"next:{end}" if end < len(found) else ""}
