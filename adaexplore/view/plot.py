"""Plots of runs as SVG and PNG files, for a paper."""

from collections.abc import Sequence
from pathlib import Path

from adaexplore.core.errors import StorageError
from adaexplore.core.files.atomic import write_text
from adaexplore.view.charts import Measure, best_chart, compare_chart, run_curve, standalone
from adaexplore.view.model import RunView

SCALE = 3
"""Pixels of a PNG per pixel of the SVG."""


def write_figures(runs: Sequence[RunView], folder: Path) -> list[Path]:
    """Write the comparison of the runs; for a single run also the best so far of each task.

    A figure without a point is not written: see :func:`not_drawn`.

    Raises:
        StorageError: a file cannot be written.
    """
    curves = {measure: [run_curve(run, measure) for run in runs] for measure in Measure}
    figures = {
        f"gm10_over_{measure.value}": compare_chart(drawn, measure)
        for measure, drawn in curves.items()
        if any(curve.points for curve in drawn)
    }
    if len(runs) == 1:
        figures |= {f"best_{task.key}": best_chart(task) for task in runs[0].tasks if task.best.speedup}
    written = []
    for name, figure in figures.items():
        path = folder / f"{name}.svg"
        write_text(path, standalone(figure))
        written += [path, _png(path)]
    return written


def not_drawn(runs: Sequence[RunView]) -> list[str]:
    """Return a line for each figure that :func:`write_figures` leaves out, with the reason."""
    if not any(task.best.speedup for run in runs for task in run.tasks):
        return ["nothing was drawn: no correct kernel was timed, so there is no speedup to draw"]
    lines = [
        f"no plot over {measure}: a run does not say what its steps took"
        for measure in Measure
        if not any(run_curve(run, measure).points for run in runs)
    ]
    untimed = [task.key for task in runs[0].tasks if not task.best.speedup] if len(runs) == 1 else []
    return lines + [f"no plot of {key}: it has no correct kernel that was timed" for key in untimed]


def _png(svg: Path) -> Path:
    import resvg_py

    path = svg.with_suffix(".png")
    data = bytes(resvg_py.svg_to_bytes(svg_string=svg.read_text("utf-8"), zoom=SCALE))
    try:
        path.write_bytes(data)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; free space") from error
    return path
