"""The words for what happened, and for what somebody tried."""

from __future__ import annotations

import re
from pathlib import Path

from dibs import playground, slack
from dibs.domain.transitions import Operation
from dibs.slack import words

TRIED = {
    Operation.CLAIM: "claim",
    Operation.RENEW: "renew",
    Operation.START: "start",
    Operation.RECORD_ACTION: "record an external action",
    Operation.RESOLVE_ACTION: "say how an external action ended",
    Operation.NOTE: "write a working note",
    Operation.COMMIT: "commit to a time",
    Operation.DONE: "finish",
    Operation.RELEASE: "hand back",
    Operation.CHECK: "check what happened outside",
    Operation.TRANSFER: "transfer",
    Operation.FORCE_RELEASE: "return the task to the queue, as a supervisor",
}


def test_every_refused_attempt_reads_as_a_sentence() -> None:
    assert {operation: words.tried(f"{operation}_rejected") for operation in TRIED} == TRIED
    assert set(Operation) - set(TRIED) == {Operation.EXPIRE}


def test_what_was_tried_with_the_queue_itself_is_said_by_its_name() -> None:
    assert words.tried("resume_rejected") == "resume"


def test_every_emoji_that_dibs_writes_is_drawn_in_the_playground() -> None:
    source = "".join(path.read_text() for path in Path(slack.__path__[0]).rglob("*.py"))
    written = set(re.findall(r":([a-z_]+):(?=[ \"])", source))
    drawn = (Path(playground.__path__[0]) / "static" / "mrkdwn.js").read_text()
    assert "octagonal_sign" in written
    assert {name for name in written if f"{name}: " not in drawn} == set()
