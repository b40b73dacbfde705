"""The database's clock and a process's own, which a test may set.

The database's is set by functions of the same names that are found before PostgreSQL's own: whatever Dibs
asks of the clock is really asked of the server, without a wait for an hour to pass.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import psycopg

_FAKE = """
CREATE SCHEMA fake;
CREATE TABLE fake.shift (seconds double precision NOT NULL);
INSERT INTO fake.shift VALUES (0);
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM fake.shift))';
CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT pg_catalog.now() + make_interval(secs => (SELECT seconds FROM fake.shift))';
CREATE FUNCTION fake.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT pg_catalog.statement_timestamp() + make_interval(secs => (SELECT seconds FROM fake.shift))';
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = fake, pg_catalog, public', current_database());
END $$"""


@dataclass
class Clocks:
    """All seconds. The process's clocks are asked through `wall` and `monotonic`."""

    url: str
    process_is_ahead: float = 0.0
    passed: float = 0.0

    def wall(self) -> float:
        return time.time() + self.passed + self.process_is_ahead

    def monotonic(self) -> float:
        return time.monotonic() + self.passed

    def step_database(self, seconds: float) -> None:
        """Set the database's clock ahead, or back."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("UPDATE fake.shift SET seconds = seconds + %s", [seconds])

    def step_both(self, seconds: float) -> None:
        """Set the clock of a machine on which both run."""
        self.process_is_ahead += seconds
        self.step_database(seconds)

    def let_pass(self, seconds: float) -> None:
        """Have time pass, for everybody."""
        self.passed += seconds
        self.step_database(seconds)


def settable_clocks(url: str) -> Clocks:
    """Make the clock of this database one that can be set, for every session that begins after this."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_FAKE)
    return Clocks(url)
