"""The two pictures: where the job stood, and its pending samples with every verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from lc_events.report.markup import element, text
from lc_events.report.story import Mark, Point, Stay, Story

__all__ = ["samples_chart", "timeline"]

_WIDTH, _LEFT, _RIGHT = 960.0, 60.0, 12.0
_STAGES = ("Train", "Eval", "Deploy")
_MOST_MARKS = 2000

Place = Callable[[datetime], float]


def timeline(story: Story, show: Callable[[datetime], str]) -> str:
    """A lane per stage; hover says what, from when to when."""
    place = _horizontal(story)
    lanes = "".join(
        element("text", stage, x=0, y=34 + 34 * number, class_="label") for number, stage in enumerate(_STAGES)
    )
    bars = "".join(_bar(stay, place, show) for stay in story.stays if stay.stage in _STAGES)
    return _svg(lanes + bars + _times(story, place, show, 118), 136, "Stages over time")


def _bar(stay: Stay, place: Place, show: Callable[[datetime], str]) -> str:
    start, end = place(stay.start), place(stay.end)
    words = f"round {stay.round}: {stay.stage}/{stay.type}, {show(stay.start)} to {show(stay.end)}"
    return element(
        "rect",
        element("title", text(words)),
        x=start,
        y=18 + 34 * _STAGES.index(stay.stage),
        width=max(end - start, 1.5),
        height=22,
        rx=3,
        class_=f"stay {stay.type.lower()}" if stay.type.isalpha() else "stay",
    )


def samples_chart(story: Story, show: Callable[[datetime], str]) -> str:
    """Pending train samples as steps, the threshold dashed, a dot per verdict; hover says the verdict."""
    place = _horizontal(story)
    highest = max([point.pending for point in story.points] + [p.threshold or 0 for p in story.points] + [1])
    height = 220.0

    def level(value: float) -> float:
        return height - 20 - (height - 40) * value / highest

    parts = [_grid(level, highest)]
    end = story.last or story.points[-1].time
    parts.append(element("path", d=_steps(story.points, place, level, end), class_="pending"))
    parts += [
        element("line", x1=place(a.time), x2=place(b), y1=level(a.threshold), y2=level(a.threshold), class_="threshold")
        for a, b in zip(story.points, [point.time for point in story.points[1:]] + [end], strict=True)
        if a.threshold is not None
    ]
    parts += [_dot(mark, place, level, show) for mark in _thinned(story.marks)]
    return _svg("".join(parts) + _times(story, place, show, height), height + 18, "Pending train samples over time")


def _thinned(marks: Sequence[Mark]) -> list[Mark]:
    """Every verdict that fired, and of the others as many as a page bears, evenly chosen."""
    others = [mark for mark in marks if not mark.fired]
    step = max(1, len(others) // _MOST_MARKS)
    return sorted([*others[::step], *(mark for mark in marks if mark.fired)], key=lambda mark: mark.time)


def _dot(mark: Mark, place: Place, level: Callable[[float], float], show: Callable[[datetime], str]) -> str:
    return element(
        "circle",
        element("title", text(f"{show(mark.time)}  {mark.words}")),
        cx=place(mark.time),
        cy=level(mark.pending if mark.stage == "Train" else 0),
        r=4.5 if mark.fired else 3.0,
        class_="verdict fired" if mark.fired else "verdict",
    )


def _steps(points: Sequence[Point], place: Place, level: Callable[[float], float], end: datetime) -> str:
    commands = [f"M{place(points[0].time):.1f},{level(points[0].pending):.1f}"]
    commands += [f"H{place(point.time):.1f}V{level(point.pending):.1f}" for point in points[1:]]
    return "".join([*commands, f"H{place(end):.1f}"])


def _grid(level: Callable[[float], float], highest: float) -> str:
    values = sorted({0, round(highest / 2), round(highest)})
    return "".join(
        element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=level(value), y2=level(value), class_="grid")
        + element("text", str(value), x=_LEFT - 6, y=level(value) + 4, class_="label end")
        for value in values
    )


def _horizontal(story: Story) -> Place:
    """Time to x: equal times are equal widths, whatever the clock did between the first and the last event."""
    first, last = story.first, story.last
    span = (last - first).total_seconds() if first and last else 0.0

    def place(moment: datetime) -> float:
        share = (moment - first).total_seconds() / span if first and span > 0 else 0.5
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, share))

    return place


def _times(story: Story, place: Place, show: Callable[[datetime], str], y: float) -> str:
    if story.first is None or story.last is None:
        return ""
    middle = story.first + (story.last - story.first) / 2
    ends = ((story.first, ""), (middle, "middle"), (story.last, "end"))
    return "".join(
        element("text", text(show(moment)), x=place(moment), y=y + 12, class_=f"label {anchor}".strip())
        for moment, anchor in ends
    )


def _svg(content: str, height: float, label: str) -> str:
    return element(
        "svg", content, viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}", role="img", aria_label=label, class_="chart"
    )
