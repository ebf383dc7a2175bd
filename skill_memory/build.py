"""Build a memory from recorded failures at once."""

from dataclasses import dataclass
from pathlib import Path

from adaexplore.llm.protocol import ModelClient
from skill_memory.failures.sources import Collected
from skill_memory.sidecar import RECURS, read_sidecar
from skill_memory.store import known_rules, make_memory, read_rules
from skill_memory.update import MemoryUpdater


@dataclass(frozen=True)
class Built:
    failures: int  # number of failures, without wrong values and infrastructure
    infrastructure: int  # number of failing steps that were not the candidate's fault
    signatures: int  # number of kinds of failure
    model_calls: int  # number of model requests
    rules: int
    explained: float  # share of the failures whose signature has a rule that recurred


def build(collected: Collected, path: Path, client: ModelClient) -> Built:
    """Add the failures to the memory at ``path``; create it if it does not exist.

    Repeating it with the same failures changes nothing.

    Raises:
        ModelRequestError: the model's service refused; failures matched before that are counted.
        ConfigError, StorageError: the memory cannot be read or written.
    """
    make_memory(path)
    update = MemoryUpdater(path, client).add(collected.tasks)
    found = (failure.signature for task in collected.tasks for failure in task.failures)
    kinds = {signature.key for signature in found if signature is not None}
    return Built(
        failures=collected.failures,
        infrastructure=collected.infrastructure,
        signatures=len(kinds),
        model_calls=update.calls,
        rules=len(read_rules(path)),
        explained=explained(collected, path),
    )


def explained(collected: Collected, path: Path) -> float:
    """Return the share of failures whose signature has a rule with count 2 or more in the memory."""
    state, rules = read_sidecar(path), read_rules(path) if path.exists() else []
    counts = {rule.text: rule.count for rule in rules}
    known = known_rules(rules)
    hits = 0
    for task in collected.tasks:
        for failure in task.failures:
            signature = failure.signature
            rule = None if signature is None else known.get(signature.key) or state.rule_of(signature.key, {})
            hits += rule is not None and counts.get(rule, 0) >= RECURS
    return hits / collected.failures if collected.failures else 0.0
