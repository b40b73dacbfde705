"""Dibs on a database that somebody set up in their own way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy as sa
from tests.support.journey import lapse
from tests.support.store import AMAL, open_desk

from dibs.domain.task import State
from dibs.service.queries import TaskQueries
from dibs.service.transitions import TransitionService
from dibs.service.verify import Intact, Scope, VerifyService
from dibs.store import schema
from dibs.store.engine import PRESS, DatabaseUnusable, check_reachable, make_engine
from dibs.store.guard import Guard

UNUSUAL = {
    "DateStyle": "'German, DMY'",
    "IntervalStyle": "'sql_standard'",
    "TimeZone": "'Pacific/Chatham'",
    "bytea_output": "'escape'",
    "extra_float_digits": "-15",
    "search_path": "nowhere",
    "default_transaction_isolation": "'serializable'",
    "default_transaction_deferrable": "on",
}
WORDS = "Rückzahlung 😀"


@contextmanager
def unusual(postgres_server: str, encoding: str) -> Iterator[sa.Engine]:
    name = f"dibs_unusual_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        how = f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        admin.execute(f"CREATE DATABASE {name} {how}")
        for setting, value in UNUSUAL.items():
            admin.execute(f"ALTER DATABASE {name} SET {setting} = {value}")
    engine = make_engine(urlunsplit(urlsplit(postgres_server)._replace(path=f"/{name}")), PRESS, pool_size=2)
    yield engine
    engine.dispose()
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII"])
def test_whatever_a_database_is_set_to_texts_and_times_come_back_as_they_were(
    postgres_server: str, encoding: str
) -> None:
    with unusual(postgres_server, encoding) as engine:
        check_reachable(engine)
        _texts_and_times_come_back(engine)


def test_a_database_that_cannot_keep_all_texts_is_refused_in_one_line(postgres_server: str) -> None:
    with (
        unusual(postgres_server, "LATIN1") as engine,
        pytest.raises(DatabaseUnusable, match=r"DATABASE_URL is encoded as LATIN1.*ENCODING 'UTF8'"),
    ):
        check_reachable(engine)


def _texts_and_times_come_back(engine: sa.Engine) -> None:
    schema.upgrade(engine)
    schema.check(engine)
    desk, service = open_desk(engine), TransitionService(engine)
    promised = datetime(2030, 1, 2, 9, tzinfo=UTC)
    task = desk.task(WORDS)
    assert service.claim(task.id, AMAL, 1).changed
    committed = service.commit(task.id, AMAL, 2, promised).task
    assert committed is not None
    assert (committed.title, committed.committed_to) == (WORDS, promised)
    assert committed.last_at.utcoffset() == UTC.utcoffset(None)
    assert service.release(task.id, AMAL, 3, reason="other", comment=WORDS).changed
    facts = TaskQueries(Guard(engine)).facts(task.id)
    assert facts is not None
    assert facts.handover is not None
    assert facts.handover.comment == WORDS
    assert service.claim(task.id, AMAL, 4).changed
    assert lapse(desk, task).state is State.QUEUED
    assert desk.kinds(task) == ["created", "claimed", "committed", "released", "claimed", "expired"]
    assert isinstance(VerifyService(engine).verify(Scope()), Intact)
