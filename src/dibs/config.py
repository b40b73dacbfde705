"""The settings: read once from the environment, checked, and never read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

SLACK_API_URL = "https://slack.com/api/"
SHORTEST_SWEEP_SECONDS = 0.1
SHORTEST_TOLERANCE_SECONDS = 0.1
SHORTEST_OUTAGE_SECONDS = 30
"""Several times the interval at which it is written down that owners can renew."""
LONGEST_SECONDS = 24 * 60 * 60
HIGHEST_PORT = 65535
LARGEST_POOL = 200


class ConfigError(Exception):
    """A setting is missing or cannot be used. The message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that an installation may set. Times are in seconds.

    `playground` is true only where neither a Slack setting nor a database is named, so that a lost
    file of settings never turns an installation into a demonstration.
    """

    slack_bot_token: str = field(default="", repr=False)
    slack_signing_secret: str = field(default="", repr=False)
    slack_app_token: str = field(default="", repr=False)
    slack_api_url: str = SLACK_API_URL
    database_url: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 3000
    data_dir: Path = Path()
    sweep_seconds: float = 10
    clock_tolerance_seconds: float = 5
    outage_seconds: float = 300
    grace_seconds: float = 600
    threads: int = 16
    metrics_port: int | None = None
    playground: bool = False
    playground_port: int = 3001

    @property
    def embedded_database(self) -> bool:
        """Whether Dibs runs its own PostgreSQL in `data_dir`."""
        return not self.database_url


def load(environ: Mapping[str, str], *, with_slack: bool = True) -> Settings:
    """Read the settings from `environ` (design.md, section 4); Slack's may be missing where it is not used.

    Raises ConfigError with one line that names the setting and says what to do.
    """

    def text(name: str, default: str = "") -> str:
        return environ.get(name, "").strip() or default

    def seconds(name: str, default: str, low: float) -> float:
        return _seconds(name, text(name, default), low)

    playground = not text("DATABASE_URL") and not any(
        name.startswith("SLACK_") and value.strip() for name, value in environ.items()
    )
    settings = Settings(
        slack_bot_token=text("SLACK_BOT_TOKEN"),
        slack_signing_secret=text("SLACK_SIGNING_SECRET"),
        slack_app_token=text("SLACK_APP_TOKEN"),
        slack_api_url=text("SLACK_API_URL", SLACK_API_URL).rstrip("/") + "/",
        database_url=text("DATABASE_URL"),
        host=text("HOST", "127.0.0.1"),
        port=_whole_number("PORT", text("PORT", "3000"), 0, HIGHEST_PORT),
        data_dir=Path(
            text("DIBS_DATA_DIR") or platformdirs.user_data_dir("dibs", appauthor=False)
        ).expanduser(),
        sweep_seconds=seconds("DIBS_SWEEP_SECONDS", "10", SHORTEST_SWEEP_SECONDS),
        clock_tolerance_seconds=seconds("DIBS_CLOCK_TOLERANCE_SECONDS", "5", SHORTEST_TOLERANCE_SECONDS),
        outage_seconds=seconds("DIBS_OUTAGE_SECONDS", "300", SHORTEST_OUTAGE_SECONDS),
        grace_seconds=seconds("DIBS_GRACE_SECONDS", "600", 0),
        threads=_whole_number("DIBS_THREADS", text("DIBS_THREADS", "16"), 2, LARGEST_POOL),
        metrics_port=_metrics_port(text("DIBS_METRICS_PORT")),
        playground=playground,
        playground_port=_whole_number(
            "DIBS_PLAYGROUND_PORT", text("DIBS_PLAYGROUND_PORT", "3001"), 0, HIGHEST_PORT
        ),
    )
    if with_slack and not playground:
        _require_slack(settings)
    return settings


def for_playground(environ: Mapping[str, str]) -> Settings:
    """The settings for the playground, whatever is set for a real installation, which it never touches.

    Raises ConfigError like `load`.
    """
    ours = {name: value for name, value in environ.items() if not name.startswith("SLACK_")}
    return load({name: value for name, value in ours.items() if name != "DATABASE_URL"})


def _require_slack(settings: Settings) -> None:
    # Over Socket Mode nothing is signed: Dibs itself opens the connection.
    wanted = {"SLACK_BOT_TOKEN": settings.slack_bot_token}
    if not settings.slack_app_token:
        wanted["SLACK_SIGNING_SECRET"] = settings.slack_signing_secret
    missing = [name for name, value in wanted.items() if not value]
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} must be set: Dibs has some of its settings but not all. "
            "Copy the missing value from the app's page in Slack, or unset every SLACK_* variable and "
            "DATABASE_URL to start the playground."
        )
    tokens = {"SLACK_BOT_TOKEN": settings.slack_bot_token, "SLACK_APP_TOKEN": settings.slack_app_token}
    for name, token in tokens.items():
        if not (token.isascii() and token.isprintable()):
            # It cannot be sent, and the complaint about that would quote it.
            raise ConfigError(
                f"{name} has a character in it that no token has, such as a line break or an ellipsis. "
                "Copy it again from the app's page in Slack."
            )
    if settings.slack_app_token and not settings.slack_app_token.startswith("xapp-"):
        raise ConfigError(
            "SLACK_APP_TOKEN must be an app-level token, which starts with xapp-. "
            "Make one on the app's page in Slack under Basic Information, with the scope connections:write."
        )
    if not settings.slack_api_url.startswith(("http://", "https://")):
        raise ConfigError("SLACK_API_URL must start with https:// (or http:// for a stand-in).")


def _metrics_port(value: str) -> int | None:
    return _whole_number("DIBS_METRICS_PORT", value, 0, HIGHEST_PORT) if value else None


def _whole_number(name: str, value: str, low: int, high: int) -> int:
    if value.isascii() and value.isdigit() and low <= int(value) <= high:
        return int(value)
    raise ConfigError(f"{name} must be a whole number from {low} to {high}, and is {value!r}.")


def _seconds(name: str, value: str, low: float) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if low <= seconds <= LONGEST_SECONDS:
        return seconds
    raise ConfigError(
        f"{name} must be a number of seconds from {low:g} to {LONGEST_SECONDS}, and is {value!r}."
    )
