"""Text as Slack shows it: escaped, cut to Slack's limits with a visible mark, with times and mentions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

ELLIPSIS = "…"

_MINUTE = 60
_DAY_MINUTES = 24 * 60

_UNSAFE = re.compile(r"[&<>]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MENTION = re.compile(r"<@([^|>]+)>")
_WRITTEN_OUT = re.compile(r"<([@#!](?=\w)|(?=[a-z][a-z0-9+.-]*:))([^|<>\s]+)(?:\|([^<>]*))?>")
_GROUP = re.compile(r"<!subteam\^([^|>]+)>")
_DATE = re.compile(r"<!date\^[^|>]*\|([^>]*)>")
_LINK = re.compile(r"<https?://[^|>]*\|([^>]*)>")
_UNFINISHED = re.compile(r"(?:&[a-z]{0,3}|<[^<>]*)$")


def length(text: str) -> int:
    """How long Slack takes `text` to be: in UTF-16 units, so that an emoji counts two."""
    return len(text.encode("utf-16-le")) // 2


def escaped(text: str) -> str:
    """`text` so that it can hold no mention, link or `<!channel>`."""
    return _UNSAFE.sub(lambda match: _ESCAPES[match.group()], text)


def unescaped(text: str) -> str:
    """`text` as it was typed, where Slack has escaped it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def typed(sent: str, name_of: Callable[[str], str]) -> str:
    """Words as they were typed, where Slack has written mentions and links out and escaped the rest.

    `name_of` is asked for the name of a person whose mention comes without one.
    """

    def as_typed(found: re.Match[str]) -> str:
        mark, target, label = found.groups()
        match mark:
            case "@":
                return f"@{label or name_of(target)}"
            case "#":
                return f"#{label or target}"
            case "!":
                return f"@{(label or target).removeprefix('@')}"
            case _:
                return str(label or target)

    return unescaped(_WRITTEN_OUT.sub(as_typed, sent))


def cut(text: str, limit: int) -> str:
    """`text`, or as much of it as fits into `limit` with an ellipsis at its end."""
    if length(text) <= limit:
        return text
    kept = text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore")
    return kept.rstrip() + ELLIPSIS


def cut_formatted(text: str, limit: int) -> str:
    """Like `cut`, for mrkdwn: no escape, mention, time or link is broken in two."""
    if length(text) <= limit:
        return text
    return _UNFINISHED.sub("", cut(text, limit).removesuffix(ELLIPSIS)) + ELLIPSIS


def shown(text: str, limit: int) -> str:
    """Text from people for mrkdwn: escaped, then cut without breaking an escape in two."""
    return cut_formatted(escaped(text), limit)


def one_line(text: str, limit: int) -> str:
    """Like `shown`, with line breaks made blanks, for titles and quotes within a sentence."""
    return shown(" ".join(text.split()), limit)


def quoted(text: str, limit: int) -> str:
    """Text from people as a quotation. The marks before its lines come on top of `limit`."""
    return "\n".join(f"> {line}" for line in shown(text, limit).split("\n"))


def mention(user_id: str | None) -> str:
    """The person, as a mention; the sweep where there is none."""
    return f"<@{user_id}>" if user_id else "the sweep"


def people(user_ids: Sequence[str], most: int = 10) -> str:
    """Several people as mentions; where there are more than `most`, with an ellipsis for the others."""
    more = f" {ELLIPSIS}" if len(user_ids) > most else ""
    return ", ".join(mention(user) for user in user_ids[:most]) + more


def group(group_id: str) -> str:
    """A user group, as a mention. `with_handles` makes words of it, which address nobody."""
    return f"<!subteam^{group_id}>"


def with_handles(said: str, handle_of: Callable[[str], str | None]) -> str:
    """`said` with the handles of user groups in place of their mentions, where they are known."""

    def words(match: re.Match[str]) -> str:
        handle = handle_of(match.group(1))
        return f"@{escaped(handle)}" if handle else match.group()

    return _GROUP.sub(words, said)


def moment(at: datetime, form: str = "{date_short_pretty}, {time}") -> str:
    """A time in the reader's own zone; where that cannot be shown, in UTC, and it says so."""
    return f"<!date^{int(at.timestamp())}^{form}|{plain_moment(at)}>"


def plain_moment(at: datetime) -> str:
    """A time in UTC, where Slack takes plain text only."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def duration(seconds: float) -> str:
    """A length of time in words, rounded up to the second, minute or hour, as fits."""
    if seconds <= _MINUTE:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    if minutes < _DAY_MINUTES:
        hours, rest = divmod(minutes, 60)
        return " ".join([*([f"{hours} h"] if hours else []), *([f"{rest} min"] if rest else [])])
    days, hours = divmod(math.ceil(seconds / 3600), 24)
    return f"{days} {'day' if days == 1 else 'days'}" + (f" {hours} h" if hours else "")


def plain(said: str, name_of: Callable[[str], str]) -> str:
    """`said` where Slack takes plain text only: names for mentions, UTC for times, no marks."""
    said = _MENTION.sub(lambda match: name_of(match.group(1)), said)
    said = _GROUP.sub("its user group", said)
    said = _DATE.sub(lambda match: match.group(1), said)
    said = _LINK.sub(lambda match: match.group(1), said).replace("*", "").replace("`", "")
    return unescaped(said)


def link(url: str, words: str) -> str:
    """A link with `words` to click."""
    return f"<{url}|{escaped(words)}>"
