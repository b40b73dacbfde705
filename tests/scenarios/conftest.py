"""Offices as most scenarios need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.bot import Office, open_office

from dibs.playground import Channel


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    """A channel with people and a queue. Few threads are enough for a few people, and start sooner."""
    people = ("Amal", "Bilal", "Hana", "Marek", "Dana", "Sue")
    with open_office(database_url, people=people, threads=6) as office:
        office.make_queue()
        yield office


@pytest.fixture
def alerts(office: Office) -> Channel:
    """The queue's alert channel, with its supervisor in it."""
    channel = office.slack.add_channel("alerts", members=[office.id("Sue")])
    office.execute("UPDATE dibs.queue SET alert_channel = :channel", channel=channel.id)
    return channel
