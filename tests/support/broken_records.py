"""Records that cannot be written: each way in which a database refuses them, and how that is mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.store import Desk

from dibs.service.release_pauses import ReleasePauses
from dibs.service.transitions import TransitionService
from dibs.store.engine import PRESS, make_engine
from dibs.store.guard import Guard


def trigger(table: str, body: str, *, each: str = "ROW", when: str = "", kind: str = "") -> list[str]:
    """The statements that put a trigger with this body on a table."""
    later = "DEFERRABLE INITIALLY DEFERRED" if kind else ""
    named = f"{kind or 'TRIGGER'} refuse {when or 'BEFORE'} INSERT ON dibs.{table} {later}"
    return [
        f"CREATE FUNCTION dibs.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$",
        f"CREATE {named} FOR EACH {each} EXECUTE FUNCTION dibs.refuse()",
    ]


def untrigger(table: str) -> list[str]:
    """The statements that take it off again."""
    return [f"DROP TRIGGER refuse ON dibs.{table}", "DROP FUNCTION dibs.refuse()"]


RAISE = "RAISE 'the records are full'"
FAILURES: dict[str, tuple[list[str], list[str]]] = {
    "a CHECK on the card": (
        ["ALTER TABLE dibs.release_card ADD CONSTRAINT broken CHECK (reason = 'none') NOT VALID"],
        ["ALTER TABLE dibs.release_card DROP CONSTRAINT broken"],
    ),
    "a CHECK on the event": (
        ["ALTER TABLE dibs.event ADD CONSTRAINT broken CHECK (kind <> 'released') NOT VALID"],
        ["ALTER TABLE dibs.event DROP CONSTRAINT broken"],
    ),
    "a trigger that raises on the card": (trigger("release_card", RAISE), untrigger("release_card")),
    "a trigger that raises on the event": (trigger("event", RAISE), untrigger("event")),
    "a trigger that raises once for the statement": (
        trigger("release_card", RAISE, each="STATEMENT"),
        untrigger("release_card"),
    ),
    "a trigger that raises at the end": (
        trigger("release_card", RAISE, when="AFTER", kind="CONSTRAINT TRIGGER"),
        untrigger("release_card"),
    ),
    "a trigger that drops the card without a word": (
        trigger("release_card", "RETURN NULL"),
        untrigger("release_card"),
    ),
    "a trigger that drops the event without a word": (trigger("event", "RETURN NULL"), untrigger("event")),
    "a full disk": (
        trigger("release_card", "RAISE 'could not extend file' USING ERRCODE = '53100'"),
        untrigger("release_card"),
    ),
    "a missing column": (
        ["ALTER TABLE dibs.release_card RENAME COLUMN comment TO remark"],
        ["ALTER TABLE dibs.release_card RENAME COLUMN remark TO comment"],
    ),
    "a missing table": (
        ["ALTER TABLE dibs.release_card RENAME TO elsewhere"],
        ["ALTER TABLE dibs.elsewhere RENAME TO release_card"],
    ),
}
"""What breaks the records, and what mends them."""
NO_EVENTS = {"a trigger that raises on the event", "a trigger that drops the event without a word"}
"""Where not even a refusal can be recorded."""


@contextmanager
def plain_role(desk: Desk, url: str) -> Iterator[tuple[TransitionService, ReleasePauses, str]]:
    """The operations as a role that owns nothing and was granted what Dibs needs."""
    role = f"plain_{desk.value('SELECT current_database()')}"
    for grant in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA dibs TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dibs TO {role}",
    ):
        desk.execute(grant)
    engine = make_engine(f"{url}{'&' if '?' in url else '?'}options=-c%20role%3D{role}", PRESS, pool_size=2)
    guard = Guard(engine)
    pauses = ReleasePauses(guard)
    try:
        yield TransitionService(engine, guard=guard, pauses=pauses), pauses, role
    finally:
        engine.dispose()
        desk.execute(f"DROP OWNED BY {role}")
        desk.execute(f"DROP ROLE {role}")


def run(desk: Desk, statements: list[str]) -> None:
    """Run the statements on a desk's database."""
    for statement in statements:
        desk.execute(statement)
