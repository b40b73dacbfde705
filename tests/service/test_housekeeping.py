"""Messages that are over are dropped in time; what still follows its task, or waits, stays."""

from __future__ import annotations

import pytest
from tests.support.store import Desk

from dibs.service.notices import DAYS_KEPT, NoticeService
from dibs.service.queries import TaskQueries
from dibs.slack.notices import SlackNotices
from dibs.slack.web import SlackWeb
from dibs.store.guard import Guard

OVER = {
    "shown": 1,
    "wanted": 1,
    "live": False,
    "given_up": None,
    "kind": "lease_ended",
    "days": DAYS_KEPT + 1,
}


@pytest.fixture
def notices(desk: Desk) -> NoticeService:
    guard = Guard(desk.engine)
    # Nothing is sent here, so nobody listens at this address.
    return NoticeService(
        guard, TaskQueries(guard), SlackNotices(SlackWeb("-", "http://127.0.0.1:9/").sending)
    )


def keep(desk: Desk, key: str, **differently: object) -> None:
    desk.execute(
        """INSERT INTO dibs.outbox (queue_id, key, kind, recipient, payload, live, shown, wanted, given_up,
                                    created_at)
           VALUES (:queue, :key, :kind, 'U0', '{}', :live, :shown, :wanted, :given_up,
                   clock_timestamp() - make_interval(days => CAST(:days AS integer)))""",
        queue=desk.queue.id,
        key=key,
        **{**OVER, **differently},
    )


def test_only_what_was_over_long_ago_is_dropped(desk: Desk, notices: NoticeService) -> None:
    keep(desk, "sent long ago")
    keep(desk, "given up long ago", shown=0, given_up="user_disabled")
    kept: dict[str, dict[str, object]] = {
        "sent lately": {"days": DAYS_KEPT - 1},
        "still follows its task": {"live": True},
        "still waits": {"shown": 0},
        "told once and for all": {"kind": "channel_gone"},
    }
    for key, differently in kept.items():
        keep(desk, key, **differently)
    assert notices.forget_old() == 2
    assert {row["key"] for row in desk.rows("SELECT key FROM dibs.outbox")} == set(kept)
    assert notices.forget_old() == 0
