"""The Bolt app: who Slack says it is, and the few listeners that dispatch by id."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from slack_bolt import App, BoltResponse
from slack_bolt.authorization import AuthorizeResult

from dibs.slack import payloads, replies
from dibs.slack.front import Front
from dibs.slack.listeners import actions, audit, brakes, commands, events, supervise, views

_log = logging.getLogger(__name__)


def make_app(front: Front, *, signing_secret: str, bot: Mapping[str, Any]) -> App:
    """The app for one workspace. `bot` is the answer of auth.test.

    A listener runs in the request's own thread and its answer leaves when it has returned, so an
    acknowledged press is a committed one. Slack is not asked again who the bot is.
    """
    identity = AuthorizeResult(
        enterprise_id=None,
        team_id=bot.get("team_id"),
        bot_user_id=bot.get("user_id"),
        bot_id=bot.get("bot_id"),
        bot_token="-",  # noqa: S106 - listeners use the client of `dibs.slack.web`, never Bolt's
    )
    app = App(
        signing_secret=signing_secret,
        authorize=lambda: identity,
        process_before_response=True,
        raise_error_for_unhandled_request=False,
        logger=logging.getLogger("dibs.slack.bolt"),
    )
    for listeners in (actions, audit, brakes, commands, supervise, views, events):
        listeners.register(app, front)

    @app.error
    def on_error(error: Exception, body: dict[str, Any]) -> BoltResponse:
        """Answer 200 and tell the person: a 5xx would only show them a warning sign without words."""
        _log.error("a listener raised", exc_info=error)
        if body.get("type") == "view_submission":
            return _keep_open(body)
        if answer_url := payloads.answer_url_of(body):
            front.outgoing.submit(
                lambda: front.web.answer(
                    answer_url, response_type="ephemeral", replace_original=False, text=replies.WENT_WRONG
                )
            )
        return BoltResponse(status=200, body="")

    return app


def _keep_open(body: Mapping[str, Any]) -> BoltResponse:
    errors = views.at_first_input(body, replies.WENT_WRONG)
    answer = {"response_action": "errors", "errors": errors} if errors else {}
    return BoltResponse(status=200, body=answer)
