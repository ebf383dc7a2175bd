"""A problem to solve."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.wire import Direction, DtypeName


@dataclass(frozen=True)
class Task:
    """One problem: a reference module and its precision."""

    level: int  # KernelBench level, or 0 for a single file
    problem_id: str  # the number in the file name, or the file's stem for a single file
    name: str  # the file name without its suffix
    # source text that defines ``Model``, ``get_init_inputs`` and ``get_inputs`` or ``get_workloads``
    reference: str
    dtype: DtypeName  # precision of weights and floating inputs
    path: Path  # where the source came from
    hidden_workloads: str | None = None  # source text that defines further workloads, which models never see
    direction: Direction = "forward"  # whether only outputs are judged, or gradients too
    # ``reference`` with the workloads that it leaves out because their stored tensors do not fit into a
    # prompt; None if it has all
    full_reference: str | None = None

    @property
    def judged_reference(self) -> str:
        return self.full_reference or self.reference

    @property
    def key(self) -> str:
        """``<level>_<problem_id>``: the name of the task's folder in a run."""
        return f"{self.level}_{self.problem_id}"

    @property
    def digest(self) -> str:
        """Return a digest of the reference and of all workloads, for comparisons."""
        texts = json.dumps([self.reference, self.full_reference, self.hidden_workloads])
        return hashlib.sha256(texts.encode()).hexdigest()[:32]

    @property
    def as_candidate(self) -> str:
        return self.reference + "\n\nModelNew = Model\n"
