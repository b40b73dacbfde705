"""The bytes of Slack's requests, so that one can be sent several times, at once, late or spoiled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.support.bot import Office

from dibs.playground import forms, payloads
from dibs.playground.interactions import find, top_view

Json = dict[str, Any]


def interaction(payload: object) -> bytes:
    """An interaction as Slack sends it: JSON in one field of a form."""
    return urlencode({"payload": json.dumps(payload)}).encode()


def press(office: Office, name: str, card: str, button: str, **spoiled: object) -> Json:
    """The payload of one press; `spoiled` replaces what the pressed button tells, such as its value."""
    world, person = office.slack.world, office.people[name]
    message = office.card(card)
    block, element = find(message["blocks"], f"task_{button}")
    return payloads.press_on_message(
        world,
        person,
        office.channel,
        message,
        pressed=payloads.action(world, block["block_id"], element, None) | spoiled,
        response_url=_hook(office, "actions", world.issue_response_url(person.id, office.channel.id, card)),
        state={},
    )


def command(office: Office, name: str, text: str, *, command: str = "/queue") -> Json:
    """The form of one slash command."""
    world, person = office.slack.world, office.people[name]
    return payloads.command(
        world,
        person,
        office.channel,
        name=command,
        text=text,
        response_url=_hook(office, "commands", world.issue_response_url(person.id, office.channel.id)),
    )


def submission(office: Office, name: str, values: Mapping[str, object]) -> Json:
    """The payload of the modal that the person has before them, filled in with `values`."""
    world = office.slack.world
    view = top_view(world, office.id(name))
    view.state = forms.typed(view.body, view.state, values)
    return payloads.submission(world, office.people[name], view)


def _hook(office: Office, kind: str, token: str) -> str:
    return f"{office.slack.page_url}hooks/{kind}/{office.slack.team_id}/{token}"
