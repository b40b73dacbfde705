"""The words that Block Kit's limits are written in: small rules that each find faults in one JSON value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Mapping

UNLIMITED = 1_000_000


class Fault(NamedTuple):
    """One thing that Slack would refuse, and where it stands in what was sent."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.message} [json-pointer:{self.pointer}]"


class Rule(Protocol):
    """Anything that can find faults in a value that stands at a JSON pointer."""

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield every fault of the value."""


@dataclass(frozen=True)
class Text:
    """A string of limited length, counted in characters (code points) as it was sent."""

    most: int = UNLIMITED
    least: int = 0
    pattern: re.Pattern[str] | None = None

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield what is wrong with the string."""
        if not isinstance(value, str):
            yield Fault(at, "must be a string")
        elif len(value) < self.least:
            yield Fault(at, f"must be more than {self.least - 1} characters")
        elif len(value) > self.most:
            yield Fault(at, f"must be less than {self.most + 1} characters")
        elif self.pattern and not self.pattern.fullmatch(value):
            yield Fault(at, "must match the expected format")


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield a fault for anything but a boolean."""
        if not isinstance(value, bool):
            yield Fault(at, "must be a boolean")


@dataclass(frozen=True)
class Number:
    """A number within bounds, whole unless fractions are allowed."""

    least: float = -UNLIMITED
    most: float = UNLIMITED
    fraction: bool = False

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield what is wrong with the number."""
        kinds = (int, float) if self.fraction else int
        if isinstance(value, bool) or not isinstance(value, kinds):
            yield Fault(at, "must be a number" if self.fraction else "must be an integer")
        elif value < self.least:
            yield Fault(at, f"must be greater than or equal to {self.least}")
        elif value > self.most:
            yield Fault(at, f"must be less than or equal to {self.most}")


@dataclass(frozen=True)
class Choice:
    """One of a fixed set of values."""

    values: tuple[object, ...]

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield a fault unless the value is in the set."""
        if value not in self.values or isinstance(value, bool):
            yield Fault(at, "must be a valid enum value")


@dataclass(frozen=True)
class Items:
    """A list of limited length whose members all follow one rule."""

    of: Rule
    most: int = UNLIMITED
    least: int = 0

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield what is wrong with the list and with its members."""
        if not isinstance(value, list):
            yield Fault(at, "must be an array")
            return
        if len(value) > self.most:
            yield Fault(at, f"no more than {self.most} items allowed")
        if len(value) < self.least:
            yield Fault(at, f"must have at least {self.least} item" + "s" * (self.least != 1))
        for index, member in enumerate(value):
            yield from self.of.faults(member, f"{at}/{index}")


@dataclass(frozen=True)
class Shape:
    """An object: its fields, those that must be there, and what its fields ask of each other."""

    fields: Mapping[str, Rule]
    required: tuple[str, ...] = ()
    also: tuple[Callable[[dict[str, Any], str], Iterator[Fault]], ...] = ()

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield missing, unknown and faulty fields, then what does not fit together."""
        if not isinstance(value, dict):
            yield Fault(at, "must provide an object")
            return
        for name in self.required:
            if name not in value:
                yield Fault(at, f"missing required field: {name}")
        for name, member in value.items():
            if name in self.fields:
                yield from self.fields[name].faults(member, f"{at}/{name}")
            elif name != "type":
                yield Fault(at, f"invalid additional property: {name}")
        for check in self.also:
            yield from check(value, at)


@dataclass(frozen=True)
class Untyped:
    """An object that has no `type`; naming one is a fault."""

    shape: Shape

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield the faults of the object."""
        yield from self.shape.faults(value, at)
        if isinstance(value, dict) and "type" in value and "type" not in self.shape.fields:
            yield Fault(at, "invalid additional property: type")


@dataclass(frozen=True)
class ByType:
    """An object whose `type` says which of several shapes it must have."""

    shapes: Mapping[str, Rule]
    wrapped: bool = field(default=True)

    def faults(self, value: object, at: str) -> Iterator[Fault]:
        """Yield the faults of the shape that `type` names, announced the way Slack announces a union."""
        found = list(self._inner(value, at))
        if found and self.wrapped:
            yield Fault(at, "failed to match all allowed schemas")
        yield from found

    def _inner(self, value: object, at: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield Fault(at, "must provide an object")
            return
        kind = value.get("type")
        if kind is None:
            yield Fault(at, "missing required field: type")
        elif not isinstance(kind, str) or kind not in self.shapes:
            yield Fault(f"{at}/type", f"unsupported type: {kind}")
        else:
            yield from self.shapes[kind].faults(value, at)
