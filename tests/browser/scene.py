"""Two people before one card, on the page, and how a person without a mouse gets about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect
from slack_sdk import WebClient
from tests.playground.tiny_bot import TOKEN, card

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from tests.playground.tiny_bot import TinyBot

    from dibs.playground import SlackStandIn

MOST_TABS = 80
WHICH_WAY = """node => {
    const here = document.activeElement;
    if (node === here) return "there";
    return here.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING ? "Shift+Tab" : "Tab";
}"""


def tab_to(page: Page, locator: Locator) -> None:
    """Reach an element by keyboard alone, whichever way it is."""
    for _ in range(MOST_TABS):
        way = locator.evaluate(WHICH_WAY)
        if way == "there":
            return
        page.keyboard.press(way)
    raise AssertionError(f"Tab never got to {locator}")


class Scene:
    """Amal and Bilal in one channel before one card, on the page."""

    def __init__(self, slack: SlackStandIn, bot: TinyBot, page: Page) -> None:
        self.slack, self.bot, self.page = slack, bot, page
        self.client = WebClient(token=TOKEN, base_url=slack.api_url)
        self.amal, self.bilal = slack.add_person("Amal"), slack.add_person("Bilal")
        self.channel = slack.add_channel("support", members=[self.amal.id, self.bilal.id])
        self.ts = str(self.client.chat_postMessage(channel=self.channel.id, text="T", blocks=card())["ts"])
        page.goto(slack.page_url)
        self.left = page.locator("[data-pane=left]")
        self.right = page.locator("[data-pane=right]")
        expect(self.left.locator("[data-action-id=claim]")).to_be_visible()
        expect(self.right.locator("[data-action-id=claim]")).to_be_visible()

    @property
    def modal(self) -> Locator:
        return self.left.locator("[data-view]")

    def tab_to(self, locator: Locator) -> None:
        tab_to(self.page, locator)
