"""Every id that is rendered is handled, and the reverse."""

from __future__ import annotations

import inspect
import json
from typing import Any

from tests.slack.samples import all_modals, cards_in_every_state, elements_of, pages_of_records

from dibs.slack.ids import ANSWER_PREFIX, Action, Audit, Field, Supervise, View
from dibs.slack.listeners import actions, audit, commands, settings, supervise, views
from dibs.slack.listeners.actions import HANDLERS as PRESSES
from dibs.slack.listeners.views import HANDLERS as FORMS


def test_every_button_on_a_card_is_handled_and_every_handled_button_stands_on_some_card() -> None:
    rendered = {
        element["action_id"] for message in cards_in_every_state() for element in elements_of(message.blocks)
    }
    assert rendered == set(Action) == set(PRESSES)


def test_every_button_of_a_supervisor_is_rendered_and_handled() -> None:
    rendered = {element["action_id"] for view in all_modals() for element in elements_of(view["blocks"])}
    assert rendered == set(Supervise) == set(supervise.FORMS)


def test_every_form_is_rendered_and_handled() -> None:
    rendered = {view["callback_id"] for view in all_modals()}
    assert rendered == set(View)
    # The history is for reading only.
    assert set(FORMS) == set(View) - {View.HISTORY}
    for view in all_modals():
        assert ("submit" in view) == (view["callback_id"] in FORMS)


def test_every_input_is_rendered_and_read() -> None:
    read = "".join(inspect.getsource(module) for module in (settings, supervise, views))
    rendered: set[str] = set()
    for view in all_modals():
        for block in view["blocks"]:
            if block["type"] == "input":
                assert block["block_id"] == block["element"]["action_id"]
                rendered.add(block["block_id"])
    fixed = {name for name in rendered if not name.startswith(ANSWER_PREFIX)}
    assert fixed == set(Field)
    assert fixed != rendered
    for field in Field:
        assert f"Field.{field.name}" in read


def test_modules_that_listen_name_no_id_in_words() -> None:
    ids: set[str] = {*Action, *Audit, *Supervise}
    for module in (actions, audit, commands, settings, supervise, views):
        source = inspect.getsource(module)
        assert not [found for found in ids if f'"{found}"' in source]


def test_every_button_below_a_page_of_records_is_handled_and_says_how_to_go_on() -> None:
    rendered = {
        element["action_id"]: json.loads(element["value"])
        for message in pages_of_records("refund 20 EUR")
        for element in elements_of(message.blocks)
    }
    assert rendered.keys() == set(Audit)
    source = inspect.getsource(audit)
    for known in Audit:
        # Older is what is left when the others are told apart.
        assert f"Audit.{known.name}" in source or known is Audit.OLDER
        assert len(json.dumps(rendered[known])) < 300
    assert rendered[Audit.OLDER].keys() >= {"at", "id"}


def test_a_button_carries_its_task_and_version() -> None:
    for message in cards_in_every_state():
        for element in elements_of(message.blocks):
            value: dict[str, Any] = json.loads(element["value"])
            assert {"task", "version"} <= value.keys()
            assert len(element["value"]) <= 2000
