"""`dibs audit export` and `dibs audit verify`: the records on the command line."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from dibs import config
from dibs.config import ConfigError
from dibs.deadline import Deadline
from dibs.domain.audit import Selection, Topic
from dibs.domain.errors import StoreError
from dibs.service.export import ExportService, Form, in_utc
from dibs.service.verify import Intact, Misfit, SavedHeadsUnreadable, Scope, VerifyService
from dibs.store import schema
from dibs.store.embedded import EmbeddedPostgresError, reached
from dibs.store.engine import UNHURRIED, DatabaseUnusable, check_reachable, make_engine
from dibs.store.errors import sorted_out
from dibs.store.guard import Guard

FITS, DOES_NOT_FIT, FAILED = 0, 1, 2
"""The exit codes."""

_TASK = re.compile(r"([A-Z][A-Z0-9]{1,9})-([1-9][0-9]{0,8})")
_AGO = re.compile(r"([1-9][0-9]{0,4})([hd])")
_UNITS = {"h": "hours", "d": "days"}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `audit` to the command line."""
    audit = commands.add_parser(
        "audit", help="the records: write them out, or verify that nobody altered them"
    )
    does = audit.add_subparsers(dest="audit", metavar="export|verify", required=True)
    export = does.add_parser("export", help="write the records out, oldest first, with times in UTC")
    _add_selection(export)
    export.add_argument("--user", metavar="U123", help="what this person did, and what befell their tasks")
    export.add_argument(
        "--since", type=_since, metavar="WHEN", help="2026-11-01, 2026-11-01T14:00 (both in UTC), 7d or 24h"
    )
    export.add_argument("--format", type=Form, choices=list(Form), default=Form.CSV)
    export.add_argument("--output", type=Path, metavar="FILE", help="instead of the standard output")
    verify = does.add_parser(
        "verify",
        help="verify every hash; exit code 0: all fits, 1: something does not, 2: it could not be verified",
    )
    _add_selection(verify)
    verify.add_argument(
        "--save", type=Path, metavar="FILE", help="write down the head of each task, to be kept"
    )
    verify.add_argument(
        "--against", type=Path, metavar="FILE", help="see that the heads that were saved still stand"
    )


def run(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Carry out what was asked for, and return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="dibs: %(message)s")
    try:
        with _engine(environ) as engine:
            return _export(asked, engine) if asked.audit == "export" else _verify(asked, engine)
    except BrokenPipeError:
        # Whoever read has read enough; Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("dibs: stopped\n")
    except (ConfigError, DatabaseUnusable, EmbeddedPostgresError, SavedHeadsUnreadable, OSError) as error:
        sys.stderr.write(f"dibs: {error}\n")
    except (StoreError, sa.exc.DBAPIError) as error:
        failure = sorted_out(error) if isinstance(error, sa.exc.DBAPIError) else error
        sys.stderr.write(f"dibs: the database did not answer: {' '.join(str(failure).split())}\n")
    return FAILED


def _export(asked: argparse.Namespace, engine: sa.Engine) -> int:
    selections = _selections(asked, VerifyService(engine))
    exports = ExportService(Guard(engine))
    with _output(asked.output) as out:
        number = exports.write(selections, asked.format, out)
    sys.stderr.write(f"{number} events were written.\n")
    return FITS


def _verify(asked: argparse.Namespace, engine: sa.Engine) -> int:
    service = VerifyService(engine)
    scope = Scope()
    if asked.task:
        scope = Scope(task_id=_only(service.tasks(*asked.task), f"task {'-'.join(map(str, asked.task))}"))
    elif asked.queue:
        scope = Scope(
            queue_id=_only([queue for queue, _ in service.queues(asked.queue)], f"queue {asked.queue}")
        )
    try:
        found = _verified(service, scope, asked)
    except _DoesNotFit as error:
        sys.stdout.write(f"Does not fit: {error}.\n")
        return DOES_NOT_FIT
    sys.stdout.write(_said(found))
    return FITS


class _DoesNotFit(Exception):
    """So that heads which were found before it are not saved as if all were well."""


def _verified(service: VerifyService, scope: Scope, asked: argparse.Namespace) -> Intact:
    if asked.against and scope != Scope():
        raise ConfigError("--against looks at every task: leave out --task and --queue.")
    with contextlib.ExitStack() as files:
        saved = files.enter_context(asked.against.open(encoding="utf-8")) if asked.against else ()
        save = files.enter_context(_beside(asked.save)).write if asked.save else _forget
        found = service.verify(scope, saved=saved, save=save)
        if isinstance(found, Misfit):
            at = f"event {found.event_id}: " if found.event_id else ""
            raise _DoesNotFit(f"{found.where}, {at}{found.what}")
        return found


def _forget(_line: str) -> None:
    """Do nothing with a head that is not to be saved."""


def _said(found: Intact) -> str:
    lines = [
        f"Everything fits: {found.tasks} tasks, {found.events} events, {found.release_cards} release cards.",
        f"Head over {found.tasks} tasks at {in_utc(datetime.now(UTC))}: {found.head}",
    ]
    if found.before_the_chain:
        lines.insert(
            1, f"{found.before_the_chain} events are from before the chain, and have no hash to verify."
        )
    return "\n".join(lines) + "\n"


def _add_selection(parser: argparse.ArgumentParser) -> None:
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--task", type=_task, metavar="SUP-12", help="only this task")
    of.add_argument("--queue", type=str.upper, metavar="SUP", help="only this queue")


def _task(written: str) -> tuple[str, int]:
    found = _TASK.fullmatch(written.upper())
    if found is None:
        raise argparse.ArgumentTypeError(f"a task is written like SUP-12, and not {written!r}")
    return found[1], int(found[2])


def _since(written: str) -> datetime:
    if found := _AGO.fullmatch(written):
        return datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"a time is written like 2026-11-01, 2026-11-01T14:00, 7d or 24h, and not {written!r}"
        ) from None


def _selections(asked: argparse.Namespace, service: VerifyService) -> list[Selection]:
    if asked.task and asked.user:
        raise ConfigError("--user says what a person did in queues: leave out --task, or --user.")
    if asked.task:
        name = "-".join(map(str, asked.task))
        return [Selection(Topic.TASK, (), _only(service.tasks(*asked.task), f"task {name}"), asked.since)]
    queues = tuple(queue for queue, _ in service.queues(asked.queue))
    if asked.queue:
        _only(queues, f"queue {asked.queue}")
    if asked.user:
        return [Selection(Topic.PERSON, queues, asked.user, asked.since)]
    return [Selection(Topic.QUEUE, (queue,), queue, asked.since) for queue in queues]


def _only(found: list[int] | tuple[int, ...], what: str) -> int:
    if len(found) == 1:
        return found[0]
    raise ConfigError(f"There is no {what}." if not found else f"There is more than one {what}.")


@contextlib.contextmanager
def _output(file: Path | None) -> Iterator[IO[str]]:
    if file is not None:
        with _beside(file) as out:
            yield out
        return
    out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="", write_through=False)
    try:
        yield out
        out.flush()
    finally:
        with contextlib.suppress(BrokenPipeError, ValueError):
            out.detach()


@contextlib.contextmanager
def _beside(file: Path) -> Iterator[IO[str]]:
    """Write a file that is there only once it is whole."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as out:
            yield out
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _engine(environ: Mapping[str, str]) -> Iterator[sa.Engine]:
    """The database of the bot with these settings. Nothing of Slack is needed, and nothing is migrated."""
    settings = config.load(environ, with_slack=False)
    folder = settings.data_dir / "playground" if settings.playground else settings.data_dir
    with contextlib.ExitStack() as held:
        url = settings.database_url or held.enter_context(reached(folder))
        engine = make_engine(url, UNHURRIED, pool_size=2, name="dibs-audit")
        held.callback(engine.dispose)
        check_reachable(engine)
        if not schema.found_current(Guard(engine), Deadline.after(30)):
            raise DatabaseUnusable(
                "The database's tables are not those of this version of Dibs. Start the bot once with it."
            )
        yield engine
