"""What Slack sends, read into plain values. Nothing in a payload is trusted to be there or to fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dibs.deadline import Deadline
from dibs.domain.task import LARGEST_ID
from dibs.slack.ids import WRITTEN_OUT
from dibs.slack.text import typed as as_typed
from dibs.slack.text import unescaped

# Slack's own are capital letters and digits; it asks to take them as they come.
_SLACK_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LONGEST_OP_ID = 400
_MOST_DIGITS = 20
_KINDS = {
    "block_actions": "press",
    "view_submission": "submission",
    "event_callback": "event",
    "shortcut": "shortcut",
    "message_action": "shortcut",
}

Payload = Mapping[str, Any]


class UnreadableError(Exception):
    """A payload lacks something, or holds something that no screen of Dibs sends."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who did something and where, and how to answer."""

    workspace: str
    user_id: str
    op_id: str
    deadline: Deadline
    channel_id: str | None = None
    message_ts: str | None = None
    """The message that was pressed on, if it is one that everybody sees."""
    answer_url: str | None = None
    trigger_id: str | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A button that somebody pressed, and the value that Dibs drew it with."""

    origin: Origin
    action_id: str
    value: Payload

    def number(self, key: str) -> int:
        """A whole number in the value. Raises UnreadableError."""
        return _whole(self.value.get(key))


@dataclass(frozen=True, slots=True)
class Press:
    """A button that somebody pressed, with the task and the version that it was drawn with."""

    origin: Origin
    action_id: str
    task_id: int
    version: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A slash command."""

    origin: Origin
    command: str
    text: str
    """The words as they were typed."""
    sent: str
    """The words as Slack sent them, in which a mention names its person."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A modal that somebody sent off."""

    origin: Origin
    callback_id: str
    metadata: Payload
    blocks: tuple[str, ...] = field(default=())
    """The block_ids of the view's inputs, first one first."""
    _values: Payload = field(default_factory=dict)

    def text(self, field_id: str) -> str | None:
        """What was written or chosen in an input, or None."""
        state = self._given(field_id)
        chosen = _mapping(state.get("selected_option")).get("value")
        for value in (
            state.get("value"),
            chosen,
            state.get("selected_user"),
            state.get("selected_conversation"),
            state.get("selected_channel"),
        ):
            if isinstance(value, str) and value.strip():
                return value
        return None

    def person(self, field_id: str) -> str | None:
        """The person who was chosen in an input."""
        chosen = self._given(field_id).get("selected_user")
        return str(chosen) if _is_id(chosen) else None

    def people(self, field_id: str) -> tuple[str, ...]:
        """The people who were chosen in an input."""
        chosen = self._given(field_id).get("selected_users")
        return tuple(user for user in chosen if _is_id(user)) if isinstance(chosen, list) else ()

    def ticked(self, field_id: str) -> bool:
        """Whether anything is ticked in an input of boxes."""
        return bool(self._given(field_id).get("selected_options"))

    def moment(self, field_id: str) -> datetime | None:
        """The time that was chosen in an input, in UTC."""
        chosen = self._given(field_id).get("selected_date_time")
        if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 < chosen < 2**33:
            return None
        return datetime.fromtimestamp(chosen, UTC)

    def number(self, key: str) -> int:
        """A whole number that Dibs put into the view's metadata. Raises UnreadableError."""
        return _whole(self.metadata.get(key))

    def _given(self, field_id: str) -> Payload:
        return _mapping(_mapping(self._values.get(field_id)).get(field_id))

    def starting_with(self, prefix: str) -> dict[int, str]:
        """The answers of all inputs whose id is `prefix` and a number."""
        answers = {}
        for field_id in self._values:
            number = id_in(field_id.removeprefix(prefix)) if field_id.startswith(prefix) else None
            value = self.text(field_id)
            if number is not None and value:
                answers[number] = value
        return answers


def press(body: Payload, deadline: Deadline) -> Press:
    """Read a press on a button of a task. Raises UnreadableError."""
    pressed = pressed_button(body, deadline)
    return Press(
        origin=pressed.origin,
        action_id=pressed.action_id,
        task_id=_whole(pressed.value.get("task")),
        version=_whole(pressed.value.get("version")),
    )


def pressed_button(body: Payload, deadline: Deadline) -> Button:
    """Read a block_actions payload, whatever the button carries. Raises UnreadableError."""
    action = _first(body.get("actions"))
    container = _mapping(body.get("container"))
    channel = _id_or_none(_mapping(body.get("channel")).get("id")) or _id_or_none(container.get("channel_id"))
    message_ts = _text_or_none(container.get("message_ts"))
    where = f"{channel}.{message_ts}" if message_ts else _text_or_none(container.get("view_id")) or ""
    action_id = _text(action.get("action_id"))
    user = _id(_mapping(body.get("user")).get("id"))
    team = _team(body)
    # A press in a window comes without channel and url; the window carries those that it was opened with.
    opened = _json(_mapping(body.get("view")).get("private_metadata"))
    seen_ts = _text_or_none(opened.get("ts"))
    return Button(
        origin=Origin(
            workspace=team,
            user_id=user,
            op_id=_op_id("press", team, user, where, _text(action.get("action_ts")), action_id),
            deadline=deadline,
            channel_id=channel or _id_or_none(opened.get("channel")),
            message_ts=None if container.get("is_ephemeral") is True else message_ts or seen_ts,
            answer_url=_text_or_none(body.get("response_url")) or _text_or_none(opened.get("url")),
            trigger_id=_text_or_none(body.get("trigger_id")),
        ),
        action_id=action_id,
        value=_json(action.get("value")),
    )


def typed(body: Payload, deadline: Deadline, name_of: Callable[[str], str]) -> Typed:
    """Read a slash command. Raises UnreadableError.

    `name_of` is asked for the name in a mention that comes without one.
    """
    team, trigger = _id(body.get("team_id")), _text(body.get("trigger_id"))
    sent = str(body.get("text") or "").strip()
    command = _text(body.get("command"))
    written_out = command in WRITTEN_OUT
    return Typed(
        origin=Origin(
            workspace=team,
            user_id=_id(body.get("user_id")),
            op_id=_op_id("command", team, trigger),
            deadline=deadline,
            channel_id=_id(body.get("channel_id")),
            answer_url=_text_or_none(body.get("response_url")),
            trigger_id=trigger,
        ),
        command=command,
        text=(as_typed(sent, name_of) if written_out else unescaped(sent)).strip(),
        sent=sent,
    )


def submission(body: Payload, deadline: Deadline) -> Submission:
    """Read a view_submission. Raises UnreadableError."""
    view = _mapping(body.get("view"))
    metadata = _json(view.get("private_metadata"))
    team = _team(body)
    blocks = view.get("blocks")
    inputs = tuple(
        str(block.get("block_id"))
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and block.get("type") == "input"
    )
    values = _mapping(_mapping(view.get("state")).get("values"))
    occasion = _text_or_none(body.get("trigger_id")) or f"{_text(view.get('id'))}.{_text(view.get('hash'))}"
    return Submission(
        origin=Origin(
            workspace=team,
            user_id=_id(_mapping(body.get("user")).get("id")),
            op_id=_op_id("view", team, occasion),
            deadline=deadline,
            channel_id=_id_or_none(metadata.get("channel")),
            message_ts=_text_or_none(metadata.get("ts")),
            answer_url=_text_or_none(metadata.get("url")),
        ),
        callback_id=_text(view.get("callback_id")),
        metadata=metadata,
        blocks=inputs or tuple(values),
        _values=values,
    )


def id_in(value: str | None) -> int | None:
    """The id of a row that an option carries, or None where no row can have it."""
    written = (value or "").strip()
    if not (written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS):
        return None
    number = int(written)
    return number if 0 < number <= LARGEST_ID else None


def row_id(value: Payload, key: str) -> int:
    """The id of a row that a button carries. Raises UnreadableError where no row can have it."""
    number = _whole(value.get(key))
    if not 0 < number <= LARGEST_ID:
        raise UnreadableError("no row can have this id")
    return number


def answer_url_of(body: Payload) -> str | None:
    """Where a press or a command is answered, if the payload says so at all."""
    return _text_or_none(body.get("response_url"))


def metadata_of(origin: Origin, **more: object) -> str:
    """What a modal carries so that its submission can be answered where it was opened."""
    known = {"channel": origin.channel_id, "ts": origin.message_ts, "url": origin.answer_url, **more}
    return json.dumps(
        {key: value for key, value in known.items() if value is not None}, separators=(",", ":")
    )


def _op_id(kind: str, *parts: str) -> str:
    op_id = ":".join((kind, *parts)).replace("\0", "").encode("utf-8", "replace").decode()
    if len(op_id) > _LONGEST_OP_ID:
        raise UnreadableError("the ids are too long")
    return op_id


def _team(body: Payload) -> str:
    team = _mapping(body.get("team")).get("id") or _mapping(body.get("user")).get("team_id")
    return _id(team)


def kind_of(body: Payload) -> str:
    """What sort of request it is, in one of a few words."""
    if "command" in body:
        return "command"
    kind = body.get("type")
    return _KINDS.get(kind, "other") if isinstance(kind, str) else "other"


def _mapping(value: object) -> Payload:
    return value if isinstance(value, dict) else {}


def _first(value: object) -> Payload:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _json(value: object) -> Payload:
    if not isinstance(value, str):
        return {}
    try:
        return _mapping(json.loads(value))
    except (ValueError, RecursionError):
        return {}


def _text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise UnreadableError("a text is missing")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _SLACK_ID.fullmatch(value) is not None


def _id(value: object) -> str:
    if isinstance(value, str) and _is_id(value):
        return value
    raise UnreadableError("an id is missing")


def _id_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and _is_id(value) else None


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UnreadableError("a number is missing")
