"""Evaluate one candidate against one reference: correctness trials, integrity checks, timing."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import Tier
from online_judge.checks.behaviour.process_changes import ProcessChanges
from online_judge.checks.check import Observation
from online_judge.checks.correctness.changed_inputs import InputsChanged
from online_judge.checks.correctness.low_precision import LowerPrecision
from online_judge.checks.correctness.other_inputs import VariantFailed
from online_judge.checks.correctness.output_memory import OutputAliasesInput, OutputReused
from online_judge.checks.correctness.stale_weights import LoadedWeightsUnused
from online_judge.checks.facts import precision
from online_judge.checks.facts.endings import BelowTier, Ending, Passed
from online_judge.checks.facts.kernels import KernelShare, Launches
from online_judge.checks.facts.precision import Graded
from online_judge.checks.problem import ProblemFacts
from online_judge.checks.timing.timed_outputs import TimedOutputLate, TimedOutputWrong
from online_judge.common.modules import is_half
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.correctness import repetition, variants
from online_judge.evaluator.correctness.draws import Draws
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.job import CALLS_OF_CHECKS, CALLS_OF_TIMING, CALLS_OF_TUNING, CandidateJob
from online_judge.evaluator.reference import ReferenceFailed, enough_memory
from online_judge.evaluator.timing import gpu_state
from online_judge.evaluator.timing.interleaved import InterleavedTiming, Outcome
from online_judge.evaluator.timing.measurement import copy_extra_ms, is_slowed, measured
from online_judge.evaluator.timing.setup import TimingSetup, without_data
from online_judge.evaluator.trials import Called, Strides, WrongValues
from online_judge.protocol.measurement import Timing
from online_judge.protocol.orders import Observe
from online_judge.protocol.result import EvaluationResult

GRADED_TRIALS = 2
_CHECKS_AGAIN = 8
_TIMES_ALONE = 3
_SHAPES_VARY = (
    "shapes of outputs depend on the values of inputs: candidates can be checked, but not timed (send"
    " measure_performance: false)"
)


class Evaluation(CandidateJob):
    """Evaluates one candidate; its findings are complete when :meth:`run` returns."""

    _passed = 0
    _facts: ProblemFacts | None = None
    _launches = Launches({}, 0, 0)
    _share: KernelShare | None = None
    _passed_without_kernels: bool | None = None

    def run(self) -> EvaluationResult:
        """Evaluate it.

        Raises:
            ReferenceFailed, NotEnoughMemory: the reference fails; this says nothing about the candidate.
            CandidateGone: the candidate process died.
        """
        self._grades: list[Graded] = []
        self._observations: list[Observation] = []
        timing: Timing | None = None
        ending: Ending = Passed()
        with self._hold_if_alone(self._kept):
            try:
                with enough_memory("its inputs and outputs", cuda=self._cuda):
                    timing = self._run()
            except CandidateFailed as failed:
                ending = failed.ending
        return EvaluationResult(
            ending=ending,
            trials_passed=self._passed,
            grades=tuple(self._grades),
            observations=tuple(self._observations),
            problem=self._facts,
            launches=self._launches,
            share=self._share,
            passed_without_kernels=self._passed_without_kernels,
            timing=timing,
            tolerance=self._reference.tolerance,
        )

    def _run(self) -> Timing | None:
        timed = self._cuda and self._request.measure_performance
        if timed:
            self._compile_baseline()
        with self._memory(CALLS_OF_TUNING):
            changed = self._load()
        with self._memory(CALLS_OF_CHECKS), self._holding(exclusive=False):
            self._trials.use_reference_time()
            self._problem.mask_unwritten()
            last = self._check(changed)
            self._require_tier(last.expected.leaves)
            expected, strides = without_data(last.expected.leaves), last.strides
            del last  # others need its memory while this job waits for its timing
            if self._cuda:
                torch.cuda.empty_cache()
        if timed and self._reference.shapes_vary:
            raise ReferenceFailed(_SHAPES_VARY)
        # beside a compiled baseline the eager reference is called too
        calls = CALLS_OF_TIMING + (timed and self._request.baseline != "eager")
        self._kept.enter_context(self._memory(calls, timed=timed))
        timing = self._measure(expected, strides) if timed else None
        with self._holding(exclusive=False):
            self._try_without_kernels()
        return timing

    def _check(self, changed: bool) -> Called:
        """Make all calls but the timed ones; raise if the candidate is wrong, else record observations.

        ``changed`` says whether loading the weights changed those that the candidate constructed.
        """
        self._clock("reference", Stage.FORWARD.value)
        loads = True
        for trial in range(self._request.num_correct_trials):
            try:
                called = self._trial(trial)
            except WrongValues as wrong:
                # A constructor may transform weights and keep their names; then only the weights that the
                # candidate constructed itself are right.
                if not changed or trial > 0:
                    raise repetition.diagnosed(self._trials, self._name(trial), wrong) from wrong
                self._trials.construct(load=False)
                loads = False
                self._observations.append(LoadedWeightsUnused())
                called = self._trial(trial)
            self._passed += 1
            self._grades += called.grades
            if called.changed is not None:
                self._observations.append(self._change(called, trial))
            if trial == 0:
                self._repeat(called)
            called = replace(called, outputs=())
        self._try_variants(called)
        self._clock("reference", Stage.FORWARD.value)
        self._facts = self._problem.facts(self._tolerance)
        loose = self._problem.is_loose(self._tolerance)
        draws = Draws(self._trials, self._problem, self._job_name, loose=loose, loads=loads)
        self._observations += draws.run()
        self._observe()
        return called

    def _trial(self, trial: int) -> Called:
        return self._trials.call(self._name(trial), graded=trial < GRADED_TRIALS, kept=trial == 0)

    def _repeat(self, first: Called) -> None:
        seen, differing = repetition.repeat(self._trials, self._name(0), first)
        if differing is not None:
            self._observations.append(differing)
        self._launches = seen.launches
        if seen.aliases and not self._reference.aliases:
            self._observations.append(OutputAliasesInput())
        if seen.reused and not self._reference.returns_state:
            self._observations.append(OutputReused())

    def _try_variants(self, usual: Called) -> None:
        """Call it on inputs of other distributions, where a failure is suspicious and nothing more.

        Wrong values count only if the reference is steady there. After an exception the process has exited,
        so the evaluation ends.
        """
        for variant in variants.VARIANTS:
            self._try_variant(variant, usual.expected.leaves)

    def _try_variant(self, variant: variants.Variant, original: Sequence[torch.Tensor]) -> None:
        self._clock("reference", Stage.FORWARD.value)
        name = self._name(variant.name)
        generator = torch.Generator().manual_seed(self._reference.seeds.of("variant", name))
        inputs = variant.apply(self._reference.inputs(name), generator)
        expected = self._problem.outputs_if_finite(inputs, name)
        if expected is None or not variants.usable(expected.leaves, original):
            return
        scale = variants.units(expected.leaves, original)
        try:
            self._trials.call(name, inputs, scale=scale, expected=expected)
        except CandidateFailed as failed:
            if not failed.is_final:  # else it raised, and its candidate process has ended
                self._trials.put_back()
            if not isinstance(failed, WrongValues) or self._problem.is_steady(
                inputs, name, expected, self._tolerance
            ):
                self._observations.append(VariantFailed(variant=variant.name, ending=failed.ending))
            if failed.is_final:
                raise

    def _try_without_kernels(self) -> None:
        """Call it without its own kernels: outputs must be wrong. This may end the candidate process."""
        if not self._launches.total or self._launches.unseen:
            return
        self._passed_without_kernels = True
        try:
            self._trials.call(self._name("ghost"), mode="skipping")  # the name is part of the seed
        except (CandidateFailed, CandidateGone):  # honest code may fail on unwritten memory
            self._passed_without_kernels = False

    def _observe(self) -> None:
        seen = self._dialogue.ask(Stage.FORWARD, Observe())
        self._observations.append(ProcessChanges.from_claim(seen))

    def _change(self, called: Called, trial: int) -> InputsChanged:
        """Run the reference on the changed inputs and report whether its result differs."""
        assert called.changed is not None
        after = self._problem.outputs_if_finite(called.changed, self._name(trial))
        same = after is not None and self._problem.agree(after, called.expected, self._tolerance)
        return InputsChanged(result_changes=not same)

    def _require_tier(self, outputs: Sequence[torch.Tensor]) -> None:
        if self._reference.tolerance is not None:
            return
        needed = self._request.tier
        if self._request.dtype_str == "native" and any(is_half(leaf.dtype) for leaf in outputs):
            needed = precision.worst([needed, "half"])
        reached = precision.worst(grade.tier for grade in self._grades)
        expected: Tier = "strict"
        if self._reference.arithmetic == "fp32" and self._request.tf32 != "off":
            expected = "tf32"
        if not precision.meets(reached, expected):
            self._observations.append(LowerPrecision(reached=reached, expected=expected))
        if not precision.meets(reached, needed):
            grade = precision.least_precise(self._grades)
            raise CandidateFailed(BelowTier(grade=grade, needed=needed, tf32=self._request.tf32))

    def _measure(self, expected: list[torch.Tensor], strides: Strides) -> Timing:
        """Time it interleaved with the reference while the device is held exclusively.

        ``expected`` are outputs without data, ``strides`` those of the candidate's outputs.
        """
        self._kept.enter_context(self._timing_memory())
        device = self._spec.visible_devices
        name, rng = self._race()
        with self._holding(exclusive=False):
            self._clock("reference", Stage.TIMING.value)
            stopwatch = self._stopwatch()
            unwritten = self._problem.unwritten()
            _ = self._reference.stochastic  # found out now, not while the device is held exclusively
            call = self._reference.call(self._request.baseline)
            # a candidate that slows the reference's warm-up must not change how both are timed
            fastest_ms = math.inf if self._job.clean_ms is None else self._job.clean_ms.wall
            setup = TimingSetup(
                self._reference, name, call, stopwatch, expected, rng, shared=True, fastest_ms=fastest_ms
            )
            self._kept.callback(setup.free)
            gpu_state.snapshot(device)  # the first one takes longer
        trials = self._request.num_perf_trials
        cores = tuple(self._spec.timing_cores)
        best = self._request.best_so_far if self._job.recorded_ms is None else None
        for drawn in (False, True):
            timing = InterleavedTiming(
                self._dialogue, setup, rng, trials, self._tolerance, cores, best or 0.0, unwritten
            )
            with self._holding(exclusive=True) as hold:
                before = gpu_state.snapshot(device)
                outcome = timing.run()
                outcome.quiet = hold.quiet and (not outcome.candidate.graph or stopwatch.wait_for_quiet())
                outcome.alone_ms = self._alone_ms(setup, outcome, stopwatch)
                after = gpu_state.snapshot(device)
            with self._holding(exclusive=False):
                self._clock("reference", Stage.TIMING.value)
                timing.audit(outcome)
                if not drawn and self._needs_draws(outcome, setup) and setup.draw_anew():
                    continue
                extra = copy_extra_ms(expected, strides, stopwatch)
                setup.close()  # the profile needs space for its inputs and outputs
                self._observe()
                # after the timing: CUPTI stays loaded and slows each launch
                self._share = self._trials.call(self._name("profile"), mode="profiled").share
                break
        return measured(
            outcome,
            hold,
            self._problem,
            self._request,
            recorded_ms=self._job.recorded_ms,
            clean=self._job.clean_ms,
            extra_ms=extra,
            states=(before, after),
            hardware=self._job.hardware,
        )

    def _needs_draws(self, outcome: Outcome, setup: TimingSetup) -> bool:
        """Return True if timed outputs are wrong because mixed contents lack a structure, such as symmetry.

        Then outputs of a checked call on such contents are wrong too; else only timed calls are, a cheat.
        """
        wrong = {type(each) for each in outcome.observations}
        if not wrong & {TimedOutputWrong, TimedOutputLate}:
            return False
        self._check_again()
        if TimedOutputLate in wrong or setup.pool.redraws:
            return False
        try:
            self._trials.call(self._name("mixed"), setup.pool.copy_of(0))
        except WrongValues as failed:
            self._trials.put_back()
            self._observations.append(VariantFailed(variant="mixed", ending=failed.ending))
            return True
        return False

    def _alone_ms(self, setup: TimingSetup, outcome: Outcome, stopwatch: Stopwatch) -> float | None:
        """Time the baseline without the candidate if it was slower beside it than before, else return None.

        The host may be slow for a while, so a time that is still slow is measured again.
        """
        if self._job.clean_ms is None:
            return None
        clean_ms = self._job.clean_ms.after(outcome.flushes)
        if not is_slowed(outcome.reference.gpu_ms, clean_ms):
            return None
        self._clock("reference", Stage.TIMING.value)
        alone_ms = math.inf
        with self._leases.stopped():
            if not stopwatch.wait_for_quiet():
                return None
            for _ in range(_TIMES_ALONE):
                alone_ms = min(alone_ms, setup.alone_ms(outcome.flushes))
                if not is_slowed(alone_ms, clean_ms):
                    break
        return alone_ms

    def _check_again(self) -> None:
        """Raise if checked calls are wrong too: then the kernel is wrong and does not cheat."""
        for number in range(_CHECKS_AGAIN):
            name = self._name(f"again:{number}")
            try:
                self._trials.call(name)
            except WrongValues as wrong:
                raise repetition.diagnosed(self._trials, name, wrong) from wrong
