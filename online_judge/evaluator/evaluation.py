"""One candidate against one reference: correctness trials, integrity checks, timing."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch

from adaexplore.core.wire import EvaluationRequest, Tier
from online_judge.common import cuda_driver
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.correctness import comparison, oracles, repetition, variants
from online_judge.evaluator.correctness.draws import Draws
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone, Dialogue
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import NotEnoughMemory
from online_judge.evaluator.timing import gpu_state
from online_judge.evaluator.timing.interleaved import InterleavedTiming, Outcome
from online_judge.evaluator.timing.measurement import copy_extra_ms, is_slowed, measured
from online_judge.evaluator.timing.setup import TimingSetup
from online_judge.evaluator.trials import Called, Trials, WrongValues
from online_judge.protocol import precision
from online_judge.protocol.endings import BelowTier, Ending, Passed
from online_judge.protocol.findings import Stage
from online_judge.protocol.kernels import KernelShare, Launches
from online_judge.protocol.measurement import Timing
from online_judge.protocol.observations import (
    InputsChanged,
    LoadedWeightsUnused,
    LowerPrecision,
    Observation,
    OutputAliasesInput,
    OutputReused,
    ProcessChanges,
    TimedOutputLate,
    TimedOutputWrong,
    VariantFailed,
)
from online_judge.protocol.orders import Load, Observe
from online_judge.protocol.precision import Graded
from online_judge.protocol.result import EvaluationResult, ProblemFacts

_GRADED_TRIALS = 2
_CHECKS_AGAIN = 8


class Lock(Protocol):
    """Use of the device, see :class:`online_judge.evaluator.leases.Leases`."""

    def hold(self, *, exclusive: bool) -> AbstractContextManager[Hold]:
        """Hold the device for the length of the block."""

    def timing_memory(self) -> AbstractContextManager[object]:
        """Be the only one that has memory for timing; to be asked for before the device itself."""

    def stoppable(self) -> AbstractContextManager[object]:
        """Within the block exclusive users of the device stop the candidate."""

    def stopped(self) -> AbstractContextManager[object]:
        """Within the block the candidate is stopped."""


@dataclass(frozen=True)
class Terms:
    """How one candidate is evaluated.

    Attributes:
        request: how to judge.
        source: the candidate.
        build_dir: for CUDA extensions; None is the candidate process's own folder.
        recorded_ms: a recorded reference time to use instead of the measured one, if there is one.
        hardware: name of the device.
        visible_devices: the device, as ``CUDA_VISIBLE_DEVICES`` names it.
        timing_cores: of the CPU that the candidate is timed on; empty for any.
        alone: whether the device is held exclusively all the time.
        job: names this job's hidden inputs.
    """

    request: EvaluationRequest
    source: str
    build_dir: str | None
    recorded_ms: float | None
    hardware: str
    visible_devices: str
    alone: bool
    job: str
    timing_cores: tuple[int, ...] = ()


@dataclass
class _Found:
    """What is known so far."""

    passed: int = 0
    grades: list[Graded] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    problem: ProblemFacts | None = None
    launches: Launches = field(default_factory=lambda: Launches({}, 0, 0))
    passed_without_kernels: bool | None = None
    share: KernelShare | None = None
    last: Called | None = None


class Evaluation:
    """Evaluates one candidate; run it once, then free it when the candidate process is gone."""

    def __init__(
        self,
        dialogue: Dialogue,
        problem: Problem,
        terms: Terms,
        lock: Lock,
        stopwatch: Callable[[], Stopwatch],
    ) -> None:
        """Prepare.

        Args:
            dialogue: with the process that runs the candidate.
            problem: the reference and what is known of it.
            terms: of this evaluation.
            lock: the device's lock.
            stopwatch: gives the evaluator's own, on a GPU.
        """
        self._dialogue = dialogue
        self._problem = problem
        self._reference = problem.reference
        self._request = terms.request
        self._terms = terms
        self._lock = lock
        self._stopwatch = stopwatch
        self._cuda = self._reference.cuda
        guard = partial(self._holding, exclusive=False)
        self._trials = Trials(dialogue, problem, self._request.tolerance, guard)
        self._kept = ExitStack()
        self._setup: TimingSetup | None = None
        self._found = _Found()
        self._changed = self._folded = False

    def run(self) -> EvaluationResult:
        """Evaluate it.

        Raises:
            ReferenceFailed: the reference fails; says nothing about the candidate.
            NotEnoughMemory: there is too little memory, perhaps because others use the device too.
            CandidateGone: the candidate process died.
        """
        if self._terms.alone:
            self._dialogue.clock("none", "")
            self._kept.enter_context(self._lock.timing_memory())
            with self._lock.hold(exclusive=True):
                return self._run()
        return self._run()

    def _run(self) -> EvaluationResult:
        timed = self._cuda and self._request.measure_performance
        timing: Timing | None = None
        try:
            if timed:
                self._problem.measure_clean(self._request, self._lock, self._stopwatch, self._dialogue.clock)
            self._dialogue.clock("none", "")
            with self._lock.stoppable():
                self._load()
                if self._cuda:
                    self._trials.tune(f"{self._terms.job}:tuning")
            with self._holding(exclusive=False):
                self._check()
            self._require_tier()
            if timed:
                timing = self._measure()
            with self._holding(exclusive=False):
                self._try_without_kernels()
        except CandidateFailed as failed:
            return self._result(failed.ending)
        except (cuda_driver.DriverError, torch.OutOfMemoryError) as error:
            whose = "the GPU has" if self._cuda else "there is"
            reason = f"{whose} too little free memory for its inputs and outputs ({error})"
            raise NotEnoughMemory(reason) from error
        return self._result(Passed(), timing)

    def free(self) -> None:
        """Give back the memory shared with the candidate process, which must be gone."""
        self._trials.free()
        if self._setup is not None:
            self._setup.free()
            self._setup = None
        self._kept.close()

    def _load(self) -> None:
        source = self._terms.source.encode("utf-8", "surrogatepass")
        order = Load(source, self._request.tf32, self._terms.build_dir)
        self._dialogue.ask(Stage.LOAD, order)
        self._changed = self._trials.construct(load=True)

    def _check(self) -> None:
        """Every call but the timed ones; raises where the candidate is wrong, else takes notes."""
        self._dialogue.clock("reference", Stage.FORWARD.value)
        for trial in range(self._request.num_correct_trials):
            try:
                called = self._trial(trial)
            except CandidateFailed as failed:
                # A module may work its weights into another form while it is constructed, under
                # their old names: then the ones that it constructed itself are the right ones.
                if not (self._changed and trial == 0 and isinstance(failed, WrongValues)):
                    raise self._diagnosed(failed, trial) from failed
                self._trials.construct(load=False)
                self._folded = True
                self._found.observations.append(LoadedWeightsUnused())
                called = self._trial(trial)
            self._found.passed += 1
            self._found.grades += called.grades
            if called.changed is not None:
                self._found.observations.append(self._change(called, trial))
            if trial == 0:
                self._repeat(called)
            self._found.last = called = replace(called, outputs=())
        self._try_variants()
        self._dialogue.clock("reference", Stage.FORWARD.value)
        self._found.problem = self._problem.facts(self._request.tolerance)
        loose = self._problem.is_loose(self._request.tolerance)
        draws = Draws(self._trials, self._problem, self._terms.job, loose=loose, loads=not self._folded)
        self._found.observations += draws.run()
        self._observe()

    def _trial(self, trial: int) -> Called:
        name = f"{self._terms.job}:{trial}"
        graded = trial < _GRADED_TRIALS
        return self._trials.call(name, self._reference.inputs(name), graded=graded, kept=trial == 0)

    def _diagnosed(self, failed: CandidateFailed, trial: int) -> CandidateFailed:
        """The failure, or that equal calls differ."""
        if not isinstance(failed, WrongValues):
            return failed
        return repetition.diagnosed(self._trials, self._reference, f"{self._terms.job}:{trial}", failed)

    def _repeat(self, first: Called) -> None:
        """Make the first trial again: equal calls must agree."""
        name, found = f"{self._terms.job}:0", self._found
        seen, differing = repetition.repeat(self._trials, self._reference, name, first)
        if differing is not None:
            found.observations.append(differing)
        found.launches = Launches.from_claim(seen.get("launches"))
        if seen.get("aliases") is True and not self._reference.aliases:
            found.observations.append(OutputAliasesInput())
        if seen.get("reused") is True:
            found.observations.append(OutputReused())

    def _try_variants(self) -> None:
        """Inputs of other distributions."""
        assert self._found.last is not None
        original = self._found.last.expected.leaves
        for variant in variants.VARIANTS:
            self._dialogue.clock("reference", Stage.FORWARD.value)
            name = f"{self._terms.job}:{variant.name}"
            generator = torch.Generator().manual_seed(self._reference.seeds.of("variant", name))
            inputs = variant.apply(self._reference.inputs(name), generator)
            outputs = self._problem.outputs_if_finite(inputs, name)
            if outputs is None or not variants.usable(outputs.leaves, original):
                continue
            scale = variants.units(outputs.leaves, original)
            steady = partial(
                variants.steady,
                self._reference,
                oracles.copied(inputs),
                name,
                outputs.leaves,
                self._request.tolerance,
            )
            self._try_variant(variant.name, name, inputs, scale, steady)

    def _try_without_kernels(self) -> None:
        """Without the candidate's own kernels its outputs must be wrong; this call may end the candidate."""
        if not self._found.launches.total or self._found.launches.unseen:
            return
        self._dialogue.clock("reference", Stage.FORWARD.value)
        name = f"{self._terms.job}:ghost"  # part of the seed
        self._found.passed_without_kernels = True
        try:
            self._trials.call(name, self._reference.inputs(name), mode="skipping")
        except (CandidateFailed, CandidateGone):  # honest code may fail on what its kernels have not written
            self._found.passed_without_kernels = False

    def _try_variant(
        self,
        variant: variants.Name,
        name: str,
        inputs: list[Any],
        scale: tuple[float, ...],
        is_steady: Callable[[], bool],
    ) -> None:
        """A call whose failure is suspicious and no more; wrong values only if the reference is steady."""
        try:
            self._trials.call(name, inputs, scale=scale)
        except CandidateFailed as failed:
            if not failed.is_final:  # else it raised, and its candidate process has ended
                self._trials.free()
            if not isinstance(failed, WrongValues) or is_steady():
                self._found.observations.append(VariantFailed(variant=variant, ending=failed.ending))
            if failed.is_final:
                raise

    def _observe(self) -> None:
        """What the candidate did to its process."""
        seen = self._dialogue.ask(Stage.FORWARD, Observe())
        self._found.observations.append(ProcessChanges.from_claim(seen))

    def _change(self, called: Called, trial: int) -> InputsChanged:
        """Whether the reference gives another result for the changed inputs."""
        assert called.changed is not None
        name = f"{self._terms.job}:{trial}"
        after = self._problem.outputs_if_finite(called.changed, name)
        same = after is not None and all(
            comparison.equals(got, want, self._request.tolerance)
            for got, want in zip(after.leaves, called.expected.leaves, strict=True)
        )
        return InputsChanged(result_changes=not same)

    def _require_tier(self) -> None:
        """The precision that the request asks for, and that of the task."""
        reached = precision.worst(grade.tier for grade in self._found.grades)
        expected: Tier = "strict"
        if self._request.dtype_str == "fp32" and self._request.tf32 != "off":
            expected = "tf32"
        if not precision.meets(reached, expected):
            self._found.observations.append(LowerPrecision(reached=reached, expected=expected))
        if not precision.meets(reached, self._request.tier):
            grade = precision.least_precise(self._found.grades)
            raise CandidateFailed(BelowTier(grade=grade, needed=self._request.tier, tf32=self._request.tf32))

    def _measure(self) -> Timing:
        """Interleaved timing, with the device held alone."""
        assert self._found.last is not None
        expected = [
            torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
            for leaf in self._found.last.expected.leaves
        ]
        strides = self._found.last.strides
        self._found.last = None  # its memory is needed for the timing
        self._dialogue.clock("none", "")
        self._kept.enter_context(self._lock.timing_memory())
        stopwatch = self._stopwatch()
        name = f"{self._terms.job}:race"  # part of the seeds
        rng = random.Random(self._reference.seeds.of("race", name))
        with self._holding(exclusive=False):
            self._dialogue.clock("reference", Stage.TIMING.value)
            call = self._problem.timed_call(self._request.baseline)
            self._setup = TimingSetup(self._reference, name, call, stopwatch, expected, rng, shared=True)
            gpu_state.snapshot(self._terms.visible_devices)  # the first one takes longer
        trials, tolerance = self._request.num_perf_trials, self._request.tolerance
        cores = self._terms.timing_cores
        timing = InterleavedTiming(
            self._dialogue, self._problem, self._setup, name, rng, trials, tolerance, cores
        )
        with self._holding(exclusive=True) as hold:
            quiet = stopwatch.wait_for_quiet()
            before = gpu_state.snapshot(self._terms.visible_devices)
            outcome = timing.run()
            outcome.quiet = quiet
            outcome.alone_ms = self._alone_ms(outcome, stopwatch)
            after = gpu_state.snapshot(self._terms.visible_devices)
        with self._holding(exclusive=False):
            self._dialogue.clock("reference", Stage.TIMING.value)
            extra = copy_extra_ms(expected, strides, stopwatch)
            timing.audit(outcome)
            self._setup.pool.close()  # the profile needs space for its inputs
            if any(isinstance(each, TimedOutputWrong | TimedOutputLate) for each in outcome.observations):
                self._check_again()
            self._observe()
            self._found.share = self._profile()  # afterwards: CUPTI stays loaded and makes each launch slower
        return measured(
            outcome,
            hold,
            self._problem,
            self._request,
            recorded_ms=self._terms.recorded_ms,
            extra_ms=extra,
            states=(before, after),
            hardware=self._terms.hardware,
        )

    def _alone_ms(self, outcome: Outcome, stopwatch: Stopwatch) -> float | None:
        """The baseline's time without the candidate, where it was slower beside it than before."""
        assert self._setup is not None
        clean_ms = self._problem.clean_ms(self._request)
        if clean_ms is None or not is_slowed(outcome.reference.gpu_ms, clean_ms):
            return None
        self._dialogue.clock("reference", Stage.TIMING.value)
        with self._lock.stopped():
            return self._setup.alone_ms() if stopwatch.wait_for_quiet() else None

    def _check_again(self) -> None:
        """Raise where checked calls are wrong as well: then the kernel is wrong, and does not cheat."""
        for number in range(_CHECKS_AGAIN):
            name = f"{self._terms.job}:again:{number}"
            try:
                self._trials.call(name, self._reference.inputs(name))
            except WrongValues as wrong:
                raise repetition.diagnosed(self._trials, self._reference, name, wrong) from wrong

    def _profile(self) -> KernelShare | None:
        """Kernels and their times, as the candidate process reports them."""
        name = f"{self._terms.job}:profile"
        called = self._trials.call(name, self._reference.inputs(name), mode="profiled")
        return KernelShare.from_claim(called.answer.get("share"))

    def _result(self, ending: Ending, timing: Timing | None = None) -> EvaluationResult:
        found = self._found
        return EvaluationResult(
            ending=ending,
            trials_passed=found.passed,
            grades=tuple(found.grades),
            observations=tuple(found.observations),
            problem=found.problem,
            launches=found.launches,
            share=found.share,
            passed_without_kernels=found.passed_without_kernels,
            timing=timing,
        )

    def _holding(self, *, exclusive: bool) -> AbstractContextManager[Hold]:
        self._dialogue.clock("none", "")
        return self._lock.hold(exclusive=exclusive)
