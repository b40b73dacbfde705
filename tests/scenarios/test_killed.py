"""A sender that is killed at any step of a delivery loses nothing, and nothing is posted twice."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.support.bot import Office
from tests.support.killed import deliver_until

from dibs.playground import Channel
from dibs.service import notices
from dibs.service.steps import Step
from dibs.store import outbox

STEPS_OF_A_POST = [Step.TAKEN, Step.READ, Step.SENT, Step.NOTED]


def killed(office: Office, database_url: str, what: str, step: Step) -> None:
    """Have another process deliver until it is killed, and let the time pass in which nobody takes over."""
    ended = deliver_until(what, step, database_url, office.slack.api_url)
    assert ended == -signal.SIGKILL
    due(office)


def due(office: Office) -> None:
    for table in ("card", "outbox"):
        office.execute(
            f"UPDATE dibs.{table} SET next_try_at = clock_timestamp() - interval '1 second', "  # noqa: S608 - ours
            "sender_until = sender_until - interval '1 hour'"
        )
    office.execute("UPDATE dibs.card SET paced_until = NULL")


def finished(office: Office) -> None:
    """Have this process deliver what is left, and see that nothing is."""
    for _ in range(3):
        office.bot.delivery.deliver_once()
        office.bot.notices.deliver_once()
        due(office)
    assert office.rows("SELECT key FROM dibs.outbox WHERE shown < wanted") == []
    assert office.rows("SELECT task_id FROM dibs.card WHERE shown_version < wanted_version") == []


def new_task(office: Office) -> None:
    """Add a task of which no card is sent yet."""
    assert office.bot.queues.add_task(1, "Refund order 1001", office.id("Sue"), op_id="add")


def start_one(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    office.wait(lambda: "start" in office.buttons(card))
    office.press("Amal", card, "start")


def lapse(office: Office, tasks: int = 1) -> None:
    """Let started tasks lapse, whose alerts nobody has sent yet."""
    for _ in range(tasks):
        start_one(office)
    office.wait(lambda: office.bot.outgoing.waiting == 0)
    for number in range(1, tasks + 1):
        office.end_lease(number)
    office.bot.sweep.sweep_once()
    due(office)
    office.execute("DELETE FROM dibs.outbox WHERE kind = 'lease_ended'")


def posted(office: Office, channel: Channel) -> list[dict[str, Any]]:
    return office.slack.messages(channel.id)


@pytest.mark.parametrize("step", STEPS_OF_A_POST)
def test_a_card(office: Office, database_url: str, step: Step) -> None:
    new_task(office)
    killed(office, database_url, "cards", step)
    finished(office)
    [card] = posted(office, office.channel)
    assert "Waiting for an owner" in card["text"]


@pytest.mark.parametrize("lost", [True, False])
def test_a_card_that_is_looked_for(office: Office, database_url: str, lost: bool) -> None:  # noqa: FBT001
    new_task(office)
    office.slack.faults.fail_next("chat.postMessage", lose_answer=lost, cut=not lost)
    office.bot.delivery.deliver_once()
    due(office)
    killed(office, database_url, "cards", Step.LOOKED)
    finished(office)
    assert len(posted(office, office.channel)) == 1


@pytest.mark.parametrize("step", STEPS_OF_A_POST)
def test_a_redrawn_card(office: Office, database_url: str, step: Step) -> None:
    lapse(office)
    killed(office, database_url, "cards", step)
    finished(office)
    [card] = posted(office, office.channel)
    assert "Back in the queue" in card["text"]


@pytest.mark.parametrize("step", [Step.GONE, *STEPS_OF_A_POST])
def test_a_card_that_was_deleted_by_hand(office: Office, database_url: str, step: Step) -> None:
    lapse(office)
    office.slack.delete_message(office.channel.id, posted(office, office.channel)[0]["ts"])
    killed(office, database_url, "cards", step)
    finished(office)
    [card] = posted(office, office.channel)
    assert "Back in the queue" in card["text"]


@pytest.mark.parametrize("step", STEPS_OF_A_POST)
@pytest.mark.parametrize("tasks", [1, 5])
def test_an_alert(office: Office, alerts: Channel, database_url: str, step: Step, tasks: int) -> None:
    lapse(office, tasks)
    killed(office, database_url, "notices", step)
    finished(office)
    [alert] = posted(office, alerts)
    for number in range(1, tasks + 1):
        assert f"*SUP-{number}*" in alert["text"]


@pytest.mark.parametrize("lost", [True, False])
def test_an_alert_that_is_looked_for(
    office: Office,
    alerts: Channel,
    database_url: str,
    lost: bool,  # noqa: FBT001
) -> None:
    lapse(office)
    office.slack.faults.fail_next("chat.postMessage", lose_answer=lost, cut=not lost)
    office.bot.notices.deliver_once()
    due(office)
    killed(office, database_url, "notices", Step.LOOKED)
    finished(office)
    assert len(posted(office, alerts)) == 1


@pytest.mark.parametrize("step", STEPS_OF_A_POST)
def test_a_redrawn_alert(office: Office, alerts: Channel, database_url: str, step: Step) -> None:
    lapse(office)
    office.bot.notices.deliver_once()
    # Somebody else has changed the task, and nobody has drawn that yet.
    office.execute("UPDATE dibs.task SET state = 'done', needs_check = false, owner_id = created_by")
    office.execute("UPDATE dibs.outbox SET wanted = wanted + 1")
    killed(office, database_url, "notices", step)
    finished(office)
    [alert] = posted(office, alerts)
    assert "was checked" in alert["text"]


@pytest.mark.parametrize("step", STEPS_OF_A_POST)
def test_a_direct_message(office: Office, database_url: str, step: Step) -> None:
    lapse(office)
    killed(office, database_url, "notices", step)
    finished(office)
    assert len(office.slack.direct_messages(office.id("Sue"))) == 1


def test_what_a_killed_sender_left_is_taken_over_within_ten_seconds_and_not_while_it_may_be_alive() -> None:
    job_every = 2
    assert notices.SEND_SECONDS + 1 < outbox.SENDER_SECONDS
    assert outbox.SENDER_SECONDS + job_every < 10


def test_every_step_is_tried() -> None:
    tried = {*STEPS_OF_A_POST, Step.LOOKED, Step.GONE}
    assert tried == set(Step)
