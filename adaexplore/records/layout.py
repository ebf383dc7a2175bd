"""File names of a run directory, per agent, as users of the reference release know them."""

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

FORMAT = 1
"""Format version in ``environment.json``; increased when older readers would misread the files."""

CONFIG = "config.yaml"
ENVIRONMENT = "environment.json"
JUDGE_ENVIRONMENT = "judge_environment.json"
LOCK = ".run.lock"
USAGE = "usage.jsonl"
MAILBOX = "mailbox"
ORIGINS = "origins.json"
STEERING = "steering.jsonl"
REFERENCE = "reference_src.py"
HIDDEN_WORKLOADS = "hidden_workloads_src.py"
FULL_REFERENCE = "full_reference_src.py"
REFERENCE_FACTS = "reference_facts.json"
RULES = "rules.json"
PLANS = "plans.json"
FINDINGS = "compile_findings.json"
TREE_STATISTICS = "tree_stats.json"
TREE_STRUCTURE = "tree_structure.txt"
TASK_FAILURE = "task_failure.json"
RE_EVALUATED = "global_best_metrics_re_evaluated.json"
STEP_CURVE = "step_best_curve.json"

MCTS = "MCTS"
IRS = "IRS"
PROPOSERS = ("IRL", "IRB", "IRLE", "PS")
AGENTS = (MCTS, IRS, *PROPOSERS)

_STEP_FILE = re.compile(r"(?:step|proposal_0|tune_0|proposal)_(\d+)[._]")
_BEST_METRICS = re.compile(r"global_best_metrics_(\d+)\.json")
_STEP_CODE = {
    MCTS: re.compile(r"step_\d+(\.py|_metrics\.json|_log\.json)"),
    IRS: re.compile(r"(proposal|tune)_0_\d+(\.py|_metrics\.(json|txt)|_log\.json)"),
    PROPOSERS[0]: re.compile(r"proposal_\d+(\.py|_metrics\.(json|txt)|_log\.json)"),
}


@dataclass(frozen=True)
class StepFiles:
    """Paths of one step's files; ``metrics_text`` is None for the agent without it.

    ``timings`` exists only in runs of earlier versions: both verdicts of a kernel that was timed twice.
    """

    code: Path
    metrics: Path
    metrics_text: Path | None
    prompt: Path
    reply: Path
    exchanges: Path
    usage: Path
    written: Path
    timings: Path
    profile: Path
    log: Path

    def all(self) -> tuple[Path, ...]:
        """Every file, the log last."""
        return tuple(path for path in astuple(self) if path is not None)


def step_files(folder: Path, agent_type: str, step: int) -> StepFiles:
    """Return the files of step ``step`` of an agent (``MCTS``, ``IRS``, ``IRL``, ``IRB``, ``IRLE``, ``PS``).

    Raises:
        ValueError: there is no such agent.
    """
    prompt = "_prompt.txt"
    if agent_type == MCTS:
        stem = f"step_{step}"
    elif agent_type == IRS:
        stem = f"proposal_0_{step}" if step <= 1 else f"tune_0_{step}"
    elif agent_type in PROPOSERS:
        stem, prompt = f"proposal_{step}", ".txt"
    else:
        raise ValueError(f"no agent is called {agent_type!r}; there are {', '.join(AGENTS)}")
    return StepFiles(
        code=folder / f"{stem}.py",
        metrics=folder / f"{stem}_metrics.json",
        metrics_text=None if agent_type == MCTS else folder / f"{stem}_metrics.txt",
        prompt=folder / f"{stem}{prompt}",
        reply=folder / f"{stem}_reply.txt",
        exchanges=folder / f"{stem}_exchanges.json",
        usage=folder / f"{stem}_usage.json",
        log=folder / f"{stem}_log.json",
        written=folder / f"{stem}_written.py",
        timings=folder / f"{stem}_timings.json",
        profile=folder / f"{stem}_profile.json",
    )


def step_numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of steps with at least one file in ``names``, ascending."""
    return sorted({int(match[1]) for name in names if (match := _STEP_FILE.match(name))})


def best_steps(names: Iterable[str]) -> list[int]:
    """Return the step totals with a best verdict in ``names``, ascending."""
    return sorted(int(match[1]) for name in names if (match := _BEST_METRICS.fullmatch(name)))


def detect_agent(names: Iterable[str]) -> str | None:
    """Detect the agent by its step files: ``MCTS``, ``IRS``, ``IRL`` (also for IRB, IRLE, PS) or None."""
    listed = list(names)
    for agent_type, pattern in _STEP_CODE.items():
        if any(pattern.fullmatch(name) for name in listed):
            return agent_type
    return None


def is_task_folder(name: str, names: Iterable[str]) -> bool:
    """Return whether folder ``name`` with the files ``names`` is a task's: ``<level>_<problem_id>``."""
    if name.startswith((".", "_")) or "_" not in name:
        return False
    return re.match(r"\d+_", name) is not None or holds_task_files(names)


def holds_task_files(names: Iterable[str]) -> bool:
    listed = list(names)
    known = {REFERENCE, TASK_FAILURE}
    return not known.isdisjoint(listed) or bool(best_steps(listed)) or detect_agent(listed) is not None


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts ``2_10`` after ``2_2``."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]
