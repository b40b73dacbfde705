"""A queue's settings: the form of /queue create and /queue settings, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support import bodies
from tests.support.bot import Office

from dibs.slack.views.settings import EVERYBODY, KNOWN_REASONS

USUAL = list(KNOWN_REASONS)


def _open(office: Office, name: str = "Sue", words: str = "settings") -> dict[str, Any]:
    assert office.type(name, words) == ""
    return office.opened(name)


def _inputs(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {block["block_id"]: block["element"] for block in view["blocks"] if block["type"] == "input"}


def _values(view: dict[str, Any]) -> dict[str, Any]:
    """What stands in the inputs of a form, by input."""
    return {
        block: next(value for key, value in state[block].items() if key != "type")
        for block, state in view["state"]["values"].items()
    }


def _queue(office: Office, key: str = "SUP") -> dict[str, Any]:
    return office.rows("SELECT * FROM dibs.queue WHERE key = :key", key=key)[0]


def _supervisors(office: Office, key: str = "SUP") -> set[str]:
    rows = office.rows(
        "SELECT m.user_id FROM dibs.queue_member m JOIN dibs.queue q ON q.id = m.queue_id "
        "WHERE q.key = :key AND m.supervisor",
        key=key,
    )
    return {office.name_of(row["user_id"]) for row in rows}


def _refused(office: Office, who: str = "Sue", **values: object) -> dict[str, str]:
    result = office.submit(who, values)
    assert not result.closed
    return result.errors


# --- a queue without supervisors


def test_where_no_supervisor_is_left_whoever_may_claim_names_others(office: Office) -> None:
    office.verify_members()
    assert "Only supervisors of *SUP* may change its settings" in office.type("Amal", "settings")
    office.type("Sue", "pause")
    office.execute("UPDATE dibs.queue_member SET standing = 'deactivated' WHERE supervisor")
    refused = office.type("Amal", "resume")
    assert "Only supervisors of *SUP* may resume it, and none of them can be reached." in refused
    assert "can name others with `/queue settings SUP`" in refused
    assert _values(_open(office, "Amal"))["supervisors"] == [office.id("Amal")]
    assert office.submit("Amal").closed
    assert _supervisors(office) == {"Amal"}
    [changed] = office.rows("SELECT actor_id, detail FROM dibs.event WHERE kind = 'settings_changed'")
    assert changed["actor_id"] == office.id("Amal")
    assert changed["detail"]["supervisors"] == {"old": [office.id("Sue")], "new": [office.id("Amal")]}
    assert "*SUP* goes on" in office.type("Amal", "resume")
    assert "Only supervisors of *SUP* may change its settings" in office.type("Bilal", "settings")


# --- making a queue


def test_a_queue_is_made_with_everything_that_can_be_set(office: Office) -> None:
    group = office.slack.add_user_group("Refund team", "refunds", [office.id("Hana")])
    alerts = office.slack.add_channel("alerts", members=[office.id("Sue")])
    view = _open(office, words="create")
    assert view["callback_id"] == "queue_settings"
    assert list(_inputs(view)) == [
        "name", "key", "lease_minutes", "eligible_group", "supervisors", "alert_channel", "spike_limit",
        "spike_minutes", "spike_share", "longest_hold_minutes", "reasons", "supervisor_operations",
    ]  # fmt: skip
    assert _values(view)["reasons"].split("\n") == USUAL
    given = {
        "name": "Refunds",
        "key": "ref",
        "lease_minutes": "20",
        "eligible_group": group.id,
        "supervisors": [office.id("Sue"), office.id("Dana")],
        "alert_channel": alerts.id,
        "spike_limit": "7",
        "spike_minutes": "15",
        "spike_share": "25",
        "longest_hold_minutes": "120",
        "reasons": f"{USUAL[0]}\nThe bank has not answered\nother",
        "supervisor_operations": ["on"],
    }
    assert office.submit("Sue", given).closed
    office.hears("Sue", "The queue *REF* Refunds is ready in this channel.")
    queue = _queue(office, "REF")
    assert {
        name: queue[name]
        for name in (
            "name", "lease_seconds", "eligible_group", "alert_channel", "spike_limit", "spike_minutes",
            "spike_share", "longest_hold_seconds", "reasons", "supervisor_operations",
        )
    } == {
        "name": "Refunds",
        "lease_seconds": 1200,
        "eligible_group": group.id,
        "alert_channel": alerts.id,
        "spike_limit": 7,
        "spike_minutes": 15,
        "spike_share": 25,
        "longest_hold_seconds": 7200,
        "reasons": ["missing_information", "The bank has not answered", "other"],
        "supervisor_operations": True,
    }  # fmt: skip
    assert _supervisors(office, "REF") == {"Sue", "Dana"}


def test_the_form_as_it_is_opened_makes_a_queue_with_the_usual_values(office: Office) -> None:
    queue = _queue(office)
    assert (queue["reasons"], queue["spike_share"], queue["longest_hold_seconds"]) == (None, None, None)
    assert (queue["eligible_group"], queue["alert_channel"]) == (None, None)
    assert (queue["spike_limit"], queue["spike_minutes"]) == (10, 10)
    assert queue["supervisor_operations"] is False
    assert _supervisors(office) == {"Sue"}


# --- changing it


def test_a_supervisor_sees_what_is_set_changes_it_and_is_told_what_changed(office: Office) -> None:
    view = _open(office)
    assert view["title"]["text"] == "Settings of SUP"
    assert "*SUP* is its key. Tasks are named by it, so it stays." in str(view["blocks"])
    assert "key" not in _inputs(view)
    shown = _values(view)
    assert (shown["name"], shown["lease_minutes"]) == ("Support", "30")
    assert shown["supervisors"] == [office.id("Sue")]
    assert shown["reasons"].split("\n") == USUAL
    given = {
        "name": "Refunds & more",
        "lease_minutes": "45",
        "supervisors": [office.id("Sue"), office.id("Dana")],
        "reasons": "My own reason\nother",
        "supervisor_operations": ["on"],
        "spike_share": "20",
        "longest_hold_minutes": "600",
    }
    assert office.submit("Sue", given).closed
    told = office.hears("Sue", "The settings of *SUP* are changed")
    for line in (
        "• Name: Support → Refunds &amp; more",
        "• Lease: 30 minutes → 45 minutes",
        f"• Supervisors: <@{office.id('Sue')}> → ",
        f"<@{office.id('Dana')}>",
        "• Reasons for handing back: the usual ones → My own reason; Another reason (say which)",
        "• Longest hold: without end → 600 minutes",
        "• … or than: no share → 20 % of the leases held",
        "• Supervisors transfer and release: no → yes",
    ):
        assert line in told
    assert "Who may claim" not in told
    queue = _queue(office)
    assert (queue["name"], queue["lease_seconds"], queue["key"]) == ("Refunds & more", 2700, "SUP")
    assert _supervisors(office) == {"Sue", "Dana"}
    (event,) = office.rows("SELECT * FROM dibs.event WHERE kind = 'settings_changed'")
    assert (event["actor_id"], event["task_id"]) == (office.id("Sue"), None)
    assert event["detail"]["lease_seconds"] == {"old": 1800, "new": 2700}
    shown = _values(_open(office, "Dana"))
    assert (shown["name"], shown["reasons"]) == (
        "Refunds & more",
        "My own reason\nAnother reason (say which)",
    )


def test_a_form_that_is_sent_as_it_was_opened_changes_nothing_and_says_so(office: Office) -> None:
    _open(office)
    assert office.submit("Sue").closed
    office.hears("Sue", "The settings of *SUP* stand like that already. Nothing changed.")
    assert office.count("event", kind="settings_changed") == 0


def test_others_hear_who_the_supervisors_are(office: Office) -> None:
    told = office.type("Amal", "settings")
    assert "Only supervisors of *SUP* may change its settings, and you are not one. Nothing changed." in told
    assert f"Ask one of them: <@{office.id('Sue')}>." in told
    assert office.slack.views(office.id("Amal")) == []


def test_a_supervisor_who_was_removed_while_the_form_was_open_is_refused(office: Office) -> None:
    _open(office)
    assert office.submit("Sue", {"supervisors": [office.id("Sue"), office.id("Dana")]}).closed
    _open(office, "Dana")
    _open(office, "Sue")
    assert office.submit("Dana", {"supervisors": [office.id("Dana")]}).closed
    errors = _refused(office, "Sue", name="Mine again")
    assert "Only supervisors of SUP may change its settings" in errors["name"]
    assert "Dana" in errors["name"]
    assert _queue(office)["name"] == "Support"


def test_the_key_stays(office: Office) -> None:
    _open(office)
    payload = bodies.submission(office, "Sue", {"name": "Other"})
    payload["view"]["state"]["values"]["key"] = {"key": {"type": "plain_text_input", "value": "NEW"}}
    answer = office.slack.send_raw(bodies.interaction(payload))
    assert "The key stays SUP, because tasks are named by it." in answer.body
    assert _queue(office)["name"] == "Support"
    payload["view"]["state"]["values"]["key"]["key"]["value"] = "sup"
    payload["trigger_id"] = "another.trigger"
    assert office.slack.send_raw(bodies.interaction(payload)).body == ""
    assert _queue(office)["name"] == "Other"


def test_settings_changed_meanwhile_are_not_overwritten(office: Office) -> None:
    _open(office)
    assert office.submit("Sue", {"supervisors": [office.id("Sue"), office.id("Dana")]}).closed
    _open(office, "Sue")
    _open(office, "Dana")
    assert office.submit("Dana", {"lease_minutes": "90"}).closed
    errors = _refused(office, "Sue", name="Refunds", lease_minutes="5")
    assert list(errors) == ["name"]
    assert re.match(
        r"Dana changed these settings 20..-..-.. ..:.. UTC, while this form was open, so nothing was saved",
        errors["name"],
    )
    assert (_queue(office)["name"], _queue(office)["lease_seconds"]) == ("Support", 5400)
    assert _values(office.opened("Sue"))["lease_minutes"] == "5"


def test_a_repeated_delivery_changes_nothing_twice(office: Office) -> None:
    _open(office)
    payload = bodies.interaction(bodies.submission(office, "Sue", {"name": "Refunds"}))
    for _ in range(2):
        assert office.slack.send_raw(payload).body == ""
    office.wait(lambda: len([told for told in office.heard("Sue") if "are changed" in told]) == 2)
    assert office.count("event", kind="settings_changed") == 1
    assert not [told for told in office.heard("Sue") if "Nothing changed" in told]


BAD: list[tuple[str, object, str]] = [
    ("name", "  ", "Give the queue a name."),
    ("lease_minutes", "0", "whole number"),
    ("lease_minutes", "10081", "whole number"),
    ("lease_minutes", "soon", "whole number"),
    ("eligible_group", "no group at all", "Choose a group from the list."),
    ("spike_limit", "0", "whole number"),
    ("spike_minutes", "1.5", "whole number"),
    ("spike_share", "101", "from 1 to 100"),
    ("longest_hold_minutes", "30", "more minutes than the lease"),
    ("longest_hold_minutes", "99999999999", "whole number"),
    ("reasons", "other\nOTHER", "twice"),
    ("reasons", "x" * 76, "at most 75 characters"),
    ("reasons", "\n".join(map(str, range(21))), "at most 20"),
]


def test_each_bad_value_is_named_at_its_input_and_what_was_typed_is_kept(office: Office) -> None:
    _open(office)
    for at, value, words in BAD:
        payload = bodies.submission(office, "Sue", {})
        if at == "eligible_group":
            payload["view"]["state"]["values"][at][at]["selected_option"]["value"] = value
        payload["view"]["state"]["values"][at][at]["value"] = value
        answer = office.slack.send_raw(bodies.interaction(payload))
        assert words in answer.body, at
        assert f'"{at}"' in answer.body
        assert "Nothing changed yet." in answer.body
    assert _refused(office, reasons="a\na").keys() == {"reasons"}
    assert _values(office.opened("Sue"))["reasons"] == "a\na"
    assert _queue(office)["settings_version"] == 1


def test_a_queue_keeps_at_least_one_supervisor_who_is_a_person(office: Office) -> None:
    robot = office.slack.add_person("Robot", is_bot=True)
    gone = office.slack.add_person("Gone", deleted=True)
    _open(office)
    payload = bodies.submission(office, "Sue", {})
    payload["view"]["state"]["values"]["supervisors"]["supervisors"]["selected_users"] = []
    answer = office.slack.send_raw(bodies.interaction(payload))
    assert "A queue needs at least one supervisor." in answer.body
    assert "Robot is a bot" in _refused(office, supervisors=[robot.id])["supervisors"]
    assert "Gone is deactivated" in _refused(office, supervisors=[office.id("Sue"), gone.id])["supervisors"]
    assert _supervisors(office) == {"Sue"}


# --- which queue


def test_the_key_says_which_queue_and_the_only_one_of_the_channel_needs_none(office: Office) -> None:
    elsewhere = office.slack.add_channel("elsewhere", members=[office.id("Sue")])
    result = office.slack.command(office.id("Sue"), elsewhere.id, "/queue", "settings")
    assert "This channel has no queue yet" in str(result.ephemeral)
    assert office.slack.command(office.id("Sue"), elsewhere.id, "/queue", "settings sup").ephemeral is None
    assert office.opened("Sue")["title"]["text"] == "Settings of SUP"
    assert "There is no queue “NOPE &lt;!here&gt;”. Nothing changed." in office.type(
        "Sue", "settings NOPE &lt;!here&gt;"
    )
    office.make_queue(key="BIL")
    told = office.type("Sue", "settings")
    assert "This channel has several queues: `SUP`, `BIL`. Nothing changed." in told
    assert "`/queue settings SUP`" in told
    _open(office, words="settings BIL")
    assert office.opened("Sue")["title"]["text"] == "Settings of BIL"


# --- where alerts go


def test_an_alert_channel_is_one_that_dibs_is_in(office: Office) -> None:
    world = office.slack.world
    without = office.slack.add_channel("quiet", members=[office.id("Sue")], bot=False)
    hidden = office.slack.add_channel("hidden", members=[office.id("Sue")], bot=False, private=True)
    archived = office.slack.add_channel("old", members=[office.id("Sue")])
    office.slack.archive(archived.id)
    _open(office)
    for channel in (without, hidden):
        errors = _refused(office, alert_channel=channel.id)
        assert "Dibs is not in this channel" in errors["alert_channel"]
        assert "Type /invite @Dibs there" in errors["alert_channel"]
    assert "archived" in _refused(office, alert_channel=archived.id)["alert_channel"]
    direct = world.direct_channel(office.id("Sue"))
    assert "Choose a channel" in _refused(office, alert_channel=direct.id)["alert_channel"]
    office.slack.join(office.slack.bot_user_id, without.id)
    assert office.submit("Sue", {"alert_channel": without.id}).closed
    assert _queue(office)["alert_channel"] == without.id
    office.hears("Sue", f"• Alerts go to: each supervisor directly → <#{without.id}>")
    _open(office)
    assert office.submit("Sue", {"alert_channel": None}).closed
    assert _queue(office)["alert_channel"] is None


def test_an_alert_channel_that_cannot_be_looked_up_is_not_taken(office: Office) -> None:
    alerts = office.slack.add_channel("alerts", members=[office.id("Sue")])
    _open(office)
    office.slack.faults.fail_next("conversations.info", error="internal_error")
    assert "could not look up" in _refused(office, alert_channel=alerts.id)["alert_channel"]
    assert office.submit("Sue").closed
    # One that is set already stands in the way of no other change.
    _open(office)
    office.slack.faults.fail_next("conversations.info", error="internal_error")
    assert office.submit("Sue", {"name": "Refunds"}).closed
    assert (_queue(office)["name"], _queue(office)["alert_channel"]) == ("Refunds", alerts.id)


# --- who may claim


@pytest.mark.parametrize("trouble", [{"error": "missing_scope"}, {"delay": 3.0}])
def test_groups_that_cannot_be_read_leave_the_one_that_is_set(
    office: Office, trouble: dict[str, Any]
) -> None:
    group = office.slack.add_user_group("Refund team", "refunds", [office.id("Hana")])
    _open(office)
    assert office.submit("Sue", {"eligible_group": group.id}).closed
    office.slack.faults.fail_next("usergroups.list", **trouble)
    view = _open(office)
    assert "eligible_group" not in _inputs(view)
    assert "the user group that is set. Dibs needs the scope `usergroups:read`" in str(view["blocks"])
    assert office.submit("Sue", {"name": "Refunds"}).closed
    assert (_queue(office)["name"], _queue(office)["eligible_group"]) == ("Refunds", group.id)


def test_a_group_is_chosen_and_given_up(office: Office) -> None:
    group = office.slack.add_user_group("Refund team", "refunds", [office.id("Hana")])
    _open(office)
    assert office.submit("Sue", {"eligible_group": group.id}).closed
    office.hears("Sue", "• Who may claim: everybody in the channel → @refunds")
    assert _values(_open(office))["eligible_group"]["value"] == group.id
    office.slack.set_user_group(group.id, [], disabled=True)
    assert "A user group that is turned off or gone" in str(_open(office)["blocks"])
    assert office.submit("Sue", {"eligible_group": EVERYBODY}).closed
    assert _queue(office)["eligible_group"] is None
