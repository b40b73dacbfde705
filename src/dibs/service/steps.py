"""The steps of a delivery, by name, so that a process can be ended on purpose at each of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """A point that a delivery of a card or a notice passes. A crash there loses and doubles nothing."""

    TAKEN = "taken"
    """It is marked as being sent by this sender."""
    READ = "read"
    """What it should show is known."""
    LOOKED = "looked"
    """A post that may have been lost was looked for."""
    GONE = "gone"
    """It is written down that the message was deleted that a card should have redrawn."""
    SENT = "sent"
    """Slack has answered."""
    NOTED = "noted"
    """What came of it is written down."""


Passing = Callable[[Step], object]
"""What is called at each step."""


def unwatched(step: Step) -> None:
    """Nothing happens at any step."""
