"""A solver made of stubs, for searches without cost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from adaexplore.agent.agent import Agent
from adaexplore.core.environment import Conditions
from adaexplore.core.errors import ProblemError
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.budget import Budget
from adaexplore.llm.meter import MeteredClient
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.records.steering import Steering
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.solve import solve
from adaexplore.run.step import Solver
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.build import build_policy
from adaexplore.search.knobs import SearchKnobs
from adaexplore.settings.config import RunConfig
from tests.stub_model import StubModel
from tests.verdicts import make_verdict

TASK = Task(1, "1", "1_x", "class Model: ...\n", "fp32", Path("1_x.py"))
FACTS = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10)
CONDITIONS = Conditions(
    hardware="", dtype="fp32", direction="forward", tf32="off", tier="strict", problem=TASK.digest
)
STEPS = 12


class StubJudge:
    """A judge that calls every third source wrong; other speedups depend only on the source."""

    def __init__(self, problem: str | None = None) -> None:
        self.judged: list[str] = []
        self.best_so_far: list[float | None] = []
        self.profiled: list[str] = []
        self._problem = problem

    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("cpu", "stub")

    def check_problem(self, task: Task) -> None:
        if self._problem is not None:
            raise ProblemError(self._problem)

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        self.judged.append(source)
        self.best_so_far.append(best_so_far)
        value = sum(source.encode())
        if value % 3 == 0:
            return make_verdict(status=Status.COMPILE, metadata={"feedback": "no"})
        stats = {"mean": 1.0, "fast_p": 0.5 + value % 7}
        return make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats=stats)

    def profile(self, task: Task, source: str) -> Profile | None:
        self.profiled.append(source)
        return Profile((), float(len(source)), 10.0, 8, 0.0, 0.5, "memory", "stub")


def solver(folder: Path, agent_type: str = "MCTS", *, total_steps: int = STEPS, **parts: Any) -> Solver:
    judge = parts.get("judge") or StubJudge()
    access = JudgeAccess(judge if isinstance(judge, list) else [judge], parts.get("other_gpus"))
    return Solver(
        agent=Agent(parts.get("model") or StubModel(), TASK, FACTS),
        policy=parts.get("policy") or build_policy(agent_type, SearchKnobs()),
        verdicts=Verdicts(access, TASK),
        records=TaskRecords(folder, agent_type),
        budget=Budget(RunConfig(), MeteredClient(StubModel())),
        steering=Steering(folder),
        conditions=CONDITIONS,
        seed=3,
        total_steps=total_steps,
        parallel_steps=parts.get("parallel_steps", 1),
        seeds=parts.get("seeds", ()),
        profiles=parts.get("profiles", False),
    )


def run_all(folder: Path, agent_type: str = "MCTS", **parts: Any) -> list[StepRecord]:
    return list(solve(solver(folder, agent_type, **parts), threading.Event()))


def contents(folder: Path) -> dict[str, str]:
    return {
        path.name: path.read_text()
        for path in sorted(folder.iterdir())
        if not path.name.endswith("_usage.json")
    }
