"""The ways that most scenarios begin with: a task that somebody has claimed or started."""

from __future__ import annotations

from tests.support.bot import Office


def at_version(office: Office, card: str, version: int) -> None:
    """Wait until the card is drawn with this version."""
    office.wait(
        lambda: f'"version":{version}' in str(office.card(card)["blocks"]),
        lambda: f"not yet {version}: {office.card(card)['blocks']}",
    )


def claimed(office: Office, name: str, title: str = "Refund order 1001") -> str:
    """A new task that this person has claimed, at version 2. Returns the ts of its card."""
    card = office.add_task(title)
    office.press(name, card, "claim")
    at_version(office, card, 2)
    return card


def started(office: Office, name: str, title: str = "Refund order 1001") -> str:
    """A new task that this person has started, at version 3. Returns the ts of its card."""
    card = claimed(office, name, title)
    office.press(name, card, "start")
    at_version(office, card, 3)
    return card


def flagged(office: Office) -> str:
    """A task whose lease ended on started work, at version 4."""
    card = started(office, "Amal")
    office.end_lease()
    office.sweep()
    at_version(office, card, 4)
    return card


def with_open_action(office: Office) -> str:
    """A started task with an external action in progress, at version 4."""
    card = started(office, "Amal")
    office.press("Amal", card, "record_action")
    assert office.submit("Amal", {"description": "refund 20 EUR for order 1001"}).closed
    at_version(office, card, 4)
    return card
