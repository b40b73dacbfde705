"""Alembic's entry: runs the migrations on the connection that `dibs.store.schema` hands over."""

from __future__ import annotations

from alembic import context

from dibs.store.columns import SCHEMA
from dibs.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    include_name=lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
