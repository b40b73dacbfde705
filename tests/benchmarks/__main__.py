"""What a press costs over what it cannot do without: `python -m tests.benchmarks` from the repository's root.

It starts a PostgreSQL of its own, with fsync on, and takes some minutes. Each ratio is taken within a round,
whose sides run right after one another; the median of the rounds is shown, with the least and the greatest.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

import psycopg
from tests.benchmarks import claims, expiry, figures, presses
from tests.benchmarks.database import open_stock

from dibs.store.embedded import EmbeddedPostgres

PARTS = ("claims", "presses", "sweep")


def main() -> None:
    asked = _parser().parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="dibs-benchmark-", dir=asked.data_dir) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        with psycopg.connect(server.url) as connection:
            version = connection.info.parameter_status("server_version")
            fsync = connection.execute("SHOW fsync").fetchone()
        figures.remark(
            f"PostgreSQL {version}, fsync {fsync[0] if fsync else '?'}; Python {platform.python_version()}; "
            f"{os.cpu_count()} processors; {asked.rounds} rounds. Medians of the rounds (least to greatest)."
        )
        stock = open_stock(server.url, "benchmark")
        if "claims" in asked.parts:
            claims.measure(server.bin_dir, stock, rounds=asked.rounds)
        if "presses" in asked.parts:
            presses.measure(server.bin_dir, stock, rounds=asked.rounds)
        if "sweep" in asked.parts:
            expiry.measure(server.url, rounds=asked.rounds, sizes=asked.tasks)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--tasks", type=int, nargs="+", default=expiry.SIZES, help="how many tasks the sweep is among"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="where the database lies meanwhile (default: the place for temporary files)",
    )
    return parser


if __name__ == "__main__":
    main()
