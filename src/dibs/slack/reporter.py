"""What follows the answer to /queue report: its picture, and its numbers where they take long to count."""

from __future__ import annotations

import logging

from dibs.deadline import Deadline
from dibs.domain.errors import StoreError
from dibs.domain.leases import LeaseReview
from dibs.domain.queue import Queue
from dibs.service.reports import ReportService
from dibs.slack.calls import Answered
from dibs.slack.files import FileSender
from dibs.slack.outgoing import Outgoing
from dibs.slack.payloads import Origin
from dibs.slack.plots import lease_picture
from dibs.slack.views.report import alt_text, nothing_seen, report
from dibs.slack.web import SlackWeb

_log = logging.getLogger(__name__)

_COUNT_SECONDS = 30.0
_SEND_SECONDS = 30.0

NO_PICTURE = "The picture of this report could not be sent to you. The numbers above stand without it."
PICTURE_UNKNOWN = (
    "We could not confirm that the picture of this report has reached you. Look at your direct messages from "
    "Dibs before you ask for it again; the numbers above stand without it."
)
NOT_COUNTED = (
    "The report could not be made: the database did not answer in time. Nothing changed. Please try a "
    "shorter period, such as `{command} report {key} 7`, or try again in a moment."
)


class Reporter:
    """Makes and sends in the background what would hold up an answer. `reports` may take its time."""

    def __init__(self, outgoing: Outgoing, web: SlackWeb, files: FileSender, reports: ReportService) -> None:
        self._outgoing = outgoing
        self._web = web
        self._files = files
        self._reports = reports

    def send_picture(self, origin: Origin, review: LeaseReview) -> None:
        """Draw the picture of a review and send it to the person in a direct message, or tell why not."""
        self._outgoing.submit(lambda: self._send_picture(origin, review))

    def count_and_send(self, origin: Origin, queue: Queue, days: int, command: str) -> None:
        """Make a report that takes longer than an answer may, and send its numbers and its picture.

        `command` is how the person types `/queue`.
        """
        self._outgoing.submit(lambda: self._count_and_send(origin, queue, days, command))

    def _count_and_send(self, origin: Origin, queue: Queue, days: int, command: str) -> None:
        try:
            review = self._reports.lease_review(queue, days, deadline=Deadline.after(_COUNT_SECONDS))
        except StoreError as error:
            _log.warning("the report of %s over %d days was not made: %s", queue.key, days, error)
            self._outgoing.tell(origin, NOT_COUNTED.format(command=command, key=queue.key))
            return
        if review.empty:
            self._outgoing.tell(origin, nothing_seen(review, command))
            return
        message = report(review, command)
        answered = Answered.REFUSED
        if origin.answer_url:
            answered = self._web.answer(
                origin.answer_url,
                response_type="ephemeral",
                replace_original=False,
                **message.as_payload(),
            )
        if answered is Answered.REFUSED:
            self._outgoing.tell(origin, message.text)
        self._send_picture(origin, review)

    def _send_picture(self, origin: Origin, review: LeaseReview) -> None:
        key = review.queue.key
        try:
            picture = lease_picture(review)
        except Exception:
            # Whatever went wrong in the drawing, the person waits for a picture.
            self._outgoing.tell(origin, NO_PICTURE)
            raise
        sent = self._files.send_file(
            origin.user_id,
            picture,
            filename=f"lease-review-{key}-{review.until:%Y-%m-%d}.png",
            title=f"Lease review of {key}, {review.days} days",
            alt_text=alt_text(review),
            comment=f"The lease review of *{key}* that you asked for.",
            deadline=Deadline.after(_SEND_SECONDS),
        )
        if not sent.arrived:
            unknown = sent.answered is Answered.UNKNOWN
            self._outgoing.tell(origin, PICTURE_UNKNOWN if unknown else NO_PICTURE)
