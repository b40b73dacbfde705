"""What stands around the panes: what is behind a press, threads, hints, shortcuts, trouble on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from slack_bolt import Ack
from tests.playground.raw_socket import APP_TOKEN, connected
from tests.playground.tiny_bot import SECRET, TOKEN

from dibs.playground import SlackStandIn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator
    from tests.browser.scene import Scene

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)


def test_what_is_behind_a_press_is_opened_from_the_strip_and_closed_again(scene: Scene) -> None:
    asked: list[str] = []
    scene.page.on("request", lambda request: asked.append(request.url))
    scene.left.locator("[data-action-id=claim]").click()
    expect(scene.left.locator("[data-action-id=release]")).to_be_visible()
    assert not [url for url in asked if "/page/press" in url]
    row = scene.page.locator("[data-press] button")
    scene.tab_to(row)
    scene.page.keyboard.press("Enter")
    dialog = scene.page.get_by_role("dialog", name="Amal: Claim")
    request, call = dialog.locator("[data-exchange=request]"), dialog.locator("[data-exchange=response_url]")
    expect(request).to_contain_text("HTTP 200")
    expect(call).to_have_attribute("data-good", "true")
    request.get_by_text("What was sent").click()
    expect(request.locator("pre").first).to_contain_text('"action_id": "claim"')
    for secret in (SECRET, TOKEN, *scene.slack.world.response_urls):
        assert secret not in dialog.inner_html()
    scene.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row).to_be_focused()


def test_a_thread_is_opened_answered_and_left(scene: Scene) -> None:
    menu = scene.left.locator("[data-menu]")
    scene.tab_to(menu)
    scene.page.keyboard.press("Enter")
    expect(scene.left.get_by_role("menuitem", name="Reply in a thread")).to_be_focused()
    scene.page.keyboard.press("Enter")
    expect(scene.left.locator("[data-thread-composer]")).to_be_focused()
    scene.page.keyboard.type("who looks at it?")
    scene.page.keyboard.press("Enter")
    thread = scene.left.locator("[data-thread-pane]")
    expect(thread).to_contain_text("who looks at it?")
    expect(scene.right.locator("[data-ts]")).to_have_count(1)
    scene.client.chat_postMessage(channel=scene.channel.id, text="Amal does", thread_ts=scene.ts)
    expect(thread).to_contain_text("Amal does")
    scene.page.keyboard.press("Escape")
    expect(scene.left.get_by_role("button", name="2 replies")).to_be_focused()
    scene.right.get_by_role("button", name="2 replies").click()
    expect(scene.right.locator("[data-thread-pane] [data-ts]")).to_have_count(3)
    scene.right.locator("[data-thread-close]").click()
    expect(scene.right.locator("[data-thread-pane]")).to_be_hidden()


def test_a_link_to_a_reply_opens_its_thread(scene: Scene) -> None:
    reply = scene.client.chat_postMessage(channel=scene.channel.id, text="a reply", thread_ts=scene.ts)["ts"]
    link = scene.client.chat_getPermalink(channel=scene.channel.id, message_ts=reply)["permalink"]
    scene.client.chat_postMessage(channel=scene.channel.id, text=f"<{link}|the reply>")
    scene.left.get_by_role("link", name="the reply").click()
    expect(scene.left.locator(f"[data-thread-pane] [data-ts='{reply}']")).to_be_visible()


def test_commands_are_hinted_at_and_chosen_by_keyboard(scene: Scene) -> None:
    scene.slack.commands = [("/tiny hello", "says hello"), ("/tiny add ", "a title: adds one")]
    scene.slack.say(scene.bilal.id, scene.channel.id, "news")
    field = scene.left.locator("[data-composer]")
    expect(field).to_have_attribute("placeholder", "Message #support, or /tiny")
    scene.tab_to(field)
    scene.page.keyboard.type("/t")
    expect(scene.left.locator("[data-hint]")).to_have_text(
        ["/tiny hellosays hello", "/tiny add a title: adds one"]
    )
    expect(field).to_have_attribute("aria-expanded", "true")
    for key in ("ArrowDown", "ArrowDown"):
        scene.page.keyboard.press(key)
    expect(scene.left.locator("[data-hint][aria-selected=true]")).to_contain_text("/tiny add")
    scene.page.keyboard.press("Enter")
    expect(field).to_have_value("/tiny add ")
    scene.page.keyboard.type("a lamp")
    expect(scene.left.locator("[data-usage]").first).to_have_text("/tiny add: a title: adds one")
    scene.page.keyboard.press("Enter")
    expect(scene.left.locator("[data-ephemeral]")).to_contain_text("You said add a lamp")
    expect(field).to_have_value("")


def test_private_messages_are_read_out_peeked_at_and_gone_after_a_reload(scene: Scene) -> None:
    for number in range(20):
        scene.slack.say(scene.bilal.id, scene.channel.id, f"word {number}")
    expect(scene.left.locator("[data-ts]")).to_have_count(21)
    scene.left.locator("[data-ts]").first.scroll_into_view_if_needed()
    scene.client.chat_postEphemeral(channel=scene.channel.id, user=scene.amal.id, text="only for Amal")
    expect(scene.left.locator("[data-announcement]")).to_have_text("Only visible to you: only for Amal")
    peek = scene.left.locator("[data-peek]")
    expect(peek).to_contain_text("only for Amal")
    peek.click()
    expect(peek).to_be_hidden()
    expect(scene.left.locator("[data-ephemeral]")).to_be_in_viewport()
    scene.page.reload()
    expect(scene.left.locator("[data-ts]")).to_have_count(21)
    expect(scene.left.locator("[data-ephemeral]")).to_have_count(0)


def test_the_answer_to_what_one_types_comes_into_sight(scene: Scene) -> None:
    for number in range(20):
        scene.slack.say(scene.bilal.id, scene.channel.id, f"word {number}")
    expect(scene.left.locator("[data-ts]")).to_have_count(21)
    scene.left.locator("[data-ts]").first.scroll_into_view_if_needed()
    field = scene.left.locator("[data-composer]").first
    field.fill("/tiny add a lamp")
    field.press("Enter")
    expect(scene.left.locator("[data-ephemeral]")).to_be_in_viewport()
    expect(scene.left.locator("[data-peek]")).to_be_hidden()


def test_focus_goes_back_to_the_card_after_its_modal(scene: Scene) -> None:
    scene.left.locator("[data-action-id=claim]").click()
    release = scene.left.locator("[data-action-id=release]")
    scene.tab_to(release)
    scene.page.keyboard.press("Enter")
    expect(scene.modal.get_by_label("Reason")).to_be_focused()
    scene.page.keyboard.press("Escape")
    expect(release).to_be_focused()
    scene.page.keyboard.press("Enter")
    expect(scene.modal.get_by_label("Reason")).to_be_focused()
    # The card is redrawn meanwhile, so that the button of before is another node by now.
    scene.slack.world.replace(
        scene.slack.world.channels[scene.channel.id].messages[scene.ts],
        text="T2",
        blocks=scene.slack.messages(scene.channel.id)[0]["blocks"],
    )
    expect(scene.left.locator("[data-ts]")).to_contain_text("edited")
    scene.page.keyboard.press("Escape")
    expect(release).to_be_focused()


def test_one_pane_or_two_is_remembered(scene: Scene) -> None:
    toggle = scene.page.locator("[data-toggle=panes]")
    together = scene.page.get_by_role("switch", name="Press together")
    toggle.click()
    expect(scene.right).to_be_hidden()
    expect(together).to_be_disabled()
    scene.page.reload()
    expect(scene.left.locator("[data-action-id=claim]")).to_be_visible()
    expect(scene.right).to_be_hidden()
    toggle.click()
    expect(scene.right.locator("[data-action-id=claim]")).to_be_visible()
    expect(together).to_be_enabled()


def test_trouble_is_armed_met_and_taken_back(scene: Scene) -> None:
    scene.page.locator("[data-toggle=faults]").click()
    panel = scene.page.locator("[data-faults]")
    waiting = panel.locator("[data-fault-waiting]")
    expect(panel.locator("[data-fault-what]")).to_be_focused()
    panel.locator("[data-fault-trouble]").select_option("broken")
    panel.locator("[data-fault-arm]").click()
    expect(waiting).to_contain_text("(response_url) meets an error 500")
    panel.locator("[data-fault-clear]").click()
    expect(waiting).to_have_text("No trouble is waiting.")
    panel.locator("[data-fault-arm]").click()
    expect(waiting).to_contain_text("(response_url)")
    scene.left.locator("[data-action-id=claim]").click()
    expect(waiting).to_have_text("No trouble is waiting.")
    scene.page.locator("[data-press] button").click()
    expect(scene.page.locator("[data-exchange=response_url]").first).to_contain_text("HTTP 500")


def test_a_press_is_delivered_twice_when_asked(scene: Scene) -> None:
    scene.page.locator("[data-toggle=faults]").click()
    scene.page.locator("[data-fault-what]").select_option("interactive")
    scene.page.locator("[data-fault-trouble]").select_option("twice")
    scene.page.locator("[data-fault-arm]").click()
    waiting = scene.page.locator("[data-fault-waiting]")
    expect(waiting).to_have_text("Waiting: the next press or form is delivered twice.")
    scene.left.locator("[data-action-id=claim]").click()
    expect(scene.left.locator("[data-ephemeral]")).to_contain_text("@Amal has TINY-1")
    expect(waiting).to_have_text("No trouble is waiting.")
    scene.page.locator("[data-press] button").click()
    expect(scene.page.locator("[data-exchange=request]")).to_have_count(2)


@pytest.mark.parametrize("trouble", ["lost", "limited", "broken", "garbage", "silent", "slow"])
def test_every_trouble_of_a_call_can_be_named(scene: Scene, trouble: str) -> None:
    scene.page.locator("[data-toggle=faults]").click()
    scene.page.locator("[data-fault-what]").select_option("chat.update")
    scene.page.locator("[data-fault-trouble]").select_option(trouble)
    words = scene.page.locator("[data-fault-trouble] option:checked").inner_text()
    scene.page.locator("[data-fault-arm]").click()
    expect(scene.page.locator("[data-fault-waiting]")).to_contain_text(f"(chat.update) {words}.")


def test_shortcuts_stand_in_the_menu_of_a_message_and_by_the_composer(scene: Scene) -> None:
    manifest = json.loads(Path("manifests/slack-http.json").read_text(encoding="utf-8"))
    manifest["features"].pop("app_home", None)
    manifest["settings"]["event_subscriptions"]["bot_events"] = ["member_joined_channel"]
    manifest["features"]["shortcuts"] = [
        {
            "name": "Make it a task",
            "type": "message",
            "callback_id": "on_message",
            "description": "From here.",
        },
        {"name": "New task", "type": "global", "callback_id": "anywhere", "description": "From anywhere."},
    ]
    scene.slack.install(manifest)
    heard: list[str] = []

    def used(ack: Ack, body: dict[str, Any]) -> None:
        heard.append(body["message"]["ts"] if "message" in body else body["type"])
        ack()

    scene.bot.app.shortcut("on_message")(used)
    scene.bot.app.shortcut("anywhere")(used)
    scene.slack.say(scene.bilal.id, scene.channel.id, "news")
    expect(scene.left.locator("[data-ts]")).to_have_count(2)
    # This manifest has no Home tab, so none is offered.
    expect(scene.left.locator("[data-select=channel] option")).to_have_text(["#support"])
    _choose(scene, scene.left.locator("[data-menu]").first, "Make it a task")
    scene.slack.wait_until(lambda: heard == [scene.ts])
    _choose(scene, scene.left.locator("[data-shortcuts]"), "New task")
    scene.slack.wait_until(lambda: heard == [scene.ts, "shortcut"])


def _choose(scene: Scene, menu: Locator, words: str) -> None:
    menu.click(force=True)
    scene.left.get_by_role("menuitem", name=words).click()


def test_slacks_clock_is_moved_on(scene: Scene) -> None:
    scene.page.locator("[data-toggle=faults]").click()
    ahead = scene.page.locator("[data-clock-ahead]")
    expect(ahead).not_to_contain_text("ahead")
    scene.page.get_by_label("How far the clock moves").select_option(label="an hour")
    scene.page.locator("[data-clock-move]").click()
    expect(ahead).to_contain_text("It is 1 hour ahead.")
    scene.page.get_by_label("How far the clock moves").select_option(label="a minute")
    scene.page.locator("[data-clock-move]").click()
    expect(ahead).to_contain_text("It is 1 hour 1 minute ahead.")
    assert scene.slack.clock.ahead == 3660
    expect(scene.page.locator("[data-connected]")).to_be_hidden()


def test_connections_of_socket_mode_are_counted_and_cut(chromium: Browser) -> None:
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN, app_token=APP_TOKEN) as slack:
        slack.add_person("Amal")
        slack.add_channel("support")
        page = chromium.new_page()
        page.goto(slack.page_url)
        with connected(slack) as [socket]:
            page.locator("[data-toggle=faults]").click()
            counted = page.locator("[data-connected]")
            expect(counted).to_have_text("Socket Mode: 1 connection")
            page.get_by_role("button", name="Announce the end").click()
            slack.wait_until(lambda: socket.reasons == ["warning"])
            page.get_by_role("button", name="Cut").click()
            expect(counted).to_have_text("Socket Mode: 0 connections")
        page.close()
