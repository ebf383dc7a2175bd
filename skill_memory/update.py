"""The memory grows: failures are recorded, what recurs is put to the model, and rules are counted.

Every change is made under a lock, from the files' state at that moment, and is the union of what is known
and what is new. So it does not matter how many workers there are, in which order they come, how often one
reports the same task, or when one is killed. The model is asked while nothing is locked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from adaexplore.core.errors import ModelError, ModelUnavailableError
from adaexplore.core.files import write_text
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient
from skill_memory.distil import distil
from skill_memory.excerpt import reason, shortest_excerpt
from skill_memory.failure import TaskFailures, in_order
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
from skill_memory.signature import error_text
from skill_memory.store import format_rules, is_jsonl, joined, read_rules, set_aside, sorted_rules

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemoryUpdate:
    """What failures changed.

    Attributes:
        calls: model requests made.
        usage: their cost.
        added: rules that are new.
        raised: rules whose count rose.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    added: tuple[str, ...] = ()
    raised: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryUpdater:
    """Adds failures to one memory file. Safe with many threads and processes.

    Attributes:
        path: the memory file.
        client: the model that words the rules.
    """

    path: Path
    client: ModelClient

    def add(self, tasks: Sequence[TaskFailures]) -> MemoryUpdate:
        """Count the failures of tasks, and ask the model about kinds that recur by now.

        A kind counts once a lineage, and never twice when failures of the same name come again.

        Raises:
            ModelRequestError: the model's service refused; what was known by then is counted.
            ConfigError: the memory cannot be read.
            StorageError: it cannot be written.
        """
        if not any(failure.signature for task in tasks for failure in task.failures):
            return MemoryUpdate()
        before = self._counts()
        self._change(partial(_recorded, tasks=tasks))
        calls, usage, refusal = self._settle()
        after = self._counts()
        if refusal is not None:
            raise refusal
        return MemoryUpdate(
            calls,
            usage,
            tuple(text for text in after if text not in before),
            tuple(text for text in before if after.get(text, 0) > before[text]),
        )

    def _settle(self) -> tuple[int, Usage, ModelError | None]:
        """Ask about every group that is open; what cannot be asked now stays open."""
        calls, usage = 0, Usage()
        state, rules = read_sidecar(self.path), self._rules()
        for key in [group.key for group in open_groups(state, _known(rules))]:
            state, rules = read_sidecar(self.path), self._rules()
            still_open = {group.key: group for group in open_groups(state, _known(rules))}
            group = still_open.get(key)
            if group is None:
                continue  # another worker has answered meanwhile
            name = f"rule/{digest(group.key.encode())[:16]}"
            try:
                found = distil(group.members, _evidence(state, group.members), self.client, name)
                calls, usage, text = calls + 1, usage + found.usage, found.rule
                if text is not None:
                    merged = merge(text, [rule.text for rule in rules], self.client, f"{name}/merge")
                    text = merged.text
                    if merged.usage is not None:
                        calls, usage = calls + 1, usage + merged.usage
            except ModelUnavailableError as error:
                log.warning("memory %s: no rule distilled for now: %s", self.path, error)
                break
            except ModelError as error:
                return calls, usage, error
            self._change(partial(_answered, group=group, text=text))
        return calls, usage, None

    def _change(self, change: Callable[[Sidecar, Sequence[Rule]], Sidecar]) -> None:
        """Take the state through ``change`` and bring the memory file up to it, under the lock."""
        with locked(self.path):
            state = read_sidecar(self.path)
            before = finish_pending(self.path, state)
            rules = joined(self._rules())
            changed = change(state, rules)
            after = format_rules(_counted(rules, state, changed), jsonl=is_jsonl(self.path))
            if changed == state and self.path.exists():
                return
            set_aside(self.path)
            # The sidecar goes first: whoever finds it with the old memory finishes the rewrite.
            write_sidecar(
                self.path, changed.model_copy(update={"pending": Pending(before=before, after=after)})
            )
            write_text(self.path, after)

    def _rules(self) -> list[Rule]:
        return read_rules(self.path) if self.path.exists() else []

    def _counts(self) -> dict[str, float]:
        return {rule.text: rule.count for rule in self._rules()}


def _recorded(state: Sidecar, _: Sequence[Rule], tasks: Sequence[TaskFailures]) -> Sidecar:
    """``state`` with the failures of ``tasks``."""
    kinds = dict(state.kinds)
    for task in tasks:
        for failure in in_order(task.failures):
            signature = failure.signature
            if signature is not None:
                occurrence, text = task.occurrence(failure), error_text(failure.verdict)
                shown = shortest_excerpt(failure.source, text, failure.line)
                evidence = Evidence(occurrence, reason(text), shown)
                kinds[signature.key] = kinds.get(signature.key, Kind()).with_failure(occurrence, evidence)
    return state.model_copy(update={"kinds": kinds})


def _answered(state: Sidecar, rules: Sequence[Rule], group: Group, text: str | None) -> Sidecar:
    """``state`` with the rule for a group, unless another worker was faster."""
    if group.key in state.rules:
        return state
    if text is not None:
        text = nearest(text, [rule.text for rule in rules], SAME_RULE) or text
    return state.model_copy(update={"rules": {**state.rules, group.key: text}})


def _counted(rules: Sequence[Rule], before: Sidecar, after: Sidecar) -> list[Rule]:
    """``rules`` with the failures that ``after`` explains and ``before`` did not."""
    known = _known(rules)
    found = {rule.text: rule for rule in rules}
    explained, explained_before = _explained(after, known), _explained(before, known)
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
    return sorted_rules(found.values())


def _explained(state: Sidecar, known: Mapping[str, str]) -> dict[str, list[str]]:
    """Signatures by the rule that explains them, in the memory file or in the state."""
    rules = {**state.rules, **{key: text for key, text in known.items() if key not in state.rules}}
    return state.model_copy(update={"rules": rules}).explained()


def _known(rules: Sequence[Rule]) -> dict[str, str]:
    """The rules of a file by signature key."""
    return {key: rule.text for rule in rules for key in rule.signatures}


def _evidence(state: Sidecar, keys: Sequence[str]) -> tuple[Evidence, ...]:
    """Some evidence of several kinds, of each kind one before a second."""
    by_kind = [state.kinds[key].evidence for key in keys]
    turns = [item for turn in range(MOST_EVIDENCE) for kind in by_kind for item in kind[turn : turn + 1]]
    return tuple(turns[: 2 * MOST_EVIDENCE])
