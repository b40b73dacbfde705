"""Whether the records are as they were written: walks every chain and names the first that does not fit.

What it can prove, and what not, is told in the README.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import sqlalchemy as sa

from dibs.domain.transitions import EventKind
from dibs.store import verify

_NO_HEAD = "-"


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first record that does not fit: what it is of, its id where it has one, and what is wrong."""

    where: str
    event_id: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Intact:
    """Everything fits. `head` is a hash over the heads of all tasks, to be kept elsewhere."""

    tasks: int
    events: int
    release_cards: int
    before_the_chain: int
    """Events from before Dibs kept hashes, which prove nothing."""
    head: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What is verified; everything where neither is given."""

    queue_id: int | None = None
    task_id: int | None = None


class SavedHeadsUnreadable(Exception):
    """A file of heads that were saved is not one. The message says which line."""


class VerifyService:
    """Verifies the records, in one snapshot. Raises StoreError where the database did not answer."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def verify(
        self,
        scope: Scope,
        *,
        saved: Iterable[str] = (),
        save: Callable[[str], object] = lambda _line: None,
    ) -> Intact | Misfit:
        """Walk the chains of `scope`.

        `saved` are lines as `save` was given them once: each head in it must still stand in the chain of its
        task, however much was added since. `save` gets the head of each task, in the order of their ids; the
        SHA-256 of all its lines is the head of everything. Raises SavedHeadsUnreadable.
        """
        walk = _Walk(saved, save)
        try:
            with verify.snapshot(self._engine) as connection:
                self._walk(connection, scope, walk)
        except _Found as found:
            return found.misfit
        return walk.intact()

    @staticmethod
    def _walk(connection: sa.Connection, scope: Scope, walk: _Walk) -> None:
        values = {"task_id": scope.task_id, "queue_id": scope.queue_id}
        with verify.stream(connection, verify.EVENTS, values) as rows:
            for task_id, events in groupby(rows, itemgetter("task_id")):
                walk.task(task_id, events)
        walk.end()
        if scope.task_id is None:
            with verify.stream(connection, verify.OF_QUEUES, {"queue_id": scope.queue_id}) as rows:
                for row in rows:
                    walk.of_queue(row)
        with verify.stream(connection, verify.STRAYS, values) as rows:
            for row in rows:
                what = f"no event tells of its {row['what']} {row['id']} as it stands"
                raise _Found(Misfit(row["task"], None, what))

    def queues(self, key: str | None) -> list[tuple[int, str]]:
        """The ids and keys of the queues with this key, or of all."""
        with (
            verify.snapshot(self._engine) as connection,
            verify.stream(connection, verify.QUEUES_NAMED, {"key": key}) as rows,
        ):
            return [(row["id"], row["key"]) for row in rows]

    def tasks(self, key: str, number: int) -> list[int]:
        """The ids of the tasks that are called `key`-`number`, one in each workspace that has it."""
        with (
            verify.snapshot(self._engine) as connection,
            verify.stream(connection, verify.TASKS_NAMED, {"key": key, "number": number}) as rows,
        ):
            return [row["id"] for row in rows]


class _Found(Exception):
    def __init__(self, misfit: Misfit) -> None:
        super().__init__(misfit.what)
        self.misfit = misfit


class _Walk:
    """Goes through the chains in order. Raises _Found at the first record that does not fit."""

    def __init__(self, saved: Iterable[str], save: Callable[[str], object]) -> None:
        self._saved = _read(saved)
        self._awaited = next(self._saved, None)
        self._save = save
        self._over_all = hashlib.sha256()
        self._tasks = self._events = self._cards = self._before = 0

    def task(self, task_id: int, rows: Iterator[sa.RowMapping]) -> None:
        """Walk the events of one task."""
        chain = _Chain()
        kept = self._kept(task_id)
        still_there = kept is None
        row = None
        for row in rows:
            if row["id"] is None:
                raise _Found(Misfit(row["task"], None, "it has no events at all"))
            if what := chain.add(row):
                raise _Found(Misfit(row["task"], row["id"], f"{row['kind']}: {what}"))
            still_there = still_there or chain.head == kept
            self._events += 1
            self._cards += row["has_card"]
        if row is None:
            return
        if row["head"] != chain.head or (chain.begun and row["version"] != chain.version):
            what = "the task names another event as its newest than the last that is there"
            raise _Found(Misfit(row["task"], row["id"], what))
        if not still_there:
            raise _Found(Misfit(row["task"], None, "the head that was saved no longer stands in its chain"))
        self._tasks += 1
        self._before += chain.before
        line = f"{task_id} {row['task']} {row['version']} {chain.head.hex() if chain.head else _NO_HEAD}\n"
        self._over_all.update(line.encode())
        self._save(line)

    def of_queue(self, row: sa.RowMapping) -> None:
        """Look at an event that is of no task."""
        if row["hash"] is None:
            self._before += 1
        elif not (row["hash_fits"] and row["starts"]):
            raise _Found(Misfit(row["queue"], row["id"], f"{row['kind']}: {_ALTERED}"))
        self._events += 1

    def end(self) -> None:
        """See that no task is left that the saved heads name."""
        if self._awaited is not None:
            raise _Found(Misfit(self._awaited.task, None, "a head was saved for it, and it is gone"))

    def intact(self) -> Intact:
        """What is told once everything fits."""
        head = self._over_all.hexdigest()
        return Intact(self._tasks, self._events, self._cards, self._before, head)

    def _kept(self, task_id: int) -> bytes | None:
        """The head that was saved for a task."""
        while self._awaited is not None and self._awaited.task_id < task_id:
            self.end()
        if self._awaited is None or self._awaited.task_id != task_id:
            return None
        head, self._awaited = self._awaited.head, next(self._saved, None)
        return head


_ALTERED = "its hash is not that of what it says, so it was altered"


class _Chain:
    """The chain of one task, as far as it was walked."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.version: int | None = None
        self.begun = False
        self.before = 0

    def add(self, row: sa.RowMapping) -> str | None:
        """Add the next event. Returns what does not fit, if anything."""
        if row["hash"] is None and not self.begun:
            self.before += 1
            return None
        if what := self._misfit(row):
            return what
        self.begun = True
        if row["succeeded"]:
            self.head, self.version = row["hash"], row["version_after"]
        return None

    def _misfit(self, row: sa.RowMapping) -> str | None:
        checks = (
            (row["hash"] is not None, "it has no hash, and the event before it has one"),
            (row["queue_fits"], "it is said to be of another queue than its task"),
            (row["hash_fits"], _ALTERED),
            (row["kind"] != EventKind.CREATED or not self.before, "there are events before it"),
            (
                row["previous"] == self.head,
                "it does not follow the event before it: one is missing, added or moved",
            ),
            (row["content_fits"], "its release card is missing or was altered")
            if row["has_card"]
            else (row["content_fits"], "the text that was written with it was altered"),
            (not row["has_card"] or row["card_fits"], "its release card was altered"),
            (not row["has_card"] or row["comment_fits"], "the comment on its release card was altered"),
            (not row["has_card"] or row["note_fits"], "the handoff note on its release card was altered"),
        )
        return next((what for fits, what in checks if not fits), None)


@dataclass(frozen=True, slots=True)
class _SavedHead:
    task_id: int
    task: str
    head: bytes | None


def _read(lines: Iterable[str]) -> Iterator[_SavedHead]:
    last = 0
    for number, line in enumerate(lines, 1):
        try:
            task_id, task, _version, head = line.split()
            saved = _SavedHead(int(task_id), task, None if head == _NO_HEAD else bytes.fromhex(head))
        except ValueError:
            raise SavedHeadsUnreadable(f"line {number} is not one that `verify --save` wrote") from None
        if saved.task_id <= last:
            raise SavedHeadsUnreadable(f"line {number} is not in the order that `verify --save` wrote")
        last = saved.task_id
        yield saved
