"""The manifest that an installation starts from, against what Dibs does and what Slack takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dibs.domain.transitions import as_markdown
from dibs.slack.ids import Command
from dibs.slack.listeners.events import HANDLERS

_ROOT = Path(__file__).resolve().parent.parent
_SCHEMA = _ROOT.parent / "shared" / "slack" / "manifest.schema.json"


def _read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_ROOT / "manifests" / name).read_text())
    return loaded


@pytest.fixture(params=["slack-http.json", "slack-socket.json"])
def manifest(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _read(request.param)


def test_it_registers_every_command_that_is_handled(manifest: dict[str, Any]) -> None:
    assert [command["command"] for command in manifest["features"]["slash_commands"]] == list(Command)


def test_the_two_differ_only_in_how_requests_arrive() -> None:
    over_http, over_a_socket = _read("slack-http.json"), _read("slack-socket.json")
    here = "https://dibs.example.com/slack/events"
    for command in over_http["features"]["slash_commands"]:
        assert command.pop("url") == here
    for requests in ("event_subscriptions", "interactivity"):
        assert over_http["settings"][requests].pop("request_url") == here
    assert over_http["settings"].pop("socket_mode_enabled") is False
    assert over_a_socket["settings"].pop("socket_mode_enabled") is True
    assert over_http == over_a_socket


def test_it_subscribes_to_the_events_that_are_handled(manifest: dict[str, Any]) -> None:
    assert manifest["settings"]["event_subscriptions"]["bot_events"] == list(HANDLERS)


def test_slack_takes_it(manifest: dict[str, Any]) -> None:
    if not _SCHEMA.exists():
        pytest.skip("Slack's manifest schema is not beside this checkout")
    faults = [
        error.message for error in Draft7Validator(json.loads(_SCHEMA.read_text())).iter_errors(manifest)
    ]
    assert faults == []


def test_the_readme_shows_the_table_of_transitions_that_the_code_uses() -> None:
    assert as_markdown() in (_ROOT / "README.md").read_text()
