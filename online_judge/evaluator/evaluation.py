"""One candidate against one reference: the checks, the race, the verdict."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch

from adaexplore.core.verdict import INTERPRETER, Status, Verdict
from adaexplore.core.wire import EvaluationRequest, Tier
from online_judge.candidate import background, kernel_share, patch_audit, switches
from online_judge.candidate.kernel_share import KernelShare
from online_judge.candidate.launches import Launches
from online_judge.common import cuda_driver
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.correctness import comparison, oracles, repetition, tiers, variants
from online_judge.evaluator.correctness.draws import Draws
from online_judge.evaluator.correctness.tiers import Graded
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone, Dialogue
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import NotEnoughMemory
from online_judge.evaluator.timing import gpu_state
from online_judge.evaluator.timing.interleaved import InterleavedTiming, Outcome
from online_judge.evaluator.timing.measurement import Measured, copy_extra_ms, is_slowed, measured
from online_judge.evaluator.timing.setup import TimingSetup
from online_judge.evaluator.trials import WRONG, Called, Trials, WrongValues
from online_judge.protocol.findings import Stage
from online_judge.protocol.orders import Load, Observe
from online_judge.verdict import feedback, flags, static_notes
from online_judge.verdict.flags import Flag, ProblemFlag, Severity

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
    """On what a match is held.

    Attributes:
        request: how to judge.
        source: the candidate.
        build_dir: for CUDA extensions; None is the candidate process's own folder.
        recorded_ms: a recorded reference time to use instead of the measured one, if there is one.
        facts: metadata that every verdict carries.
        folder: the candidate process's private folder, for scrubbing.
        visible_devices: the device, as ``CUDA_VISIBLE_DEVICES`` names it.
        timing_cores: of the CPU that the candidate is timed on; empty for any.
        alone: whether the device is held exclusively all the time.
        job: names this job's hidden inputs.
    """

    request: EvaluationRequest
    source: str
    build_dir: str | None
    recorded_ms: float | None
    facts: dict[str, Any]
    folder: str
    visible_devices: str
    alone: bool
    job: str
    timing_cores: tuple[int, ...] = ()


@dataclass
class _Found:
    """What is known so far."""

    passed: int = 0
    grades: list[Graded] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    problem_flags: list[ProblemFlag] = field(default_factory=list)
    last: Called | None = None


class Evaluation:
    """Evaluators one candidate; run it once, then free it when the candidate process is gone."""

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
            terms: of this match.
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
        self._trials = Trials(
            dialogue, problem, terms.folder, self._request.tolerance, partial(self._holding, exclusive=False)
        )
        self._kept = ExitStack()
        self._setup: TimingSetup | None = None
        self._found = _Found()
        self._changed = self._folded = False
        self._launches = Launches({}, 0, 0)
        self._passed_without_kernels: bool | None = None
        self._share: KernelShare | None = None

    def run(self) -> Verdict:
        """Judge.

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

    def _run(self) -> Verdict:
        trials = self._request.num_correct_trials
        found = self._found
        timed = self._cuda and self._request.measure_performance
        result: Measured | None = None
        try:
            found.flags += static_notes.notes(self._terms.source)
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
                result = self._measure()
            with self._holding(exclusive=False):
                self._try_without_kernels()
        except CandidateFailed as failed:
            count: dict[str, Any] = {}
            if failed.status in (*WRONG, Status.NONDETERMINISTIC) or found.passed:
                count = {"correctness_trials": f"({found.passed} / {trials})"}
            return Verdict(status=failed.status, metadata=self._facts() | count | failed.metadata)
        except (cuda_driver.DriverError, torch.OutOfMemoryError) as error:
            whose = "the GPU has" if self._cuda else "there is"
            reason = f"{whose} too little free memory for its inputs and outputs ({error})"
            raise NotEnoughMemory(reason) from error
        return self._verdict(result)

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
                # their old names: then the ones that it came to by itself are the right ones.
                if not (self._changed and trial == 0 and failed.status in WRONG):
                    raise self._diagnosed(failed, trial) from failed
                self._trials.construct(load=False)
                self._folded = True
                evidence = (
                    "weights loaded after construction are not used: loading them makes the output wrong"
                )
                self._found.flags.append(Flag("stale_weights", evidence))
                called = self._trial(trial)
            self._found.passed += 1
            self._found.grades += called.grades
            if called.changed is not None:
                self._found.flags.append(self._flag_of_change(called, trial))
            if trial == 0:
                self._repeat(called)
            self._found.last = called = replace(called, outputs=())
        self._try_variants()
        self._dialogue.clock("reference", Stage.FORWARD.value)
        self._found.problem_flags = self._problem.flags(self._request)
        loose = self._problem.is_loose(self._request.tolerance)
        draws = Draws(self._trials, self._problem, self._terms.job, loose=loose, loads=not self._folded)
        self._found.flags += draws.run()
        self._observe()

    def _trial(self, trial: int) -> Called:
        name = f"{self._terms.job}:{trial}"
        graded = trial < _GRADED_TRIALS
        return self._trials.call(name, self._reference.inputs(name), graded=graded, kept=trial == 0)

    def _diagnosed(self, failed: CandidateFailed, trial: int) -> CandidateFailed:
        """The failure, or ``nondeterministic`` where equal calls differ."""
        if not isinstance(failed, WrongValues):
            return failed
        return repetition.diagnosed(self._trials, self._reference, f"{self._terms.job}:{trial}", failed)

    def _repeat(self, first: Called) -> None:
        """Make the first trial again: equal calls must agree."""
        seen, flags_ = repetition.repeat(self._trials, self._reference, f"{self._terms.job}:0", first)
        self._found.flags += flags_
        self._launches = Launches.from_claim(seen.get("launches"))
        if seen.get("aliases") is True and not self._reference.aliases:
            self._found.flags.append(Flag("output_aliases_input", "an output lies in the memory of an input"))
        if seen.get("reused") is True:
            self._found.flags.append(Flag("output_reused", "two calls gave outputs in the same memory"))

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
            self._suspect(f"fails_{variant.name}_inputs", name, inputs, scale, steady)

    def _try_without_kernels(self) -> None:
        """Without the candidate's own kernels its outputs must be wrong; this call may end the candidate."""
        if not self._launches.total or self._launches.unseen:
            return
        self._dialogue.clock("reference", Stage.FORWARD.value)
        name = f"{self._terms.job}:ghost"
        self._passed_without_kernels = True
        try:
            self._trials.call(name, self._reference.inputs(name), mode="ghost")
        except (CandidateFailed, CandidateGone):  # honest code may fail on what its kernels have not written
            self._passed_without_kernels = False

    def _suspect(
        self,
        flag: str,
        name: str,
        inputs: list[Any],
        scale: tuple[float, ...] = (),
        tells: Callable[[], bool] = lambda: True,
    ) -> None:
        """A call whose failure is suspicious and no more; ``tells`` whether wrong values say something."""
        try:
            self._trials.call(name, inputs, scale=scale)
        except CandidateFailed as failed:
            if failed.failure is None:  # else it raised, and its candidate process has ended
                self._trials.free()
            if failed.status not in WRONG or tells():
                self._found.flags.append(Flag(flag, feedback.first_line(failed.metadata)))
            if failed.failure is not None:
                raise

    def _observe(self) -> None:
        """What the candidate did to its process."""
        seen = self._dialogue.ask(Stage.FORWARD, Observe())
        claims = (
            patch_audit.flag(seen.get("patched")),
            switches.flag(seen.get("global_flags")),
            background.flag(seen.get("background")),
        )
        self._found.flags += [flag for flag in claims if flag is not None]

    def _flag_of_change(self, called: Called, trial: int) -> Flag:
        """Changed inputs are grave where the reference makes something else of them."""
        assert called.changed is not None
        name = f"{self._terms.job}:{trial}"
        after = self._problem.outputs_if_finite(called.changed, name)
        same = after is not None and all(
            comparison.equals(got, want, self._request.tolerance)
            for got, want in zip(after.leaves, called.expected.leaves, strict=True)
        )
        if same:
            return Flag("inputs_written", "a call changed its inputs; the reference's result stays the same")
        return Flag("inputs_changed", "a call changed its inputs so that the reference's result differs")

    def _require_tier(self) -> None:
        """The precision that the request asks for, and that of the task."""
        reached = self._tier
        expected: Tier = "strict"
        if self._request.dtype_str == "fp32" and self._request.tf32 != "off":
            expected = "tf32"
        if not tiers.meets(reached, expected):
            self._found.flags.append(Flag("low_precision", f"reaches {reached}, the task's is {expected}"))
        if not tiers.meets(reached, self._request.tier):
            grade = tiers.least_precise(self._found.grades)
            told = feedback.of_tier(grade, self._request.tier, self._request.tf32)
            raise CandidateFailed(Status.WRONG_VALUE, told)

    @property
    def _tier(self) -> Tier:
        return tiers.worst(grade.tier for grade in self._found.grades)

    def _measure(self) -> Measured:
        """The race, with the device held alone."""
        assert self._found.last is not None
        expected = [
            torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
            for leaf in self._found.last.expected.leaves
        ]
        strides = self._found.last.strides
        self._found.last = None  # its memory is the race's now
        self._dialogue.clock("none", "")
        self._kept.enter_context(self._lock.timing_memory())
        stopwatch = self._stopwatch()
        name = f"{self._terms.job}:race"
        rng = random.Random(self._reference.seeds.of("race", name))
        with self._holding(exclusive=False):
            self._dialogue.clock("reference", Stage.TIMING.value)
            call = self._problem.timed_call(self._request.baseline)
            self._setup = TimingSetup(self._problem, name, call, stopwatch, expected, rng, shared=True)
            gpu_state.snapshot(self._terms.visible_devices)  # the first one takes longer
        trials, tolerance = self._request.num_perf_trials, self._request.tolerance
        cores = self._terms.timing_cores
        race = InterleavedTiming(
            self._dialogue, self._problem, self._setup, name, rng, trials, tolerance, cores
        )
        with self._holding(exclusive=True) as hold:
            quiet = stopwatch.wait_for_quiet()
            before = gpu_state.snapshot(self._terms.visible_devices)
            outcome = race.run()
            outcome.quiet = quiet
            outcome.alone_ms = self._alone_ms(outcome, stopwatch)
            after = gpu_state.snapshot(self._terms.visible_devices)
        with self._holding(exclusive=False):
            self._dialogue.clock("reference", Stage.TIMING.value)
            extra = copy_extra_ms(expected, strides, stopwatch)
            race.audit(outcome)
            self._setup.pool.close()  # the profile needs space for its inputs
            if any(flag.id == "timed_output_wrong" for flag in outcome.flags):
                self._check_again()
            self._observe()
            self._share = self._profile()  # afterwards: CUPTI stays loaded and makes each launch slower
        return measured(
            outcome,
            hold,
            self._problem,
            self._request,
            recorded_ms=self._terms.recorded_ms,
            extra_ms=extra,
            share=self._share,
            states=(before, after),
            facts=self._terms.facts,
        )

    def _alone_ms(self, outcome: Outcome, stopwatch: Stopwatch) -> float | None:
        """The baseline's time without the candidate, where it was slower in the race than before it."""
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
        """Kernels and their times, as the candidate process tells them."""
        name = f"{self._terms.job}:profile"
        called = self._trials.call(name, self._reference.inputs(name), mode="profiled")
        return KernelShare.from_claim(called.answer.get("share"))

    def _verdict(self, result: Measured | None) -> Verdict:
        found = self._found
        runtime_ms, stats = None, {}
        if result is not None:
            found.flags += [self._softened(flag) for flag in result.flags]
            runtime_ms, stats = result.runtime_ms, result.stats
        elif not self._cuda:
            stats = {"fast_p": 1.0, "timing": INTERPRETER}
        if self._request.backend == "triton":
            known = self._has_problem_flag("degenerate_problem", "constant_inputs")
            ghost = None if known else self._passed_without_kernels
            found.flags += kernel_share.flags(self._launches, self._share, passed_without_kernels=ghost)
        metadata = self._facts()
        metadata["correctness_trials"] = f"({found.passed} / {self._request.num_correct_trials})"
        rejects = [flag for flag in flags.merged(found.flags) if flag.severity is Severity.REJECT]
        if not rejects:
            return Verdict(
                status=Status.PASSED, metadata=metadata, runtime_ms=runtime_ms, runtime_stats=stats
            )
        return Verdict(status=Status.INTEGRITY, metadata=metadata | feedback.of_integrity(rejects))

    def _softened(self, flag: Flag) -> Flag:
        """A bound is no proof where a trivial answer, written once and kept, passes."""
        if flag.id == "below_bandwidth_bound" and self._has_problem_flag("degenerate_problem"):
            return Flag("below_soft_bound", flag.evidence)
        return flag

    def _has_problem_flag(self, *ids: str) -> bool:
        return any(flag.id in ids for flag in self._found.problem_flags)

    def _facts(self) -> dict[str, Any]:
        found = dict(self._terms.facts)
        if self._found.grades:
            found["tier"] = self._tier
            found["precision"] = tiers.least_precise(self._found.grades).to_json()
        return found | flags.metadata(self._found.flags) | flags.problem_metadata(self._found.problem_flags)

    def _holding(self, *, exclusive: bool) -> AbstractContextManager[Hold]:
        self._dialogue.clock("none", "")
        return self._lock.hold(exclusive=exclusive)
