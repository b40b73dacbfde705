"""What every test may ask for: a server, and a fresh database on it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from tests.support.bot import Office, open_office
from tests.support.postgres import postgres_server
from tests.support.store import Desk, open_desk

from dibs.service.transitions import TransitionService
from dibs.store import schema
from dibs.store.engine import BACKGROUND, PRESS, make_engine

__all__ = ["postgres_server"]

# The same examples each time, however long a busy machine takes for one: a change is judged by what it
# changes. Others are looked for with `pytest --hypothesis-profile=default`.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

_numbers = itertools.count(1)


def _database(server: str, name: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def template(postgres_server: str) -> Iterator[str]:
    """A migrated database that is copied for each test, which is much quicker than migrating again."""
    name = f"dibs_template_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    engine = make_engine(_database(postgres_server, name), BACKGROUND, pool_size=1)
    schema.upgrade(engine)
    engine.dispose()
    yield name
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(postgres_server: str, template: str) -> Iterator[str]:
    """A libpq URI of a database of the test's own, migrated and empty."""
    name = f"dibs_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _database(postgres_server, name)
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    """An engine as presses use it, on the test's own database."""
    engine = make_engine(database_url, PRESS, pool_size=16)
    yield engine
    engine.dispose()


@pytest.fixture
def desk(engine: sa.Engine) -> Desk:
    """A queue with people in it."""
    return open_desk(engine)


@pytest.fixture
def service(engine: sa.Engine) -> TransitionService:
    """The operations on the test's own database."""
    return TransitionService(engine)


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    """A channel with people and a queue, served by a whole Dibs."""
    with open_office(database_url, people=("Amal", "Bilal", "Hana", "Marek", "Dana", "Sue")) as office:
        office.make_queue()
        # Or the first press of everybody would also look them up, which a busy machine may not do in time.
        office.verify_members()
        yield office
