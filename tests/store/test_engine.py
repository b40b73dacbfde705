"""Connections: to the primary, with Dibs' settings and the person's own; one clear line where it fails."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict
from tests.support.proxy import closed_port, proxy_before

from dibs.store.engine import (
    BACKGROUND,
    PRESS,
    DatabaseUnusable,
    check_reachable,
    conninfo,
    make_engine,
)

SECRET = "hunter2"  # noqa: S105 - an example


def refused(url: str) -> str:
    with pytest.raises(DatabaseUnusable) as raised:
        make_engine(url, PRESS, pool_size=1)
    return _line(raised)


def unreachable(url: str) -> str:
    engine = make_engine(url, PRESS, pool_size=1)
    with pytest.raises(DatabaseUnusable) as raised:
        check_reachable(engine)
    engine.dispose()
    return _line(raised)


def _line(raised: pytest.ExceptionInfo[DatabaseUnusable]) -> str:
    line = str(raised.value)
    assert "\n" not in line
    assert "DATABASE_URL" in line
    return line


@pytest.mark.parametrize(
    "url",
    [
        f"postgres//dibs:{SECRET}@host/dibs",
        f"mysql://dibs:{SECRET}@host/dibs",
        f"postgresql://dibs:{SECRET}%zz@host/dibs",
        f"postgresql://dibs:an@{SECRET}@host/dibs",
        f"postgresql://dibs:an@{SECRET}@host,other:5433/dibs",
        f"postgresql://dibs:{SECRET}@[::1/dibs",
        f"postgresql://dibs:{SECRET}@host/dibs?colour=blue",
    ],
)
def test_an_address_that_is_none_is_refused_without_telling_the_password(url: str) -> None:
    line = refused(url)
    assert SECRET not in line
    assert "postgresql://user:password@host:5432/database" in line


def test_nothing_connects_before_its_first_use() -> None:
    make_engine(f"postgresql://127.0.0.1:{closed_port()}/dibs", PRESS, pool_size=1).dispose()


def test_a_closed_port_is_told_in_one_line() -> None:
    line = unreachable(f"postgresql://dibs:{SECRET}@127.0.0.1:{closed_port()}/dibs")
    assert "could not be reached" in line
    assert SECRET not in line


def test_a_port_that_is_none_is_told_in_one_line() -> None:
    assert "could not be reached" in unreachable("postgresql://dibs@127.0.0.1:54x/dibs")


def test_a_database_that_does_not_exist_is_told_in_one_line(database_url: str) -> None:
    assert "no_such_database" in unreachable(f"{database_url}&dbname=no_such_database")


def test_of_several_hosts_the_one_that_answers_is_used(database_url: str) -> None:
    with proxy_before(database_url) as proxy:
        url = proxy.url.replace("host=127.0.0.1", "host=127.0.0.1%2C127.0.0.1").replace(
            f"port={proxy.port}", f"port={closed_port()}%2C{proxy.port}"
        )
        engine = make_engine(url, PRESS, pool_size=1)
        check_reachable(engine)
        engine.dispose()


def test_a_server_that_takes_no_writes_is_not_used(database_url: str) -> None:
    """A standby would decide on what was true some time ago."""
    assert "takes no writes" in unreachable(f"{database_url}&options=-c%20default_transaction_read_only%3Don")


def test_the_persons_own_options_stay(database_url: str) -> None:
    url = f"{database_url}&options=-c%20search_path%3Delsewhere&application_name=ours"
    engine = make_engine(url, BACKGROUND, pool_size=1, name="dibs")
    with engine.connect() as connection:
        shown = {
            name: connection.scalar(sa.text(f"SHOW {name}"))
            for name in (
                "search_path",
                "application_name",
                "lock_timeout",
                "statement_timeout",
                "transaction_isolation",
            )
        }
    engine.dispose()
    assert shown == {
        "search_path": "elsewhere",
        "application_name": "ours",
        "lock_timeout": "3s",
        "statement_timeout": "15s",
        "transaction_isolation": "read committed",
    }


def test_the_persons_own_parameters_stay() -> None:
    built = conninfo_to_dict(
        conninfo("postgresql://a,b:1/dibs?sslmode=verify-full&connect_timeout=7", name="dibs")
    )
    assert (built["host"], built["port"], built["sslmode"]) == ("a,b", ",1", "verify-full")
    assert built["connect_timeout"] == "7"
    assert built["target_session_attrs"] == "read-write"


def test_isolation_is_read_committed_whatever_the_server_prefers(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    engine = make_engine(database_url, PRESS, pool_size=1)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SHOW transaction_isolation")) == "read committed"
    engine.dispose()


def test_each_statement_commits_by_itself(database_url: str) -> None:
    engine = make_engine(database_url, PRESS, pool_size=1)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE public.kept (id int)"))
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM public.kept")
    engine.dispose()
