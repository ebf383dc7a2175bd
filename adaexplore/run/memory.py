"""The skill memory of a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.protocol import ModelClient
from adaexplore.records.run_records import RunRecords
from adaexplore.settings.config import BUNDLED_MEMORY, RunConfig
from adaexplore.settings.paths import locate
from skill_memory.failures.sources import from_task
from skill_memory.rule import Rule
from skill_memory.store import injected, read_rules, rules_for_run
from skill_memory.update import MemoryUpdater

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunMemory:
    """Rules for prompts and, with ``memory_update``, their update after each task."""

    path: Path | None  # the configured file, if any
    at_start: tuple[Rule, ...]  # its rules when the run starts
    threshold: int  # minimum count of a rule that prompts show
    updater: MemoryUpdater | None  # adds rules after a task
    triton: str | None = None  # the judge's Triton version, if known; rules retired for it are not shown

    def rules(self) -> tuple[str, ...]:
        """Return the rules in the prompts of a task that starts now."""
        rules: Sequence[Rule] = self.at_start
        if self.updater is not None:
            rules = read_rules(self.updater.path)
        return injected(rules, self.threshold, self.triton)

    def task_finished(self, run: RunRecords, key: str) -> None:
        """Add the failures of a finished task to the memory, if ``memory_update`` is set.

        Failures of copied steps are not counted twice: the memory knows them if the run that made them
        counted them.

        Raises:
            ModelRequestError: the model's service refused; failures matched before that are counted.
            RecordError, ConfigError, StorageError: a file cannot be read or written.
        """
        if self.updater is None:
            return
        update = self.updater.add(from_task(run, key).tasks)
        if update.added or update.raised or update.calls:
            cost = "unknown" if update.usage.usd is None else f"${update.usage.usd:.4f}"
            logger.info(
                "memory: task %s added %d new rules and raised %d; %d requests, cost %s",
                key,
                len(update.added),
                len(update.raised),
                update.calls,
                cost,
            )

    def under(self, judge: JudgeIdentity) -> RunMemory:
        """Return a copy for ``judge``; warn once if rules were verified with other Triton versions only."""
        triton = judge.triton
        versions = sorted({seen.triton for rule in self.at_start for seen in rule.verified})
        if triton is not None and versions and triton not in versions:
            logger.warning(
                "the memory %s was verified with Triton %s, the judge has %s; "
                "`adaexplore build-memory --verify` shows which rules hold there",
                self.path,
                ", ".join(versions),
                triton,
            )
        return replace(self, triton=triton)


def open_memory(config: RunConfig, client: ModelClient) -> RunMemory:
    """Open the memory that the configuration names; ``client`` writes new rules.

    Raises:
        ConfigError: it cannot be read.
        StorageError: ``memory_update`` is set and the file cannot be created.
    """
    given = config.general_memory_path
    path = None if given is None else locate(given)
    rules = rules_for_run(path, config.memory_update, locate(BUNDLED_MEMORY))
    updater = MemoryUpdater(path, client) if config.memory_update and path is not None else None
    return RunMemory(path, rules, config.knowledge_1_threshold, updater)
