"""The statement of a claim, run by pgbench: what PostgreSQL and its own client take for it alone."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.database import AMAL, Stock
from tests.benchmarks.figures import Run

from dibs.domain.transitions import Operation
from dibs.store.engine import PRESS, conninfo, settings_of
from dibs.store.operations import conditional_write

# SQLAlchemy and pgbench write parameters alike, as :name. What is not set here is null, such as :detail.
_SETTINGS = {"actor": AMAL, "version": "1", "looked_up": "true", "judge_only": "false", "turn": "-1"}
_SCRIPT = """
\\set turn :turn + 1
\\set task_id :first + :client_id * :each + :turn
\\set op_id :task_id
{statement};
"""
_MICRO = 1e-6


def claim_once_each(
    bin_dir: Path,
    stock: Stock,
    *,
    clients: int,
    each: int,
    warm_up: int,
    not_final: Sequence[str] = (),
    per_second: float | None = None,
) -> Run:
    """Let each client claim `each` tasks, one after another or at `per_second`.

    The first `warm_up` of each client are left out: they connect, and the statement is planned there.
    """
    variables = {
        **_SETTINGS,
        "not_final": "{" + ",".join(not_final) + "}",
        "first": str(stock.take(clients * each)),
        "each": str(each),
    }
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "claim.sql")
        script.write_text(_SCRIPT.format(statement=conditional_write(Operation.CLAIM).text))
        command = [
            *(bin_dir / "pgbench", "--no-vacuum", "--protocol=prepared", "--log", "--log-prefix=times"),
            *("--client", clients, "--jobs", min(clients, 2), "--transactions", each, "--file", script),
            *(f"--define={name}={value}" for name, value in variables.items()),
            *([f"--rate={per_second}"] if per_second else []),
            conninfo(stock.url, name="pgbench"),
        ]
        options = " ".join(
            f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings_of(PRESS).items()
        )
        done = subprocess.run(  # noqa: S603 - PostgreSQL's own program, without a shell
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, "PGOPTIONS": options},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = [
            line.split() for log in Path(folder).glob("times.*") for line in log.read_text().splitlines()
        ]
    stock.expect_claims(clients * each)
    # client, transaction, time, script, epoch, microseconds and, where paced, how late it began
    times = [
        (int(line[2]) - (int(line[6]) if per_second else 0)) * _MICRO
        for line in lines
        if int(line[1]) >= warm_up
    ]
    return Run(times, clients)
