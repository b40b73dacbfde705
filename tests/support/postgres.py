"""The PostgreSQL that the tests run on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.support.replicas import TEST_POSTGRES_BIN, lone_server

from dibs.store.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator

TEST_DATABASE_URL = "DIBS_TEST_DATABASE_URL"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the libpq URI of a role that may create databases and end other sessions.

    It is an embedded server of the tests' own, one by the programs in the folder that DIBS_TEST_POSTGRES_BIN
    names, or the one that DIBS_TEST_DATABASE_URL names, so that the same tests run on every version of
    PostgreSQL that Dibs supports.
    """
    named = os.environ.get(TEST_DATABASE_URL)
    if named:
        yield named
        return
    if os.environ.get(TEST_POSTGRES_BIN):
        with lone_server() as other:
            yield other.url
        return
    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), fsync=False) as server:
        yield server.url
