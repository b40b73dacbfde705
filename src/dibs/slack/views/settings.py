"""The form of a queue's settings, and what stands at its inputs where something is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dibs.domain.queue import (
    DEFAULT_LEASE_MINUTES,
    DEFAULT_SPIKE_LIMIT,
    DEFAULT_SPIKE_MINUTES,
    LONGEST_LEASE_MINUTES,
    USUAL_REASONS,
    Queue,
)
from dibs.domain.settings import (
    LONGEST_HOLD_MINUTES,
    LONGEST_NAME,
    LONGEST_REASON,
    MOST_REASONS,
    MOST_SPIKE_LIMIT,
    MOST_SPIKE_MINUTES,
    Mistake,
    UserGroup,
    in_minutes,
)
from dibs.slack import words
from dibs.slack.ids import Field, View
from dibs.slack.views.elements import (
    MOST_OPTIONS,
    OPTION_TEXT,
    Block,
    Element,
    context,
    field,
    modal,
    number_input,
    option,
    plain,
    section,
    select,
    text_input,
    tick,
)

EVERYBODY = "everybody"
"""The choice of no group: everybody in the channel may claim. No id of Slack's looks like it."""

NOT_SAVED = "Nothing changed yet."

AT_INPUT: dict[Mistake, tuple[Field, str]] = {
    Mistake.NAME_MISSING: (Field.NAME, "Give the queue a name."),
    Mistake.NAME_LONG: (Field.NAME, f"Use at most {LONGEST_NAME} characters."),
    Mistake.KEY_FORM: (Field.KEY, "Use 2 to 10 letters and digits, a letter first, such as SUP."),
    Mistake.LEASE_RANGE: (Field.LEASE_MINUTES, f"Use a whole number from 1 to {LONGEST_LEASE_MINUTES}."),
    Mistake.GROUP_FORM: (Field.ELIGIBLE_GROUP, "Choose a group from the list."),
    Mistake.SUPERVISORS_MISSING: (Field.SUPERVISORS, "A queue needs at least one supervisor. Choose one."),
    Mistake.SPIKE_LIMIT_RANGE: (Field.SPIKE_LIMIT, f"Use a whole number from 1 to {MOST_SPIKE_LIMIT}."),
    Mistake.SPIKE_MINUTES_RANGE: (Field.SPIKE_MINUTES, f"Use a whole number from 1 to {MOST_SPIKE_MINUTES}."),
    Mistake.SPIKE_SHARE_RANGE: (Field.SPIKE_SHARE, "Use a whole number from 1 to 100, or leave it empty."),
    Mistake.HOLD_RANGE: (
        Field.LONGEST_HOLD_MINUTES,
        f"Use a whole number up to {LONGEST_HOLD_MINUTES}, or leave it empty.",
    ),
    Mistake.HOLD_NOT_LONGER: (Field.LONGEST_HOLD_MINUTES, "Use more minutes than the lease has."),
    Mistake.REASONS_TOO_MANY: (Field.REASONS, f"Use at most {MOST_REASONS} reasons."),
    Mistake.REASONS_TWICE: (Field.REASONS, "A reason stands here twice. Take one of them out."),
    Mistake.REASONS_LONG: (Field.REASONS, f"Use at most {LONGEST_REASON} characters for each reason."),
}
"""The input at which each mistake is told, and what a person is told there."""

KNOWN_REASONS: Mapping[str, str] = {words.REASON[reason]: reason for reason in words.REASON}
"""The value of each usual reason, by its words."""


def mistake(which: Mistake) -> tuple[Field, str]:
    """The input that a mistake is told at, and the words."""
    at, said = AT_INPUT[which]
    return at, f"{said} {NOT_SAVED}"


def new_queue(metadata: str, *, creator: str, groups: Sequence[UserGroup] | None) -> dict[str, Any]:
    """Make a queue in this channel. `groups` None: they could not be read."""
    blocks = [
        section("A queue lives in this channel: its cards are shown here."),
        field(Field.NAME, "Name", text_input(most=LONGEST_NAME), hint="Such as: Customer support"),
        field(
            Field.KEY,
            "Key",
            text_input(most=10),
            hint="2 to 10 letters and digits, such as SUP. Tasks are then named SUP-1, SUP-2 and so on.",
        ),
        *_inputs(None, (creator,), groups),
    ]
    return modal(View.QUEUE_SETTINGS, "New queue", blocks, metadata=metadata, submit="Create")


def settings(
    queue: Queue, supervisors: Sequence[str], metadata: str, *, groups: Sequence[UserGroup] | None
) -> dict[str, Any]:
    """Change what is set for a queue. `groups` None: they could not be read."""
    name = text_input(initial=queue.name, most=LONGEST_NAME)
    blocks = [
        context(f"*{queue.key}* is its key. Tasks are named by it, so it stays."),
        field(Field.NAME, "Name", name),
        *_inputs(queue, supervisors, groups),
    ]
    return modal(View.QUEUE_SETTINGS, f"Settings of {queue.key}", blocks, metadata=metadata, submit="Save")


def _inputs(
    queue: Queue | None, supervisors: Sequence[str], groups: Sequence[UserGroup] | None
) -> list[Block]:
    share = queue.spike_share if queue else None
    hold = queue.longest_hold_seconds if queue else None
    reasons = queue.reasons if queue else USUAL_REASONS
    return [
        field(
            Field.LEASE_MINUTES,
            "Lease, in minutes",
            number_input(
                in_minutes(queue.lease_seconds) if queue else DEFAULT_LEASE_MINUTES,
                most=LONGEST_LEASE_MINUTES,
            ),
            hint="How long an owner keeps a task before it returns to the queue. Owners can renew it."
            + (" A change holds for new leases; those that run now keep their end." if queue else ""),
        ),
        _who_may_claim(queue.eligible_group if queue else None, groups),
        field(
            Field.SUPERVISORS,
            "Supervisors",
            {"type": "multi_users_select", "initial_users": list(supervisors)},
            hint="They are alerted, may check flagged tasks, pause and resume the queue, and change these "
            "settings." + ("" if queue else " Whoever makes the queue is one of them."),
            optional=queue is None,
        ),
        field(
            Field.ALERT_CHANNEL,
            "Alerts go to",
            _channel(queue.alert_channel if queue else None),
            hint="A channel that Dibs is in. Empty: a direct message to each supervisor.",
            optional=True,
        ),
        field(
            Field.SPIKE_LIMIT,
            "Pause when more leases end than",
            number_input(queue.spike_limit if queue else DEFAULT_SPIKE_LIMIT, most=MOST_SPIKE_LIMIT),
            hint="Many leases that end at once are rather an outage than many people who forgot. "
            "Nothing is returned then until a supervisor resumes.",
        ),
        field(
            Field.SPIKE_MINUTES,
            "… within this many minutes",
            number_input(queue.spike_minutes if queue else DEFAULT_SPIKE_MINUTES, most=MOST_SPIKE_MINUTES),
        ),
        field(
            Field.SPIKE_SHARE,
            "… or than this percentage of the leases held, where that is more",
            number_input(share, most=100),
            hint="For large teams. Empty: the number above alone counts.",
            optional=True,
        ),
        field(
            Field.LONGEST_HOLD_MINUTES,
            "Longest hold, in minutes",
            number_input(in_minutes(hold) if hold else None, most=LONGEST_HOLD_MINUTES),
            hint="How long one owner can keep a task by renewing. Empty: without end.",
            optional=True,
        ),
        field(
            Field.REASONS,
            "Reasons for handing a task back",
            text_input(multiline=True, initial="\n".join(label for _, label in words.reasons(reasons))),
            hint="One on each line. Empty: the usual ones.",
            optional=True,
        ),
        field(
            Field.SUPERVISOR_OPERATIONS,
            "Other people's tasks",
            tick(
                "Supervisors may transfer or release them",
                ticked=bool(queue and queue.supervisor_operations),
            ),
            hint="Each time with a reason, a record, and a message to the former owner.",
            optional=True,
        ),
    ]


def _who_may_claim(chosen: str | None, groups: Sequence[UserGroup] | None) -> Block:
    if groups is None:
        stays = "the user group that is set" if chosen else "the members of the channel"
        return context(
            "The user groups of the workspace could not be read, so who may claim cannot be changed here: "
            f"{stays}. Dibs needs the scope `usergroups:read`; if it has it, try again in a moment."
        )
    everybody = option(EVERYBODY, "Everybody in the channel")
    options = [everybody, *(option(group.id, f"@{group.handle} · {group.name}") for group in groups)]
    initial = next((one for one in options if one["value"] == chosen), None)
    if chosen and initial is None:
        initial = option(chosen, "A user group that is turned off or gone")
        options.insert(1, initial)
    return field(
        Field.ELIGIBLE_GROUP,
        "Who may claim",
        _long_select(options, initial or everybody),
        hint="Bots and people of other workspaces never may.",
        optional=True,
    )


def _long_select(options: list[Element], initial: Element) -> Element:
    """A list to choose one from, in parts where it is longer than Slack takes in one."""
    if len(options) <= MOST_OPTIONS:
        return select(options, placeholder="Choose", initial=initial)
    parts = [options[start : start + MOST_OPTIONS] for start in range(0, len(options), MOST_OPTIONS)]
    return {
        "type": "static_select",
        "placeholder": plain("Choose", 150),
        "option_groups": [
            {"label": plain(f"{number} of {len(parts)}", OPTION_TEXT), "options": part}
            for number, part in enumerate(parts[:MOST_OPTIONS], 1)
        ],
        "initial_option": initial,
    }


def _channel(chosen: str | None) -> Element:
    element: Element = {
        "type": "conversations_select",
        "placeholder": plain("The supervisors", 150),
        "filter": {"include": ["public", "private"]},
    }
    if chosen:
        element["initial_conversation"] = chosen
    return element
