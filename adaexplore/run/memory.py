"""The skill memory as a run uses it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.protocol import ModelClient
from adaexplore.settings.config import BUNDLED_MEMORY, RunConfig
from adaexplore.settings.paths import locate
from skill_memory.failure import Failure, is_failure, is_infrastructure, lineages
from skill_memory.rule import Rule
from skill_memory.store import Memory, injected, memory_for_run, read_rules
from skill_memory.update import MemoryUpdater

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunMemory:
    """Rules for prompts and, with ``memory_update``, what adds to them after each task.

    Attributes:
        memory: the rules at the run's start.
        threshold: least count of a rule that is shown.
        updater: what adds to them.
        triton: the judge's version of Triton, where it tells; rules retired for it are not shown.
    """

    memory: Memory
    threshold: int
    updater: MemoryUpdater | None
    triton: str | None = None

    def rules(self) -> tuple[str, ...]:
        """The rules that a task which begins now is shown."""
        rules: Sequence[Rule] = self.memory.rules
        if self.updater is not None:
            rules = read_rules(self.updater.path)
        return injected(rules, self.threshold, self.triton)

    def task_finished(self, task: Task, steps: Sequence[StepRecord], taken: int = 0) -> None:
        """Let the failures of a finished task enter the memory, where that is wanted.

        Args:
            task: which one.
            steps: all of its steps.
            taken: how many of them, the first observed, are those of a forked run, which counted them.
        """
        if self.updater is None:
            return
        copied = {step.node.plan.step for step in steps if step.node.total_nodes <= taken + 1}
        failures = [failure for failure in failures_in(steps) if failure.step not in copied]
        update = self.updater.task_finished(task.key, failures)
        if update.added or update.raised or update.calls:
            cost = "unknown" if update.usage.usd is None else f"${update.usage.usd:.4f}"
            logger.info(
                "memory: task %s brought %d new rules and raised %d; %d requests, cost %s",
                task.key,
                len(update.added),
                len(update.raised),
                update.calls,
                cost,
            )


def failures_in(steps: Sequence[StepRecord]) -> list[Failure]:
    """The steps of a task that the model's kernels failed in, otherwise than by wrong values."""
    by_number = sorted(steps, key=lambda step: step.node.plan.step)
    plans = [step.node.plan for step in by_number]
    heads = lineages((plan.step, plan.kind, plan.parent_id) for plan in plans)
    return [
        Failure(step.node.plan.step, step.draft.source, step.verdict, lineage=heads[step.node.plan.step])
        for step in by_number
        if step.verdict is not None
        and step.evaluated
        and step.draft.outcome is not DraftOutcome.SEED
        and is_failure(step.verdict)
        and not is_infrastructure(step.verdict)
    ]


def open_memory(
    config: RunConfig, client: ModelClient, run_folder: Path, identity: JudgeIdentity | None = None
) -> RunMemory:
    """The memory that the configuration names; one warning where it was proven under other versions only.

    Args:
        config: names the memory.
        client: words new rules.
        run_folder: names the run.
        identity: the judge, which tells its version of Triton.

    Raises:
        ConfigError: it cannot be read.
        StorageError: ``memory_update`` and the file cannot be made.
    """
    given = config.general_memory_path
    path = None if given is None else locate(given)
    memory = memory_for_run(path, config.memory_update, locate(BUNDLED_MEMORY))
    triton = None if identity is None else dict(identity.versions).get("triton")
    _warn_of_versions(memory, triton)
    updater = None
    if config.memory_update and path is not None:
        updater = MemoryUpdater(path, client, str(run_folder.resolve()))
    return RunMemory(memory, config.knowledge_1_threshold, updater, triton)


def _warn_of_versions(memory: Memory, triton: str | None) -> None:
    """Say so when rules were verified, and none of it under the judge's version."""
    versions = sorted({seen.triton for rule in memory.rules for seen in rule.verified})
    if triton is None or not versions or triton in versions:
        return
    logger.warning(
        "the memory %s was verified with Triton %s, the judge has %s; "
        "`adaexplore build-memory --verify` tells which rules hold there",
        memory.path,
        ", ".join(versions),
        triton,
    )
