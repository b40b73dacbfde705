"""The records as a file: whole, exact, flat in memory, and nothing a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import itertools
import json
import tracemalloc
from typing import Any

import pytest
import sqlalchemy as sa
from tests.support.store import AMAL, BILAL, Desk

from dibs.deadline import Deadline
from dibs.domain.audit import Selection, Topic
from dibs.domain.task import ActionStatus, Task
from dibs.service.export import BYTE_ORDER_MARK, COLUMNS, ExportService, Form, Unfinished, as_cell
from dibs.service.transitions import TransitionService
from dibs.store import audit
from dibs.store.guard import Guard

FILL = """
INSERT INTO dibs.event (queue_id, task_id, kind, actor_id, at, version_before, version_after, op_id, why)
SELECT t.queue_id, t.id, 'claim_rejected', :actor, t.created_at + n * interval '1 second', 1, 1,
       'filled-' || :mark || n, 'held'
FROM dibs.task t, generate_series(CAST(:start AS int), :end) AS n WHERE t.id = :task
"""
PIECE = 10_000


def exported(engine: sa.Engine, selection: Selection, form: Form) -> str:
    out = io.StringIO(newline="")
    ExportService(Guard(engine)).write([selection], form, out)
    return out.getvalue()


def lines(engine: sa.Engine, selection: Selection) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(engine, selection, Form.JSONL).splitlines()]


def of_task(task: Task) -> Selection:
    return Selection(Topic.TASK, (task.queue_id,), task.id)


def fill(desk: Desk, task: Task, number: int, mark: str = "") -> None:
    # In pieces, each of which is done within the time that a press has.
    for start in range(0, number, PIECE):
        piece = min(PIECE, number - start)
        desk.execute(FILL, actor=AMAL, start=start + 1, end=start + piece, task=task.id, mark=mark)


ODD = '=1+1\n"quoted", ümläut 🎉 \u2028 <b>\ttab'


def test_both_forms_hold_every_event_and_every_text_whole(
    desk: Desk, service: TransitionService, engine: sa.Engine
) -> None:
    task = desk.task(ODD)
    long = ODD + "x" * 20_000
    assert service.claim(task.id, AMAL, 1).changed
    assert service.claim(task.id, BILAL, 1).unchanged
    assert service.note(task.id, AMAL, 2, long).changed
    assert service.release(task.id, AMAL, 3, reason="other", comment=ODD, handoff_note=long).changed
    rows = lines(engine, of_task(task))
    assert [row["kind"] for row in rows] == ["created", "claimed", "claim_rejected", "noted", "released"]
    assert all(tuple(row) == COLUMNS for row in rows)
    assert (rows[3]["text"], rows[4]["comment"], rows[4]["handoff_note"]) == (long, ODD, long)
    assert (rows[4]["previous_owner"], rows[4]["state_at_release"]) == (AMAL, "claimed")
    assert (rows[2]["why"], rows[2]["actor"]) == ("held", BILAL)
    assert all(row["title"] == ODD and row["at"].endswith("Z") and len(row["hash"]) == 64 for row in rows)
    sheet = exported(engine, of_task(task), Form.CSV)
    assert sheet.startswith(BYTE_ORDER_MARK + "at,queue,task")
    cells = list(csv.DictReader(io.StringIO(sheet.removeprefix(BYTE_ORDER_MARK), newline="")))
    assert [cell["kind"] for cell in cells] == [row["kind"] for row in rows]
    assert cells[4]["handoff_note"] == f"'{long}"
    assert cells[4]["reason"] == "other"


SIGNS = ["=1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", "\tx", "=cmd|' /C calc'!A0"]
FULL_WIDTH = ["\uff1d1", "\uff0b1", "\uff0d1", "\uff20A"]
BEHIND_SOMETHING = ['"=1', "' =1", "  =1", "\u00a0=1", "\u201c=1"]


@pytest.mark.parametrize(
    "text",
    [*SIGNS, *FULL_WIDTH, *BEHIND_SOMETHING],
)
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(text: str) -> None:
    assert as_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "U0AMAL", "'x", "x\n=1"])
def test_another_cell_stays_as_it_is(text: str) -> None:
    assert as_cell(text) == text


def test_an_external_action_stands_where_it_was_recorded_and_where_it_was_settled(
    desk: Desk, service: TransitionService, engine: sa.Engine
) -> None:
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    assert service.start(task.id, AMAL, 2).changed
    assert service.record_action(task.id, AMAL, 3, "=refund").changed
    action = desk.value("SELECT id FROM dibs.external_action")
    assert service.resolve_action(task.id, AMAL, 4, action, ActionStatus.COMPLETED).changed
    told = {"reference": "SUP-1-A1", "description": "=refund", "status": None}
    found = [row["external_actions"] for row in lines(engine, of_task(task))]
    assert found == [None, None, None, [told], [told | {"status": "completed"}]]
    assert json.dumps(told) in exported(engine, of_task(task), Form.CSV).replace('""', '"')


def test_a_person_is_shown_with_what_befell_their_tasks_once_each(
    desk: Desk, service: TransitionService, engine: sa.Engine
) -> None:
    desk.execute("UPDATE dibs.queue SET supervisor_operations = true")
    desk.admit("U0BOSS", supervisor=True)
    task = desk.task()
    assert service.claim(task.id, AMAL, 1).changed
    assert service.transfer(task.id, "U0BOSS", 2, BILAL, reason="away").changed
    assert service.force_release(task.id, "U0BOSS", 3, reason="shift_ending").changed

    def kinds(person: str) -> list[str]:
        return [row["kind"] for row in lines(engine, Selection(Topic.PERSON, (desk.queue.id,), person))]

    assert kinds(AMAL) == ["claimed", "transferred"]
    assert kinds(BILAL) == ["transferred", "force_released"]
    assert kinds("U0BOSS") == ["transferred", "force_released"]
    assert lines(engine, Selection(Topic.PERSON, (desk.queue.id + 1,), AMAL)) == []


def test_more_than_a_page_comes_once_each_and_in_order(desk: Desk, engine: sa.Engine) -> None:
    task = desk.task()
    fill(desk, task, 1203)
    for selection in (
        of_task(task),
        Selection(Topic.QUEUE, (task.queue_id,), task.queue_id),
        Selection(Topic.PERSON, (task.queue_id,), AMAL),
    ):
        ids = [row["event_id"] for row in lines(engine, selection)]
        assert len(ids) == 1203 + (selection.topic is not Topic.PERSON)
        assert ids == sorted(set(ids))


class _Counter:
    """Takes what is written and keeps nothing."""

    length = 0

    def write(self, text: str) -> int:
        self.length += len(text)
        return len(text)


def _peak(engine: sa.Engine, task: Task) -> tuple[int, int]:
    out = _Counter()
    exports = ExportService(Guard(engine))
    tracemalloc.start()
    try:
        exports.write([of_task(task)], Form.JSONL, out)
        return tracemalloc.get_traced_memory()[1], out.length
    finally:
        tracemalloc.stop()


def test_memory_stays_flat_however_much_is_exported(desk: Desk, engine: sa.Engine) -> None:
    small, large = desk.task(), desk.task()
    fill(desk, small, 1_000, "small")
    fill(desk, large, 20_000, "large")
    _peak(engine, small)
    peak_of_few, length_of_few = _peak(engine, small)
    peak_of_many, length_of_many = _peak(engine, large)
    assert length_of_many > 15 * length_of_few
    assert peak_of_many < 1.5 * peak_of_few


def test_an_export_that_nobody_waits_for_ends(desk: Desk, engine: sa.Engine) -> None:
    task = desk.task()
    with pytest.raises(Unfinished):
        ExportService(Guard(engine)).write([of_task(task)], Form.CSV, io.StringIO(), give_up=lambda: True)


def test_a_page_reads_few_rows_of_many_by_an_index(desk: Desk, engine: sa.Engine) -> None:
    task = desk.task()
    fill(desk, task, 100_000)
    desk.execute("ANALYZE dibs.event")
    middle = desk.rows("SELECT at, id FROM dibs.event ORDER BY at, id OFFSET 5000 LIMIT 1")[0]
    subjects: dict[Topic, object] = {Topic.TASK: task.id, Topic.QUEUE: task.queue_id, Topic.PERSON: AMAL}
    for topic, newer in itertools.product(Topic, (False, True)):
        values = {
            "subject": subjects[topic],
            "queue_ids": [task.queue_id],
            "at": middle["at"],
            "id": middle["id"],
            "since": task.created_at,
        }
        statement = audit.page(topic, 11, newer=newer)
        bound = statement.compile().binds.values()
        explain = sa.text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}").bindparams(*bound)
        asked = {name: values[name] for name in audit.TAKES[topic]}
        rows = Guard(engine).run(explain, asked, Deadline.after(20))
        plan = rows[0]["QUERY PLAN"][0]["Plan"]
        assert _most_rows(plan) <= 33, (topic, newer, plan)


def _most_rows(plan: dict[str, Any]) -> float:
    """The most rows that any step of a plan read, with those that it passed over."""
    own: float = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return max([own, *(_most_rows(step) for step in plan.get("Plans", []))])
