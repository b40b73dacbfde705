from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.scene import Scene
from tests.playground.tiny_bot import button, card, field, options, plain, tiny_workspace

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)


def test_a_press_redraws_both_panes_and_the_loser_alone_is_told(scene: Scene) -> None:
    scene.left.locator("[data-action-id=claim]").click()
    for pane in (scene.left, scene.right):
        expect(pane.locator("[data-action-id=release]")).to_be_visible()
        expect(pane.locator("[data-action-id=claim]")).to_have_count(0)
    stale = scene.slack.messages(scene.channel.id)[0] | {"blocks": card()}
    scene.slack.press_stale(scene.bilal.id, {**stale, "blocks": _with_ids(stale["blocks"])}, "claim")
    private = scene.right.locator("[data-ephemeral]")
    expect(private).to_contain_text("Only visible to you")
    expect(private).to_contain_text("@Amal has TINY-1")
    expect(scene.left.locator("[data-ephemeral]")).to_have_count(0)
    private.locator("[data-dismiss]").click()
    expect(private).to_have_count(0)


def _with_ids(blocks: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{"block_id": f"b{number}", **block} for number, block in enumerate(blocks)]


def test_two_presses_together(scene: Scene) -> None:
    scene.page.get_by_role("switch", name="Press together").check(force=True)
    first, second = (pane.locator("[data-action-id=claim]") for pane in (scene.left, scene.right))
    first.click()
    expect(first).to_have_attribute("data-armed", "true")
    expect(scene.right.locator("[data-armed-hint]")).to_contain_text("is held. Press a button here")
    assert scene.bot.owner == ""
    second.click()
    expect(scene.left.locator("[data-action-id=release]")).to_be_visible()
    expect(scene.page.locator("[data-ephemeral]")).to_have_count(1)
    expect(scene.page.locator("[data-press]")).to_have_count(2)
    loser = scene.left if scene.bot.owner == scene.bilal.id else scene.right
    expect(loser.locator("[data-ephemeral]")).to_contain_text("Your press changed nothing")


def test_a_held_press_can_be_taken_back(scene: Scene) -> None:
    switch = scene.page.get_by_role("switch", name="Press together")
    switch.check(force=True)
    claim = scene.left.locator("[data-action-id=claim]")
    claim.click()
    claim.click()
    expect(claim).not_to_have_attribute("data-armed", "true")
    claim.click()
    switch.uncheck(force=True)
    expect(claim).not_to_have_attribute("data-armed", "true")
    assert scene.bot.owner == ""
    claim.click()
    expect(scene.left.locator("[data-action-id=release]")).to_be_visible()


def test_a_modal_keeps_what_was_typed_and_shows_errors_under_their_fields(scene: Scene) -> None:
    scene.left.locator("[data-action-id=claim]").click()
    scene.left.locator("[data-action-id=release]").click()
    modal = scene.modal
    expect(modal).to_have_attribute("data-callback-id", "release")
    expect(scene.right.locator("[data-view]")).to_have_count(0)
    modal.locator("textarea").fill("mind the fee")
    modal.locator("[data-submit]").click()
    required = "Please complete this required field."
    expect(modal.locator("[data-error-for=reason]")).to_have_text(required)
    expect(modal.locator("[data-error-for=external_action]")).to_have_text(required)
    modal.get_by_label("Reason").select_option("other")
    modal.get_by_label("Unknown").check()
    modal.locator("input[type=date]").fill("2026-12-24")
    modal.locator("[data-submit]").click()
    expect(modal.locator("[data-error-for=comment]")).to_have_text("Other needs a comment.")
    expect(modal.locator("[data-error-for=reason]")).to_have_count(0)
    expect(modal.locator("textarea")).to_have_value("mind the fee")
    expect(modal.locator("input[type=date]")).to_have_value("2026-12-24")
    expect(modal.get_by_label("Comment")).to_be_focused()
    modal.get_by_label("Comment").fill("lunch")
    modal.locator("[data-submit]").click()
    expect(modal).to_have_count(0)
    assert scene.bot.owner == ""


def test_a_failed_press_is_marked_for_who_pressed(scene: Scene) -> None:
    blocks = [{"type": "actions", "elements": [button("Nowhere", "unhandled")]}]
    scene.client.chat_postMessage(channel=scene.channel.id, text="x", blocks=blocks)
    scene.left.locator("[data-action-id=unhandled]").click()
    expect(scene.left.locator("[data-failure]")).to_contain_text("Something went wrong")
    expect(scene.right.locator("[data-failure]")).to_have_count(0)


def test_a_confirmation_is_asked_first(scene: Scene) -> None:
    confirm = {"title": plain("Sure?"), "text": plain("Gone."), "confirm": plain("Go"), "deny": plain("Stay")}
    blocks = [{"type": "actions", "elements": [button("Try", "history", confirm=confirm, style="danger")]}]
    ts = scene.client.chat_postMessage(channel=scene.channel.id, text="x", blocks=blocks)["ts"]
    pressed = scene.left.locator(f"[data-ts='{ts}'] [data-action-id=history]")
    pressed.click()
    dialog = scene.left.get_by_role("alertdialog", name="Sure?")
    dialog.locator("[data-deny]").click()
    expect(dialog).to_have_count(0)
    expect(pressed).to_be_focused()
    expect(scene.page.locator("[data-press]")).to_have_count(0)
    pressed.click()
    dialog.locator("[data-agree]").click()
    expect(scene.page.locator("[data-press]")).to_have_count(1)


def test_by_keyboard_alone(scene: Scene) -> None:
    scene.tab_to(scene.left.locator("[data-action-id=claim]"))
    scene.page.keyboard.press("Enter")
    release = scene.left.locator("[data-action-id=release]")
    expect(release).to_be_visible()
    scene.tab_to(release)
    scene.page.keyboard.press("Enter")
    expect(scene.modal.get_by_label("Reason")).to_be_focused()
    scene.page.keyboard.press("Escape")
    expect(scene.modal).to_have_count(0)
    scene.tab_to(scene.left.locator("[data-composer]"))
    scene.page.keyboard.type("/tiny hello")
    scene.page.keyboard.press("Enter")
    expect(scene.left.locator("[data-ephemeral]")).to_contain_text("You said hello")


def test_other_people_and_other_places(scene: Scene) -> None:
    scene.client.chat_postMessage(channel=scene.amal.id, text="only for *Amal* &lt;b&gt;")
    places = scene.left.locator("[data-select=channel]")
    expect(places.locator("option", has_text="● Dibs (direct message)")).to_have_count(1)
    places.select_option(label="● Dibs (direct message)")
    message = scene.left.locator("[data-ts]")
    expect(message).to_contain_text("only for Amal <b>")
    expect(message.locator("strong", has_text="Amal")).to_be_visible()
    scene.left.locator("[data-select=channel]").select_option("home")
    expect(scene.left.locator("[data-home]")).to_contain_text("Dibs shows nothing here.")
    scene.slack.wait_until(lambda: [one["type"] for one in scene.bot.events] == ["app_home_opened"])
    scene.right.locator("[data-select=person]").select_option(scene.amal.id)
    expect(scene.right).to_have_attribute("data-person", scene.amal.id)


def test_text_is_shown_as_slack_shows_it(scene: Scene) -> None:
    text = (
        f"*bold* _italic_ ~struck~ `co*de*` snake_case_name <https://example.org|a link> <@{scene.amal.id}> "
        f"<#{scene.channel.id}> &lt;!channel&gt; <script>alert(1)</script> "
        "<!date^1767225600^{date_num} {time}|2026-01-01 00:00 UTC>"
    )
    ts = scene.client.chat_postMessage(channel=scene.channel.id, text=text)["ts"]
    message = scene.left.locator(f"[data-ts='{ts}']")
    for tag, words in (
        ("strong", "bold"),
        ("em", "italic"),
        ("s", "struck"),
        ("code", "co*de*"),
        ("a", "a link"),
    ):
        expect(message.locator(f".body {tag}")).to_have_text(words)
    expect(message.locator(".mention")).to_have_text(["@Amal", "#support"])
    expect(message).to_contain_text("snake_case_name")
    expect(message).to_contain_text("<!channel> <script>alert(1)</script>")
    expect(message.locator(".body time")).to_have_attribute("datetime", "2026-01-01T00:00:00.000Z")
    expect(message.locator(".body time")).to_have_attribute("title", "2026-01-01 00:00 UTC")


def test_a_link_to_a_message_leads_to_it(scene: Scene) -> None:
    link = scene.client.chat_getPermalink(channel=scene.channel.id, message_ts=scene.ts)["permalink"]
    scene.client.chat_postMessage(channel=scene.amal.id, text=f"<{link}|the card>")
    scene.left.locator("[data-select=channel]").select_option(label="● Dibs (direct message)")
    scene.left.get_by_role("link", name="the card").click()
    expect(scene.left).to_have_attribute("data-channel", scene.channel.id)
    expect(scene.left.locator(f"[data-ts='{scene.ts}']")).to_be_focused()


def test_times_are_in_the_readers_own_zone(scene: Scene) -> None:
    far = scene.slack.add_person("Kiri", tz="Pacific/Kiritimati")
    text = "<!date^1767225600^{date_num} at {time}|2026-01-01 00:00 UTC>"
    ts = scene.client.chat_postMessage(channel=scene.channel.id, text=text)["ts"]
    scene.right.locator("[data-select=person]").select_option(far.id)
    shown = scene.right.locator(f"[data-ts='{ts}'] .body time")
    expect(shown).to_have_text("2026-01-01 at 2:00 PM")


def test_every_kind_of_field_comes_back_as_slack_sends_it(scene: Scene) -> None:
    kinds: list[dict[str, object]] = [
        {"type": "checkboxes", "options": options("one", "two")},
        {"type": "multi_users_select"},
        {"type": "users_select"},
        {"type": "channels_select"},
        {"type": "conversations_select"},
        {"type": "timepicker"},
        {"type": "datetimepicker"},
        {"type": "number_input", "is_decimal_allowed": False},
    ]
    blocks = [field(str(kind["type"]), str(kind["type"]), kind) for kind in kinds]
    shown = {"type": "modal", "title": plain("All"), "submit": plain("Go"), "blocks": blocks}
    trigger = scene.slack.world.issue_trigger(scene.amal.id)
    view_id = scene.client.views_open(trigger_id=trigger, view=shown)["view"]["id"]
    modal = scene.modal
    modal.get_by_label("Two").check()
    modal.locator("[data-action-id=multi_users_select]").get_by_label("Bilal").check()
    modal.locator("select[data-action-id=users_select]").select_option(scene.amal.id)
    for kind in ("channels_select", "conversations_select"):
        modal.locator(f"select[data-action-id={kind}]").select_option(scene.channel.id)
    modal.locator("input[type=time]").fill("13:45")
    modal.locator("input[type=datetime-local]").fill("2026-12-24T18:30")
    modal.locator("input[data-action-id=number_input]").fill("7")
    modal.locator("[data-submit]").click()
    expect(modal.locator("[data-failure]")).to_be_visible()
    view = next(view for view in scene.slack.views(scene.amal.id) if view["id"] == view_id)
    values = {name: state[name] for name, state in view["state"]["values"].items()}
    assert [one["value"] for one in values["checkboxes"]["selected_options"]] == ["two"]
    assert values["multi_users_select"]["selected_users"] == [scene.bilal.id]
    assert values["users_select"]["selected_user"] == scene.amal.id
    assert values["channels_select"]["selected_channel"] == scene.channel.id
    assert values["conversations_select"]["selected_conversation"] == scene.channel.id
    assert values["timepicker"]["selected_time"] == "13:45"
    assert isinstance(values["datetimepicker"]["selected_date_time"], int)
    assert values["number_input"]["value"] == "7"
    expect(modal.locator("input[type=datetime-local]")).to_have_value("2026-12-24T18:30")


def test_an_input_that_dispatches_tells_the_bot_at_once(scene: Scene) -> None:
    reasons = {"type": "static_select", "action_id": "history", "options": options("a", "b")}
    note = field("note", "Note", {"type": "plain_text_input"})
    blocks = [{**field("why", "Why", reasons), "dispatch_action": True}, note]
    blocks[0]["element"]["action_id"] = "history"
    shown = {"type": "modal", "title": plain("All"), "submit": plain("Go"), "blocks": blocks}
    scene.client.views_open(trigger_id=scene.slack.world.issue_trigger(scene.amal.id), view=shown)
    scene.modal.get_by_label("Note").fill("so far")
    scene.modal.get_by_label("Why").select_option("b")
    expect(scene.page.locator("[data-press]")).to_have_count(1)
    values = scene.slack.views(scene.amal.id)[0]["state"]["values"]
    assert values["why"]["history"]["selected_option"]["value"] == "b"
    assert values["note"]["note"]["value"] == "so far"


def test_nothing_is_fetched_from_elsewhere(chromium: Browser) -> None:
    page = chromium.new_page()
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    with tiny_workspace() as (slack, bot):
        scene = Scene(slack, bot, page)
        picture = {"type": "image", "image_url": "https://example.org/a.png", "alt_text": "a far picture"}
        scene.client.chat_postMessage(channel=scene.channel.id, text="x", blocks=[picture])
        expect(scene.left.get_by_role("img", name="a far picture")).to_be_visible()
        assert all(url.startswith((slack.page_url, "data:")) for url in asked)
        page.close()


def test_a_late_answer_is_waited_for(scene: Scene) -> None:
    with scene.bot.lock:
        scene.left.locator("[data-action-id=claim]").click()
        expect(scene.left.locator("[aria-busy]")).to_have_count(1)
        threading.Event().wait(0.2)
    expect(scene.left.locator("[data-action-id=release]")).to_be_visible()
