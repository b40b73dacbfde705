"""The guided tour: what a newcomer is asked to try, and how it shows that it really happened.

The steps and the levers are handed in by whoever starts the playground, since it knows nothing of the bot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dibs.playground.world import World

Json = dict[str, Any]
Sign = tuple[str, str]


class Where(StrEnum):
    """Where on the page a step shows that it happened."""

    MESSAGE = "message"
    PRIVATE = "private"
    MODAL = "modal"
    PRESS = "press"


@dataclass(frozen=True)
class Step:
    """One thing to try. It has happened once something new with all of `words` is shown at `where`."""

    title: str
    do: str
    see: str
    where: Where
    words: tuple[str, ...]
    lever: str = ""
    """The label of the lever that belongs to this step, if one does."""


@dataclass(frozen=True)
class Lever:
    """Something that the page can do beside what people do, such as moving time on.

    `run` returns words for the page, if there is anything to say, or raises RuntimeError with them.
    """

    label: str
    explanation: str
    run: Callable[[], str]


class Tour:
    """The steps, and which of them have happened since the tour began. Used under the world's lock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._steps: Sequence[Step] = ()
        self._before: list[set[Sign]] = []
        self._done: list[bool] = []

    def begin(self, steps: Sequence[Step] | None = None) -> None:
        """Begin anew. What is to be seen already, such as from an earlier day, counts for nothing."""
        self._steps = self._steps if steps is None else tuple(steps)
        self._before = [set(self._signs(step)) for step in self._steps]
        self._done = [False] * len(self._steps)

    def shown(self) -> list[Json]:
        """Return the steps as the page shows them, those that have happened ticked off."""
        for number, step in enumerate(self._steps):
            if not self._done[number]:
                self._done[number] = any(sign not in self._before[number] for sign in self._signs(step))
        return [
            {"title": step.title, "do": step.do, "see": step.see, "lever": step.lever, "done": done}
            for step, done in zip(self._steps, self._done, strict=True)
        ]

    def _signs(self, step: Step) -> Iterator[Sign]:
        for mark, text in _SHOWN[step.where](self._world):
            if all(word in text for word in step.words):
                yield mark, text


def _messages(world: World) -> Iterator[Sign]:
    for channel in world.channels.values():
        yield from ((message["ts"], message["text"]) for message in channel.messages.values())


def _private(world: World) -> Iterator[Sign]:
    return ((one.message["ts"], one.message["text"]) for one in world.ephemerals)


def _modals(world: World) -> Iterator[Sign]:
    for stack in world.stacks.values():
        yield from ((view.id, view.body["title"]["text"]) for view in stack)


def _presses(world: World) -> Iterator[Sign]:
    """Yield the presses that were answered well; a form that was refused is not sent yet."""
    for press in world.presses:
        if press.status == HTTPStatus.OK and not press.words:
            yield str(press.at), press.what


_SHOWN = {
    Where.MESSAGE: _messages,
    Where.PRIVATE: _private,
    Where.MODAL: _modals,
    Where.PRESS: _presses,
}
