"""The table of transitions says what the design says, and is complete."""

from __future__ import annotations

from dibs.domain.task import OPEN_STATUSES, SETTLED_STATUSES, ActionStatus, State
from dibs.domain.transitions import RULES, EventKind, Lease, Operation, Who, as_markdown

Q, C, S, D = State.QUEUED, State.CLAIMED, State.STARTED, State.DONE


def test_every_operation_has_one_rule_and_an_event_of_its_own() -> None:
    assert set(RULES) == set(Operation)
    assert [rule.operation for rule in RULES.values()] == list(RULES)
    kinds = [rule.event for rule in RULES.values()]
    assert len(set(kinds)) == len(kinds)
    assert set(kinds) | {EventKind.CREATED} == set(EventKind)


def test_a_refusal_is_named_after_its_operation() -> None:
    assert {rule.rejection for rule in RULES.values() if rule.who is not Who.SWEEP} == {
        "claim_rejected",
        "renew_rejected",
        "start_rejected",
        "record_action_rejected",
        "resolve_action_rejected",
        "note_rejected",
        "commit_rejected",
        "done_rejected",
        "release_rejected",
        "check_rejected",
        "transfer_rejected",
        "force_release_rejected",
    }


def test_nothing_leaves_done() -> None:
    assert not [rule.operation for rule in RULES.values() if D in rule.sources]


def test_the_ways_from_state_to_state() -> None:
    ways = {
        (source, rule.target or source, rule.operation.value)
        for rule in RULES.values()
        for source in rule.sources
        if rule.target not in {None, source}
    }
    assert ways == {
        (Q, C, "claim"),
        (C, S, "start"),
        (S, D, "done"),
        (C, Q, "release"),
        (S, Q, "release"),
        (C, Q, "expire"),
        (S, Q, "expire"),
        (S, C, "transfer"),
        (C, Q, "force_release"),
        (S, Q, "force_release"),
    }


def test_only_the_owner_acts_on_owned_work_but_for_the_sweep_the_check_and_supervisors() -> None:
    others = {op for op, rule in RULES.items() if rule.who is not Who.OWNER}
    assert others == {
        Operation.CLAIM,
        Operation.EXPIRE,
        Operation.CHECK,
        Operation.TRANSFER,
        Operation.FORCE_RELEASE,
    }
    assert {RULES[Operation.TRANSFER].who, RULES[Operation.FORCE_RELEASE].who} == {Who.SUPERVISOR}
    assert RULES[Operation.CLAIM].who is Who.ELIGIBLE_MEMBER


def test_which_operations_ask_for_a_current_lease() -> None:
    current = {op for op, rule in RULES.items() if rule.lease in {Lease.CURRENT, Lease.RENEWED}}
    assert current == {Operation.RENEW, Operation.START, Operation.RECORD_ACTION}


def test_an_action_is_open_until_somebody_knows_how_it_ended() -> None:
    assert set(ActionStatus) == OPEN_STATUSES | SETTLED_STATUSES
    assert {status for status in ActionStatus if status.is_open} == {
        ActionStatus.IN_PROGRESS,
        ActionStatus.UNKNOWN,
    }


def test_the_printed_table_has_a_line_for_each_operation() -> None:
    heading, line, *rows = as_markdown().splitlines()
    assert [row.split("|")[1].strip() for row in rows] == list(RULES)
    assert {row.count("|") for row in (heading, line, *rows)} == {8}
    assert "| release | claimed, started | queued | owner | may have lapsed |" in as_markdown()
