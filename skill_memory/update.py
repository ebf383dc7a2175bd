"""The memory grows while a run goes on: after each task, its failures are counted."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import ModelError, ModelUnavailableError
from adaexplore.core.files import write_text
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient
from skill_memory.distil import Failure, distil, nearest
from skill_memory.sidecar import Pending, Sidecar, locked, read_sidecar, write_sidecar
from skill_memory.signature import signature_of
from skill_memory.store import Rule, format_rules, read_rules

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemoryUpdate:
    """What one finished task changed.

    Attributes:
        calls: model requests made.
        usage: their cost.
        added: rules that are new.
        raised: rules whose count rose.
    """

    calls: int
    usage: Usage
    added: tuple[str, ...]
    raised: tuple[str, ...]


@dataclass(frozen=True)
class MemoryUpdater:
    """Adds the failures of finished tasks to one memory file. Safe with many threads and processes.

    Attributes:
        path: the memory file.
        client: the model that words the rules.
        run_id: the run that the tasks belong to; the same after a resume.
    """

    path: Path
    client: ModelClient
    run_id: str

    def task_finished(self, task_key: str, failures: Sequence[Failure]) -> MemoryUpdate:
        """Count the failures of a task, asking the model once per kind not known yet.

        A kind of failure counts once a task, and never twice when a resumed run finishes the task
        again. Without an answer the open kinds are left for the next task that meets them.

        Args:
            task_key: the task's key in the run.
            failures: its failing steps, in any order.

        Raises:
            ModelRequestError: the model's service refused; what was known by then is counted.
            ConfigError: the memory cannot be read.
            StorageError: it cannot be written.
        """
        task_id = f"{self.run_id}/{task_key}"
        groups = _by_signature(failures)
        state = read_sidecar(self.path)
        done = set(state.counted.get(task_id, ()))
        answers: dict[str, str | None] = {}
        usage, calls, refusal = Usage(), 0, None
        for key, failure in groups.items():
            if key in state.rules or key in done:
                continue
            try:
                distilled = distil(failure, f"{task_key}/rule/{failure.step}", self.client)
            except ModelUnavailableError as error:
                log.warning("memory %s: no rule distilled for now: %s", self.path, error)
                break
            except ModelError as error:
                refusal = error
                break
            calls += 1
            usage += distilled.usage
            answers[key] = distilled.rule
        added, raised = self._merge(task_id, list(groups), answers) if groups else ((), ())
        if refusal is not None:
            raise refusal
        return MemoryUpdate(calls, usage, added, raised)

    def _merge(
        self, task_id: str, keys: Sequence[str], answers: Mapping[str, str | None]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Count ``keys`` under the lock; returns the texts of new rules and of raised ones."""
        with locked(self.path):
            state = read_sidecar(self.path)
            before = _finish_pending(self.path, state)
            counts: dict[str, float] = {}
            for rule in read_rules(self.path) if self.path.exists() else ():
                counts[rule.text] = counts.get(rule.text, 0) + rule.count
            rules, counted = dict(state.rules), list(state.counted.get(task_id, ()))
            added: list[str] = []
            raised: list[str] = []
            for key in keys:
                if key in counted or (key not in rules and key not in answers):
                    continue
                text = rules[key] if key in rules else answers[key]
                if text is not None and text not in counts:
                    text = nearest(text, counts) or text
                rules[key] = text
                counted.append(key)
                if text is not None:
                    (raised if text in counts else added).append(text)
                    counts[text] = counts.get(text, 0) + 1
            if counted != state.counted.get(task_id, []):
                after = format_rules([Rule(text, count) for text, count in counts.items()])
                # The sidecar goes first: whoever finds it with the old memory finishes the rewrite.
                write_sidecar(
                    self.path,
                    Sidecar(
                        rules=rules,
                        counted={**state.counted, task_id: counted},
                        pending=Pending(before=before, after=after),
                    ),
                )
                write_text(self.path, after)
        return tuple(added), tuple(raised)


def _by_signature(failures: Sequence[Failure]) -> dict[str, Failure]:
    """The earliest failure of each kind, by signature key in the order of steps."""
    groups: dict[str, Failure] = {}
    for failure in sorted(failures, key=lambda failure: failure.step):
        signature = signature_of(failure.verdict)
        if signature is not None:
            groups.setdefault(signature.key, failure)
    return groups


def _finish_pending(path: Path, state: Sidecar) -> str:
    """Do what a killed process had decided and not written; returns the memory file's digest."""
    digest = _digest(path)
    if state.pending is not None and state.pending.before == digest:
        write_text(path, state.pending.after)
        digest = _digest(path)
    return digest


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
