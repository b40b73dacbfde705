"""A system that gives no more threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_threads(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """Let no thread of these names begin, as where the system gives no more."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name in names:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        yield
