"""A whole Dibs before a stand-in for Slack: real HTTP, signed requests, a real database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dibs.config import Settings
from dibs.playground import Channel, Person, Result, SlackStandIn
from dibs.store.engine import BACKGROUND, make_engine
from dibs.wiring import Bot, build

SECRET, TOKEN = "a-signing-secret", "xoxb-a-token"
WAIT_SECONDS = 60


def _nothing() -> str:
    return "it did not happen"


@dataclass
class Office:
    """A channel with people in it, a queue, and the bot that serves it."""

    slack: SlackStandIn
    bot: Bot
    channel: Channel
    people: dict[str, Person]
    engine: sa.Engine

    def id(self, name: str) -> str:
        return self.people[name].id

    def name_of(self, user_id: str) -> str:
        return next(name for name, person in self.people.items() if person.id == user_id)

    def make_queue(self, by: str = "Sue", *, key: str = "SUP", minutes: int = 30) -> None:
        """Make a queue as a person does: the command, then the form."""
        opened = self.slack.command(self.id(by), self.channel.id, "/queue", "create")
        assert opened.status == 200, opened
        result = self.slack.submit(
            self.id(by), {"name": "Support", "key": key, "lease_minutes": str(minutes)}
        )
        assert result.closed, result

    def add_task(self, title: str = "Refund order 1001", by: str = "Sue") -> str:
        """Add a task as a person does. Returns the ts of its card once it is posted."""
        before = {message["ts"] for message in self.slack.messages(self.channel.id)}
        result = self.slack.command(self.id(by), self.channel.id, "/queue", f"add {title}")
        assert result.status == 200, result

        def posted() -> list[str]:
            return [m["ts"] for m in self.slack.messages(self.channel.id) if m["ts"] not in before]

        self.wait(posted)
        return posted()[0]

    def press(self, name: str, card: str, button: str, *, deliveries: int = 1) -> Result:
        """Press a button such as `claim` on a card."""
        return self.slack.press(self.id(name), self.channel.id, card, f"task_{button}", deliveries=deliveries)

    def submit(self, name: str, values: Mapping[str, object] | None = None) -> Result:
        """Fill in and send the modal that the person has before them."""
        return self.slack.submit(self.id(name), values)

    def opened(self, name: str) -> dict[str, Any]:
        """The modal that the person has before them."""
        return self.slack.views(self.id(name))[-1]

    def verify_members(self) -> None:
        """Have everybody in the queues' channels looked up, as the jobs do in time."""

        def all_known() -> bool:
            self.bot.membership.catch_up()
            return self.count("queue", members_read_at=None) == 0 and not self.count(
                "queue_member", standing="unverified"
            )

        self.wait(all_known)

    def type(self, name: str, text: str, command: str = "/queue") -> str:
        """Type a command in the channel; what it was answered."""
        result = self.slack.command(self.id(name), self.channel.id, command, text)
        assert result.status == 200, result
        return str(result.ephemeral["text"]) if result.ephemeral else ""

    def card(self, ts: str) -> dict[str, Any]:
        return next(m for m in self.slack.messages(self.channel.id) if m["ts"] == ts)

    def buttons(self, ts: str) -> list[str]:
        """The buttons on a card as it stands, without their common beginning."""
        return [
            element["action_id"].removeprefix("task_")
            for block in self.card(ts)["blocks"]
            if block["type"] == "actions"
            for element in block["elements"]
        ]

    def heard(self, name: str) -> list[str]:
        """What only this person was told, oldest first."""
        return [message["text"] for message in self.slack.ephemerals(self.id(name))]

    def hears(self, name: str, *words: str) -> str:
        """Wait until this person is told something with all these words, and return it."""

        def found() -> list[str]:
            return [text for text in self.heard(name) if all(word in text for word in words)]

        self.wait(found, lambda: f"{name} heard {self.heard(name)}, not {words}")
        return found()[-1]

    def shows(self, ts: str, *words: str) -> None:
        """Wait until the card shows all these words."""
        self.wait(
            lambda: all(word in self.card(ts)["text"] for word in words),
            lambda: f"the card shows {self.card(ts)['text']!r}, not {words}",
        )

    def wait(self, condition: Callable[[], object], otherwise: Callable[[], str] = _nothing) -> None:
        try:
            self.slack.wait_until(condition, timeout=WAIT_SECONDS)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(otherwise()) from error

    def rows(self, sql: str, **values: object) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.text(sql), values).mappings()]

    def execute(self, sql: str, **values: object) -> None:
        with self.engine.connect() as connection:
            connection.execute(sa.text(sql), values)

    def count(self, table: str, **columns: object) -> int:
        """How many rows of a table have these values."""
        where = " AND ".join(f"{column} IS NOT DISTINCT FROM :{column}" for column in columns) or "true"
        rows = self.rows(f"SELECT count(*) AS number FROM dibs.{table} WHERE {where}", **columns)  # noqa: S608
        return int(rows[0]["number"])

    def task(self, number: int = 1) -> dict[str, Any]:
        return self.rows("SELECT * FROM dibs.task WHERE number = :n", n=number)[0]

    def kinds(self, number: int = 1) -> list[str]:
        rows = self.rows(
            "SELECT e.kind FROM dibs.event e JOIN dibs.task t ON t.id = e.task_id "
            "WHERE t.number = :n ORDER BY e.id",
            n=number,
        )
        return [row["kind"] for row in rows]

    def end_lease(self, number: int = 1) -> None:
        """Let a task's lease be over, as an operator's SQL may."""
        self.execute(
            "UPDATE dibs.task SET lease_until = clock_timestamp() - interval '1 second' WHERE number = :n",
            n=number,
        )

    def sweep(self) -> None:
        """Have the sweep run now, and the cards it changed delivered."""
        self.bot.sweep.sweep_once()
        self.bot.delivery.deliver_once()
        while self.rows(
            "SELECT FROM dibs.card WHERE shown_version < wanted_version AND paced_until > clock_timestamp()"
        ):
            # A card that was redrawn a moment ago is left alone for some seconds.
            time.sleep(0.05)
            self.bot.delivery.deliver_once()
        self.bot.delivery.deliver_once()


@contextmanager
def another_bot(office: Office, database_url: str) -> Iterator[Bot]:
    """A second Dibs on the same database and before the same stand-in, as another process would be."""
    settings = Settings(
        slack_bot_token=TOKEN,
        slack_signing_secret=SECRET,
        slack_api_url=office.slack.api_url,
        database_url=database_url,
        port=0,
        data_dir=Path(),
        threads=2,
    )
    bot = build(settings, database_url)
    try:
        yield bot
    finally:
        bot.close()


@contextmanager
def open_office(
    database_url: str,
    *,
    people: tuple[str, ...],
    threads: int = 16,
    bots_way: str | None = None,
    metrics_port: int | None = None,
) -> Iterator[Office]:
    """Start the stand-in and the bot. The jobs run only when a test calls them.

    `bots_way` is the bot's own way to the database, where it is not the test's.
    """
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN) as slack:
        settings = Settings(
            slack_bot_token=TOKEN,
            slack_signing_secret=SECRET,
            slack_api_url=slack.api_url,
            database_url=bots_way or database_url,
            port=0,
            data_dir=Path(),
            threads=threads,
            metrics_port=metrics_port,
        )
        bot = build(settings, settings.database_url)
        serving = threading.Thread(target=bot.http.run)
        serving.start()
        slack.bot_url = f"http://127.0.0.1:{bot.http.port}/slack/events"
        members = {name: slack.add_person(name) for name in people}
        channel = slack.add_channel("support", members=[person.id for person in members.values()])
        engine = make_engine(database_url, BACKGROUND, pool_size=2)
        try:
            yield Office(slack, bot, channel, members, engine)
        finally:
            bot.close()
            serving.join()
            engine.dispose()
