"""What Dibs tells Prometheus of what it does, and to whom."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from tests.support import bodies
from tests.support.bot import Office, open_office
from tests.support.proxy import Fault, proxy_before
from tests.support.slack import request

from dibs.store.backlog import BACKLOG

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
MOST_SCRAPE_SECONDS = 10


class Scraped:
    """One answer of /metrics."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: Samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def all_of(self, name: str) -> dict[tuple[str, ...], float]:
        """Every series of a metric that has counted something, by the values of its labels in order."""
        return {
            tuple(value for _, value in sorted(labels)): number
            for (found, labels), number in self.samples.items()
            if found == name and number
        }


def url_of(office: Office) -> str:
    return f"http://127.0.0.1:{office.bot.http.port}/metrics"


def scrape(office: Office) -> Scraped:
    status, text = request("GET", url_of(office))
    assert status == 200, text
    return Scraped(text)


def lose_to_another(office: Office) -> str:
    """A task that Amal has; Bilal pressed the same button, and was refused."""
    office.verify_members()
    card = office.add_task()
    seen = bodies.press(office, "Bilal", card, "claim")
    office.press("Amal", card, "claim")
    assert office.slack.send_raw(bodies.interaction(seen)).status == 200
    return card


def test_what_was_pressed_refused_and_expired_is_counted_by_kind(office: Office) -> None:
    card = lose_to_another(office)
    office.shows(card, "Claimed")
    office.press("Amal", card, "start")
    office.shows(card, "In progress")
    office.end_lease()
    office.sweep()
    found = scrape(office)
    assert found.all_of("dibs_transitions_total") == {("claim",): 1, ("start",): 1, ("expire",): 1}
    assert found.all_of("dibs_refusals_total") == {("claim", "held"): 1}
    assert found.value("dibs_transitions_total", operation="release") == 0
    assert found.all_of("dibs_unconfirmed_total") == found.all_of("dibs_repeated_deliveries_total") == {}


def test_a_press_is_timed_from_its_arrival_to_its_acknowledgement(office: Office) -> None:
    before = scrape(office).value("dibs_acknowledgement_seconds_count", kind="press")
    lose_to_another(office)
    after = scrape(office)
    assert after.value("dibs_acknowledgement_seconds_count", kind="press") == (before or 0) + 2
    assert 0 < (after.value("dibs_acknowledgement_seconds_sum", kind="press") or 0) < 6
    assert after.value("dibs_acknowledgement_seconds_count", kind="command") == 2
    assert after.value("dibs_acknowledgement_seconds_count", kind="submission") == 1
    assert after.value("dibs_acknowledgement_seconds_count", kind="not_taken") is None
    events = url_of(office).replace("/metrics", "/slack/events")
    assert request("POST", events, b"payload={}")[0] == 401
    assert scrape(office).value("dibs_acknowledgement_seconds_count", kind="not_taken") == 1


def test_a_press_that_arrives_again_is_a_repeat_and_no_second_transition(office: Office) -> None:
    office.verify_members()
    card = office.add_task()
    office.press("Amal", card, "claim", deliveries=3)
    found = scrape(office)
    assert found.all_of("dibs_transitions_total") == {("claim",): 1}
    assert found.all_of("dibs_repeated_deliveries_total") == {("claim",): 2}
    assert found.all_of("dibs_refusals_total") == {}


def test_a_claim_that_a_look_up_lets_through_leaves_no_refusal(office: Office) -> None:
    office.execute("DELETE FROM dibs.queue_member WHERE user_id = :u", u=office.id("Amal"))
    card = office.add_task()
    office.press("Amal", card, "claim")
    found = scrape(office)
    assert found.all_of("dibs_transitions_total") == {("claim",): 1}
    assert found.all_of("dibs_refusals_total") == {}


def test_requests_to_slack_are_timed_and_failures_named_by_slacks_word(office: Office) -> None:
    card = lose_to_another(office)
    shown = "SELECT FROM dibs.card WHERE shown_version = 2 AND sender IS NULL"
    office.wait(lambda: office.rows(shown))
    office.slack.delete_message(office.channel.id, card)
    office.execute("UPDATE dibs.card SET shown_version = 1")
    office.bot.delivery.deliver_once()
    found = scrape(office)
    assert found.all_of("dibs_slack_errors_total") == {("message_not_found", "chat.update"): 1}
    assert (found.value("dibs_slack_request_seconds_count", method="chat.postMessage") or 0) >= 2
    assert (found.value("dibs_slack_request_seconds_count", method="users.info") or 0) > 0


def test_files_are_among_the_requests_that_are_timed(office: Office) -> None:
    lose_to_another(office)
    office.type("Amal", "report")
    shown = {"method": "files.completeUploadExternal"}
    office.slack.wait_until(
        lambda: scrape(office).value("dibs_slack_request_seconds_count", **shown), timeout=60
    )
    assert scrape(office).value("dibs_slack_request_seconds_count", method="upload") == 1


def test_what_waits_is_told_with_its_age(office: Office) -> None:
    empty = scrape(office)
    for name in ("dibs_cards_due", "dibs_cards_oldest_due_seconds", "dibs_outbox_due"):
        assert empty.value(name) == 0, name
    for name in ("dibs_breaker_open", "dibs_releases_paused"):
        assert empty.value(name, queue="SUP") == 0, name
    assert empty.value("dibs_clock_stopped") == 0

    office.add_task()
    office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE shown_version = 1 AND sender IS NULL"))
    office.execute("UPDATE dibs.card SET shown_version = 0, next_try_at = now() - interval '70 s'")
    office.execute(
        "INSERT INTO dibs.outbox "
        "(queue_id, key, kind, recipient, payload, tried_since, attempts, next_try_at) "
        "SELECT id, 'a key', 'alert', 'C0', '{}', now() - interval '95 s', 3, now() + interval '1 hour' "
        "FROM dibs.queue"
    )
    office.execute(
        "UPDATE dibs.breaker SET open_since = now(), releases_paused_since = now(), releases_paused_why = 'x'"
    )

    def all_seen() -> bool:
        # A reading is told for a second.
        return scrape(office).value("dibs_outbox_due") == 1

    office.wait(all_seen)
    found = scrape(office)
    assert found.value("dibs_cards_due") == 1
    assert 70 <= (found.value("dibs_cards_oldest_due_seconds") or 0) < 90
    # What was tried in vain waits since its first try, however far its next one is put off.
    assert 95 <= (found.value("dibs_outbox_oldest_due_seconds") or 0) < 115
    for name in ("dibs_breaker_open", "dibs_releases_paused"):
        assert found.value(name, queue="SUP") == 1, name


def test_a_reading_costs_no_scan_of_what_is_not_due(office: Office) -> None:
    with office.engine.connect() as connection:
        connection.execute(sa.text("SET enable_seqscan = off"))
        plan = "\n".join(connection.scalars(sa.text(f"EXPLAIN {BACKLOG.text}")))
        connection.invalidate()
    assert "card_due_idx" in plan
    assert "outbox_due_idx" in plan


def test_the_jobs_tell_their_age_and_their_failures(office: Office) -> None:
    office.execute("ALTER TABLE dibs.card RENAME shown_version TO away")
    office.bot.scheduler.start()
    office.wait(lambda: scrape(office).value("dibs_job_failures_total", job="delivery"))
    found = scrape(office)
    assert found.value("dibs_job_failures_total", job="sweep") == 0
    assert found.value("dibs_job_overdue", job="sweep") == 0
    assert found.value("dibs_sweep_age_seconds") is not None
    assert (found.value("dibs_job_age_seconds", job="delivery") or 0) > 0
    office.execute("ALTER TABLE dibs.card RENAME away TO shown_version")


def test_the_rest_is_told_while_the_database_is_frozen(database_url: str) -> None:
    with (
        proxy_before(database_url) as proxy,
        open_office(database_url, people=("Amal", "Bilal", "Sue"), bots_way=proxy.url, threads=6) as office,
    ):
        office.make_queue()
        lose_to_another(office)
        assert scrape(office).value("dibs_database_away") == 0
        proxy.freeze()
        time.sleep(1.1)  # A reading is told for a second.
        for _ in range(2):
            began = time.monotonic()
            found = scrape(office)
            assert time.monotonic() - began < MOST_SCRAPE_SECONDS
            assert found.value("dibs_database_away") == 1
            assert found.value("dibs_cards_due") is None
            assert found.all_of("dibs_transitions_total") == {("claim",): 1}
        proxy.thaw()
        office.wait(lambda: scrape(office).value("dibs_database_away") == 0)
        assert scrape(office).value("dibs_cards_due") is not None


def test_a_press_without_an_answer_counts_as_that_and_once_more_as_what_it_was(database_url: str) -> None:
    with (
        proxy_before(database_url) as proxy,
        open_office(database_url, people=("Amal", "Sue"), bots_way=proxy.url, threads=6) as office,
    ):
        office.make_queue()
        office.verify_members()
        card = office.add_task()
        office.wait(lambda: office.rows("SELECT FROM dibs.card WHERE shown_version = 1 AND sender IS NULL"))
        proxy.fail_next(Fault.ANSWER_LOST, Fault.ANSWER_LOST)
        office.press("Amal", card, "claim")
        office.hears("Amal", "could not confirm")
        found = scrape(office)
        assert found.all_of("dibs_unconfirmed_total") == {("claim",): 1}
        assert found.all_of("dibs_transitions_total") == {}
        office.bot.outgoing.settle_once()
        office.hears("Amal", "went through after all")
        assert scrape(office).all_of("dibs_transitions_total") == {("claim",): 1}


def test_two_bots_in_one_process_count_each_for_itself(office: Office, database_url: str) -> None:
    lose_to_another(office)
    with open_office(database_url, people=("Sue",), threads=2) as other:
        assert scrape(other).all_of("dibs_transitions_total") == {}
        assert scrape(office).all_of("dibs_transitions_total") == {("claim",): 1}


def test_nobody_is_named(office: Office) -> None:
    card = lose_to_another(office)
    office.shows(card, "Claimed")
    text = scrape(office).text
    for person in office.people.values():
        assert person.id not in text
        assert person.name not in text
    assert office.channel.id not in text
    assert "SUP-1" not in text


def test_what_came_through_a_proxy_does_not_see_the_metrics(office: Office) -> None:
    for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "x-forwarded-proto"):
        assert request("GET", url_of(office), headers={header: "203.0.113.7"})[0] == 404, header
    assert request("GET", url_of(office), headers={"X-Dibs-Forwarded": ""})[0] == 200
    both = {"X-Forwarded-For": "203.0.113.7", "X-Dibs-Forwarded": ""}
    assert request("GET", url_of(office), headers=both)[0] == 404


def test_who_is_on_another_machine_does_not_see_the_metrics(office: Office) -> None:
    told: list[str] = []
    for peer in ("203.0.113.7", "10.0.0.3", "fe80::1", "::ffff:203.0.113.7", "", "nonsense"):
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "REMOTE_ADDR": peer}
        office.bot.http.answer(environ, lambda status, _headers: told.append(status))
    assert told == ["404 Not Found"] * 6
    for peer in ("127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"):
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "REMOTE_ADDR": peer}
        office.bot.http.answer(environ, lambda status, _headers: told.append(status))
    assert told[6:] == ["200 OK"] * 4


def test_on_a_port_of_their_own_they_are_not_where_slack_comes_in(database_url: str) -> None:
    with open_office(database_url, people=("Amal", "Bilal", "Sue"), threads=6, metrics_port=0) as office:
        office.make_queue()
        lose_to_another(office)
        assert request("GET", url_of(office))[0] == 404
        assert office.bot.metrics is not None
        status, text = request("GET", f"http://127.0.0.1:{office.bot.metrics.port}/metrics")
        assert status == 200
        assert Scraped(text).all_of("dibs_transitions_total") == {("claim",): 1}
    with pytest.raises(ConnectionRefusedError):
        request("GET", f"http://127.0.0.1:{office.bot.metrics.port}/metrics")
