"""The README's pictures, made again where DIBS_PICTURES names their folder and only tried out elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Locator, Page
    from tests.support.bot import Office

    Take = Callable[[str, Page | Locator], None]

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)

LARGEST = 120_000
WITHOUT_THE_TOUR = "localStorage.setItem('tour-open', 'false')"


@pytest.fixture
def page(chromium: Browser, office: Office) -> Iterator[Page]:
    office.add_task("Refund order 1001")
    page = chromium.new_page(
        viewport={"width": 1100, "height": 620}, color_scheme="light", reduced_motion="reduce"
    )
    page.add_init_script(WITHOUT_THE_TOUR)
    page.goto(office.slack.page_url)
    expect(_button(page, "right", "claim")).to_be_visible()
    yield page
    page.close()


@pytest.fixture
def take(tmp_path: Path) -> Take:
    folder = Path(os.environ.get("DIBS_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def taken(name: str, what: Page | Locator) -> None:
        path = folder / f"{name}.png"
        what.screenshot(path=path)
        assert path.stat().st_size < LARGEST

    return taken


def _button(page: Page, side: str, name: str) -> Locator:
    return page.locator(f"[data-pane={side}] [data-action-id=task_{name}]")


def test_the_race_and_the_refusal(page: Page, office: Office, take: Take) -> None:
    page.get_by_role("switch", name="Press together").check(force=True)
    _button(page, "left", "claim").click()
    _button(page, "right", "claim").click()
    expect(page.locator("[data-ephemeral]")).to_have_count(2)
    expect(_button(page, "left", "start")).to_be_visible()
    expect(_button(page, "right", "start")).to_be_visible()
    page.mouse.move(0, 0)
    take("race", page)
    loser = "right" if office.name_of(office.task()["owner_id"]) == "Amal" else "left"
    take("refusal", page.locator(f"[data-pane={loser}]"))


def test_the_release_form(page: Page, take: Take) -> None:
    page.set_viewport_size({"width": 1100, "height": 1010})
    _button(page, "left", "claim").click()
    _button(page, "left", "start").click()
    # The card had this button before it was started, and one of then would be refused.
    expect(_button(page, "left", "done")).to_be_visible()
    _button(page, "left", "release").click()
    form = page.locator("[data-view]")
    form.get_by_label("Why does it go back?").select_option(label="My shift is ending")
    form.get_by_label("Handoff note").fill("The bank did not answer. Look there before you send it again.")
    form.get_by_label("I don't know").check()
    take("release", form)


def test_the_alert(page: Page, office: Office, take: Take) -> None:
    page.set_viewport_size({"width": 1100, "height": 530})
    _button(page, "left", "claim").click()
    _button(page, "left", "start").click()
    _button(page, "left", "record_action").click()
    form = page.locator("[data-view]")
    form.get_by_label("What are you about to do outside?").fill("Refund 20 EUR for order 1001")
    form.get_by_role("button", name="Record").click()
    expect(form).to_have_count(0)
    office.end_lease()
    office.sweep()
    office.bot.notices.deliver_once()
    right = page.locator("[data-pane=right]")
    right.locator("[data-select=person]").select_option(label="Sue")
    right.locator("[data-select=channel]").select_option(label="● Dibs (direct message)")
    expect(right.locator("[data-action-id=task_check]")).to_be_visible()
    take("alert", right)
