"""The manifest that an installation starts from, against what Dibs does and what Slack takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dibs.domain.transitions import as_markdown
from dibs.slack.ids import Command
from dibs.slack.listeners.events import JOINED, LEFT

_ROOT = Path(__file__).resolve().parent.parent
_SCHEMA = _ROOT.parent / "shared" / "slack" / "manifest.schema.json"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_ROOT / "manifests" / "slack-http.json").read_text())
    return loaded


def test_it_registers_every_command_that_is_handled(manifest: dict[str, Any]) -> None:
    commands = manifest["features"]["slash_commands"]
    assert [command["command"] for command in commands] == list(Command)
    assert {command["url"] for command in commands} == {"https://dibs.example.com/slack/events"}


def test_it_subscribes_to_the_events_that_are_handled(manifest: dict[str, Any]) -> None:
    assert manifest["settings"]["event_subscriptions"]["bot_events"] == [JOINED, LEFT]


def test_slack_takes_it(manifest: dict[str, Any]) -> None:
    if not _SCHEMA.exists():
        pytest.skip("Slack's manifest schema is not beside this checkout")
    faults = [
        error.message for error in Draft7Validator(json.loads(_SCHEMA.read_text())).iter_errors(manifest)
    ]
    assert faults == []


def test_the_readme_shows_the_table_of_transitions_that_the_code_uses() -> None:
    assert as_markdown() in (_ROOT / "README.md").read_text()
