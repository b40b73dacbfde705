"""What is told to whoever counts and measures. The services know this, and nothing of how it is shown."""

from __future__ import annotations

from dibs.domain.outcomes import Outcome


class Telemetry:
    """Hears what happens, from many threads at once; this one does nothing with it.

    No method raises, waits or takes long: a press is answered after it.
    """

    def answered(self, outcome: Outcome) -> None:
        """An operation has its final outcome, or one that is unknown for now."""

    def expired(self, number: int) -> None:
        """The sweep has returned so many tasks."""

    def acknowledged(self, kind: str, seconds: float) -> None:
        """A request of Slack's was answered, so long after it arrived. `kind` is one of a few words."""

    def asked_slack(self, method: str, seconds: float, error: str | None) -> None:
        """Slack answered, or did not, after so long. `error` is Slack's word for what went wrong."""

    def job_failed(self, name: str) -> None:
        """A job that runs by the clock raised."""
