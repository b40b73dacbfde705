"""A supervisor pauses a queue, and lets it go on."""

from __future__ import annotations

from tests.support.bot import Office


def test_a_supervisor_pauses_a_queue_and_resumes_it(office: Office) -> None:
    card = office.add_task()
    office.press("Amal", card, "claim")
    assert "is paused: no task returns" in office.type("Sue", "pause")
    office.end_lease()
    office.sweep()
    assert office.task()["state"] == "claimed"
    assert "is paused already" in office.type("Sue", "pause SUP")
    said = office.type("Sue", "resume")
    assert "*SUP* goes on" in said
    assert "those that waited return now" in said
    office.sweep()
    assert office.task()["state"] == "queued"
    assert "Nothing was paused in *SUP*, so nothing changed." in office.type("Sue", "resume")


def test_everybody_else_hears_who_may(office: Office) -> None:
    for command in ("pause", "resume"):
        told = office.type("Amal", command)
        assert f"Only supervisors of *SUP* may {command} it: <@{office.id('Sue')}>. Nothing changed." in told
    assert office.rows("SELECT open_since FROM dibs.breaker") == [{"open_since": None}]


def test_a_spike_pauses_the_queue_until_a_supervisor_resumes_it(office: Office) -> None:
    office.execute("UPDATE dibs.queue SET spike_limit = 1")
    for number in (1, 2):
        office.press("Amal", office.add_task(), "claim")
        office.end_lease(number)
    office.sweep()
    assert [office.task(number)["state"] for number in (1, 2)] == ["claimed", "claimed"]
    assert "goes on" in office.type("Sue", "queue resume sup", "/dibs")
    office.sweep()
    assert [office.task(number)["state"] for number in (1, 2)] == ["queued", "queued"]


def test_an_unknown_or_unclear_queue_is_named_and_nothing_changes(office: Office) -> None:
    assert "There is no queue “OPS”. Nothing changed. This channel has `SUP`." in office.type(
        "Sue", "pause OPS"
    )
    office.make_queue(key="BIL")
    told = office.type("Sue", "pause")
    assert "several queues: `SUP`, `BIL`. Nothing changed. Say which: `/queue pause SUP`" in told
    assert office.count("breaker", open_since=None) == 2
