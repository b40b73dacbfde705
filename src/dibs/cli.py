"""The command line: `python app.py` or `dibs`, which runs the bot, or the playground where nothing is set."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from dibs import audit_cli, config, demonstration
from dibs.config import ConfigError, Settings
from dibs.playground import SlackStandIn
from dibs.store.embedded import EmbeddedPostgres, EmbeddedPostgresError
from dibs.store.engine import DatabaseUnusable
from dibs.wiring import Bot, build

_FAILED = 1
_AWAKE_SECONDS = 0.5
"""How often the main thread looks whether a signal was given to another."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit code.

    Whatever is wrong with the settings, the database or Slack is told in one line.
    """
    asked = _parser().parse_args(arguments)
    if asked.command == "audit":
        return audit_cli.run(asked, os.environ)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # That a run is skipped since the one before it still runs is told once, by Dibs' own scheduler.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    for chatty in ("alembic", "waitress.queue", "slack_bolt"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Bolt warns of a token in the environment that it does not use.
    logging.getLogger("dibs.slack.bolt").setLevel(logging.ERROR)
    # What goes wrong with a request to Slack is told by the one who sent it.
    logging.getLogger("slack_sdk").setLevel(logging.CRITICAL)
    stopped = _stop_on_signals()
    try:
        if asked.command == "playground":
            run_playground(config.for_playground(os.environ), stopped)
        else:
            settings = config.load(os.environ)
            (run_playground if settings.playground else run_bot)(settings, stopped)
    except (ConfigError, DatabaseUnusable, EmbeddedPostgresError) as error:
        sys.stderr.write(f"dibs: {error}\n")
        return _FAILED
    return 0


def run_bot(settings: Settings, stopped: threading.Event) -> None:
    """Run the bot until `stopped` is set."""
    with (
        _database(settings) as (url, keep),
        _running(build(settings, url, keep_database=keep)) as bot,
    ):
        where = f"http://{settings.host}:{bot.http.port}"
        over = "over Socket Mode" if bot.socket else f"to {where}/slack/events"
        _say(f"Dibs is running. Slack's requests come {over}; {where}/readyz tells how it is.")
        _wait_for(stopped)


def run_playground(settings: Settings, stopped: threading.Event) -> None:
    """Run the bot with a stand-in for Slack before it, on loopback only, until `stopped` is set."""
    port = settings.playground_port
    secret, token = secrets.token_hex(16), f"xoxb-{secrets.token_hex(12)}"
    with (
        _database(settings) as (url, keep),
        _standing_in(SlackStandIn(signing_secret=secret, bot_token=token, port=port)) as slack,
    ):
        in_playground = dataclasses.replace(
            settings,
            host="127.0.0.1",
            slack_bot_token=token,
            slack_signing_secret=secret,
            slack_api_url=slack.api_url,
        )
        with _running(build(in_playground, url, keep_database=keep)) as bot:
            slack.bot_url = f"http://127.0.0.1:{bot.http.port}/slack/events"
            demonstration.set_the_scene(slack, bot)
            where = f" in {settings.data_dir / 'playground'}" if settings.embedded_database else ""
            _say(
                "The playground is ready: a stand-in for Slack on this machine, with a few people in it.\n"
                f"Open {slack.page_url} in a browser. Press Ctrl-C here to stop.\n"
                f"The tasks and their records are kept{where}; what else was said is not."
            )
            _wait_for(stopped)


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[tuple[str, Callable[[], object] | None]]:
    """Yield the database's URL, and what starts it again should it die, where that is up to Dibs."""
    if not settings.embedded_database:
        yield settings.database_url, None
        return
    # The playground has a folder of its own, so that its tasks never turn up in a real installation.
    folder = settings.data_dir / "playground" if settings.playground else settings.data_dir
    with EmbeddedPostgres(folder) as server:
        yield server.url, server.start


@contextlib.contextmanager
def _standing_in(slack: SlackStandIn) -> Iterator[SlackStandIn]:
    try:
        slack.start()
    except OSError as error:
        raise ConfigError(
            f"The playground's page cannot use its port: {error}. Set DIBS_PLAYGROUND_PORT to a free one."
        ) from error
    try:
        yield slack
    finally:
        slack.stop()


@contextlib.contextmanager
def _running(bot: Bot) -> Iterator[Bot]:
    serving = threading.Thread(target=bot.http.run, name="dibs-http", daemon=True)
    serving.start()
    try:
        bot.start()
        yield bot
    finally:
        bot.close()


def _stop_on_signals() -> threading.Event:
    stopped = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopped


def _wait_for(stopped: threading.Event) -> None:
    # The system may give a signal to any thread, but only the main one runs its handler, once it wakes up.
    while not stopped.wait(_AWAKE_SECONDS):
        pass


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dibs",
        description="A Slack bot for shared team queues. Without a command it runs the bot with the settings "
        "in the environment, or the playground where neither a SLACK_* variable nor DATABASE_URL is set.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("run", help="run the bot (the same as no command)")
    commands.add_parser("playground", help="try Dibs on this machine, without Slack")
    audit_cli.add_to(commands)
    return parser


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()
