"""A PgBouncer before a database, as installations have it that share one server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.support.embedded import PATIENCE, wait_until
from tests.support.proxy import closed_port, proxy_before

from dibs.store.embedded.account import account_for
from dibs.store.embedded.process import child_environment, launch_command

_PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
_CONFIGURATION = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
"""

where_installed = pytest.mark.skipif(_PROGRAM is None, reason="needs PgBouncer")


@contextmanager
def pooler_before(url: str, mode: str, *, size: int = 60) -> Iterator[str]:
    """Yield the address of the database at `url` through a PgBouncer that gives away `size` sessions."""
    # PgBouncer runs as a user that cannot reach the server's own socket.
    with proxy_before(url) as way, tempfile.TemporaryDirectory(prefix="dibs-pooler-") as name:
        port, account = closed_port(), account_for(Path("/nowhere"))
        given = conninfo_to_dict(way.url)
        server = make_conninfo(
            "", **{key: given[key] for key in ("host", "port", "user", "password") if given.get(key)}
        )
        ini = Path(name, "pgbouncer.ini")
        ini.write_text(_CONFIGURATION.format(server=server, port=port, mode=mode, size=size))
        for path in (Path(name), ini):
            os.chown(path, account.uid, account.gid)
        address = f"postgresql://dibs@127.0.0.1:{port}/{given['dbname']}?sslmode=disable"
        with subprocess.Popen(  # noqa: S603 - a fixed program
            launch_command(account, [str(_PROGRAM), "--quiet", str(ini)]), env=child_environment(), cwd="/"
        ) as pooler:
            try:
                wait_until(lambda: _listens(port))
                yield address
            finally:
                pooler.kill()
                pooler.wait(PATIENCE)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
