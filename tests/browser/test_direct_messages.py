"""What the bot writes to one person: that it is there is said wherever that person looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.browser.scene import Scene
from tests.playground.tiny_bot import card

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)


def test_a_direct_message_is_announced_read_and_answered(scene: Scene) -> None:
    told = scene.client.chat_postMessage(channel=scene.amal.id, text="TINY-1", blocks=card())
    unread = scene.left.locator("[data-unread] button")
    expect(unread).to_contain_text("New direct message from Dibs")
    expect(scene.right.locator("[data-unread] button")).to_have_count(0)
    scene.tab_to(unread)
    scene.page.keyboard.press("Enter")
    expect(scene.left).to_have_attribute("data-channel", told["channel"])
    expect(unread).to_have_count(0)
    scene.left.locator("[data-action-id=claim]").click()
    expect(scene.left.locator("[data-action-id=release]")).to_be_visible()
    assert scene.bot.owner == scene.amal.id
    scene.left.locator("[data-select=channel]").select_option(scene.channel.id)
    expect(scene.left.locator("[data-action-id=claim]")).to_be_visible()
    expect(unread).to_have_count(0)
    scene.page.reload()
    expect(scene.left.locator("[data-action-id=claim]")).to_be_visible()
    expect(unread).to_have_count(0)
    scene.client.chat_postMessage(channel=scene.amal.id, text="Another")
    expect(unread).to_be_visible()


def test_events_that_are_switched_off_are_said_to_be_and_switched_on_again(scene: Scene) -> None:
    notice = scene.page.locator("#events-off")
    expect(notice).to_be_hidden()
    while scene.slack.events_on:
        scene.slack.app.subscriptions.count(good=False)
    scene.client.chat_postMessage(channel=scene.channel.id, text="news")
    expect(notice).to_contain_text("Events are switched off")
    notice.get_by_role("button", name="Switch them on again").click()
    expect(notice).to_be_hidden()
    assert scene.slack.events_on
