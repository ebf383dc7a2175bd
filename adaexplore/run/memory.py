"""The skill memory as a run uses it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.llm.protocol import ModelClient
from adaexplore.settings.config import BUNDLED_MEMORY, RunConfig
from adaexplore.settings.paths import locate
from skill_memory.distil import Failure
from skill_memory.store import Memory, injected, memory_for_run, read_rules
from skill_memory.update import MemoryUpdater

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunMemory:
    """Rules for prompts and, with ``memory_update``, what adds to them after each task."""

    memory: Memory
    threshold: int
    updater: MemoryUpdater | None

    def rules(self) -> tuple[str, ...]:
        """The rules that a task which begins now is shown."""
        rules = self.memory.rules
        if self.updater is not None:
            rules = tuple(read_rules(self.updater.path))
        return injected(rules, self.threshold)

    def task_finished(self, task: Task, steps: Sequence[StepRecord]) -> None:
        """Let the failures of a finished task enter the memory, where that is wanted."""
        if self.updater is None:
            return
        failures = [
            Failure(step.node.plan.step, step.draft.source, step.verdict)
            for step in steps
            if step.verdict is not None and not step.verdict.correct and step.evaluated
        ]
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


def open_memory(config: RunConfig, client: ModelClient, run_folder: Path) -> RunMemory:
    """The memory that the configuration names.

    Raises:
        ConfigError: it cannot be read.
        StorageError: ``memory_update`` and the file cannot be made.
    """
    given = config.general_memory_path
    path = None if given is None else locate(given)
    memory = memory_for_run(path, config.memory_update, locate(BUNDLED_MEMORY))
    updater = None
    if config.memory_update and path is not None:
        updater = MemoryUpdater(path, client, str(run_folder.resolve()))
    return RunMemory(memory, config.knowledge_1_threshold, updater)
