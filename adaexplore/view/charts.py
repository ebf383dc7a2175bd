"""Charts as SVG: the best so far of a task, and a comparison of runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup

from adaexplore.report.task_result import Best
from adaexplore.view.drawing import Axis, Drawing
from adaexplore.view.model import RunView, TaskView, finite, gm10_of

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 42

PLAIN_STYLE = """
svg{background:#fff;font:12px "DejaVu Sans",Helvetica,Arial,sans-serif}text{fill:#222}.grid{stroke:#ddd}
.line{fill:none;stroke:#1f5fae;stroke-width:2}.band{fill:#1f5fae;fill-opacity:.18}.point{fill:#1f5fae;fill-opacity:.55}
.bar{stroke:#1f5fae;stroke-opacity:.4}.cursor{display:none}.one{stroke:#888;stroke-dasharray:4 3}
.s1{stroke:#c4540a}.s2{stroke:#2b7a3d}.s3{stroke:#8a3ea0}.s4{stroke:#7a5a00}.s5{stroke:#b3003c}
"""
"""Style of a chart outside of the page, for print."""


class Measure(StrEnum):
    """The x axis of a comparison of runs."""

    STEPS = "steps"
    DOLLARS = "dollars"
    SECONDS = "seconds"


@dataclass(frozen=True)
class Curve:
    """One run: mean cost over its tasks, and the GM(10) of the best kernels at that cost."""

    name: str
    points: tuple[tuple[float, float], ...]


def best_chart(task: TaskView) -> Markup:
    """Draw the best so far over the steps, and each correct candidate, with intervals."""
    svg = Drawing(WIDTH, HEIGHT, f"Best speedup so far of {task.key}", role="img")
    count = max(len(task.nodes), 1)
    measured = [(place, node.found) for place, node in enumerate(task.nodes, 1) if node.found.speedup]
    x = Axis(0, count, LEFT, WIDTH - RIGHT)
    ends = [bound for _, best in measured for bound in _bounds(best)]
    low, high = (min(max(end, 1e-3), 1e6) for end in (min(ends, default=0.5), max(ends, default=2.0)))
    y = Axis(low * 0.9, high * 1.1, HEIGHT - BOTTOM, TOP, log=True)
    _axes(svg, x, y, "step", "speedup")
    corners: list[tuple[float, Best]] = []
    for place, node in enumerate(task.nodes, 1):
        if node.best.speedup:
            corners += [(x(place), best) for _, best in corners[-1:]]
            corners.append((x(place), node.best))
    tops = [(across, y(_bounds(best)[1])) for across, best in corners]
    bottoms = [(across, y(_bounds(best)[0])) for across, best in reversed(corners)]
    svg.path("band", [*tops, *bottoms], close=True)
    svg.path("line", [(across, y(best.speedup or 0.0)) for across, best in corners])
    for place, best in measured:
        low, high = _bounds(best)
        if high > low:
            svg.add("path", "bar", d=f"M{x(place):.5g} {y(low):.5g}V{y(high):.5g}")
        svg.add("circle", "point", cx=x(place), cy=y(best.speedup or 0.0), r=2.5)
    if not measured:
        svg.add("text", x=LEFT + 20, y=HEIGHT / 2, text="no measured speedup")
    svg.add(
        "path",
        "cursor",
        d=f"M0 {TOP}V{HEIGHT - BOTTOM}",
        data_from=x(0),
        data_width=(x(count) - x(0)) / count,
    )
    return svg.markup()


def compare_chart(curves: Sequence[Curve], measure: Measure) -> Markup:
    svg = Drawing(WIDTH, HEIGHT, f"GM(10) of speedups over {measure.value}", role="img")
    points = [point for curve in curves for point in curve.points]
    x = Axis(0, max((place for place, _ in points), default=1.0), LEFT, WIDTH - RIGHT)
    values = [value for _, value in points] or [0.5, 2.0]
    y = Axis(min(values) * 0.9, max(values) * 1.1, HEIGHT - BOTTOM, TOP, log=True)
    _axes(svg, x, y, f"{measure.value} per task", "GM(10)")
    for index, curve in enumerate(curves):
        svg.path(f"line s{index % 6}", [(x(place), y(value)) for place, value in curve.points])
        svg.path(
            f"line s{index % 6}", [(LEFT + 10, TOP + 10 + 16 * index), (LEFT + 30, TOP + 10 + 16 * index)]
        )
        svg.add("text", x=LEFT + 36, y=TOP + 14 + 16 * index, text=curve.name[:60])
    if not points:
        svg.add("text", x=LEFT + 20, y=HEIGHT - BOTTOM - 20, text=f"no measured speedup over {measure.value}")
    return svg.markup()


def run_curve(run: RunView, measure: Measure) -> Curve:
    """Return the curve of a run; without points if its cost was not recorded."""
    tasks = [task for task in run.tasks if task.nodes]
    spent = [_spent(task, measure) for task in tasks]
    if not tasks or any(series is None for series in spent):
        return Curve(run.name, ())
    points = []
    for step in range(1, max(len(task.nodes) for task in tasks) + 1):
        bests = [task.nodes[min(step, len(task.nodes)) - 1].best for task in tasks]
        mean = gm10_of(bests)
        if mean is not None:
            sums = [series[min(step, len(series)) - 1] for series in spent if series]
            points.append((math.fsum(sums) / len(sums), mean))
    return Curve(run.name, tuple(points))


def _spent(task: TaskView, measure: Measure) -> list[float] | None:
    """Return the total cost after each step; None if a part of it is unknown."""
    if measure is Measure.STEPS:
        return [float(place) for place in range(1, len(task.nodes) + 1)]
    total, series = 0.0, []
    for node in task.nodes:
        if node.usage is None:
            return None
        cost = node.usage.usd if measure is Measure.DOLLARS else node.usage.seconds
        if cost is None:
            return None
        total += finite(cost)
        series.append(total)
    return series if total > 0 else None


def standalone(svg: Markup) -> str:
    """Return a chart as a separate SVG file, with a style for print."""
    start, end, rest = str(svg).partition(">")
    return f"{start}{end}<style>{PLAIN_STYLE}</style>{rest}\n"


def _bounds(best: Best) -> tuple[float, float]:
    """Return the ends of the interval; the speedup twice if it has no drawable one."""
    speedup = best.speedup or 0.0
    if best.interval is None or not 0 < best.interval.low <= speedup <= best.interval.high:
        return speedup, speedup
    return best.interval.low, best.interval.high


def _axes(svg: Drawing, x: Axis, y: Axis, across: str, up: str) -> None:
    for value in x.ticks():
        svg.add("path", "grid", d=f"M{x(value):.5g} {TOP}V{HEIGHT - BOTTOM}")
        svg.add("text", x=x(value), y=HEIGHT - BOTTOM + 16, text=f"{value:.4g}", text_anchor="middle")
    for value in y.ticks():
        svg.add("path", "one" if value == 1 else "grid", d=f"M{LEFT} {y(value):.5g}H{WIDTH - RIGHT}")
        svg.add("text", x=LEFT - 6, y=y(value) + 4, text=f"{value:.3g}", text_anchor="end")
    svg.add("text", x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8, text=across, text_anchor="middle")
    svg.add(
        "text", x=12, y=HEIGHT / 2, text=up, text_anchor="middle", transform=f"rotate(-90 12 {HEIGHT // 2})"
    )
