"""Files on the page: what they are called, how large they are, how to get them, and pictures as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.scene import Scene
from tests.playground.test_files import CSV, png

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)


def test_a_file_is_told_by_name_and_size_and_can_be_had(scene: Scene) -> None:
    scene.client.files_upload_v2(
        channel=scene.channel.id, filename="report.csv", content=CSV * 100, title="October"
    )
    file = scene.left.locator("[data-file]")
    expect(file).to_contain_text("October")
    expect(file).to_contain_text("report.csv · 2.2 KB")
    with scene.page.expect_download() as saved:
        file.get_by_role("link", name="Download report.csv").click()
    assert Path(saved.value.path()).read_bytes() == CSV * 100
    assert saved.value.suggested_filename == "report.csv"


def test_a_picture_is_drawn_with_its_words(scene: Scene) -> None:
    scene.client.files_upload_v2(
        channel=scene.channel.id, filename="load.png", file=png(40, 30), alt_txt="Load by day"
    )
    picture = scene.right.get_by_role("img", name="Load by day")
    expect(picture).to_be_visible()
    assert picture.evaluate("node => [node.complete, node.naturalWidth, node.naturalHeight]") == [
        True,
        40,
        30,
    ]


def test_a_deleted_file_is_said_to_be_gone(scene: Scene) -> None:
    told = scene.client.files_upload_v2(channel=scene.channel.id, filename="a.csv", content=CSV)
    scene.client.files_delete(file=told["file"]["id"])
    expect(scene.left.locator("[data-file]")).to_have_text("This file was deleted.")
    expect(scene.left.locator("[data-file] a")).to_have_count(0)


def test_a_picture_stays_within_a_narrow_page(scene: Scene) -> None:
    scene.page.set_viewport_size({"width": 320, "height": 700})
    scene.client.files_upload_v2(
        channel=scene.channel.id, filename="w.png", file=png(900, 30), alt_txt="Wide"
    )
    picture = scene.left.get_by_role("img", name="Wide")
    expect(picture).to_be_visible()
    assert picture.evaluate("node => node.getBoundingClientRect().right <= innerWidth")
