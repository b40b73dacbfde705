"""The picture of a lease review, to be read on a phone.

matplotlib is imported when the first picture is drawn, so that Dibs starts quickly. Only its objects are
used, never pyplot, whose state all threads share; and one picture is drawn at a time, since its fonts and its
settings are shared too.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.domain.leases import Day, LeaseReview, Spread
from dibs.slack import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 1200, 1800
"""The size of the picture in pixels."""

_DPI = 150
# Okabe and Ito's colours, which people with any kind of colour vision tell apart; hatches and dashes help.
_BLUE, _ORANGE, _VERMILION, _BLACK = "#0072B2", "#E69F00", "#D55E00", "#000000"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_BARS = 20
_BAR_WIDTHS = (
    1,
    2,
    5,
    10,
    15,
    30,
    _MINUTE,
    120,
    180,
    300,
    600,
    900,
    1800,
    _HOUR,
    7200,
    14400,
    28800,
    43200,
    _DAY,
)
_MOST_DAYS_APART = 35
_TICKS = 5
_LEGEND_COLUMNS = 3
_STYLE: dict[Any, Any] = {
    "font.size": 15,
    "axes.titlesize": 19,
    "axes.titleweight": "bold",
    "axes.labelsize": 15,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 14,
    "legend.frameon": False,
    "hatch.linewidth": 1.5,
}

_one_at_a_time = threading.Lock()


def lease_picture(review: LeaseReview) -> bytes:
    """The picture of a review as a PNG of WIDTH by HEIGHT pixels.

    Three panels: how long claim to start and start to done took, with the lease, the median and nine of ten
    marked; and the leases that ran out, and the tasks that needed a check, over time.
    """
    with _one_at_a_time:
        import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only a report needs it
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - likewise
        from matplotlib.figure import Figure  # noqa: PLC0415 - likewise
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - likewise

        with mpl.rc_context(_STYLE):
            layout = ConstrainedLayoutEngine(h_pad=0.14)
            figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, layout=layout)
            FigureCanvasAgg(figure)
            starting, finishing, days = figure.subplots(3, 1)
            lease = review.queue.lease_seconds
            queue = text.one_line(review.queue.key, 20)
            figure.suptitle(f"{queue}: lease review, {review.days} days", fontsize=23, x=0.02, ha="left")
            _lengths(starting, "From claim to start", review.to_start, lease)
            _lengths(finishing, "From start to done", review.to_done, lease)
            _over_time(days, review.by_day)
            picture = io.BytesIO()
            figure.savefig(picture, format="png")
    return picture.getvalue()


def _lengths(axes: Axes, title: str, spread: Spread, lease: int) -> None:
    title = f"{title} ({spread.count} observed)"
    if not spread.count:
        _nothing(axes, title, "Nothing observed")
        return
    width, bars = _bars(spread, lease)
    unit, name = _unit(width * bars)
    finished, cut_short = [0] * bars, [0] * bars
    for one in spread.observations:
        # A bar holds what took longer than its left edge and at most its right one.
        bar = min(max(math.ceil(one.seconds / width) - 1, 0), bars - 1)
        (finished if one.finished else cut_short)[bar] += one.count
    edges = [width * bar / unit for bar in range(bars)]
    drawn: dict[str, Any] = {"width": width / unit, "align": "edge", "edgecolor": "white", "linewidth": 1.0}
    axes.bar(edges, finished, color=_BLUE, label="Finished", **drawn)
    if any(cut_short):
        axes.bar(edges, cut_short, bottom=finished, color=_ORANGE, hatch="//", label="Cut short", **drawn)
    marks: list[tuple[str, float, str, str]] = [(f"Lease {text.duration(lease)}", lease, "-", _BLACK)]
    if spread.median is not None:
        marks.append((f"Median {text.duration(spread.median)}", spread.median, "--", _VERMILION))
    if spread.ninetieth is not None:
        marks.append((f"9 in 10: {text.duration(spread.ninetieth)}", spread.ninetieth, ":", _VERMILION))
    for label, seconds, dashes, colour in marks:
        shown = min(seconds, width * bars)
        axes.axvline(shown / unit, linestyle=dashes, color=colour, linewidth=4, label=label)
    longest = spread.observations[-1].seconds
    more = f"; the last bar goes on to {text.duration(longest)}" if longest > width * bars else ""
    axes.set_xlabel(name + more)
    axes.set_xlim(0, width * bars / unit)
    _finish(axes, title, max(a + b for a, b in zip(finished, cut_short, strict=True)))


def _bars(spread: Spread, lease: int) -> tuple[int, int]:
    """How wide the bars are, in seconds, and how many: beyond the lease and nine of ten by a half of it.

    A few that took much longer would squeeze all others into the first bar; they go into the last one. If it
    can be, the lease lies between two bars, so that what ran out stands on its right.
    """
    longest = spread.observations[-1].seconds
    marked = max(lease, spread.ninetieth or lease)
    up_to = max(min(longest, 1.5 * marked), 1.1 * marked)
    days = _DAY * math.ceil(up_to / _DAY / _MOST_BARS)
    fitting = [width for width in (*_BAR_WIDTHS, days) if up_to / width <= _MOST_BARS]
    width = next((width for width in fitting if not lease % width and width <= 3 * fitting[0]), fitting[0])
    return width, math.ceil(up_to / width)


def _unit(seconds: float) -> tuple[int, str]:
    if seconds <= 3 * _MINUTE:
        return 1, "seconds"
    if seconds <= 3 * _HOUR:
        return _MINUTE, "minutes"
    return (_HOUR, "hours") if seconds <= 3 * _DAY else (_DAY, "days")


def _over_time(axes: Axes, days: Sequence[Day]) -> None:
    together = 1 if len(days) <= _MOST_DAYS_APART else 7
    # Counted from the newest day, so that only the oldest bar may stand for fewer days.
    groups = [list(days[max(end - together, 0) : end]) for end in range(len(days), 0, -together)][::-1]
    expired = [sum(day.expired for day in group) for group in groups]
    flagged = [sum(day.flagged for day in group) for group in groups]
    per = "day" if together == 1 else "week"
    title = f"Leases that ran out, by {per}"
    if not any([*expired, *flagged]):
        _nothing(axes, title, "None ran out")
        return
    places = range(len(groups))
    half = 0.42
    axes.bar(
        [place - half / 2 for place in places], expired, half, color=_BLUE, label=f"Ran out ({sum(expired)})"
    )
    axes.bar(
        [place + half / 2 for place in places],
        flagged,
        half,
        color=_ORANGE,
        hatch="//",
        edgecolor="white",
        label=f"Needed a check ({sum(flagged)})",
    )
    every = max(math.ceil(len(groups) / _TICKS), 1)
    marked = list(places)[::every]
    axes.set_xticks(marked, [_date(groups[place][0]) for place in marked])
    axes.set_xlim(-0.75, len(groups) - 0.25)
    axes.set_xlabel("UTC" if together == 1 else "weeks that begin on (UTC)")
    _finish(axes, title, max([*expired, *flagged]))


def _date(day: Day) -> str:
    return f"{day.day.day} {day.day:%b}"


def _finish(axes: Axes, title: str, most: int) -> None:
    """Draw what every panel has: counts from zero to the most, and a title over its legend."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above

    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylim(0, max(1.08 * most, 1))
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#DDDDDD")
    named = axes.get_legend_handles_labels()[1]
    rows = math.ceil(len(named) / _LEGEND_COLUMNS)
    axes.set_title(title, loc="left", pad=8 + 26 * rows)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.99),
        ncols=_LEGEND_COLUMNS,
        columnspacing=1.2,
        handlelength=1.8,
        borderaxespad=0,
    )


def _nothing(axes: Axes, title: str, said: str) -> None:
    axes.set_title(title, loc="left", pad=8)
    axes.set_axis_off()
    axes.text(0, 0.9, said, transform=axes.transAxes)
