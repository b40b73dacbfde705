"""A release whose record the database refuses: who hears what, and how releases go on again."""

from __future__ import annotations

from tests.support.bot import Office
from tests.support.ways import claimed, started

NOTE = "The bank still has to confirm."
GIVEN = {"reason": "shift_ending", "handoff_note": NOTE, "external_action": "none"}
BROKEN = "ALTER TABLE dibs.release_card ADD CONSTRAINT broken CHECK (reason = 'none') NOT VALID"
MENDED = "ALTER TABLE dibs.release_card DROP CONSTRAINT broken"


def _said(office: Office, name: str) -> str:
    """Send the form that the person has before them; what it was refused with."""
    result = office.submit(name, GIVEN)
    assert not result.closed
    (said,) = result.errors.values()
    return str(said)


def test_a_release_that_cannot_be_recorded_pauses_until_a_supervisor_resumes(office: Office) -> None:
    card, other = started(office, "Dana"), claimed(office, "Hana", "Hers")
    before = office.task()
    office.execute(BROKEN)
    office.press("Dana", card, "release")
    said = _said(office, "Dana")
    assert "The database refused the record of this release, so SUP-1 was not handed back" in said
    assert "Releases are now paused in its queue. Nothing changed. The task stays yours." in said
    assert (
        "The queue's supervisors are told; one of them lets releases go on with /queue resume SUP: Sue."
        in said
    )
    assert office.task() == before
    assert office.count("release_card") == 0
    kept = office.opened("Dana")["state"]["values"]
    assert kept["handoff_note"]["handoff_note"]["value"] == NOTE
    assert office.count("outbox", kind="releases_paused", recipient=office.id("Sue")) == 1

    # Mended or not, releases stay paused until a person resumes them; a form is not even opened.
    office.execute(MENDED)
    assert "Releases are paused in the queue of SUP-1" in _said(office, "Dana")
    office.press("Hana", other, "release")
    office.hears("Hana", "Releases are paused in the queue of *SUP-2*", "Nothing changed.", "stays yours")
    office.hears("Hana", f"A supervisor lets releases go on with `/queue resume SUP`: <@{office.id('Sue')}>.")
    assert "Releases are paused" in office.type("Hana", "SUP-2", "/release")
    assert not office.slack.views(office.id("Hana"))
    assert office.count("event", kind="release_rejected", why="releases_paused") == 3

    assert "Only supervisors of *SUP* may resume it" in office.type("Dana", "resume")
    said = office.type("Sue", "resume")
    assert "tasks can be handed back again; a trial write has worked" in said
    assert "Nothing was paused in *SUP*" in office.type("Sue", "resume")
    assert office.count("release_card") == 0
    record = office.type("Sue", "queue", "/audit")
    assert "let the queue go on" in record
    assert "Releases were paused since <!date^" in record
    assert 'because the database refused: new row for relation "release_card"' in record
    assert NOTE not in record
    assert office.submit("Dana", GIVEN).closed
    assert office.count("release_card") == 1


def test_resuming_while_the_records_still_fail_says_what_to_look_at(office: Office) -> None:
    card = started(office, "Dana")
    office.execute(BROKEN)
    office.press("Dana", card, "release")
    _said(office, "Dana")
    said = office.type("Sue", "resume")
    assert "Releases stay paused: a trial release could not be written." in said
    assert "`dibs.release_card`" in said
    assert "violates check constraint" in said
    assert NOTE not in said
    assert office.count("breaker", releases_paused_since=None) == 0


def test_a_refusal_that_is_no_matter_of_the_records_pauses_nothing(office: Office) -> None:
    card = started(office, "Dana")
    office.execute("ALTER TABLE dibs.task ADD CONSTRAINT odd CHECK (version < 4) NOT VALID")
    office.press("Dana", card, "release")
    said = _said(office, "Dana")
    assert "The database refused to record this, so it was not done. Nothing changed." in said
    assert "paused" not in said
    assert office.count("breaker", releases_paused_since=None) == 1


def test_the_supervisors_alert_resumes_with_its_button_once_a_trial_has_worked(office: Office) -> None:
    alerts = office.slack.add_channel("alerts", members=[office.id("Sue"), office.id("Dana")])
    office.execute("UPDATE dibs.queue SET alert_channel = :channel", channel=alerts.id)
    card = started(office, "Dana")
    office.execute(BROKEN)
    office.press("Dana", card, "release")
    _said(office, "Dana")
    office.bot.notices.deliver_once()
    (alert,) = office.slack.messages(alerts.id)
    assert "are paused: the database refused to write the record of one" in alert["text"]
    assert NOTE not in str(alert)

    def resume(name: str) -> None:
        office.slack.press(office.id(name), alerts.id, alert["ts"], "queue_resume")

    resume("Dana")
    office.hears("Dana", "Only supervisors of *SUP* may resume it")
    resume("Sue")
    office.hears("Sue", "Releases stay paused: a trial release could not be written.")
    assert office.count("breaker", releases_paused_since=None) == 0
    office.execute(MENDED)
    resume("Sue")
    office.hears("Sue", "tasks can be handed back again; a trial write has worked")

    def redrawn() -> bool:
        # The press has it redrawn too, and only one of them has the message at a time.
        office.bot.notices.deliver_once()
        return f"were resumed by <@{office.id('Sue')}>" in office.slack.messages(alerts.id)[0]["text"]

    office.wait(redrawn)
    (alert,) = office.slack.messages(alerts.id)
    assert "queue_resume" not in str(alert["blocks"])
    assert office.submit("Dana", GIVEN).closed


def test_a_pause_that_could_not_be_stored_is_stored_by_the_jobs_and_alerts_then(office: Office) -> None:
    card = started(office, "Dana")
    office.execute(BROKEN)
    office.execute("ALTER TABLE dibs.breaker ADD CONSTRAINT shut CHECK (release_trip = 0)")
    office.press("Dana", card, "release")
    assert "Releases are now paused in its queue." in _said(office, "Dana")
    assert office.count("outbox", kind="releases_paused") == 0
    office.execute(MENDED)
    assert "Releases are paused in the queue of SUP-1" in _said(office, "Dana")
    office.execute("ALTER TABLE dibs.breaker DROP CONSTRAINT shut")
    office.bot.scheduler.start()
    office.wait(lambda: office.count("outbox", kind="releases_paused", recipient=office.id("Sue")) == 1)
    assert office.count("breaker", releases_paused_since=None) == 0
    assert "a trial write has worked" in office.type("Sue", "resume")
    assert office.submit("Dana", GIVEN).closed
