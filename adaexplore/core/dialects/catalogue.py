"""Find the tasks of other benchmarks, and make problem files and candidates by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adaexplore.core.dialects import flashinfer, tritonbench
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_text

Source = Literal["TBG", "TBT", "FIT", "MLSYS"]
TRITONBENCH = ("TBG", "TBT")
"""The benchmarks whose tasks are Python files; those of the others are definitions."""

VARIABLES: Mapping[Source, str] = {
    "TBG": "TRITONBENCH_G_PATH",
    "TBT": "TRITONBENCH_T_PATH",
    "FIT": "FIB_DATASET_PATH",
    "MLSYS": "MLSYS26_PATH",
}
"""Environment variables that name the folders; below are the default folders."""
_FOLDERS: Mapping[Source, tuple[str, ...]] = {
    "TBG": ("TritonBench/data/TritonBench_G_v1", "TritonBench_G_v1", "tritonbench-g"),
    "TBT": ("TritonBench/data/TritonBench_T_v1", "TritonBench_T_v1", "tritonbench-t"),
    "FIT": ("flashinfer-trace", "sol-execbench"),
    "MLSYS": ("mlsys26",),
}
PROMPT_BYTES = 2**14
"""Most bytes of stored tensors in a problem that fits into a prompt."""
_REPOSITORY = Path(__file__).resolve().parents[3]
_SPELLINGS = re.compile(r"TRITONBENCH[-_]([GT])")


@dataclass(frozen=True)
class Benchmark:
    """The tasks of one benchmark in one folder; methods raise TaskError if a task cannot be used."""

    source: Source
    root: Path
    paths: Mapping[str, Path]  # its tasks' files by name, sorted; the first one has the number 1

    def find(self, task: str) -> str:
        """Return the name of the task with this name, file name or number."""
        name = task.removesuffix(".py").removesuffix(".json")
        if name not in self.paths and name.isascii() and name.isdecimal():
            name = dict(enumerate(self.paths, start=1)).get(int(name), name)
        if name not in self.paths:
            kind = "tasks" if self.source in TRITONBENCH else "definitions with workloads"
            raise TaskError(f"no task {name[:80]!r} in {self.root}; it has {len(self.paths)} {kind}")
        return name

    def problem(self, name: str, data_bytes: int = PROMPT_BYTES) -> str:
        """Return the problem file of a task, with at most so many bytes of stored tensors."""
        path = self.paths[name]
        text = input_text(path, "task file", TaskError)
        if self.source in TRITONBENCH:
            return tritonbench.problem_source(text, path)
        return flashinfer.problem_source(text, path, self.root, data_bytes)

    def candidate(self, name: str, code: str) -> str:
        """Return the candidate for a task as a module with ``ModelNew``."""
        path = self.paths[name]
        text = input_text(path, "task file", TaskError)
        if self.source in TRITONBENCH:
            return tritonbench.candidate_source(code, text, path)
        return flashinfer.candidate_source(code, text, path, self.root)


def source_of(test_source: str | None) -> Source | None:
    """Return the benchmark that a ``test_source`` names; None for KernelBench and synthesised sets."""
    name = (test_source or "").upper()
    name = _SPELLINGS.sub(r"TB\1", name)
    return next((source for source in VARIABLES if source == name), None)


def open_benchmark(
    source: Source,
    variables: Mapping[str, str],
    given: str | None = None,
    datasets: Sequence[Path] = (Path("datasets"), _REPOSITORY / "datasets"),
) -> Benchmark:
    """Find a benchmark's tasks: in the folder of its variable, else in ``given``, else below ``datasets``.

    Raises:
        TaskError: there is no such folder, it holds no tasks, or its home directory is unknown.
    """
    variable = VARIABLES[source]
    named = variables.get(variable, "").strip() or given
    if named:
        try:
            root = Path(named).expanduser()
        except RuntimeError as error:
            raise TaskError(f"{named} starts with an unknown home directory; write the path out") from error
    else:
        places = [root / folder for root in datasets for folder in _FOLDERS[source]]
        root = next((place for place in places if place.is_dir()), places[0])
    try:
        paths = _tritonbench(source, root) if source in TRITONBENCH else flashinfer.definitions(root)
    except OSError as error:
        raise TaskError(f"cannot read folder {root}: {error.strerror or error}") from error
    if not paths:
        raise TaskError(f"no {source} tasks in {root}; set {variable} to the folder that holds them")
    return Benchmark(source, root, paths)


def _tritonbench(source: Source, root: Path) -> dict[str, Path]:
    """Return the files of a folder, or of the folder in a checkout of the benchmark."""
    inside = root / "data" / f"TritonBench_{source[-1]}_v1"
    folder = inside if inside.is_dir() else root
    return {path.stem: path for path in sorted(folder.glob("*.py"))}
