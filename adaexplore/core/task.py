"""A problem to solve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.wire import DtypeName


@dataclass(frozen=True)
class Task:
    """One problem: a reference module and the precision it is judged in.

    Attributes:
        level: KernelBench level, or 0 for a single file given by hand.
        problem_id: the number in the file name, or the file's stem for a single file.
        name: the file name without its suffix.
        reference: source text that defines ``Model``, ``get_inputs`` and ``get_init_inputs``.
        dtype: precision of weights and floating inputs.
        path: where the source came from.
    """

    level: int
    problem_id: str
    name: str
    reference: str
    dtype: DtypeName
    path: Path

    @property
    def key(self) -> str:
        """``<level>_<problem_id>``: the name of the task's folder in a run."""
        return f"{self.level}_{self.problem_id}"
