"""The manifests are where the program looks for them, in a checkout and in a wheel."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from dibs.slack import manifest

_ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("way", manifest.Way)
def test_a_manifest_is_found_in_a_checkout(way: manifest.Way) -> None:
    assert manifest.read(way) == json.loads((_ROOT / "manifests" / way).read_text())


def test_every_manifest_that_stands_at_the_top_is_known() -> None:
    assert {path.name for path in (_ROOT / "manifests").iterdir()} == {way.value for way in manifest.Way}


@pytest.mark.parametrize("way", manifest.Way)
def test_a_manifest_is_found_where_a_wheel_puts_it(
    way: manifest.Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    put = told["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["manifests"]
    beside = Path(manifest.__file__).parent.relative_to(_ROOT / "src") / "manifests"
    assert Path(put) == beside
    (tmp_path / way).write_text('{"from": "the wheel"}')
    monkeypatch.setattr(manifest, "_PACKAGED", tmp_path)
    assert manifest.read(way) == {"from": "the wheel"}
