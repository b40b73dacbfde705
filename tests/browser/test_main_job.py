"""What a newcomer does first, in a real browser before the whole of Dibs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.support.bot import Office

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)

SCREENSHOTS = os.environ.get("DIBS_SCREENSHOTS")
"""A folder for pictures of what the tests see, for a person to look at."""


class Desk:
    """Two panes on one page: Amal to the left, Bilal to the right."""

    def __init__(self, office: Office, page: Page) -> None:
        self.office, self.page = office, page
        self.panes = {"Amal": page.locator("[data-pane=left]"), "Bilal": page.locator("[data-pane=right]")}

    def button(self, name: str, button: str) -> Locator:
        return self.panes[name].locator(f"[data-action-id=task_{button}]")

    def told(self, name: str) -> Locator:
        return self.panes[name].locator("[data-ephemeral]")

    def modal(self, name: str) -> Locator:
        return self.panes[name].locator("[data-view]")

    def picture(self, name: str) -> None:
        if SCREENSHOTS:
            self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")


@pytest.fixture
def desk(chromium: Browser, office: Office) -> Iterator[Desk]:
    office.add_task()
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(office.slack.page_url)
    desk = Desk(office, page)
    expect(desk.button("Amal", "claim")).to_be_visible()
    expect(desk.button("Bilal", "claim")).to_be_visible()
    yield desk
    page.close()
    assert errors == []


def test_two_people_race_for_one_card_and_the_loser_sees_who_has_it(desk: Desk) -> None:
    desk.page.get_by_role("switch", name="Press together").check(force=True)
    desk.button("Amal", "claim").click()
    desk.button("Bilal", "claim").click()
    for name in ("Amal", "Bilal"):
        expect(desk.button(name, "start")).to_be_visible()
        expect(desk.button(name, "claim")).to_have_count(0)
    winner = desk.office.name_of(desk.office.task()["owner_id"])
    loser = "Bilal" if winner == "Amal" else "Amal"
    expect(desk.told(winner)).to_contain_text("SUP-1 is yours until")
    expect(desk.told(loser)).to_contain_text(f"@{winner} has SUP-1 until")
    expect(desk.told(loser)).to_contain_text("nothing changed")
    assert desk.office.kinds() == ["created", "claimed", "claim_rejected"]
    desk.picture("race")


def test_a_task_is_started_released_in_a_form_and_comes_back_flagged(desk: Desk) -> None:
    desk.button("Amal", "claim").click()
    desk.button("Bilal", "start").click()
    expect(desk.told("Bilal")).to_contain_text("@Amal has SUP-1")
    desk.button("Amal", "start").click()
    desk.button("Amal", "record_action").click()
    desk.modal("Amal").get_by_label("What are you about to do outside?").fill("Refund 20 EUR for order 1001")
    desk.picture("external-action")
    desk.modal("Amal").get_by_role("button", name="Record").click()
    expect(desk.button("Bilal", "resolve_action")).to_be_visible()

    desk.button("Amal", "release").click()
    form = desk.modal("Amal")
    expect(form).to_contain_text("SUP-1-A1")
    form.get_by_label("Why does it go back?").select_option(label="My shift is ending")
    form.get_by_label("Handoff note").fill("The bank did not answer. Look there first.")
    form.get_by_label("I don't know").check()
    desk.picture("release")
    form.get_by_role("button", name="Release").click()
    expect(desk.modal("Amal")).to_have_count(0)

    card = desk.panes["Bilal"].locator("[data-ts]").first
    expect(card).to_contain_text("Needs a check.")
    expect(card).to_contain_text("The bank did not answer. Look there first.")
    desk.button("Bilal", "claim").click()
    desk.button("Bilal", "start").click()
    form = desk.modal("Bilal")
    form.get_by_label("It was completed").check()
    form.get_by_role("button", name="Confirm and start").click()
    expect(form.locator(".error").first).to_be_in_viewport(ratio=1)
    form.get_by_label("What did you find, and where?").fill("The refund stands in the bank's list.")
    desk.picture("check")
    form.get_by_role("button", name="Confirm and start").click()
    expect(desk.button("Bilal", "done")).to_be_visible()
    desk.picture("started")
    desk.button("Bilal", "history").click()
    expect(desk.modal("Bilal")).to_contain_text("handed back")
    desk.picture("history")


def test_a_refused_form_keeps_what_was_typed(desk: Desk) -> None:
    desk.button("Amal", "claim").click()
    desk.button("Amal", "release").click()
    form = desk.modal("Amal")
    form.get_by_label("Why does it go back?").select_option(label="Another reason (say which)")
    form.get_by_label("Handoff note").fill("Ask Hana.")
    form.get_by_role("button", name="Release").click()
    expect(form).to_contain_text("Say in a few words what the other reason is.")
    expect(form.get_by_label("Handoff note")).to_have_value("Ask Hana.")
    desk.picture("refused-form")
    assert desk.office.task()["state"] == "claimed"


def test_the_card_is_redrawn_when_the_sweep_returns_the_task(desk: Desk) -> None:
    desk.button("Amal", "claim").click()
    desk.button("Amal", "start").click()
    expect(desk.button("Amal", "done")).to_be_visible()
    desk.office.end_lease()
    desk.office.sweep()
    expect(desk.button("Bilal", "claim")).to_be_visible()
    expect(desk.panes["Bilal"]).to_contain_text("because the lease expired")
    expect(desk.panes["Bilal"]).to_contain_text("Needs a check.")
    desk.picture("expired")
