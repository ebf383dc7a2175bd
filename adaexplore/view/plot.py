"""Plots of runs as SVG and PNG files, for a paper."""

from __future__ import annotations

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


def _png(svg: Path) -> Path:
    import resvg_py

    path = svg.with_suffix(".png")
    data = bytes(resvg_py.svg_to_bytes(svg_string=svg.read_text("utf-8"), zoom=SCALE))
    try:
        path.write_bytes(data)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; free space") from error
    return path
