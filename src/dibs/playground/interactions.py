"""People acting: each act becomes a signed request to the bot, and its answer is taken as Slack would."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from dibs.playground import forms, payloads, replies, submissions
from dibs.playground.blockkit import elements_of
from dibs.playground.bot import JSON, alone
from dibs.playground.errors import ApiError
from dibs.playground.world import SYSTEM_USER, Failure, Press, ResponseUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.playground.bot import Answer, Bot
    from dibs.playground.world import Channel, View, World

Json = dict[str, Any]

EVENT_TRIES: Final = 3
NO_ANSWER: Final = "This app did not answer in time. Try again in a moment."
BAD_ANSWER: Final = "Something went wrong with this app. Try again in a moment."


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

    def __init__(self, world: World, bot: Bot, hooks_url: Callable[[], str]) -> None:
        self._world = world
        self._bot = bot
        self._hooks_url = hooks_url

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
        body = _form(payload)
        answers = [self._bot.send(body) for _ in range(deliveries)]
        results = [_result(answer) for answer in answers]
        if results[0].failed:
            self._world.mark_failure(replace(mark, words=results[0].words))
        self._note(mark.user, label, results[0])
        return replace(results[0], repeats=tuple(results[1:]))

    def command(self, user: str, channel_id: str, name: str, text: str) -> Result:
        """Type a slash command; its answer is shown, and so is its failure."""
        world = self._world
        with world.lock:
            person, channel = world.people[user], world.channels[channel_id]
            token = world.issue_response_url(user, channel.id)
            url = f"{self._hooks_url()}commands/{world.team_id}/{token}"
            form = payloads.command(world, person, channel, name=name, text=text, response_url=url)
        answer = self._bot.send(urlencode(form).encode())
        result = self._commanded(user, channel, name, answer)
        self._note(user, f"{name} {text}".strip(), result)
        return result

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
        result = _result(self._bot.send(_form(payload)))
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
        result = replace(_result(self._bot.send(_form(payload))), closed=True)
        self._note(user, f"Close {_title(view)}", result)
        return result

    def tell(self, told: Json) -> Result:
        """Send an event, and again while it is not taken, up to three times."""
        with self._world.lock:
            body = json.dumps(payloads.event(self._world, told)).encode()
        headers: dict[str, str] = {}
        answer = self._bot.send(body, headers, content_type=JSON)
        for number in range(1, EVENT_TRIES):
            if answer.good or answer.headers.get("X-Slack-No-Retry") == "1":
                break
            reason = "http_timeout" if answer.timed_out else "http_error"
            headers = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason}
            with alone():
                answer = self._bot.send(body, headers, content_type=JSON)
        result = _result(answer)
        self._note(str(told.get("user", "")), f"event {told['type']}", result)
        return result

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


def _form(payload: Json) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()


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
