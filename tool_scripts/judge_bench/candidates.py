"""Candidates with their problems, and the choice of candidates for each part."""

import ast
import random
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from adaexplore.core.errors import UsageError
from adaexplore.offline_writer.module import renamed
from tool_scripts.search_bench.traces import RecordedTree, read_tree

PROBLEM_FILE = "problem.py"
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Candidate:
    """A candidate and its problem, as sources."""

    id: str  # unique; ``<problem>/<name>``
    problem: str
    reference: str  # source with ``Model``, ``get_inputs`` and ``get_init_inputs``
    source: str  # source with ``ModelNew``
    correct: bool | None = None  # the recorded verdict; None if none was recorded
    error: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)  # more fields of the request


def read(folder: Path, kernelbench: Path | None = None) -> list[Candidate]:
    """Return all distinct candidates of recorded trajectories and of pairs (``NAME/problem.py``).

    ``kernelbench`` has ``level<N>/<id>_*.py`` for trajectories without a reference.

    Raises:
        UsageError: there is nothing usable.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one with recorded trajectories or pairs")
    found: list[Candidate] = []
    for file in sorted(folder.iterdir()):
        if file.name.endswith((".json", ".json.gz")):
            found += _of_tree(read_tree(file), kernelbench)
    for problem in sorted(folder.glob(f"*/{PROBLEM_FILE}")):
        reference, name = problem.read_text(encoding="utf-8"), problem.parent.name
        for file in sorted(problem.parent.glob("*.py")):
            if file != problem:
                source = file.read_text(encoding="utf-8")
                found.append(Candidate(f"{name}/{file.stem}", name, reference, source))
    if not found:
        raise UsageError(f"{folder} holds neither trajectories (*.json) nor pairs (NAME/{PROBLEM_FILE})")
    return different(found)


def different(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the first of each (reference, source)."""
    equal = grouped(candidates, lambda each: (each.reference, each.source.strip()))
    return [group[0] for group in equal.values()]


def shuffled(candidates: Iterable[Candidate], seed: int, purpose: str) -> list[Candidate]:
    """Return them in a random order that depends on seed and purpose, problems in turn."""
    rng = random.Random(f"{seed}:{purpose}")
    groups = list(grouped(candidates, lambda each: each.problem).values())
    for group in groups:
        rng.shuffle(group)
    turns = zip_longest(*map(reversed, groups))
    return [each for turn in turns for each in turn if each is not None]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by key; groups and items keep their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def in_recorded_share(candidates: Sequence[Candidate], count: int, seed: int) -> list[Candidate]:
    """Draw ``count`` recorded candidates with the same share of failing ones as in all."""
    passing = [each for each in candidates if each.correct]
    failing = [each for each in candidates if each.correct is False]
    recorded = len(passing) + len(failing)
    count = min(count, recorded)
    bad = round(count * len(failing) / max(recorded, 1))
    rng = random.Random(f"{seed}:throughput")
    chosen = rng.sample(passing, count - bad) + rng.sample(failing, bad)
    rng.shuffle(chosen)
    return chosen


def references(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return one candidate per problem: the reference itself under the name ``ModelNew``."""
    by_problem = grouped(candidates, lambda each: each.problem)
    return [_itself(problem, group[0].reference) for problem, group in by_problem.items()]


def kernelbench(folder: Path, levels: Sequence[int]) -> list[Candidate]:
    """Return each KernelBench reference as its own candidate: levels in the given order, then by number.

    Raises:
        UsageError: a level has no problems.
    """
    found: list[Candidate] = []
    for level in levels:
        files = folder.glob(f"level{level}/[0-9]*_*.py")
        ordered = sorted(files, key=lambda file: int(file.name.partition("_")[0]))
        if not ordered:
            raise UsageError(f"{folder} has no level{level}/N_*.py; name KernelBench with --kernelbench DIR")
        found += [_itself(f"level{level}-{file.stem}", file.read_text(encoding="utf-8")) for file in ordered]
    return found


def as_candidate(reference: str) -> str:
    """Return the reference's module with ``Model`` called ``ModelNew`` and without its inputs."""
    tree = ast.parse(reference)
    makers = ("get_inputs", "get_init_inputs")
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in makers)
    ]
    return renamed(ast.unparse(tree))


def _itself(problem: str, reference: str) -> Candidate:
    return Candidate(f"{problem}/reference", problem, reference, as_candidate(reference))


def _of_tree(tree: RecordedTree, kernelbench: Path | None) -> list[Candidate]:
    problem = re.sub(r"\W+", "-", tree.file)
    reference = tree.reference or _kernelbench_source(tree.name, kernelbench)
    return [
        Candidate(f"{problem}/step-{step.id}", problem, reference, step.source, step.correct, step.error)
        for step in tree.steps
        if step.source.strip()
    ]


def _kernelbench_source(name: str, kernelbench: Path | None) -> str:
    level, _, number = name.partition("_")
    if kernelbench is None:
        raise UsageError("a trajectory has no reference_src; name a KernelBench folder with --kernelbench")
    files = sorted(kernelbench.glob(f"level{level}/{number}_*.py"))
    if not files:
        raise UsageError(f"{kernelbench} has no level{level}/{number}_*.py")
    return files[0].read_text(encoding="utf-8")
