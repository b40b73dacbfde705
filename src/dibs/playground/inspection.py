"""What was behind a press: the request, its answer, and the calls that followed, for a person to read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from dibs.playground.traffic import Came, Sent, Traffic
    from dibs.playground.world import Press, World

Json = dict[str, Any]

LATER_SECONDS: Final = 2.0
LONGEST_TEXT: Final = 400
MOST_ENTRIES: Final = 60
HIDDEN: Final = "(hidden)"
SECRET_NAMES: Final = re.compile(r"(?i)token|secret|password|authorization|^code$|^ticket$")
TOKENS: Final = re.compile(r"\bx(?:ox[a-z]|app)[-.][\w-]+(?:\.[\w-]+)*")
LINK_SECRETS: Final = re.compile(r"(/hooks/\w+/\w+/)[\w-]+|([?&](?:ticket|token|code)=)[^&\s]+")


def name_of(press: Press) -> str:
    """Return what the page calls a press by."""
    return f"{press.at:.6f}-{press.who}"


def behind(world: World, traffic: Traffic, name: str) -> Json:
    """Return what was behind one of the last presses, or raise LookupError."""
    with world.lock:
        presses = list(world.presses)
        names = {person.id: person.name for person in world.people.values()}
    press = next((one for one in presses if name_of(one) == name), None)
    if press is None:
        msg = "that press is not kept any more"
        raise LookupError(msg)
    sent = list(traffic.sent)
    earlier = [one.at for one in presses if one.who == press.who and one.at < press.at]
    since = max(earlier, default=0.0)
    mine = [
        one
        for one in sent
        if since < one.ended <= press.at
        and (user := _user(one)) is not None
        and names.get(user, user) == press.who
    ]
    calls = [call for call in list(traffic.came) if _cause(call, sent) in mine] if mine else []
    began = mine[0].started if mine else press.at
    return {
        "who": press.who,
        "what": press.what,
        "words": press.words,
        "at": began,
        "requests": [_request(one, began) for one in mine],
        "calls": [_call(call, began) for call in calls],
    }


def _request(sent: Sent, began: float) -> Json:
    answer = sent.answer
    return {
        "after": round((sent.started - began) * 1000, 1),
        "status": answer.status,
        "by_socket": sent.by_socket,
        "late": answer.timed_out,
        "milliseconds": round(answer.seconds * 1000, 1),
        "body": tidy(sent.payload),
        "answer": tidy(read(answer.body.encode(), "")),
    }


def _call(call: Came, began: float) -> Json:
    name = call.path.removeprefix("/api/") if call.path.startswith("/api/") else "response_url"
    return {
        "after": round((call.at - began) * 1000, 1),
        "method": name,
        # Slack always says something; an empty answer is one that was lost or kept back on purpose.
        "status": call.status if call.answer else 0,
        "milliseconds": round(call.seconds * 1000, 1),
        "body": tidy(_parameters(call)),
        "answer": tidy(read(call.answer, "")),
    }


def _parameters(call: Came) -> object:
    query = dict(parse_qsl(call.query.decode("utf-8", "replace"), keep_blank_values=True))
    told = read(call.body, call.content_type) if call.body else {}
    return query | told if isinstance(told, dict) else told


def _cause(call: Came, sent: list[Sent]) -> Sent | None:
    """Return the request that a call of the bot most likely came of, if any.

    A response_url and a trigger_id belong to one request; of other calls only the time and the person tell.
    """
    told = _parameters(call)
    known = told if isinstance(told, dict) else {}
    if call.path.startswith("/hooks/"):
        return next((one for one in sent if _tells(one, "response_url").endswith(call.path)), None)
    if known.get("trigger_id"):
        return next((one for one in sent if _tells(one, "trigger_id") == known["trigger_id"]), None)
    near = [one for one in sent if one.started <= call.at <= one.ended + LATER_SECONDS]
    person = known.get("user") or known.get("user_id")
    theirs = [one for one in near if person and _user(one) == person]
    return max(theirs or near, key=lambda one: one.started, default=None)


def _tells(sent: Sent, name: str) -> str:
    return str(sent.payload.get(name) or "")


def _user(sent: Sent) -> str | None:
    """Return who was behind a request, in each of the shapes that requests have."""
    told = sent.payload.get("event") or sent.payload
    user = told.get("user") or told.get("user_id")
    if isinstance(user, dict):
        user = user.get("id")
    return user if isinstance(user, str) else None


def read(body: bytes, content_type: str) -> object:
    """Return a body as data: a form, JSON, or the words that it is."""
    text = body.decode("utf-8", "replace")
    if content_type.startswith("application/x-www-form-urlencoded"):
        return {name: _unpacked(value) for name, value in parse_qsl(text, keep_blank_values=True)}
    return _unpacked(text)


def _unpacked(text: str) -> object:
    """Return the data in a text of JSON, and any other text as it is."""
    if not text.startswith(("{", "[")):
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def tidy(value: object) -> object:
    """Return data for a person to read: secrets hidden, long values cut with an ellipsis."""
    if isinstance(value, dict):
        return {
            name: HIDDEN if SECRET_NAMES.search(str(name)) and entry else tidy(entry)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        more = [f"… and {len(value) - MOST_ENTRIES} more"] if len(value) > MOST_ENTRIES else []
        return [*(tidy(entry) for entry in value[:MOST_ENTRIES]), *more]
    if isinstance(value, str):
        text = TOKENS.sub(HIDDEN, value)
        text = LINK_SECRETS.sub(lambda found: f"{found[1] or found[2]}{HIDDEN}", text)
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    return value
