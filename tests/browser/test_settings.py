"""The form of a queue's settings, as a person fills it in on a desk and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.support.bot import Office

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)

WIDER_THAN_IT_IS = "node => node.scrollWidth > node.clientWidth"


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desk", "phone"])
def test_settings_are_filled_in_mended_and_saved(
    chromium: Browser, office: Office, width: int, height: int
) -> None:
    office.slack.add_user_group("Refund team", "refunds", [office.id("Bilal")])
    alerts = office.slack.add_channel("alerts", members=list(map(office.id, office.people)))
    office.type("Sue", "settings")
    office.submit("Sue", {"supervisors": [office.id("Amal"), office.id("Sue")]})
    page = chromium.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.add_init_script("localStorage.setItem('tour-open', 'false')")
    page.goto(office.slack.page_url)
    office.type("Amal", "settings")
    form = page.locator("[data-callback-id=queue_settings]")
    expect(form).to_contain_text("SUP is its key. Tasks are named by it, so it stays.")
    assert not form.locator(".modal-body").evaluate(WIDER_THAN_IT_IS)
    form.get_by_label("Name").fill("Refunds")
    form.get_by_label("Who may claim").select_option(label="@refunds · Refund team")
    form.get_by_label("Alerts go to").select_option(value=alerts.id)
    form.get_by_label("Reasons for handing a task back").fill("Late\nLate")
    form.get_by_label("Longest hold, in minutes").fill("5")
    form.get_by_label("Supervisors may transfer or release them").check()
    form.locator("[data-submit]").click()
    expect(form.locator("[data-error-for=reasons]")).to_contain_text("A reason stands here twice.")
    expect(form.locator("[data-error-for=longest_hold_minutes]")).to_contain_text(
        "more minutes than the lease"
    )
    expect(form.get_by_label("Name")).to_have_value("Refunds")
    expect(form.get_by_label("Reasons for handing a task back")).to_have_value("Late\nLate")
    form.get_by_label("Reasons for handing a task back").fill("The bank is closed\nother")
    form.get_by_label("Longest hold, in minutes").fill("600")
    form.locator("[data-submit]").click()
    expect(form).to_be_hidden()
    (queue,) = office.rows("SELECT * FROM dibs.queue")
    assert (queue["name"], queue["alert_channel"]) == ("Refunds", alerts.id)
    assert queue["reasons"] == ["The bank is closed", "other"]
    assert (queue["longest_hold_seconds"], queue["supervisor_operations"]) == (36_000, True)
    assert "@refunds" in office.hears("Amal", "The settings of *SUP* are changed")
    page.close()
