"""What people do on the page, by the kind of act that the page names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from dibs.playground.control import CHANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.playground.interactions import Result
    from dibs.playground.standin import SlackStandIn
    from dibs.playground.world import World

Json = dict[str, Any]

CALL_TROUBLES: Final[dict[str, Json]] = {
    "lost": {"lose_answer": True},
    "limited": {"error": "ratelimited"},
    "broken": {"http_status": 500},
    "garbage": {"garbage": True},
    "silent": {"silence": True},
    "slow": {"delay": 2.0},
}
"""What the page calls that which calls of the bot can meet."""
REQUEST_TROUBLES: Final[dict[str, Json]] = {
    "twice": {"twice": True},
    "late": {"late": True},
    "unanswered": {"lose_answer": True},
}
"""What the page calls that which requests to the bot can meet."""


def carry_out(slack: SlackStandIn, act: Json) -> Json:
    """Carry out one act and tell what came of it; what is gone cannot be pressed."""
    try:
        result = ACTS[act["kind"]](slack, act)()
    except (LookupError, ValueError, TypeError, RuntimeError) as error:
        return {"error": str(error)}
    if isinstance(result, str):
        return {"said": result}
    return _outcome(result) if result else {}


def _outcome(result: Result) -> Json:
    return {
        "status": result.status,
        "seconds": result.seconds,
        "failed": result.failed,
        "words": result.words,
        "errors": result.errors,
        "closed": result.closed,
    }


def _press(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.press(
        act["user"],
        act["channel"],
        act["ts"],
        act["action_id"],
        block_id=act.get("block_id"),
        choice=act.get("choice"),
    )


def _press_in_view(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    place = slack.press_in_home if act.get("home") else slack.press_in_view

    def pressed() -> Result:
        if act.get("values"):
            slack.fill_in(act["user"], act["values"])
        return place(act["user"], act["action_id"], block_id=act.get("block_id"), choice=act.get("choice"))

    return pressed


def _write(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    text = mentions(slack.world, str(act["text"]).strip())
    if not text:
        msg = "there is nothing to send"
        raise ValueError(msg)
    if text.startswith("/"):
        name, _, rest = text.partition(" ")
        return lambda: slack.command(act["user"], act["channel"], name, rest.strip())

    def plainly() -> None:
        slack.say(act["user"], act["channel"], text, thread_ts=str(act.get("thread") or ""))

    return plainly


def _submit(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.submit(act["user"], act["values"])


def _close(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.close_view(act["user"])


def _home(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    return lambda: slack.open_home(act["user"])


def _dismiss(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    def waved_away() -> None:
        slack.dismiss(act["user"], act["ts"])

    return waved_away


def _shortcut(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    if act.get("ts"):
        return lambda: slack.message_shortcut(act["user"], act["channel"], act["ts"], act["callback_id"])
    return lambda: slack.shortcut(act["user"], act["callback_id"])


def _fault(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    name, trouble = str(act["name"]), act["trouble"]

    def armed() -> None:
        if trouble in REQUEST_TROUBLES:
            slack.faults.deliver_next(name, **REQUEST_TROUBLES[trouble])
        else:
            slack.faults.fail_next(name, **CALL_TROUBLES[trouble])
        _news(slack)

    return armed


def _clear_faults(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    del act

    def cleared() -> None:
        slack.faults.clear()
        _news(slack)

    return cleared


def _changed(name: str) -> Callable[[SlackStandIn, Json], Callable[[], Result | None]]:
    """Return the act that changes what the controls by HTTP change under the same name."""

    def act_for(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
        change = CHANGES[name](slack, act["value"])

        def done() -> None:
            change()
            _news(slack)

        return done

    return act_for


def _news(slack: SlackStandIn) -> None:
    with slack.world.lock:
        slack.world.changed()


def _pull_lever(slack: SlackStandIn, act: Json) -> Callable[[], str]:
    label = act["label"]
    lever = next((one for one in slack.levers if one.label == label), None)
    if lever is None:
        msg = f"there is no lever {label!r}"
        raise LookupError(msg)
    return lever.run


def _resume_events(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    del act
    return slack.resume_events


def _begin_tour(slack: SlackStandIn, act: Json) -> Callable[[], Result | None]:
    del act

    def begun() -> None:
        with slack.world.lock:
            slack.tour.begin()
        _news(slack)

    return begun


ACTS: Final[dict[str, Callable[[SlackStandIn, Json], Callable[[], Result | str | None]]]] = {
    "press": _press,
    "press_in_view": _press_in_view,
    "write": _write,
    "submit": _submit,
    "close": _close,
    "home": _home,
    "dismiss": _dismiss,
    "shortcut": _shortcut,
    "fault": _fault,
    "clear_faults": _clear_faults,
    "advance": _changed("advance"),
    "connections": _changed("connections"),
    "pull_lever": _pull_lever,
    "resume_events": _resume_events,
    "begin_tour": _begin_tour,
}


def mentions(world: World, text: str) -> str:
    """Return what a person typed as Slack's composer sends it: escaped, with names turned into mentions."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    with world.lock:
        named = {f"@{person.name}": f"<@{person.id}>" for person in world.people.values()}
        named |= {
            f"#{one.name}": f"<#{one.id}|{one.name}>" for one in world.channels.values() if not one.is_im
        }
    for name in sorted(named, key=len, reverse=True):
        text = re.sub(rf"(?<!\S){re.escape(name)}(?!\w)", named[name], text, flags=re.IGNORECASE)
    return text
