"""Dibs behind PgBouncer: it works where each connection has a session of its own, and says so where not."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.support.bot import open_office
from tests.support.pooler import pooler_before, where_installed

from dibs.config import Settings
from dibs.store.engine import PRESS, DatabaseUnusable, make_engine
from dibs.wiring import build

pytestmark = where_installed


def test_a_pooler_that_gives_whole_sessions_is_as_good_as_the_server(database_url: str) -> None:
    with (
        pooler_before(database_url, "session") as pooled,
        open_office(database_url, people=("Amal", "Bilal", "Sue"), bots_way=pooled) as office,
    ):
        office.make_queue()
        # Often enough for the driver to prepare the statement.
        for number in range(1, 9):
            seen = office.card(office.add_task(f"Refund order {number}"))
            for name in ("Amal", "Bilal"):
                office.slack.press_stale(office.id(name), seen, "task_claim")
            office.wait(lambda number=number: office.task(number)["state"] == "claimed")  # type: ignore[misc]
        assert office.count("event", kind="claimed") == 8
        assert office.count("event", kind="claim_rejected") == 8


def test_settings_reach_the_session_through_a_pooler(database_url: str) -> None:
    with pooler_before(database_url, "session") as pooled:
        engine = make_engine(pooled, PRESS, pool_size=1)
        with engine.connect() as connection:
            shown = [
                connection.scalar(sa.text(f"SHOW {name}"))
                for name in ("lock_timeout", "statement_timeout", "transaction_isolation", "plan_cache_mode")
            ]
        engine.dispose()
    assert shown == ["1200ms", "1700ms", "read committed", "force_generic_plan"]


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_shares_sessions_is_refused_at_the_start_in_one_line(
    database_url: str, mode: str
) -> None:
    with pooler_before(database_url, mode) as pooled, pytest.raises(DatabaseUnusable) as refused:
        build(Settings(slack_bot_token="xoxb-none", database_url=pooled), pooled)  # noqa: S106 - an example
    assert "pool_mode = session" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_pooler_with_too_few_sessions_is_told_at_the_start_in_one_line(database_url: str) -> None:
    with (
        pooler_before(database_url, "session", size=20) as pooled,
        open_office(database_url, people=(), bots_way=pooled) as office,
        pytest.raises(DatabaseUnusable) as refused,
    ):
        office.bot.start()
    assert "give DIBS_THREADS + 18 (" in str(refused.value)
    assert "default_pool_size" in str(refused.value)
    assert "\n" not in str(refused.value)
