"""What the server tells whoever asks, and how it stops."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path

from tests.support.bot import Office, open_office
from tests.support.proxy import proxy_before
from tests.support.slack import request

from dibs.store.embedded import EmbeddedPostgres


def _base(office: Office) -> str:
    return f"http://127.0.0.1:{office.bot.http.port}"


def test_only_post_is_taken_from_slack_and_unknown_paths_are_not_there(office: Office) -> None:
    base = _base(office)
    for method in ("GET", "PUT", "DELETE"):
        assert request(method, f"{base}/slack/events")[0] == 405
    for path in ("/", "/slack", "/slack/events/", "/slack/install", "/healthz/x", "/..%2f"):
        assert request("GET", base + path)[0] == 404, path
        assert request("POST", base + path, b"{}")[0] == 404, path
    assert request("POST", f"{base}/healthz", b"")[0] == 404


def test_alive_and_ready(office: Office) -> None:
    assert request("GET", f"{_base(office)}/healthz") == (200, "alive")
    status, body = request("GET", f"{_base(office)}/readyz")
    told = json.loads(body)
    assert (status, told["ready"], told["database"]) == (200, True, "good")
    jobs = {"sweep", "clock", "slack", "delivery", "notices", "reminders", "owners", "settle", "members"}
    jobs.add("housekeeping")
    assert set(told["jobs"]) == jobs


def test_head_leaves_the_connection_usable(office: Office) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", office.bot.http.port, timeout=30)
    for path in ("/healthz", "/readyz", "/healthz"):
        connection.request("HEAD", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"alive"
    connection.close()


def test_not_ready_and_failing_jobs_named_while_the_database_is_down(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, fsync=False)
    with server, open_office(server.start(), people=("Sue",)) as office:
        office.bot.scheduler.start()
        assert request("GET", f"{_base(office)}/readyz")[0] == 200
        server.stop()
        status, body = request("GET", f"{_base(office)}/readyz")
        assert (status, json.loads(body)["ready"]) == (503, False)
        office.wait(lambda: _jobs(office)["delivery"]["failing"], lambda: str(_jobs(office)))
        assert request("GET", f"{_base(office)}/healthz")[0] == 200
        server.start()
        office.wait(lambda: request("GET", f"{_base(office)}/readyz")[0] == 200)
        office.wait(lambda: _jobs(office)["delivery"]["failing"] is None, lambda: str(_jobs(office)))


def test_a_failing_job_is_named_while_dibs_stays_ready(office: Office) -> None:
    office.execute("ALTER TABLE dibs.card RENAME shown_version TO away")
    office.bot.scheduler.start()
    office.wait(lambda: _problems(office), lambda: str(_jobs(office)))
    assert [words for words in _problems(office) if words.startswith("the delivery job fails: ")]
    assert request("GET", f"{_base(office)}/readyz")[0] == 200
    office.execute("ALTER TABLE dibs.card RENAME away TO shown_version")
    office.wait(lambda: not _problems(office), lambda: str(_problems(office)))


def test_a_sweep_that_holds_still_is_named_while_dibs_stays_ready(office: Office) -> None:
    office.execute("UPDATE dibs.clock SET stopped_since = clock_timestamp(), jump_seconds = 90, trip = 1")
    office.bot.sweep.sweep_once()
    [problem] = _problems(office)
    assert problem.startswith("the sweep holds still: the database's clock jumped ahead by 90")
    assert request("GET", f"{_base(office)}/readyz")[0] == 200
    assert "dibs_sweep_holds_still 1.0" in request("GET", f"{_base(office)}/metrics")[1]
    office.type("Sue", "resume")
    office.bot.sweep.sweep_once()
    assert _problems(office) == []


def test_a_frozen_database_holds_up_no_look_at_how_dibs_is(database_url: str) -> None:
    with (
        proxy_before(database_url) as proxy,
        open_office(database_url, people=("Sue",), bots_way=proxy.url) as office,
    ):
        proxy.freeze()
        started = time.monotonic()
        assert request("GET", f"{_base(office)}/readyz")[0] == 503
        assert time.monotonic() - started < 10
        assert request("GET", f"{_base(office)}/healthz")[0] == 200
        proxy.thaw()
        office.wait(lambda: request("GET", f"{_base(office)}/readyz")[0] == 200)


def _problems(office: Office) -> list[str]:
    found: list[str] = json.loads(request("GET", f"{_base(office)}/readyz")[1])["problems"]
    return found


def _jobs(office: Office) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(request("GET", f"{_base(office)}/readyz")[1])["jobs"]
    return found


def test_a_connection_that_is_kept_open_does_not_hold_up_the_stop(database_url: str) -> None:
    connection = None
    with open_office(database_url, people=("Sue",)) as office:
        connection = http.client.HTTPConnection("127.0.0.1", office.bot.http.port, timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"alive"
        started = time.monotonic()
    # Nobody would end the connection before the test does.
    assert time.monotonic() - started < 30
    connection.close()


def test_who_waits_for_the_sockets_closes_none_while_it_is_being_woken(database_url: str) -> None:
    with open_office(database_url, people=("Sue",)) as office:
        wakes = office.bot.http._listening[0].trigger  # noqa: SLF001
        wake = wakes._physical_pull  # noqa: SLF001

        def wake_slowly() -> None:
            wake()
            time.sleep(0.2)
            # Nothing would be there any more to write to.
            wake()

        wakes._physical_pull = wake_slowly  # noqa: SLF001
        office.bot.close()
        office.bot.close()
