"""Tasks of other benchmarks, as ordinary problems of level 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.dialects.catalogue import PROMPT_BYTES, Benchmark, open_benchmark, source_of
from adaexplore.core.errors import TaskError
from adaexplore.core.task import Task
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.test_list import Selection

JUDGED_BYTES = 2**17
"""Most bytes of stored tensors in a problem that is sent to a judge: half of its default source limit."""


@dataclass(frozen=True)
class BenchmarkTasks:
    """See :class:`~adaexplore.tasks.sources.TaskSource`; tasks are numbered in alphabetical order."""

    benchmark: Benchmark

    @property
    def root(self) -> Path:
        return self.benchmark.root

    @property
    def levels(self) -> Mapping[int, Mapping[int, Path]]:
        return {1: dict(enumerate(self.benchmark.paths.values(), start=1))}

    def selections(self, config: RunConfig) -> list[Selection]:
        """Return the task with the name or number ``problem_id``, or all."""
        if config.problem_id is None:
            return [Selection(1, None, "problem_id")]
        name = self.benchmark.find(str(config.problem_id))
        return [Selection(1, (list(self.benchmark.paths).index(name) + 1,), "problem_id")]

    def read(self, level: int, number: int, config: RunConfig) -> Task:
        name = list(self.benchmark.paths)[number - 1]
        full = self.benchmark.problem(name, JUDGED_BYTES)
        text = full if len(full) <= PROMPT_BYTES else self.benchmark.problem(name)
        return Task(
            level,
            str(number),
            name,
            text,
            config.dtype_str,
            self.benchmark.paths[name],
            direction=config.direction,
            full_reference=None if full == text else full,
        )


def benchmark_tasks(config: RunConfig, environment: Environment) -> BenchmarkTasks:
    """Open the benchmark that ``test_source`` names.

    Raises:
        TaskError: its folder is missing or holds no tasks.
    """
    source = source_of(config.test_source)
    if source is None:
        raise TaskError(f"test_source: {config.test_source} is not another project's benchmark")
    given = None if config.problem_root is None else str(locate(config.problem_root))
    return BenchmarkTasks(open_benchmark(source, environment.benchmarks, given))
