"""The manifests that Slack is given where Dibs is installed, found in a checkout and in a wheel alike."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

# A wheel carries them beside this module; in a checkout they stand at the top, where people look for them.
_PACKAGED = Path(__file__).with_name("manifests")
_IN_CHECKOUT = Path(__file__).resolve().parents[3] / "manifests"


class Way(StrEnum):
    """How Slack's requests come: each way has a manifest of its own."""

    HTTP = "slack-http.json"
    SOCKET = "slack-socket.json"


def read(way: Way) -> dict[str, Any]:
    """Return the manifest for a way, as Slack takes it; raises FileNotFoundError where it was left out."""
    folder = _PACKAGED if _PACKAGED.is_dir() else _IN_CHECKOUT
    told: dict[str, Any] = json.loads((folder / way).read_text(encoding="utf-8"))
    return told
