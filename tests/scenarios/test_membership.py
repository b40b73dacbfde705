"""Who may claim: the members of the queue's channel, by events, and looked up before anyone is refused."""

from __future__ import annotations

import json

import pytest
from slack_bolt import BoltRequest
from tests.support import bodies
from tests.support.bot import Office
from tests.support.holders import Pressed

from dibs.deadline import Deadline
from dibs.playground import Person, payloads


def _standing(office: Office, person: Person) -> str | None:
    rows = office.rows("SELECT standing FROM dibs.queue_member WHERE user_id = :u", u=person.id)
    return rows[0]["standing"] if rows else None


def _newcomer(office: Office, name: str = "Nina", **about: object) -> Person:
    office.people[name] = office.slack.add_person(name, **about)  # type: ignore[arg-type]
    return office.people[name]


def _silently(office: Office, person: Person, *, joins: bool) -> None:
    """Let somebody join or leave without an event that reaches the bot."""
    with office.slack.world.lock:
        members = office.slack.world.channels[office.channel.id].members
        (members.append if joins else members.remove)(person.id)


def test_joins_and_leaves_are_followed_by_events(office: Office) -> None:
    card = office.add_task()
    nina = _newcomer(office)
    joined = office.slack.join(nina.id, office.channel.id)
    assert joined is not None
    assert joined.status == 200
    assert _standing(office, nina) == "unverified"
    office.press("Nina", card, "claim")
    office.hears("Nina", "*SUP-1* is yours")
    assert _standing(office, nina) == "eligible"
    office.slack.leave(nina.id, office.channel.id)
    assert _standing(office, nina) == "left"
    assert office.task()["owner_id"] == nina.id
    office.slack.join(nina.id, office.channel.id)
    assert _standing(office, nina) == "unverified"


def test_a_newcomer_whose_join_was_missed_is_looked_up_and_not_refused(office: Office) -> None:
    card = office.add_task()
    nina = _newcomer(office)
    _silently(office, nina, joins=True)
    office.press("Nina", card, "claim")
    office.hears("Nina", "*SUP-1* is yours")
    assert office.kinds() == ["created", "claimed"]


def test_a_newcomer_whose_join_was_missed_is_looked_up_for_the_next_task_too(office: Office) -> None:
    office.add_task()
    nina = _newcomer(office)
    _silently(office, nina, joins=True)
    assert "*SUP-1* is yours" in office.type("Nina", "next")
    assert office.kinds() == ["created", "claimed"]


def test_who_was_known_and_left_unseen_is_found_out_at_the_next_reading(office: Office) -> None:
    card = office.add_task()
    office.press("Hana", card, "claim")
    office.hears("Hana", "is yours")
    _silently(office, office.people["Hana"], joins=False)
    office.bot.membership.read_again_soon()
    office.bot.membership.catch_up()
    assert _standing(office, office.people["Hana"]) == "left"


@pytest.mark.parametrize("method", ["conversations.members", "users.info"])
def test_who_leaves_while_the_channel_is_being_read_stays_out(office: Office, method: str) -> None:
    office.verify_members()
    office.add_task()
    office.execute("UPDATE dibs.queue_member SET standing = 'unverified' WHERE standing = 'eligible'")
    office.execute(
        "UPDATE dibs.queue_member SET changed_at = '2001-01-01' WHERE user_id = :u", u=office.id("Hana")
    )
    calls = len(office.slack.calls_to(method))
    office.bot.membership.read_again_soon()
    # Slack answers what was true when it was asked, and answers late.
    office.slack.faults.fail_next(method, delay=0.5)
    reading = Pressed(office.bot.membership.catch_up)
    office.wait(lambda: not office.slack.faults._waiting.get(method))  # noqa: SLF001 - it is being asked
    if method == "conversations.members":
        with office.slack.world.lock:
            members = office.slack.world.channels[office.channel.id].members
        office.slack.leave(office.id("Hana"), office.channel.id)
        members.append(office.id("Hana"))
        reading.answer()
        members.remove(office.id("Hana"))
    else:
        office.slack.leave(office.id("Hana"), office.channel.id)
        reading.answer()
    assert len(office.slack.calls_to(method)) > calls
    assert _standing(office, office.people["Hana"]) == "left"
    assert "Only members of the queue's channel may claim" in office.type("Hana", "next")


def test_who_is_no_member_is_refused_with_the_rule_and_recorded(office: Office) -> None:
    card = office.add_task()
    outsider = _newcomer(office, "Otto")
    office.press("Otto", card, "claim")
    told = office.hears("Otto", "Only members of the queue's channel may claim *SUP-1*, and you are not one.")
    assert "Nothing changed. Join the channel, then press again." in told
    (rejected,) = office.rows("SELECT * FROM dibs.event WHERE kind = 'claim_rejected'")
    assert (rejected["actor_id"], rejected["why"], rejected["version_seen"]) == (
        outsider.id,
        "not_a_member",
        1,
    )
    office.slack.join(outsider.id, office.channel.id)
    office.press("Otto", card, "claim")
    office.hears("Otto", "*SUP-1* is yours")


def test_who_left_is_refused_for_the_next_task_too(office: Office) -> None:
    office.add_task()
    office.slack.leave(office.id("Hana"), office.channel.id)
    told = office.type("Hana", "next")
    assert "Only members of the queue's channel may claim" in told
    assert "Nothing changed." in told
    assert office.rows("SELECT actor_id, why FROM dibs.event WHERE kind = 'claim_rejected'") == [
        {"actor_id": office.id("Hana"), "why": "not_a_member"}
    ]


@pytest.mark.parametrize(
    ("about", "why", "words"),
    [
        ({"is_bot": True}, "bot", "Bots may not claim *SUP-1*."),
        ({"team_id": "T0OTHER"}, "other_workspace", "your account is of another one"),
        ({"deleted": True}, "deactivated", "Your account is deactivated"),
    ],
)
def test_bots_and_people_of_another_workspace_may_not_claim(
    office: Office, about: dict[str, object], why: str, words: str
) -> None:
    card = office.add_task()
    stranger = _newcomer(office, "Robot", **about)
    office.slack.join(stranger.id, office.channel.id)
    office.press("Robot", card, "claim")
    office.hears("Robot", words, "Nothing changed.")
    assert office.task()["state"] == "queued"
    assert office.count("event", kind="claim_rejected", why=why, actor_id=stranger.id) == 1


@pytest.mark.parametrize("method", ["conversations.members", "users.info"])
@pytest.mark.parametrize("fault", ["silence", "error"])
def test_who_cannot_be_looked_up_is_refused_as_unknown_and_may_press_again(
    office: Office, method: str, fault: str
) -> None:
    card = office.add_task()
    office.verify_members()
    nina = _newcomer(office)
    _silently(office, nina, joins=True)
    if fault == "silence":
        office.slack.faults.fail_next(method, silence=True)
    else:
        office.slack.faults.fail_next(method, error="internal_error")
    result = office.press("Nina", card, "claim")
    assert (result.status, result.seconds < 3) == (200, True)
    office.hears(
        "Nina", "Dibs could not look up in Slack whether you may claim *SUP-1*.", "Nothing changed.",
        "Please press again in a moment.",
    )  # fmt: skip
    assert office.kinds() == ["created", "claim_rejected"]
    office.press("Nina", card, "claim")
    office.hears("Nina", "*SUP-1* is yours")


def test_a_task_that_somebody_has_is_named_without_a_look_up(office: Office) -> None:
    card = office.add_task()
    _newcomer(office, "Otto")
    seen = bodies.press(office, "Otto", card, "claim")
    office.press("Amal", card, "claim")
    office.hears("Amal", "is yours")
    before = len(office.slack.calls_to("conversations.members"))
    office.slack.send_raw(bodies.interaction(seen))
    office.hears("Otto", f"<@{office.id('Amal')}> has *SUP-1*")
    assert len(office.slack.calls_to("conversations.members")) == before


def test_who_left_the_channel_still_hears_the_answers_of_presses_and_forms(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    office.slack.leave(office.id("Amal"), office.channel.id)
    office.press("Amal", card, "renew")
    office.hears("Amal", "*SUP-1* stays yours")
    office.wait(lambda: '"version":3' in str(office.card(card)))
    office.press("Amal", card, "release")
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    office.hears("Amal", "You have handed back *SUP-1*")
    assert office.slack.calls_to("chat.postEphemeral") == []


def test_who_is_outside_and_whose_answer_url_has_expired_hears_directly(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.shows(card, "Claimed")
    office.slack.leave(office.id("Amal"), office.channel.id)
    office.press("Amal", card, "release")
    office.slack.clock.advance(31 * 60)
    assert office.submit("Amal", {"reason": "shift_ending"}).closed
    office.wait(lambda: office.slack.direct_messages(office.id("Amal")))
    assert "You have handed back *SUP-1*" in office.slack.direct_messages(office.id("Amal"))[0]["text"]


def test_an_event_that_the_database_could_not_take_is_made_up_for(office: Office) -> None:
    office.verify_members()
    nina = _newcomer(office)
    # Somebody holds the rows for longer than an event may wait.
    connection = office.engine.connect()
    with connection:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("LOCK TABLE dibs.queue_member IN ACCESS EXCLUSIVE MODE")
        joined = office.slack.join(nina.id, office.channel.id)
        connection.exec_driver_sql("ROLLBACK")
    assert joined is not None
    assert joined.status == 200
    assert _standing(office, nina) is None
    office.bot.membership.catch_up()
    office.wait(lambda: _standing(office, nina) in {"eligible", "unverified"})


def test_an_event_whose_time_is_up_when_its_turn_comes_is_made_up_for(office: Office) -> None:
    office.verify_members()
    nina = _newcomer(office)
    _silently(office, nina, joins=True)
    told = {"type": "member_joined_channel", "user": nina.id, "channel": office.channel.id}
    with office.slack.world.lock:
        body = payloads.event(office.slack.world, told)
    app = office.bot.http._app  # noqa: SLF001 - a request that has waited long enough can hardly be made
    assert app is not None
    late = {"deadline": Deadline.after(0)}
    assert app.dispatch(BoltRequest(mode="socket_mode", body=body, context=late)).status == 200
    assert _standing(office, nina) is None
    office.bot.membership.catch_up()
    office.wait(lambda: _standing(office, nina) in {"eligible", "unverified"})


def test_a_join_that_arrives_again_after_the_leave_lets_nobody_in(office: Office) -> None:
    nina = _newcomer(office)
    office.slack.join(nina.id, office.channel.id)
    joined = next(sent for sent in office.slack.traffic.sent if "member_joined" in str(sent.payload))
    office.slack.leave(nina.id, office.channel.id)
    assert office.slack.send_raw(
        json.dumps(joined.payload).encode(), {"Content-Type": "application/json"}
    ).good
    assert _standing(office, nina) == "left"
    office.verify_members()
    assert _standing(office, nina) == "left"
