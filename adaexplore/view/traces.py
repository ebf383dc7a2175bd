"""The release's packed traces: one JSON file per task."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.draft import DraftOutcome, Exchange
from adaexplore.core.errors import RecordError
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.judging.parts import RuntimeStats
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepResult
from adaexplore.core.verdict import Verdict
from adaexplore.records import content
from adaexplore.report.task_result import Best
from adaexplore.view.model import UNREADABLE, Details, Node, RunView, Shape, TaskView, shape_of
from skill_memory.failures.sources import trace_verdict


class PackedTraces:
    """Packed traces, read once because they do not grow."""

    def __init__(self, given: Path) -> None:
        """Read one packed trace, or a folder of them as one run.

        Raises:
            RecordError: there is none; the message names the first fault.
        """
        tasks, notes = [], []
        paths = sorted(given.glob("*.json")) if given.is_dir() else [given]
        self._references: dict[str, str] = {}
        self._steps: dict[str, dict[int, Mapping[str, Any]]] = {}
        for path in paths:
            try:
                data = content.read_object(path)
                if not isinstance(data.get("steps"), list):
                    raise RecordError(f"{path} is not a packed trace; give a run's save_path")
            except (RecordError, RecursionError) as error:
                notes.append(str(error))
                continue
            self._references[path.stem] = str(data.get("reference_src") or "")
            tasks.append(self._task(path.stem, data["steps"]))
        if not tasks:
            raise RecordError(notes[0])
        name = given.resolve().name
        self._view = RunView(name=name, path=name, tasks=tuple(tasks), notes=tuple(notes))

    def refresh(self) -> RunView:
        return self._view

    def details(self, key: str, step: int) -> Details:
        steps = self._steps.get(key, {})
        data = steps.get(step)
        if data is None:
            return Details()
        prompt, parent = str(data.get("prompt") or ""), steps.get(_number(data.get("parent_node_id")), {})
        task = self._view.task(key)
        node = None if task is None else task.node(step)
        try:
            verdict = None if node is not None and node.why else _verdict(data)
        except (KeyError, TypeError, ValueError):
            verdict = None
        return Details(
            code=str(data.get("code") or ""),
            parent_code=str(parent["code"]) if parent.get("code") else None,
            reference=self._references[key],
            exchanges=(Exchange("prompt", prompt, ""),) if prompt else (),
            verdict=verdict,
        )

    def _task(self, key: str, steps: Sequence[Any]) -> TaskView:
        nodes, best = [], Best()
        known = self._steps[key] = {}
        for index, data in enumerate(steps):
            if not isinstance(data, dict) or data.get("created_by") == StepKind.DUMMY_ROOT:
                continue
            step = _number(data.get("node_id", index))
            known[step] = data
            try:
                kind, parent = (
                    StepKind(data["created_by"]),
                    known.get(_number(data.get("parent_node_id")), {}),
                )
                same = kind.edits and data.get("code") == parent.get("code")
                outcome = DraftOutcome.UNCHANGED if same else DraftOutcome.WRITTEN
                result = StepResult(kind, outcome, _verdict(data))
                best = best.or_better(step, result.verdict)
                context = data.get("context_node_ids")
                node = Node(
                    step=step,
                    parent=_number(data.get("parent_node_id")),
                    kind=kind,
                    context=tuple(map(_number, context)) if isinstance(context, list) else (),
                    status=result.name,
                    shape=shape_of(result),
                    found=Best().or_better(step, result.verdict),
                    best=best,
                    usage=None,
                    why=result.why,
                )
            except (KeyError, TypeError, ValueError) as error:
                node = Node(
                    step, 0, None, (), UNREADABLE, Shape.BROKEN, Best(), best, None, content.reason(error)
                )
            nodes.append(node)
        return TaskView(key, tuple(nodes), finished=True)


def _verdict(data: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a trace's step, with its times, or with the error as feedback."""
    found, runtime = trace_verdict(data), data.get("runtime_us") or 0.0
    if not found.correct:
        return found.model_copy(update={"feedback": str(data.get("error") or "")})
    timing = RuntimeStats(
        runtime_ms=runtime if runtime > 0 else None,
        speedup=float(data["score"]["fast_p"]),
        baseline_ms=data.get("baseline_time_us"),
    )
    return Verdict(status=found.status, timing=timing)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def is_trace_folder(path: Path) -> bool:
    """Return whether a folder holds packed traces and no files of a run."""
    found = next(iter(sorted(path.glob("*.json"))), None)
    if found is None or found.name in {"environment.json", "origins.json"}:
        return False
    try:
        return isinstance(json.loads(regular_bytes(found)).get("steps"), list)
    except (AttributeError, OSError, RecursionError, ValueError):
        return False
