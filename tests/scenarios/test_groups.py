"""Who may claim in a queue that a user group works, and in one without: every role, and every change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.bot import Office

from dibs.playground import Person
from dibs.playground.world import UserGroup
from dibs.slack.views.settings import EVERYBODY

ELIGIBLE = ""


MANIFEST = Path(__file__).resolve().parents[2] / "manifests" / "slack-http.json"


@pytest.fixture
def office(office: Office) -> Office:
    """An office in which Dibs hears and may ask what its manifest says, and no more."""
    office.slack.install(json.loads(MANIFEST.read_text()))
    return office


def _standing(office: Office, name: str) -> str | None:
    rows = office.rows("SELECT standing FROM dibs.queue_member WHERE user_id = :u", u=office.id(name))
    return rows[0]["standing"] if rows else None


def _set(office: Office, **values: object) -> None:
    assert office.type("Sue", "settings") == ""
    assert office.submit("Sue", values).closed


def _choose(office: Office, *names: str) -> UserGroup:
    """Have the queue worked by a user group of these people, and everybody looked up."""
    office.verify_members()
    group = office.slack.add_user_group("Refund team", "refunds", [office.id(name) for name in names])
    _set(office, eligible_group=group.id)
    office.verify_members()
    return group


def _put(office: Office, group: UserGroup, *names: str, disabled: bool = False) -> None:
    office.slack.set_user_group(group.id, [office.id(name) for name in names], disabled=disabled)


def _claim(office: Office, name: str) -> str:
    """Press Claim on a task of one's own. What the person is told."""
    card = office.add_task(f"For {name}")
    before = len(office.heard(name))
    office.press(name, card, "claim")
    office.wait(lambda: len(office.heard(name)) > before)
    return office.heard(name)[-1]


# --- every role


@dataclass(frozen=True)
class Role:
    who: str
    why: str
    """Why they may not claim; empty where they may."""
    about: dict[str, Any] = field(default_factory=dict)


ROLES = [
    Role("Member", ELIGIBLE),
    Role("Owner", ELIGIBLE, {"is_owner": True}),
    Role("Guest", ELIGIBLE, {"is_restricted": True}),
    Role("Single", ELIGIBLE, {"is_ultra_restricted": True}),
    Role("Appuser", ELIGIBLE, {"is_app_user": True}),
    Role("Stranger", "other_workspace", {"team_id": "T0OTHER"}),
    Role("Robot", "bot", {"is_bot": True}),
    Role("Gone", "deactivated", {"deleted": True}),
]
WORDS = {
    "other_workspace": "Only people of this workspace may claim",
    "bot": "Bots may not claim",
    "deactivated": "Your account is deactivated",
}


def _arrive(office: Office, role: Role) -> Person:
    person = office.people[role.who] = office.slack.add_person(role.who, **role.about)
    return person


def _sees(office: Office, role: Role, told: str, rule: str) -> None:
    """The person was let in, or heard the rule, which stands in the record with their name."""
    rejected = office.rows(
        "SELECT why FROM dibs.event WHERE kind = 'claim_rejected' AND actor_id = :u", u=office.id(role.who)
    )
    if role.why == ELIGIBLE:
        assert "is yours" in told, (role, told)
        assert rejected == []
    else:
        assert WORDS.get(role.why, rule) in told, (role, told)
        assert "Nothing changed." in told
        assert [row["why"] for row in rejected] == [role.why]


@pytest.mark.parametrize("known", [True, False], ids=["known before", "looked up at the press"])
def test_every_role_in_the_channel_of_a_queue_without_a_group(office: Office, *, known: bool) -> None:
    people = [_arrive(office, role) for role in ROLES]
    for person in people:
        if known:
            office.slack.join(person.id, office.channel.id)
        else:
            with office.slack.world.lock:
                office.slack.world.channels[office.channel.id].members.append(person.id)
    if known:
        office.verify_members()
    for role in ROLES:
        _sees(office, role, _claim(office, role.who), "")
    outside = [Role(f"Out{role.who}", "not_a_member", role.about) for role in ROLES]
    for role in outside:
        _arrive(office, role)
        _sees(office, role, _claim(office, role.who), "Only members of the queue's channel may claim")


@pytest.mark.parametrize("known", [True, False], ids=["known before", "looked up at the press"])
def test_every_role_in_the_group_of_a_queue_and_outside_it(office: Office, *, known: bool) -> None:
    for role in ROLES:
        _arrive(office, role)
    group = _choose(office, *(role.who for role in ROLES))
    if not known:
        office.execute("DELETE FROM dibs.queue_member WHERE NOT supervisor")
    for role in ROLES:
        # Not one of them is in the channel: the group alone counts.
        _sees(office, role, _claim(office, role.who), "")
    outside = [Role(f"Out{role.who}", "not_a_member", role.about) for role in ROLES]
    for role in outside:
        person = _arrive(office, role)
        office.slack.join(person.id, office.channel.id)
        told = _claim(office, role.who)
        _sees(office, role, told, "Only members of the group @refunds may claim")
        assert "Ask to be added to it, then press again." in told
    assert group.id not in "".join(office.heard("OutMember"))


def test_the_next_task_is_refused_with_the_groups_rule_too(office: Office) -> None:
    office.add_task()
    _choose(office, "Hana")
    told = office.type("Amal", "next")
    assert "Only members of the group @refunds may claim" in told
    assert "*SUP-1* is yours" in office.type("Hana", "next")


# --- changes


def test_another_group_holds_at_once_and_so_does_none(office: Office) -> None:
    office.verify_members()
    assert _standing(office, "Amal") == "eligible"
    group = office.slack.add_user_group("Refund team", "refunds", [office.id("Hana")])
    _set(office, eligible_group=group.id)
    assert "Only members of the group @refunds may claim" in _claim(office, "Amal")
    assert "is yours" in _claim(office, "Hana")
    office.wait(lambda: _standing(office, "Bilal") == "left")
    _set(office, eligible_group=EVERYBODY)
    assert "is yours" in _claim(office, "Amal")
    office.wait(lambda: _standing(office, "Bilal") != "left")


def test_before_the_group_was_read_everybody_is_looked_up_at_the_press(office: Office) -> None:
    _choose(office, "Hana", "Marek")
    office.execute("UPDATE dibs.queue_member SET standing = 'unknown'")
    assert "Only members of the group @refunds may claim" in _claim(office, "Amal")
    assert "is yours" in _claim(office, "Hana")
    assert "*SUP-1* is yours" in office.type("Marek", "next")


def test_who_joins_the_group_may_claim_and_who_leaves_may_not(office: Office) -> None:
    group = _choose(office, "Hana", "Marek")
    assert (_standing(office, "Hana"), _standing(office, "Amal")) == ("eligible", "left")
    _put(office, group, "Amal", "Marek")
    assert _standing(office, "Hana") != "eligible"
    assert "Only members of the group @refunds may claim" in _claim(office, "Hana")
    assert "is yours" in _claim(office, "Amal")
    office.wait(lambda: (_standing(office, "Hana"), _standing(office, "Marek")) == ("left", "eligible"))


def test_an_event_without_the_list_of_who_was_removed_makes_everybody_looked_up(office: Office) -> None:
    group = _choose(office, "Hana", "Marek")
    with office.slack.world.lock:
        group.users.remove(office.id("Hana"))
    told = {"type": "subteam_members_changed", "subteam_id": group.id, "removed_users_count": "1"}
    assert office.slack.tell(told).status == 200
    assert "Only members of the group @refunds may claim" in _claim(office, "Hana")
    assert "is yours" in _claim(office, "Marek")


def test_events_in_the_wrong_order_let_nobody_in_and_keep_nobody_out(office: Office) -> None:
    group = _choose(office, "Hana")
    told: dict[str, Any] = {"type": "subteam_members_changed", "subteam_id": group.id}
    # Hana was removed and taken in again; the removal arrives last.
    office.slack.tell(told | {"added_users": [office.id("Hana")], "removed_users": []})
    office.slack.tell(told | {"added_users": [], "removed_users": [office.id("Hana")]})
    office.slack.tell(told | {"added_users": [office.id("Amal")], "removed_users": []})
    assert "is yours" in _claim(office, "Hana")
    assert "Only members of the group @refunds may claim" in _claim(office, "Amal")


def test_of_a_group_that_is_turned_off_nobody_may_claim(office: Office) -> None:
    group = _choose(office, "Hana")
    _put(office, group, "Hana", disabled=True)
    assert "Only members of the group" in _claim(office, "Hana")
    _put(office, group, "Hana")
    assert "is yours" in _claim(office, "Hana")


def test_a_renamed_group_is_called_by_its_new_name(office: Office) -> None:
    group = _choose(office, "Hana")
    assert "@refunds" in _claim(office, "Amal")
    with office.slack.world.lock:
        group.handle = "money-back"
    _put(office, group, "Hana", "Marek")
    assert "Only members of the group @money-back may claim" in _claim(office, "Amal")


def test_an_owner_who_leaves_the_group_keeps_the_task_and_can_finish_it(office: Office) -> None:
    group = _choose(office, "Hana")
    card = office.add_task()
    office.press("Hana", card, "claim")
    office.hears("Hana", "*SUP-1* is yours")
    _put(office, group)
    office.wait(lambda: _standing(office, "Hana") == "left")
    office.press("Hana", card, "start")
    office.hears("Hana", "You have started *SUP-1*")
    office.wait(lambda: "done" in office.buttons(card))
    office.press("Hana", card, "done")
    assert office.submit("Hana").closed
    assert office.task()["state"] == "done"


def test_joins_and_leaves_of_the_channel_do_not_concern_a_queue_with_a_group(office: Office) -> None:
    _choose(office, "Hana")
    office.slack.leave(office.id("Hana"), office.channel.id)
    assert _standing(office, "Hana") == "eligible"
    office.slack.leave(office.id("Amal"), office.channel.id)
    office.slack.join(office.id("Amal"), office.channel.id)
    assert _standing(office, "Amal") == "left"


def test_where_slack_does_not_tell_who_is_in_the_group_nobody_is_let_in(office: Office) -> None:
    _choose(office, "Hana")
    office.slack.faults.fail_next("usergroups.users.list", error="missing_scope")
    told = _claim(office, "Amal")
    assert "Dibs could not look up in Slack whether you may claim" in told
    assert "is yours" in _claim(office, "Hana")


def test_a_handle_that_cannot_be_read_is_left_to_slack(office: Office) -> None:
    group = _choose(office, "Hana")
    office.bot.membership.catch_up()
    office.slack.set_user_group(group.id, [office.id("Hana"), office.id("Marek")])
    office.bot.outgoing._web.lookups._handles.clear()  # noqa: SLF001 - as after a start
    office.slack.faults.fail_next("usergroups.list", error="internal_error")
    assert f"Only members of the group <!subteam^{group.id}> may claim" in _claim(office, "Amal")


@pytest.mark.parametrize("with_group", [True, False])
def test_a_deactivated_account_is_noted_by_its_event_and_looked_up_when_it_works_again(
    office: Office, *, with_group: bool
) -> None:
    if with_group:
        _choose(office, "Hana")
    else:
        office.verify_members()
    office.slack.deactivate(office.id("Hana"))
    assert _standing(office, "Hana") == "deactivated"
    # Slack takes somebody whose account ends out of the channels; what is known of them stays.
    office.slack.leave(office.id("Hana"), office.channel.id)
    assert _standing(office, "Hana") == "deactivated"
    office.slack.join(office.id("Hana"), office.channel.id)
    with office.slack.world.lock:
        office.people["Hana"].deleted = False
    user = {"id": office.id("Hana"), "deleted": False, "team_id": office.slack.team_id}
    office.slack.tell({"type": "user_change", "user": user})
    assert _standing(office, "Hana") == "unknown"
    assert "is yours" in _claim(office, "Hana")


def test_a_change_of_somebodys_profile_changes_nothing_else(office: Office) -> None:
    office.verify_members()
    before = office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id")
    user = {"id": office.id("Hana"), "deleted": False, "team_id": office.slack.team_id}
    assert office.slack.tell({"type": "user_change", "user": user}).status == 200
    assert office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id") == before


@pytest.mark.parametrize(
    "event",
    [
        {"type": "subteam_members_changed"},
        {"type": "subteam_members_changed", "subteam_id": 7, "removed_users": "U1"},
        {"type": "subteam_members_changed", "subteam_id": "S0NONE", "removed_users": [None, 3]},
        {"type": "subteam_updated"},
        {"type": "subteam_updated", "subteam": {"id": ""}},
        {"type": "user_change"},
        {"type": "user_change", "user": {"id": None, "deleted": True}},
    ],
)
def test_an_event_that_cannot_be_read_is_taken_and_changes_nothing(
    office: Office, event: dict[str, Any]
) -> None:
    office.verify_members()
    before = office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id")
    assert office.slack.tell(event).status == 200
    assert office.rows("SELECT * FROM dibs.queue_member ORDER BY user_id") == before
