"""The guided tour, taken to its end before the whole of Dibs: with a mouse, and by keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.scene import tab_to
from tests.support.bot import open_office

from dibs import demonstration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser
    from tests.support.bot import Office

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)


class Visit:
    """A newcomer before the playground as it is started by the command line."""

    def __init__(self, office: Office, page: Page) -> None:
        self.office, self.page = office, page
        self.left = page.locator("[data-pane=left]")
        self.right = page.locator("[data-pane=right]")
        self.tour = page.locator("[data-tour]")
        self.together = page.get_by_role("switch", name="Press together")

    @property
    def alerts(self) -> str:
        """The channel of the supervisors."""
        channels = self.office.slack.world.channels.values()
        return next(channel.id for channel in channels if channel.name == "support-alerts")

    def button(self, pane: Locator, name: str) -> Locator:
        """A button of the first card, which is that of SUP-1."""
        return pane.locator("[data-ts]").first.locator(f"[data-action-id=task_{name}]")

    def winner(self) -> tuple[Locator, Locator]:
        """The pane of whoever has SUP-1, and the other one."""
        owner = self.office.name_of(self.office.task()["owner_id"])
        panes = (self.left, self.right)
        return panes if owner == "Amal" else panes[::-1]

    def at_step(self, number: int) -> None:
        current = self.tour.locator("[aria-current=step]")
        expect(current).to_have_attribute("data-tour-step", str(number))
        expect(current).to_have_attribute("data-done", "false")

    def ticked_off(self, number: int) -> None:
        expect(self.tour.locator(f"[data-tour-step='{number}']")).to_have_attribute("data-done", "true")
        expect(self.tour.locator("[data-tour-see]")).to_contain_text("It happened.")
        expect(self.tour.locator("[data-tour-status]")).to_contain_text("Ticked off:")

    def alert_in(self, pane: Locator) -> Locator:
        """Have a pane show the supervisors' channel, and return the newest alert in it."""
        pane.locator("[data-select=channel]").select_option(self.alerts)
        alert = pane.locator("[data-ts]").last
        expect(alert).to_contain_text("needs a check")
        return alert

    def look_up(self, pane: Locator) -> None:
        """Ask for what happened to SUP-1, and see that it tells of the press that lost the race."""
        composer = pane.locator("[data-composer]")
        composer.fill("/audit SUP-1")
        composer.press("Enter")
        expect(pane.locator("[data-ephemeral]").last).to_contain_text("which changed nothing")

    def fill_in_release(self, form: Locator) -> None:
        form.get_by_label("Why does it go back?").select_option(label="My shift is ending")
        form.get_by_label("Handoff note").fill("The bank did not answer. Look there first.")
        form.get_by_label("Nothing was done outside").check()


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    with open_office(database_url, people=()) as office:
        demonstration.set_the_scene(office.slack, office.bot)
        office.people.update({one.name: one for one in office.slack.world.people.values()})
        yield office


@pytest.fixture
def visit(chromium: Browser, office: Office) -> Iterator[Visit]:
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(office.slack.page_url)
    visit = Visit(office, page)
    expect(visit.button(visit.right, "claim")).to_be_visible()
    yield visit
    page.close()
    assert errors == []


def test_the_whole_tour_with_a_mouse(visit: Visit) -> None:
    onward = visit.tour.locator("[data-tour-next]")
    visit.at_step(0)
    visit.together.check(force=True)
    visit.button(visit.left, "claim").click()
    visit.button(visit.right, "claim").click()
    visit.ticked_off(0)
    visit.together.uncheck(force=True)
    has_it, other = visit.winner()
    expect(other.locator("[data-peek], [data-ephemeral]").first).to_contain_text("nothing changed")

    onward.click()
    visit.at_step(1)
    visit.button(has_it, "start").click()
    visit.ticked_off(1)

    onward.click()
    visit.at_step(2)
    visit.tour.get_by_role("button", name="Let the leases end now").click()
    visit.ticked_off(2)
    expect(visit.button(other, "claim")).to_be_visible()
    assert visit.office.task()["needs_check"]

    onward.click()
    visit.at_step(3)
    alert = visit.alert_in(has_it)
    alert.locator("[data-action-id=task_history]").click()
    visit.ticked_off(3)
    has_it.locator("[data-view] [data-close]").click()

    onward.click()
    visit.at_step(4)
    visit.button(other, "claim").click()
    visit.button(other, "start").click()
    form = other.locator("[data-view]")
    form.get_by_label("What did you find, and where?").fill("The refund stands in the bank's list.")
    form.get_by_role("button", name="Confirm and start").click()
    visit.ticked_off(4)
    expect(alert).to_contain_text("was checked by")

    onward.click()
    visit.at_step(5)
    visit.button(other, "release").click()
    visit.fill_in_release(form)
    form.get_by_role("button", name="Release").click()
    visit.ticked_off(5)

    onward.click()
    visit.at_step(6)
    visit.look_up(other)
    visit.ticked_off(6)
    expect(visit.tour).to_contain_text("7 of 7 done")
    # All of that was done with no more than the manifest grants, within Slack's rate limits.
    assert visit.office.slack.rate_limits
    refused = {one.response.get("error") for one in visit.office.slack.calls if not one.response.get("ok")}
    assert refused <= {"ratelimited"}


def test_only_what_the_manifest_names_is_offered(visit: Visit) -> None:
    installed = visit.office.slack.manifest
    assert installed
    assert {"/queue", "/release", "/audit", "/dibs"} <= set(installed.commands)
    expect(visit.left.locator("[data-select=channel] option[value=home]")).to_have_count(0)
    visit.left.locator("[data-composer]").fill("/au")
    expect(visit.left.get_by_role("option", name="/audit")).to_be_visible()


def test_the_whole_tour_by_keyboard_alone(visit: Visit) -> None:
    page, keys = visit.page, visit.page.keyboard

    def press(locator: Locator, key: str = "Enter") -> None:
        expect(locator).to_be_visible()
        tab_to(page, locator)
        keys.press(key)

    def go_on() -> None:
        press(visit.tour.locator("[data-tour-next]"))
        expect(visit.tour.locator("[aria-current=step]")).to_be_focused()

    press(visit.together, "Space")
    press(visit.button(visit.left, "claim"))
    expect(visit.right.locator("[data-armed-hint]")).to_contain_text("is held")
    press(visit.button(visit.right, "claim"))
    visit.ticked_off(0)
    has_it, other = visit.winner()
    expect(other.locator("[data-announcement]")).to_contain_text("nothing changed")
    press(visit.together, "Space")
    go_on()
    press(visit.button(has_it, "start"))
    visit.ticked_off(1)
    go_on()
    press(visit.tour.locator("[data-lever]"))
    visit.ticked_off(2)
    expect(visit.tour.locator("[data-lever]")).to_be_focused()
    go_on()

    _open_alerts_by_keyboard(visit, has_it)
    press(has_it.locator("[data-ts]").last.locator("[data-action-id=task_history]"))
    visit.ticked_off(3)
    keys.press("Escape")
    go_on()

    press(visit.button(other, "claim"))
    press(visit.button(other, "start"))
    form = other.locator("[data-view]")
    expect(form.get_by_label("What did you find, and where?")).to_be_focused()
    keys.type("The refund stands in the bank's list.")
    press(form.get_by_role("button", name="Confirm and start"))
    visit.ticked_off(4)
    expect(form).to_have_count(0)
    expect(other.locator("[data-ts]").first).to_be_focused()
    go_on()

    press(visit.button(other, "release"))
    _hand_back_by_keyboard(visit, form)
    visit.ticked_off(5)
    go_on()
    _look_up_by_keyboard(visit, other)
    visit.ticked_off(6)
    press(visit.button(other, "history"))
    expect(form).to_be_visible()
    keys.press("Escape")
    expect(form).to_have_count(0)
    expect(visit.button(other, "history")).to_be_focused()


def _open_alerts_by_keyboard(visit: Visit, pane: Locator) -> None:
    choice = pane.locator("[data-select=channel]")
    tab_to(visit.page, choice)
    for _ in range(choice.locator("option").count()):
        if choice.input_value() == visit.alerts:
            return
        visit.page.keyboard.press("ArrowDown")


def _look_up_by_keyboard(visit: Visit, pane: Locator) -> None:
    tab_to(visit.page, pane.locator("[data-composer]"))
    visit.page.keyboard.type("/audit SUP-1")
    visit.page.keyboard.press("Enter")


def _hand_back_by_keyboard(visit: Visit, form: Locator) -> None:
    page, keys = visit.page, visit.page.keyboard
    expect(form.get_by_label("Why does it go back?")).to_be_focused()
    keys.type("My shift")
    keys.press("Tab")
    tab_to(page, form.get_by_label("Handoff note"))
    keys.type("The bank did not answer.")
    tab_to(page, form.get_by_label("Nothing was done outside"))
    keys.press("Space")
    tab_to(page, form.get_by_role("button", name="Release"))
    keys.press("Enter")


def test_the_tour_is_closed_opened_and_remembered(visit: Visit) -> None:
    toggle = visit.page.locator("[data-toggle=tour]")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    visit.tour.locator("[data-tour-step='4']").click()
    visit.page.reload()
    visit.at_step(4)
    visit.tour.locator("[data-tour-close]").click()
    expect(visit.tour).to_be_hidden()
    expect(toggle).to_be_focused()
    visit.page.reload()
    expect(visit.button(visit.left, "claim")).to_be_visible()
    expect(visit.tour).to_be_hidden()
    toggle.click()
    visit.at_step(4)
    visit.button(visit.left, "history").click()
    expect(visit.tour.locator("[data-tour-step='3']")).to_have_attribute("data-done", "true")
    visit.tour.locator("[data-tour-again]").click()
    visit.at_step(0)
    expect(visit.tour.locator("[data-done=true]")).to_have_count(0)


def test_after_a_reload_the_tour_goes_on_where_something_is_left_to_do(visit: Visit) -> None:
    visit.tour.locator("[data-tour-step='3']").click()
    visit.button(visit.left, "history").click()
    visit.ticked_off(3)
    visit.page.reload()
    visit.at_step(4)


def test_the_newest_message_stays_in_sight_whatever_the_tour_takes(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 900, "height": 700})
    for _ in range(2):
        expect(visit.left.locator("[data-action-id=task_history]").last).to_be_in_viewport(ratio=1)
        visit.page.locator("[data-toggle=tour]").click()


def test_a_lever_that_moves_nothing_says_so(visit: Visit) -> None:
    visit.tour.locator("[data-tour-step='2']").click()
    visit.tour.locator("[data-lever]").click()
    expect(visit.page.locator("#notice")).to_contain_text("Nobody has a task")
    visit.button(visit.left, "claim").click()
    expect(visit.page.locator("#notice")).to_be_hidden()


def test_a_skip_link_leads_past_the_tools(visit: Visit) -> None:
    visit.page.keyboard.press("Tab")
    expect(visit.page.get_by_role("link", name="To the messages")).to_be_focused()
    visit.page.keyboard.press("Enter")
    expect(visit.left.get_by_role("log", name="Messages")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(visit: Visit, scheme: str) -> None:
    visit.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.button(visit.left, "claim").click()
    expect(visit.button(visit.left, "start")).to_be_visible()
    visit.page.locator("[data-toggle=faults]").click()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
