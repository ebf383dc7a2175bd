"""Common parts of evaluation, sweep and profile of one candidate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import EvaluationRequest
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.dialogue import Dialogue
from online_judge.evaluator.leases import Hold, Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.trials import Trials
from online_judge.protocol.findings import Stage
from online_judge.protocol.messages import Job
from online_judge.protocol.orders import Load
from online_judge.sandbox.process_spec import ProcessSpec


@dataclass(eq=False)
class CandidateJob:
    """One job on one candidate; free it when the candidate process is gone."""

    _dialogue: Dialogue
    _problem: Problem
    _job: Job
    _spec: ProcessSpec  # of this process
    _leases: Leases
    _stopwatch: Callable[[], Stopwatch]  # gives this process's own, on a GPU

    def __post_init__(self) -> None:
        assert isinstance(self._job.request, EvaluationRequest)
        self._request = self._job.request
        self._job_name = self._job.name + text_digest(self._request.custom_model_src)[:16]
        self._reference = self._problem.reference
        self._cuda = self._reference.cuda
        self._tolerance = self._reference.tolerance or self._request.tolerance
        self._kept = ExitStack()  # gives back what has to outlive the candidate process
        guard = partial(self._holding, exclusive=False)
        self._trials = Trials(self._dialogue, self._problem, self._tolerance, guard)

    def free(self) -> None:
        """Give back the memory shared with the candidate process, which must be gone."""
        self._trials.free()
        self._kept.close()

    def _name(self, trial: str | int) -> str:
        """Name of a call, which decides its hidden inputs and its seed."""
        return f"{self._job_name}:{trial}"

    def _holding(self, *, exclusive: bool) -> AbstractContextManager[Hold]:
        """Hold the device within the block; waiting for it is nobody's time."""
        self._dialogue.clock("none", "")
        return self._leases.hold(exclusive=exclusive)

    def _load(self) -> bool:
        """Have the candidate loaded, constructed and tuned; True if loading the weights changed its own."""
        with self._holding(exclusive=False):
            source = self._request.custom_model_src.encode("utf-8", "surrogatepass")
            default_dtype = self._reference.default_dtype
            order = Load(source, self._request.tf32, default_dtype, self._job.build_dir)
            self._dialogue.ask(Stage.LOAD, order)
            changed = self._trials.construct(load=True)
            if self._cuda:
                self._trials.tune(self._name("tuning"))
        return changed
