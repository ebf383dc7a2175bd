"""The skill memory as a run uses it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.protocol import ModelClient
from adaexplore.records.run_records import RunRecords
from adaexplore.settings.config import BUNDLED_MEMORY, RunConfig
from adaexplore.settings.paths import locate
from skill_memory.rule import Rule
from skill_memory.sources import from_task
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

    def task_finished(self, run: RunRecords, key: str) -> None:
        """Let the failures of a finished task enter the memory, where that is wanted.

        Those of steps that the run took over are known to it where the run that made them counted them.

        Raises:
            ModelRequestError: the model's service refused; what was known by then is counted.
            RecordError, ConfigError, StorageError: a file cannot be read or written.
        """
        if self.updater is None:
            return
        update = self.updater.add(from_task(run, key).tasks)
        if update.added or update.raised or update.calls:
            cost = "unknown" if update.usage.usd is None else f"${update.usage.usd:.4f}"
            logger.info(
                "memory: task %s brought %d new rules and raised %d; %d requests, cost %s",
                key,
                len(update.added),
                len(update.raised),
                update.calls,
                cost,
            )

    def under(self, judge: JudgeIdentity) -> RunMemory:
        """The same for a run with ``judge``; one warning where rules were proven elsewhere only."""
        triton = dict(judge.versions).get("triton")
        versions = sorted({seen.triton for rule in self.memory.rules for seen in rule.verified})
        if triton is not None and versions and triton not in versions:
            logger.warning(
                "the memory %s was verified with Triton %s, the judge has %s; "
                "`adaexplore build-memory --verify` tells which rules hold there",
                self.memory.path,
                ", ".join(versions),
                triton,
            )
        return replace(self, triton=triton)


def open_memory(config: RunConfig, client: ModelClient) -> RunMemory:
    """The memory that the configuration names.

    Args:
        config: names the memory.
        client: words new rules.

    Raises:
        ConfigError: it cannot be read.
        StorageError: ``memory_update`` and the file cannot be made.
    """
    given = config.general_memory_path
    path = None if given is None else locate(given)
    memory = memory_for_run(path, config.memory_update, locate(BUNDLED_MEMORY))
    updater = MemoryUpdater(path, client) if config.memory_update and path is not None else None
    return RunMemory(memory, config.knowledge_1_threshold, updater)
