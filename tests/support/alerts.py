"""Leases that lapse, and what Dibs says of it."""

from __future__ import annotations

from typing import Any

from tests.support.bot import Office

from dibs.playground import Channel

Message = dict[str, Any]


def lapse(office: Office, *, started: bool = True, number: int = 1, by: str = "Amal") -> None:
    """Let a new task's lease run out, and have the sweep return it. Nothing is sent yet."""
    card = office.add_task()
    claim(office, card, by=by)
    if started:
        office.press(by, card, "start")
    quiet(office)
    office.end_lease(number)
    office.bot.sweep.sweep_once()


def quiet(office: Office) -> None:
    """Wait until all that presses caused is sent, so that a test alone sends what comes next."""
    office.wait(lambda: office.bot.outgoing.waiting == 0)


def lapse_together(office: Office, tasks: int) -> None:
    """Let several tasks that were started lapse, and one sweep return them all."""
    for _ in range(tasks):
        card = office.add_task()
        claim(office, card)
        office.press("Amal", card, "start")
    quiet(office)
    for number in range(1, tasks + 1):
        office.end_lease(number)
    office.bot.sweep.sweep_once()


def card_of(office: Office, number: int = 1) -> str:
    """The task's card, up to date."""

    def up_to_date() -> bool:
        # A card that was redrawn a moment ago is left alone for some seconds.
        office.bot.delivery.deliver_once()
        return not office.rows("SELECT FROM dibs.card WHERE shown_version < wanted_version")

    office.wait(up_to_date)
    [ts] = [m["ts"] for m in office.slack.messages(office.channel.id) if f"*SUP-{number}*" in m["text"]]
    return str(ts)


def claim(office: Office, card: str, *, by: str = "Amal") -> None:
    office.press(by, card, "claim")
    office.wait(lambda: "start" in office.buttons(card))


def sent_to(office: Office, where: Channel | str) -> list[Message]:
    """The messages in a channel, or to a person, oldest first."""
    if isinstance(where, str):
        return office.slack.direct_messages(office.id(where))
    return office.slack.messages(where.id)


def buttons(message: Message) -> list[str]:
    return [
        element["action_id"]
        for block in message["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def due_again(office: Office) -> None:
    """Let the time pass until what failed is tried again."""
    office.execute(
        "UPDATE dibs.outbox SET next_try_at = clock_timestamp() - interval '1 second', "
        "sender_until = sender_until - interval '1 hour'"
    )


def deliver(office: Office) -> None:
    office.bot.notices.deliver_once()
