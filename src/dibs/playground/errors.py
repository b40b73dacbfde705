"""Refusals of the Web API, in Slack's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.playground.blockkit import Fault


class ApiError(Exception):
    """A method's refusal: its error code and whatever Slack tells beside it."""

    def __init__(self, code: str, *, messages: Sequence[str] = (), **beside: object) -> None:
        super().__init__(code)
        self.code = code
        self.messages = list(messages)
        self.beside = beside

    @property
    def headers(self) -> dict[str, str]:
        """What is told beside the body; only a rate limit tells anything, and comes as a 429."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        answer: dict[str, Any] = {"ok": False, "error": self.code, **self.beside}
        if self.messages:
            answer["response_metadata"] = {"messages": self.messages}
        return answer


def invalid_blocks(faults: Sequence[Fault]) -> ApiError:
    """Refuse a message's blocks, pointing at each fault."""
    return ApiError(
        "invalid_blocks",
        messages=[f"[ERROR] {fault}" for fault in faults],
        errors=[str(fault) for fault in faults],
    )


def invalid_arguments(faults: Sequence[Fault]) -> ApiError:
    """Refuse a view, pointing at each fault."""
    return ApiError("invalid_arguments", messages=[f"[ERROR] {fault}" for fault in faults])
