from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright
from tests.browser.scene import Scene
from tests.playground.tiny_bot import tiny_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A Chromium of this machine; a CI without one is broken, a laptop without one is not."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("the browser tests need a chromium on the PATH, and this CI has none")
        pytest.skip("there is no chromium on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def scene(chromium: Browser) -> Iterator[Scene]:
    errors: list[str] = []
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.on("pageerror", lambda error: errors.append(str(error)))
    with tiny_workspace() as (slack, bot):
        yield Scene(slack, bot, page)
        page.close()
    assert errors == []
