"""Common parts of jobs: use of the device, and what evaluation, sweep and profile do with a candidate."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial

import torch

from adaexplore.core.judging.status import Stage
from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import EvaluationRequest
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.dialogue import Dialogue
from online_judge.evaluator.leases import Hold, Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.timing.setup import memory_beyond_share
from online_judge.evaluator.trials import Trials
from online_judge.protocol.messages import Job, Whose
from online_judge.protocol.orders import Load
from online_judge.sandbox.process_spec import ProcessSpec

# memory of a job, in calls of the reference
CALLS_OF_TUNING = 2
CALLS_OF_CHECKS = 4  # in double precision two, as usual one, the candidate's one
CALLS_OF_TIMING = 2
_UNMEASURED = 0.4  # of the memory for calls, for a first call of unknown size
_CONTEXT_BYTES = 2**30  # two CUDA contexts
_FOR_CALLS = 0.6
"""Share of the GPU's memory for all jobs' calls; the rest is for inputs and outputs of timings and for idle
evaluators."""


class ReferenceJob:
    """One job on one reference."""

    def __init__(
        self,
        clock: Callable[[Whose, str], None],
        problem: Problem,
        job: Job,
        leases: Leases,
        stopwatch: Callable[[], Stopwatch],
    ) -> None:
        """``clock`` says whose time runs and at which stage, ``stopwatch`` gives this process's own."""
        assert isinstance(job.request, EvaluationRequest)
        self._clock = clock
        self._problem = problem
        self._job = job
        self._leases = leases
        self._stopwatch = stopwatch
        self._request = job.request
        self._job_name = job.name + text_digest(self._request.custom_model_src)[:16]
        self._reference = problem.reference
        self._cuda = self._reference.cuda

    def _name(self, trial: str | int) -> str:
        """Name of a call, which decides its hidden inputs and its seed."""
        return f"{self._job_name}:{trial}"

    def _race(self) -> tuple[str, random.Random]:
        """Name and random numbers of all timings of this job: times may depend on the inputs."""
        name = self._name("race")
        return name, random.Random(self._reference.seeds.of("race", name))

    def _timing_memory(self) -> AbstractContextManager[object]:
        """Hold memory for timing within the block; waiting for it is nobody's time."""
        self._clock("none", "")
        return self._leases.timing_memory()

    def _holding(self, *, exclusive: bool) -> AbstractContextManager[Hold]:
        """Hold the device within the block; waiting for it is nobody's time."""
        self._clock("none", "")
        return self._leases.hold(exclusive=exclusive)

    def _hold_if_alone(self, kept: ExitStack) -> AbstractContextManager[object]:
        """Hold the device within the block, and memory for timing in ``kept``, if the job is alone."""
        if not self._job.alone:
            return nullcontext()
        kept.enter_context(self._timing_memory())
        return self._leases.hold(exclusive=True)

    def _memory(self, calls: int, *, timed: bool = False) -> AbstractContextManager[object]:
        """Hold memory for so many calls, and for inputs and outputs of those ``timed``, within the block.

        Take it before the device.
        """
        if not self._cuda or self._job.alone:
            return nullcontext()
        self._clock("none", "")
        if not self._problem.call_bytes:
            with self._leases.memory(_UNMEASURED), self._holding(exclusive=False):
                self._clock("reference", Stage.FORWARD.value)
                self._problem.measure_memory()
            self._clock("none", "")
        total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        needed = calls * self._problem.call_bytes + self._problem.kept_bytes + _CONTEXT_BYTES
        timing = memory_beyond_share(self._problem.timed_bytes, total) if timed else 0.0
        return self._leases.memory(min((needed + timing) / (_FOR_CALLS * total), 1.0))

    def _compile_baseline(self) -> None:
        """Compile the baseline, which may take half a minute."""
        if self._reference.is_compiled(self._request.baseline):
            return
        with self._memory(CALLS_OF_TUNING), self._holding(exclusive=False):
            self._clock("reference", Stage.TIMING.value)
            self._reference.call(self._request.baseline)
            torch.cuda.empty_cache()  # compiling takes much more memory than calls


class CandidateJob(ReferenceJob):
    """One job on one candidate; free it when the candidate process is gone."""

    def __init__(
        self,
        dialogue: Dialogue,
        problem: Problem,
        job: Job,
        spec: ProcessSpec,
        leases: Leases,
        stopwatch: Callable[[], Stopwatch],
    ) -> None:
        """``spec`` is that of this process."""
        super().__init__(dialogue.clock, problem, job, leases, stopwatch)
        self._dialogue = dialogue
        self._spec = spec
        self._tolerance = self._reference.tolerance or self._request.tolerance
        self._kept = ExitStack()  # gives back what has to outlive the candidate process
        guard = partial(self._holding, exclusive=False)
        self._trials = Trials(dialogue, problem, self._tolerance, guard)

    def free(self) -> None:
        """Give back the memory shared with the candidate process, which must be gone."""
        self._trials.free()
        self._kept.close()

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
