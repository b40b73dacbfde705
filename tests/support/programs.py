"""Dibs as it is started by hand, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.bot import SECRET, TOKEN

from dibs.playground import SlackStandIn

_ROOT = Path(__file__).resolve().parents[2]
_OURS = ("SLACK_", "DIBS_", "DATABASE_URL", "HOST", "PORT")


@dataclass(frozen=True)
class Program:
    """A process, and where it takes Slack's requests."""

    process: subprocess.Popen[str]
    address: str


@contextmanager
def programs(
    number: int, slack: SlackStandIn, database_url: str, logs: Path, **settings: str
) -> Iterator[list[Program]]:
    """So many processes on one database and before one stand-in, each of which says where it listens.

    What they log is in files of the folder `logs`. They are killed in the end if they still run.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment = {
        **inherited,
        "SLACK_BOT_TOKEN": TOKEN,
        "SLACK_SIGNING_SECRET": SECRET,
        "SLACK_API_URL": slack.api_url,
        "DATABASE_URL": database_url,
        "PORT": "0",
        "DIBS_THREADS": "2",
        **settings,
    }
    with ExitStack() as stack:
        started: list[subprocess.Popen[str]] = []
        for each in range(number):
            log = stack.enter_context((logs / f"{each}.log").open("w"))
            program = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=_ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            stack.callback(_end, program)
            started.append(program)
        yield [Program(program, _address(program)) for program in started]


def _address(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    for line in program.stdout:
        if found := re.search(r"http://\S+/slack/events", line):
            return found[0]
    raise AssertionError("a process did not start")


def _end(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.wait()
    if program.stdout is not None:
        program.stdout.close()
