"""People acting: each act becomes a signed request to the bot, and its answer is taken as Slack would."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from dibs.playground import forms, payloads, replies, submissions
from dibs.playground.blockkit import elements_of
from dibs.playground.command_text import as_sent
from dibs.playground.errors import ApiError
from dibs.playground.events import Events
from dibs.playground.world import SYSTEM_USER, Failure, Press, ResponseUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.playground.app import App
    from dibs.playground.bot import Answer
    from dibs.playground.delivery import Delivery
    from dibs.playground.world import Channel, View, World

Json = dict[str, Any]

NO_ANSWER: Final = "This app did not answer in time. Try again in a moment."
BAD_ANSWER: Final = "Something went wrong with this app. Try again in a moment."
NOT_INTERACTIVE: Final = "This app is not configured to handle interactive responses."


@dataclass(frozen=True)
class Result:
    """What came of one act, as the person who acted sees it."""

    status: int
    seconds: float
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    failed: bool = False
    words: str = ""
    ephemeral: Json | None = None
    errors: dict[str, str] = field(default_factory=dict)
    closed: bool = False
    repeats: tuple[Result, ...] = ()


class Interactions:
    """Everything that people do and that the bot hears of."""

    def __init__(self, world: World, app: App, way: Delivery, hooks_url: Callable[[], str]) -> None:
        self._world = world
        self._app = app
        self._way = way
        self._hooks_url = hooks_url
        self._events = Events(world, app, way, self._note_event)

    def press(
        self,
        user: str,
        channel_id: str,
        message: Json,
        action_id: str,
        *,
        block_id: str | None = None,
        choice: object = None,
        deliveries: int = 1,
    ) -> Result:
        """Press something on a message as the person sees it; the request is delivered so many times."""
        world = self._world
        with world.lock:
            person, channel = world.people[user], world.channels[channel_id]
            block, element = find(message.get("blocks", []), action_id, block_id)
            world.clear_failure(user, message["ts"], block["block_id"], action_id)
            told = forms.chosen(element, choice) if choice is not None else None
            pressed = payloads.action(world, block["block_id"], element, told)
            token = world.issue_response_url(user, channel.id, message["ts"])
            state = forms.initial_state(message.get("blocks", []))
            if told and block["block_id"] in state:
                state[block["block_id"]][action_id] = told
            url = f"{self._hooks_url()}actions/{world.team_id}/{token}"
            payload = payloads.press_on_message(
                world, person, channel, message, pressed=pressed, response_url=url, state=state
            )
        mark = Failure(user, message["ts"], block["block_id"], action_id, "")
        return self._pressed(payload, mark, _label(element), deliveries)

    def press_in_view(
        self, user: str, view: View, action_id: str, *, block_id: str | None = None, choice: object = None
    ) -> Result:
        """Press something in a modal or in the Home tab."""
        world = self._world
        with world.lock:
            block, element = find(view.body["blocks"], action_id, block_id)
            world.clear_failure(user, view.id, block["block_id"], action_id)
            told = forms.chosen(element, choice) if choice is not None else None
            if told:
                view.state.setdefault(block["block_id"], {})[action_id] = told
            pressed = payloads.action(world, block["block_id"], element, told)
            payload = payloads.press_in_view(world, world.people[user], view, pressed)
        mark = Failure(user, view.id, block["block_id"], action_id, "")
        return self._pressed(payload, mark, _label(element), 1)

    def _pressed(self, payload: Json, mark: Failure, label: str, deliveries: int) -> Result:
        results = [self._interact(payload) for _ in range(deliveries)]
        if results[0].failed:
            self._world.mark_failure(replace(mark, words=results[0].words))
        self._note(mark.user, label, results[0])
        return replace(results[0], repeats=tuple(results[1:]))

    def command(self, user: str, channel_id: str, name: str, text: str) -> Result:
        """Type a slash command; its answer is shown, and so is its failure."""
        world = self._world
        manifest = self._app.manifest
        if not self._app.installed_in(world) or (manifest and name not in manifest.commands):
            return self._refuse_command(user, channel_id, name)
        if manifest:
            known = manifest.commands[name]
            text = as_sent(world, text, escape=known.should_escape)
        with world.lock:
            person, channel = world.people[user], world.channels[channel_id]
            token = world.issue_response_url(user, channel.id)
            url = f"{self._hooks_url()}commands/{world.team_id}/{token}"
            form = payloads.command(world, person, channel, name=name, text=text, response_url=url)
        answer = self._way.command(form)
        result = self._commanded(user, channel, name, answer)
        self._note(user, f"{name} {text}".strip(), result)
        return result

    def _refuse_command(self, user: str, channel_id: str, name: str) -> Result:
        words = f"{name} is not a valid command."
        with self._world.lock:
            self._world.whisper(user, channel_id, self._world.compose(text=words, user=SYSTEM_USER))
        return Result(0, 0.0, failed=True, words=words)

    def _commanded(self, user: str, channel: Channel, name: str, answer: Answer) -> Result:
        result = _result(answer)
        if answer.good:
            try:
                shown = self._answer_of_command(user, channel, answer)
            except ApiError:
                return self._command_failed(user, channel, name, "invalid_command_response", result)
            return replace(result, ephemeral=shown)
        code = "operation_timeout" if answer.timed_out else "dispatch_failed"
        return self._command_failed(user, channel, name, code, result)

    def _answer_of_command(self, user: str, channel: Channel, answer: Answer) -> Json | None:
        if not answer.body.strip():
            return None
        params = _json_object(answer.body) or {"text": answer.body}
        world = self._world
        with world.lock:
            message = replies.say(world, ResponseUrl(user, channel.id, world.clock.now(), None), params)
            self._app.tell_news(world)
        return message if message.get("is_ephemeral") else None

    def _command_failed(self, user: str, channel: Channel, name: str, code: str, result: Result) -> Result:
        words = f'{name} failed with the error "{code}"'
        with self._world.lock:
            self._world.whisper(user, channel.id, self._world.compose(text=words, user=SYSTEM_USER))
        return replace(result, failed=True, words=words)

    def submit(self, user: str, view: View, values: Mapping[str, object]) -> Result:
        """Fill a modal in and send it; Slack's own client complains first, without asking the bot."""
        world = self._world
        with world.lock:
            view.state = forms.typed(view.body, view.state, values)
            words = forms.complaints(view.body, view.state)
            world.changed()
            if words:
                return Result(0, 0.0, errors=words)
            payload = payloads.submission(world, world.people[user], view)
            label = _title(view)
        result = self._interact(payload)
        if not result.failed:
            with world.lock:
                result = self._submitted(view, result)
        if result.failed:
            world.mark_failure(Failure(user, view.id, "", "", result.words))
        self._note(user, f"Submit {label}", result)
        return result

    def _submitted(self, view: View, result: Result) -> Result:
        world = self._world
        world.clear_failure(view.user, view.id, "", "")
        try:
            errors, closed = submissions.take(world, view, result.body)
        except ApiError as refusal:
            words = "; ".join([refusal.code, *refusal.messages])
            return replace(result, failed=True, words=f"We had some trouble connecting. Try again? ({words})")
        return replace(result, errors=errors, closed=closed)

    def close(self, user: str, view: View) -> Result:
        """Leave a modal; the bot hears of it only if it asked to."""
        world = self._world
        with world.lock:
            submissions.pop(world, view)
            payload = payloads.closing(world, world.people[user], view, cleared=False)
        if not view.body.get("notify_on_close"):
            return Result(0, 0.0, closed=True)
        result = replace(self._interact(payload), closed=True)
        self._note(user, f"Close {_title(view)}", result)
        return result

    def shortcut(
        self, user: str, callback_id: str, channel_id: str = "", message: Json | None = None
    ) -> Result:
        """Use a shortcut: a global one, or one in the menu of a message."""
        world = self._world
        known = self._app.manifest.shortcuts.get(callback_id) if self._app.manifest else None
        if self._app.manifest and (known is None or known.on_message != (message is not None)):
            msg = f"the app has no such shortcut: {callback_id}"
            raise LookupError(msg)
        with world.lock:
            person = world.people[user]
            if message is None:
                payload = payloads.shortcut(world, person, callback_id)
            else:
                channel = world.channels[channel_id]
                token = world.issue_response_url(user, channel.id)
                url = f"{self._hooks_url()}app/{world.team_id}/{token}"
                payload = payloads.message_shortcut(world, person, channel, callback_id, message, url)
        result = self._interact(payload)
        self._note(user, known.name if known else callback_id, result)
        return result

    def tell(self, told: Json) -> Result:
        """Send an event, if the app is told of it; what failed is sent again later."""
        answer = self._events.tell(told)
        return _result(answer) if answer else Result(0, 0.0)

    def hear(self, told: Json) -> Result | None:
        """Send an event if there is a bot to send it to."""
        return self.tell(told) if self._way.there else None

    def hear_if_subscribed(self, told: Json) -> None:
        """Send an event that a bot must have asked for by its manifest."""
        if self._app.manifest and self._app.hears(told) and self._way.there:
            self._events.tell(told)

    def _interact(self, payload: Json) -> Result:
        """Send what somebody did, unless the app is not set up to hear of it."""
        manifest = self._app.manifest
        if (manifest and not manifest.interactive) or not self._app.installed_in(self._world):
            return Result(0, 0.0, failed=True, words=NOT_INTERACTIVE)
        return _result(self._way.interaction(payload))

    def _note_event(self, told: Json, answer: Answer) -> None:
        user = told.get("user", "")
        self._note(user if isinstance(user, str) else "", f"event {told['type']}", _result(answer))

    def _note(self, user: str, what: str, result: Result) -> None:
        person = self._world.people.get(user)
        self._world.note_press(
            Press(
                at=self._world.clock.now(),
                who=person.name if person else user,
                what=what,
                status=result.status,
                milliseconds=round(result.seconds * 1000, 1),
                words=result.words,
            )
        )


def find(blocks: list[Json], action_id: str, block_id: str | None = None) -> tuple[Json, Json]:
    """Return the block and the element that an action_id names."""
    for block in blocks:
        for element in elements_of(block):
            if element.get("action_id") == action_id and block_id in (None, block["block_id"]):
                return block, element
    msg = f"nothing with the action_id {action_id!r} is there to press"
    raise LookupError(msg)


def top_view(world: World, user: str) -> View:
    """Return the modal that a person has before them."""
    stack = world.stacks.get(user)
    if not stack:
        msg = f"{user} has no modal open"
        raise LookupError(msg)
    return stack[-1]


def _result(answer: Answer) -> Result:
    words = "" if answer.good else NO_ANSWER if answer.timed_out else BAD_ANSWER
    return Result(
        answer.status, answer.seconds, answer.body, answer.headers, failed=not answer.good, words=words
    )


def _json_object(body: str) -> Json | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _label(element: Json) -> str:
    text = element.get("text")
    return str(text["text"]) if isinstance(text, dict) else str(element["action_id"])


def _title(view: View) -> str:
    return str(view.body.get("title", {}).get("text", "Home"))
