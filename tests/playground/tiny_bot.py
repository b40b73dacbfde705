"""A tiny Bolt app behind a real WSGI server: a card that one person can claim, and a modal of inputs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import waitress
from slack_bolt import Ack, App, Respond
from slack_bolt.adapter.wsgi import SlackRequestHandler
from slack_sdk import WebClient

from dibs.playground import SlackStandIn

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

SECRET = "tiny-secret"  # noqa: S105 - the tests' own
TOKEN = "xoxb-tiny"  # noqa: S105 - the tests' own


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def button(text: str, action_id: str, **more: object) -> Json:
    return {"type": "button", "text": plain(text), "action_id": action_id, **more}


def card(owner: str = "") -> list[Json]:
    words = f"*TINY-1* Refund for order 1042\n{f'Owner: <@{owner}>' if owner else 'Waiting for somebody'}"
    buttons = [button("Release", "release")] if owner else [button("Claim", "claim", style="primary")]
    return [
        {"type": "section", "block_id": "words", "text": {"type": "mrkdwn", "text": words}},
        {"type": "actions", "block_id": "buttons", "elements": [*buttons, button("History", "history")]},
    ]


def field(block_id: str, label: str, element: Json, **more: object) -> Json:
    element = {"action_id": block_id, **element}
    return {"type": "input", "block_id": block_id, "label": plain(label), "element": element, **more}


def options(*values: str) -> list[Json]:
    return [{"text": plain(value.replace("_", " ").capitalize()), "value": value} for value in values]


def release_modal() -> Json:
    reasons = {"type": "static_select", "options": options("shift_ending", "out_of_scope", "other")}
    states = {"type": "radio_buttons", "options": options("none", "completed", "unknown")}
    return {
        "type": "modal",
        "callback_id": "release",
        "title": plain("Release TINY-1"),
        "submit": plain("Release"),
        "close": plain("Keep it"),
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": "The task goes *back to the queue*."}},
            field("reason", "Reason", reasons),
            field("comment", "Comment", {"type": "plain_text_input"}, optional=True),
            field(
                "handoff_note",
                "Handoff note",
                {"type": "plain_text_input", "multiline": True},
                hint=plain("What must the next owner know?"),
            ),
            field("external_action", "External action", states),
            field("due", "Due", {"type": "datepicker"}, optional=True),
            field("people", "Tell", {"type": "multi_users_select"}, optional=True),
        ],
    }


class TinyBot:
    """The bot's one task, and its listeners."""

    def __init__(self, client: WebClient) -> None:
        self.owner = ""
        self.lock = threading.Lock()
        self.events: list[Json] = []
        self.app = App(client=client, signing_secret=SECRET, process_before_response=True)
        self.app.action("claim")(self.claim)
        self.app.action("release")(self.release)
        self.app.action("history")(self.history)
        self.app.command("/tiny")(self.command)
        self.app.view("release")(self.released)
        for kind in ("member_joined_channel", "member_left_channel", "app_home_opened"):
            self.app.event(kind)(self.heard)

    def claim(self, ack: Ack, body: Json, respond: Respond) -> None:
        with self.lock:
            won = not self.owner
            self.owner = self.owner or body["user"]["id"]
        ack()
        if won:
            respond(text="TINY-1 claimed", blocks=card(self.owner), replace_original=True)
        else:
            respond(text=f"<@{self.owner}> has TINY-1. Your press changed nothing.", replace_original=False)

    def release(self, ack: Ack, body: Json, client: WebClient) -> None:
        client.views_open(trigger_id=body["trigger_id"], view=release_modal())
        ack()

    def released(self, ack: Ack, view: Json) -> None:
        values = view["state"]["values"]
        reason = values["reason"]["reason"]["selected_option"]["value"]
        if reason == "other" and not values["comment"]["comment"]["value"]:
            ack(response_action="errors", errors={"comment": "Other needs a comment."})
            return
        self.owner = ""
        ack()

    def history(self, ack: Ack) -> None:
        ack()

    def command(self, ack: Ack, body: Json, client: WebClient) -> None:
        if body["text"] == "post":
            client.chat_postMessage(channel=body["channel_id"], text="TINY-1", blocks=card())
        ack(f"You said {body['text']}")

    def heard(self, event: Json) -> None:
        self.events.append(event)


@contextmanager
def serving(app: App) -> Iterator[str]:
    """Serve a Bolt app and yield its address."""
    server = waitress.create_server(SlackRequestHandler(app), host="127.0.0.1", port=0, threads=60)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/slack/events"
    finally:
        server.task_dispatcher.shutdown()
        # The thread waits for the lock, so that it does not close what wakes it while it is being woken.
        with server.trigger.lock:
            server.trigger.thunks.append(server.close)
            server.trigger.pull_trigger()
        thread.join(30)


@contextmanager
def tiny_workspace() -> Iterator[tuple[SlackStandIn, TinyBot]]:
    """Yield a stand-in with the tiny bot in it."""
    with SlackStandIn(signing_secret=SECRET, bot_token=TOKEN) as slack:
        bot = TinyBot(WebClient(token=TOKEN, base_url=slack.api_url))
        with serving(bot.app) as address:
            slack.bot_url = address
            yield slack, bot
