"""Update the memory: record failures, ask the model about recurring ones, and count rules.

Every change is made under a lock, from the current state of the files, and is the union of known and new
failures. So the number and order of workers, repeated reports of a task and killed workers do not matter.
The model is asked without the lock.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from adaexplore.core.errors import ModelUnavailableError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.usage import Usage
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelClient
from skill_memory.distil import UnusableReply, distil
from skill_memory.failures.construct import offending_line
from skill_memory.failures.failure import TaskFailures
from skill_memory.failures.signature import error_text, writable
from skill_memory.merge import SAME_RULE, merge, nearest
from skill_memory.rule import Evidence, Rule
from skill_memory.sidecar import (
    MOST_EVIDENCE,
    Group,
    Kind,
    Pending,
    Sidecar,
    digest,
    finish_pending,
    locked,
    open_groups,
    read_sidecar,
    write_sidecar,
)
from skill_memory.store import format_rules, is_jsonl, joined, known_rules, read_rules, set_aside

log = logging.getLogger(__name__)

_SHORT_CHARS = 300
_ERROR_CHARS = 400


@dataclass(frozen=True)
class MemoryUpdate:
    calls: int = 0  # number of model requests
    usage: Usage = field(default_factory=Usage)  # their cost
    added: tuple[str, ...] = ()  # new rules
    raised: tuple[str, ...] = ()  # rules with a higher count


@dataclass(frozen=True)
class MemoryUpdater:
    """An updater of one memory file; safe with many threads and processes."""

    path: Path
    client: ModelClient

    def add(self, tasks: Sequence[TaskFailures]) -> MemoryUpdate:
        """Count the failures of tasks, and ask the model about recurring kinds.

        A kind counts once per lineage; failures that were counted before do not count again.

        Raises:
            ModelRequestError: the model's service refused; failures matched before that are counted.
            ConfigError: the memory cannot be read.
            StorageError: the memory cannot be written.
        """
        if not any(failure.signature for task in tasks for failure in task.failures):
            return MemoryUpdate()
        before = self._counts()
        self._change(partial(_recorded, tasks=tasks))
        meter = MeteredClient(self.client)
        self._settle(meter)
        after = self._counts()
        return MemoryUpdate(
            meter.requests,
            meter.usage,
            tuple(text for text in after if text not in before),
            tuple(text for text in before if after.get(text, 0) > before[text]),
        )

    def _settle(self, client: ModelClient) -> None:
        """Ask the model about every open group; groups without a usable reply stay open."""
        state, rules = read_sidecar(self.path), self._rules()
        for key in [group.key for group in open_groups(state, known_rules(rules))]:
            state, rules = read_sidecar(self.path), self._rules()
            still_open = {group.key: group for group in open_groups(state, known_rules(rules))}
            group = still_open.get(key)
            if group is None:
                continue  # another worker stored an answer meanwhile
            name = f"rule/{digest(group.key.encode())[:16]}"
            try:
                text = distil(group.members, _evidence(state, group.members), client, name)
                if text is not None:
                    text = merge(text, [rule.text for rule in rules], client, f"{name}/merge")
            except ModelUnavailableError as error:
                log.warning("memory %s: no rule distilled for now: %s", self.path, error)
                break
            except UnusableReply as reason:
                log.warning("memory %s: no rule for now against '%s': %s", self.path, group.key, reason)
                continue
            self._change(partial(_answered, group=group, text=text))

    def _change(self, change: Callable[[Sidecar, Sequence[Rule]], Sidecar]) -> None:
        """Apply ``change`` to the state and update the memory file, under the lock."""
        with locked(self.path):
            state = read_sidecar(self.path)
            before = finish_pending(self.path, state)
            rules = joined(self._rules())
            changed = change(state, rules)
            after = format_rules(_counted(rules, state, changed), jsonl=is_jsonl(self.path))
            if changed == state and self.path.exists():
                return
            set_aside(self.path)
            # The sidecar goes first: the next process that finds it with the old memory finishes the rewrite.
            write_sidecar(
                self.path, changed.model_copy(update={"pending": Pending(before=before, after=after)})
            )
            write_text(self.path, after)

    def _rules(self) -> list[Rule]:
        return read_rules(self.path) if self.path.exists() else []

    def _counts(self) -> dict[str, float]:
        return {rule.text: rule.count for rule in self._rules()}


def _recorded(state: Sidecar, _: Sequence[Rule], tasks: Sequence[TaskFailures]) -> Sidecar:
    kinds = dict(state.kinds)
    for task in tasks:
        for failure in sorted(task.failures, key=attrgetter("step")):
            signature = failure.signature
            if signature is not None:
                occurrence, text = task.occurrence(failure), error_text(failure.verdict)
                shown = shortest_excerpt(failure.source, text, failure.line)
                evidence = Evidence(occurrence, _reason(text), shown)
                kinds[signature.key] = kinds.get(signature.key, Kind()).with_failure(occurrence, evidence)
    return state.model_copy(update={"kinds": kinds})


def _answered(state: Sidecar, rules: Sequence[Rule], group: Group, text: str | None) -> Sidecar:
    """Return ``state`` with the rule for a group, unless another worker was faster."""
    if group.key in state.rules:
        return state
    if text is not None:
        text = nearest(text, [rule.text for rule in rules], SAME_RULE) or text
    return state.model_copy(update={"rules": {**state.rules, group.key: text}})


def _counted(rules: Sequence[Rule], before: Sidecar, after: Sidecar) -> list[Rule]:
    """Return ``rules`` with the failures that ``after`` explains and ``before`` did not."""
    known = known_rules(rules)
    found = {rule.text: rule for rule in rules}
    explained, explained_before = after.explained(known), before.explained(known)
    for text in dict.fromkeys([*explained_before, *explained]):
        keys = explained.get(text, ())
        now = after.failures_of(keys)
        earlier = set(before.failures_of(explained_before.get(text, ())))
        rule = found.get(text, Rule(text, 0))
        added = [task for task in now if task not in earlier and task not in rule.tasks]
        gone = earlier.difference(now)
        if not added and not gone:
            continue
        found[text] = replace(
            rule,
            count=max(0.0, rule.count + len(added) - len(gone)),
            tasks=(*(task for task in rule.tasks if task not in gone), *added),
            signatures=tuple(dict.fromkeys([*rule.signatures, *keys])),
            evidence=rule.evidence or _evidence(after, keys),
        )
    return sorted(found.values(), key=lambda rule: -rule.count)


def _evidence(state: Sidecar, keys: Sequence[str]) -> tuple[Evidence, ...]:
    """Return some evidence of several kinds: one of each kind before a second of any."""
    by_kind = [state.kinds[key].evidence for key in keys]
    turns = [item for turn in range(MOST_EVIDENCE) for kind in by_kind for item in kind[turn : turn + 1]]
    return tuple(turns[: 2 * MOST_EVIDENCE])


def shortest_excerpt(source: str, error: str, line: int | None = None) -> str:
    """Return the offending line alone; "" if unknown."""
    pointed = offending_line(error)
    if pointed:
        return pointed[:_SHORT_CHARS]
    lines = source.splitlines()
    if line is not None and 1 <= line <= len(lines):
        return writable(lines[line - 1].strip())[:_SHORT_CHARS]
    first = error.strip().partition("\n")[0].strip()
    return first[:_SHORT_CHARS] if any(text.strip() == first for text in lines) else ""


def _reason(error: str) -> str:
    """Return the last informative line of an error."""
    lines = [text.strip() for text in error.splitlines() if text.strip(" ^~\t")]
    return lines[-1][-_ERROR_CHARS:] if lines else ""
