"""Does what a run learns reach the next run? A test of the plumbing of Adapt, without a model.

    python -m tool_scripts.bench_memory_loop [--problems DIR] [--learn 1-100] [--test 101-200] [--out FILE]

The offline writer makes mistakes in a seeded share of its kernels, and makes none that a rule in its prompt
warns of. So: solve the tasks to learn from, build a memory out of the failures, and write one kernel for
each of the other tasks without and with that memory. Both use the same random draws, so the difference is
what the rules did. It says that rules are learnt, kept, shown and obeyed. It says nothing about what a
memory is worth to a model.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import secrets
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from adaexplore.core.errors import AdaExploreError
from adaexplore.core.files import write_json
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.records.run_records import RunRecords
from adaexplore.run.build import open_model
from adaexplore.run.session import open_session
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.sources import SYN_ROOT, load_tasks
from skill_memory.build import build
from skill_memory.sources import from_run
from skill_memory.store import injected, read_rules

logger = logging.getLogger("bench_memory_loop")

PLUMBING = "a test of the plumbing with a writer that obeys rules by construction; no benefit for any model"
_RESAMPLES = 10_000
_TOKEN = "ADAEXPLORE_JUDGE_TOKEN"


@dataclass(frozen=True)
class Loop:
    """The figures.

    Attributes:
        learnt_from: tasks solved to learn from.
        failures: of these, wrong values and infrastructure left out.
        model_calls: requests to word and merge rules.
        rules: rules in the memory.
        shown: of these, those that prompts show.
        tested_on: other tasks, one kernel each.
        without: share of these kernels that are correct, without the memory.
        with_memory: the same with it.
        better: tasks that only the kernel with memory solves.
        worse: tasks that only the kernel without memory solves.
        difference: of the two shares.
        low: lower end of its 95 % interval, from resampling the tasks.
        high: upper end.
        meaning: what it is a test of.
    """

    learnt_from: int
    failures: int
    model_calls: int
    rules: int
    shown: int
    tested_on: int
    without: float
    with_memory: float
    better: int
    worse: int
    difference: float
    low: float
    high: float
    meaning: str = PLUMBING


def interval(differences: Sequence[int], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean, by resampling with replacement."""
    rng, count = random.Random(seed), len(differences)
    means = sorted(sum(rng.choices(differences, k=count)) / count for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def passed(config: RunConfig, folder: Path) -> dict[str, bool]:
    """Run, and tell by task whether the first kernel was correct."""
    stop = threading.Event()
    tasks = load_tasks(config, read_environment(os.environ))
    with open_session(config, tasks, folder, stop) as session:
        for news in session.progress():
            if news.problem is not None:
                logger.warning("%s is left out: %s", news.task.key, news.problem)
    records = RunRecords.existing(folder)
    found = {}
    for key in records.tasks():
        first = [step for step in records.task(key).summaries() if step.step == 1]
        if first:
            found[key] = first[0].verdict is not None and first[0].verdict.correct
    return found


def measure(base: RunConfig, learn: Path, test: Path, steps: int, folder: Path) -> Loop:
    """Learn and test, with the judge that ``base`` names.

    Args:
        base: the judge, the problems and the seed.
        learn: list of the tasks to learn from.
        test: list of the tasks to test on.
        steps: kernels for each task to learn from.
        folder: takes runs and memory.
    """
    memory = folder / "memory.jsonl"
    learning = base.model_copy(update={"test_list_path": str(learn), "total_steps": steps})
    learnt = passed(learning, folder / "learn")
    collected = from_run(folder / "learn")
    built = build(collected, memory, open_model(base, None, threading.Event()))
    testing = base.model_copy(update={"test_list_path": str(test), "total_steps": 1})
    without = passed(testing, folder / "without")
    remembering = testing.model_copy(update={"general_memory_path": str(memory)})
    remembered = passed(remembering, folder / "with")
    keys = sorted(without.keys() & remembered.keys())
    differences = [remembered[key] - without[key] for key in keys]
    low, high = interval(differences)
    rules = read_rules(memory)
    return Loop(
        learnt_from=len(learnt),
        failures=built.failures,
        model_calls=built.model_calls,
        rules=built.rules,
        shown=len(injected(rules, base.knowledge_1_threshold)),
        tested_on=len(keys),
        without=sum(without[key] for key in keys) / len(keys),
        with_memory=sum(remembered[key] for key in keys) / len(keys),
        better=differences.count(1),
        worse=differences.count(-1),
        difference=sum(differences) / len(keys),
        low=low,
        high=high,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures; 0 if memory helped beyond chance, 1 if not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=Path, default=locate(SYN_ROOT), help="folder of 1.py, 2.py, ...")
    parser.add_argument("--learn", default="1-100", help="tasks to learn from")
    parser.add_argument("--test", default="101-200", help="tasks to test on")
    parser.add_argument("--steps", type=int, default=4, help="kernels for each task to learn from")
    parser.add_argument("--seed", type=int, default=0, help="of the writer")
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "cpu"), help="of the judge")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="tasks at a time")
    parser.add_argument("--work", type=Path, default=None, help="keep the runs here, and go on from there")
    parser.add_argument("--out", type=Path, default=None, help="also write the figures here")
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="adaexplore-loop-") as temporary:
        folder = args.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            found = _measured(args, folder)
        except AdaExploreError as error:
            print(f"bench_memory_loop: {error}", file=sys.stderr)  # noqa: T201
            return error.exit_code
    if args.out is not None:
        write_json(args.out, asdict(found))
    print(json.dumps(asdict(found), indent=2))  # noqa: T201
    return 0 if found.low > 0 else 1


def _measured(args: argparse.Namespace, folder: Path) -> Loop:
    lists = {}
    for name in ("learn", "test"):
        lists[name] = folder / f"{name}.txt"
        lists[name].write_text(f"1 {getattr(args, name)}\n", encoding="utf-8")
    # one judge for all runs: it knows the verdict on a kernel that was written twice
    os.environ[_TOKEN] = secrets.token_urlsafe(32)
    with embedded_judge(
        device=args.device,
        compile_target="sm_90",
        gpu_ids=(),
        workers=args.processes,
        seed=args.seed,
        log_path=folder / "judge.log",
        token=os.environ[_TOKEN],
    ) as url:
        base = RunConfig(
            seed=args.seed,
            agent_type="PS",
            test_source="SYN",
            problem_root=str(args.problems),
            server_type="offline",
            general_memory_path=None,
            use_remote_eval=True,
            remote_eval_url=url,
            num_processes=args.processes,
        )
        return measure(base, lists["learn"], lists["test"], args.steps, folder)


if __name__ == "__main__":
    sys.exit(main())
