"""The whole program on a server whose clock is moved, as the people before Slack see it."""

from __future__ import annotations

from pathlib import Path

import psycopg
from tests.support.bot import SECRET, TOKEN
from tests.support.embedded import PATIENCE, on_linux
from tests.support.moved_clock import needs_faketime, server_with_movable_clock
from tests.support.programs import programs

from dibs.playground import SlackStandIn

pytestmark = [on_linux, needs_faketime]


def test_a_jump_ahead_is_told_once_and_a_press_on_resume_lets_leases_end_again(tmp_path: Path) -> None:
    with (
        server_with_movable_clock() as clocks,
        SlackStandIn(signing_secret=SECRET, bot_token=TOKEN) as slack,
        programs(2, slack, clocks.url, tmp_path, DIBS_SWEEP_SECONDS="0.5") as running,
    ):
        amal, sue = slack.add_person("Amal"), slack.add_person("Sue")
        channel = slack.add_channel("support", members=[amal.id, sue.id])
        slack.bot_url = running[0].address
        slack.command(sue.id, channel.id, "/queue", "create")
        assert slack.submit(sue.id, {"name": "Support", "key": "SUP", "lease_minutes": "30"}).closed
        slack.command(sue.id, channel.id, "/queue", "add Refund order 1001")
        slack.wait_until(lambda: slack.messages(channel.id), PATIENCE)
        card = slack.messages(channel.id)[0]["ts"]
        slack.press(amal.id, channel.id, card, "task_claim")
        slack.wait_until(lambda: "owner <@" in slack.messages(channel.id)[0]["text"], PATIENCE)

        clocks.step_database(3600)
        slack.wait_until(lambda: slack.direct_messages(sue.id), PATIENCE)
        [alert] = slack.direct_messages(sue.id)
        assert "jumped ahead by 3600 s" in alert["text"]
        clocks.step_database(-3600)
        with psycopg.connect(clocks.url, autocommit=True) as connection:
            connection.execute("UPDATE dibs.task SET lease_until = clock_timestamp() - interval '1 second'")
            connection.execute("SELECT pg_sleep(3)")
            assert connection.execute("SELECT state FROM dibs.task").fetchone() == ("claimed",)
            [sent] = connection.execute("SELECT DISTINCT channel_id FROM dibs.outbox").fetchall()
        slack.press(sue.id, sent[0], alert["ts"], "queue_resume")
        slack.wait_until(
            lambda: "because the lease expired" in slack.messages(channel.id)[0]["text"], PATIENCE
        )
        [told] = [said["text"] for said in slack.ephemerals(sue.id) if "goes on" in said["text"]]
        assert "leases end again in every queue" in told
        assert len(slack.direct_messages(sue.id)) == 1
