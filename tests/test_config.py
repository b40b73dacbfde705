"""The settings: what is right is taken as it is, what is wrong is named in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs.config import ConfigError, for_playground, load

SLACK = {"SLACK_BOT_TOKEN": "xoxb-token", "SLACK_SIGNING_SECRET": "signing-secret"}
URL = "postgresql://dibs:hunter2@db/dibs"


def refused(environ: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        load(environ)
    line = str(raised.value)
    assert "\n" not in line
    return line


def test_an_installation() -> None:
    settings = load({**SLACK, "DATABASE_URL": URL})
    assert not settings.playground
    assert not settings.embedded_database
    assert (settings.host, settings.port, settings.sweep_seconds) == ("127.0.0.1", 3000, 10)
    assert settings.slack_api_url == "https://slack.com/api/"


def test_everything_can_be_set(tmp_path: Path) -> None:
    settings = load(
        {
            **SLACK,
            "DATABASE_URL": URL,
            "SLACK_API_URL": "http://127.0.0.1:9/api",
            "HOST": "0.0.0.0",  # noqa: S104 - an installation behind a proxy
            "PORT": "8080",
            "DIBS_DATA_DIR": str(tmp_path),
            "DIBS_SWEEP_SECONDS": "2.5",
            "DIBS_CLOCK_TOLERANCE_SECONDS": "0.5",
            "DIBS_OUTAGE_SECONDS": "60",
            "DIBS_GRACE_SECONDS": "0",
            "DIBS_THREADS": "32",
        }
    )
    assert settings.slack_api_url == "http://127.0.0.1:9/api/"
    assert (settings.host, settings.port) == ("0.0.0.0", 8080)  # noqa: S104
    assert (settings.data_dir, settings.sweep_seconds, settings.threads) == (tmp_path, 2.5, 32)
    brakes = (settings.clock_tolerance_seconds, settings.outage_seconds, settings.grace_seconds)
    assert brakes == (0.5, 60, 0)


def test_without_a_database_the_embedded_one_is_used() -> None:
    settings = load(SLACK)
    assert settings.embedded_database
    assert not settings.playground


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"PATH": "/bin", "HOME": "/root"},
        {"PORT": "3005", "DIBS_SWEEP_SECONDS": "1"},
        {"SLACK_BOT_TOKEN": "", "SLACK_SIGNING_SECRET": "  ", "DATABASE_URL": " "},
    ],
)
def test_the_playground_starts_where_nothing_of_an_installation_is_set(environ: dict[str, str]) -> None:
    assert load(environ).playground


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({"DATABASE_URL": URL}, ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"]),
        ({"SLACK_BOT_TOKEN": "x"}, ["SLACK_SIGNING_SECRET"]),
        ({"SLACK_SIGNING_SECRET": "x"}, ["SLACK_BOT_TOKEN"]),
        ({"SLACK_SIGNING_SECRET": "x", "SLACK_BOT_TOKEN": "  "}, ["SLACK_BOT_TOKEN"]),
        ({"SLACK_APP_TOKEN": "x"}, ["SLACK_BOT_TOKEN"]),
        ({"SLACK_API_URL": "https://x"}, ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"]),
        ({"SLACK_SOMETHING_NEW": "x"}, ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"]),
    ],
)
def test_a_part_of_the_settings_never_becomes_a_demonstration(
    environ: dict[str, str], missing: list[str]
) -> None:
    line = refused(environ)
    assert [name for name in SLACK if f"{name} " in line.split("must be set")[0]] == missing


@pytest.mark.parametrize("port", ["x", "-1", "65536", "3000.5", "٣٠٠٠", "1e3", "3 000", "9" * 50])
def test_a_port_that_is_none_is_named(port: str) -> None:
    assert "PORT" in refused({**SLACK, "PORT": port})
    assert "DIBS_METRICS_PORT" in refused({**SLACK, "DIBS_METRICS_PORT": port})


def test_the_metrics_have_a_port_of_their_own_only_where_it_is_set() -> None:
    assert load(SLACK).metrics_port is None
    assert load({**SLACK, "DIBS_METRICS_PORT": " "}).metrics_port is None
    assert load({**SLACK, "DIBS_METRICS_PORT": "9464"}).metrics_port == 9464


@pytest.mark.parametrize("seconds", ["x", "0", "-1", "0.05", "nan", "inf", "1e9"])
def test_a_sweep_that_is_never_or_always_is_named(seconds: str) -> None:
    assert "DIBS_SWEEP_SECONDS" in refused({**SLACK, "DIBS_SWEEP_SECONDS": seconds})


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("DIBS_CLOCK_TOLERANCE_SECONDS", "0"),
        ("DIBS_CLOCK_TOLERANCE_SECONDS", "five"),
        ("DIBS_OUTAGE_SECONDS", "29"),
        ("DIBS_OUTAGE_SECONDS", "86401"),
        ("DIBS_GRACE_SECONDS", "-1"),
        ("DIBS_GRACE_SECONDS", "nan"),
    ],
)
def test_a_brake_that_cannot_work_is_named(name: str, seconds: str) -> None:
    assert name in refused({**SLACK, name: seconds})


@pytest.mark.parametrize("threads", ["x", "0", "1", "201"])
def test_a_number_of_threads_that_cannot_serve_is_named(threads: str) -> None:
    assert "DIBS_THREADS" in refused({**SLACK, "DIBS_THREADS": threads})


@pytest.mark.parametrize("url", ["slack.com/api", "ftp://slack.com"])
def test_an_api_address_that_is_none_is_named(url: str) -> None:
    assert "SLACK_API_URL" in refused({**SLACK, "SLACK_API_URL": url})


def test_socket_mode_needs_an_app_level_token_and_nothing_signed() -> None:
    assert "xapp-" in refused({**SLACK, "SLACK_APP_TOKEN": "xoxb-token"})
    settings = load({"SLACK_BOT_TOKEN": "xoxb-token", "SLACK_APP_TOKEN": "xapp-token"})
    assert (settings.slack_app_token, settings.slack_signing_secret) == ("xapp-token", "")
    assert "SLACK_BOT_TOKEN" in refused({"SLACK_APP_TOKEN": "xapp-token"})


@pytest.mark.parametrize("name", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
@pytest.mark.parametrize("between", ["\n", "\x00", "…"])
def test_a_token_that_was_copied_badly_is_named_and_not_shown(name: str, between: str) -> None:
    line = refused({**SLACK, name: f"xapp-hunter2{between}hunter2"})
    assert name in line
    assert "hunter2" not in line


def test_what_is_only_blank_counts_as_unset() -> None:
    settings = load({**SLACK, "PORT": " ", "HOST": "", "DIBS_SWEEP_SECONDS": "  "})
    assert (settings.port, settings.host, settings.sweep_seconds) == (3000, "127.0.0.1", 10)


def test_a_data_folder_in_the_home_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dibs")
    assert load({**SLACK, "DIBS_DATA_DIR": "~/data"}).data_dir == Path("/home/dibs/data")


def test_secrets_are_not_shown() -> None:
    shown = repr(load({**SLACK, "DATABASE_URL": URL}))
    assert not [secret for secret in (*SLACK.values(), "hunter2") if secret in shown]


def test_the_playground_touches_nothing_of_an_installation() -> None:
    settings = for_playground({**SLACK, "DATABASE_URL": URL, "PORT": "3005"})
    assert settings.playground
    assert (settings.database_url, settings.slack_bot_token, settings.port) == ("", "", 3005)
