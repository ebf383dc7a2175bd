"""A candidate's profile: where a call's time goes, beside what the problem needs at least."""

from __future__ import annotations

from typing import Any

import torch

from adaexplore.core.profile import Bound, KernelProfile, Profile
from adaexplore.core.wire import EvaluationRequest
from online_judge.common import cuda_driver, gpu_peaks
from online_judge.common.gpu_peaks import Peak
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.dialogue import CandidateGone, Dialogue
from online_judge.evaluator.evaluation import Lock, Terms
from online_judge.evaluator.occupancy import occupancy
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import NotEnoughMemory
from online_judge.evaluator.trials import Trials
from online_judge.protocol.findings import Stage
from online_judge.protocol.kernels import MAX_NAMED, KernelShare, KernelTime, Resources, plain_name
from online_judge.protocol.orders import Inspect, Load
from online_judge.protocol.shared_tensors import SharedTensors, pack

_TRIAL = "profile"
_MAX_NAME = 80
_LAUNCH_BOUND = 1.3  # wall time over GPU time from which the host is what limits a call


class Profiling:
    """Profiles one candidate; run it once, then free it when the candidate process is gone."""

    def __init__(self, dialogue: Dialogue, problem: Problem, terms: Terms, lock: Lock) -> None:
        """Prepare.

        Args:
            dialogue: with the process that runs the candidate.
            problem: the reference and what is known of it.
            terms: of the job.
            lock: the device's lock.
        """
        self._dialogue = dialogue
        self._problem = problem
        self._terms = terms
        self._lock = lock
        self._inputs: SharedTensors | None = None
        guard = _Shared(dialogue, lock)
        self._trials = Trials(dialogue, problem, terms.request.tolerance, guard)
        self._guard = guard

    def run(self) -> Profile | None:
        """Profile it; None where the profiler does not work or sees nothing.

        Raises:
            CandidateFailed, CandidateGone, ReferenceFailed: as :class:`Trials`.
            NotEnoughMemory: there is too little memory.
        """
        reference = self._problem.reference
        try:
            self._dialogue.clock("none", "")
            with self._lock.stoppable():
                source = self._terms.source.encode("utf-8", "surrogatepass")
                self._dialogue.ask(Stage.LOAD, Load(source, self._terms.request.tf32, self._terms.build_dir))
                self._trials.construct(load=True)
                self._trials.tune(f"{self._terms.job}:tuning")
            with self._guard():
                self._dialogue.clock("reference", Stage.TIMING.value)
                cost = self._problem.cost
                self._inputs, parcel = pack(reference.inputs(_TRIAL), cuda=True)
                order = Inspect(parcel, reference.call_seed(_TRIAL))
                self._dialogue.ask(Stage.TIMING, order, [self._inputs], tuning=True)  # starts the profiler
            self._dialogue.clock("none", "")
            with self._lock.hold(exclusive=True):
                claim = self._dialogue.ask(Stage.TIMING, order, [self._inputs])
        except (cuda_driver.DriverError, torch.OutOfMemoryError) as error:
            raise NotEnoughMemory(f"the GPU has too little free memory for a profile ({error})") from error
        self._dialogue.clock("reference", Stage.TIMING.value)
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        return profile_of(claim, cost, self._terms.hardware, device, self._terms.request)

    def free(self) -> None:
        """Give back the memory shared with the candidate process, which must be gone."""
        self._trials.free()
        if self._inputs is not None:
            self._inputs.free()
            self._inputs = None


class _Shared:
    """Holds the device, shared, for what is done on it; waiting for it is nobody's time."""

    def __init__(self, dialogue: Dialogue, lock: Lock) -> None:
        self._dialogue = dialogue
        self._lock = lock

    def __call__(self) -> Any:
        self._dialogue.clock("none", "")
        return self._lock.hold(exclusive=False)


def profile_of(
    claim: dict[str, Any], cost: Cost, hardware: str, device: Any, request: EvaluationRequest
) -> Profile | None:
    """What a candidate process tells of its calls, set against the least that the problem costs.

    Args:
        claim: ``shares`` (see :class:`KernelShare`) of several calls, ``resources`` by kernel, ``wall_ms``.
        cost: of a call.
        hardware: name of the GPU.
        device: its ``torch.cuda.get_device_properties``.
        request: for the precision.

    Raises:
        CandidateGone: the claim cannot be read.
    """
    listed = claim.get("shares")
    if not isinstance(listed, list):
        raise CandidateGone(Stage.TIMING, "it answered with a profile that cannot be")
    told = (KernelShare.from_claim(each) for each in listed)
    shares = sorted((each for each in told if each is not None), key=lambda each: each.total_ms)
    if not shares or shares[0].total_ms <= 0:
        return None
    share = shares[len(shares) // 2]
    wall_ms = claim.get("wall_ms")
    wall_us = wall_ms * 1e3 if isinstance(wall_ms, float) and 0 < wall_ms < 1e9 else share.total_ms * 1e3
    resources = _resources(claim.get("resources"))
    gpu_us = share.total_ms * 1e3
    roofline, bound = _limits(gpu_us, wall_us, cost, gpu_peaks.peak(hardware, device), request)
    return Profile(
        kernels=tuple(
            _kernel(
                kernel,
                share.total_ms,
                resources.get(kernel.name) or resources.get(plain_name(kernel.name)),
                device,
            )
            for kernel in share.kernels
        ),
        gpu_us=gpu_us,
        wall_us=wall_us,
        bytes=cost.read_bytes + cost.output_bytes,
        flops=cost.flops,
        roofline=roofline,
        bound=bound,
        hardware=hardware,
    )


def _limits(
    gpu_us: float, wall_us: float, cost: Cost, peak: Peak | None, request: EvaluationRequest
) -> tuple[float | None, Bound | None]:
    """Share of the roofline, and what limits a call."""
    if peak is None:
        return None, None
    moved_us = (cost.read_bytes + cost.output_bytes) / peak.bytes_per_s * 1e6
    computed_us = cost.flops / _rate(peak, request) * 1e6
    roofline = min(max(moved_us, computed_us) / gpu_us, 1.0)
    if wall_us > _LAUNCH_BOUND * gpu_us:
        return roofline, "launch"
    return roofline, "compute" if computed_us > moved_us else "memory"


def _rate(peak: Peak, request: EvaluationRequest) -> float:
    """Operations a second in the arithmetic that the request asks for."""
    if request.dtype_str != "fp32":
        return peak.flops["half"]
    return peak.flops["fp32" if request.tf32 == "off" else "tf32"]


def _kernel(kernel: KernelTime, total_ms: float, found: Resources | None, device: Any) -> KernelProfile:
    share = kernel.ms / total_ms
    name = kernel.name[:_MAX_NAME]
    if found is None:
        return KernelProfile(name, kernel.count, kernel.ms * 1e3, share)
    full = None
    if found.registers is not None and found.shared_bytes is not None and found.warps is not None:
        full = occupancy(found.registers, found.shared_bytes, found.warps, device)
    return KernelProfile(
        name=name,
        calls=kernel.count,
        us=kernel.ms * 1e3,
        share=share,
        own=True,
        registers=found.registers,
        spills=found.spills,
        shared_bytes=found.shared_bytes,
        warps=found.warps,
        programs=found.programs,
        occupancy=full,
    )


def _resources(claim: object) -> dict[str, Resources]:
    items = list(claim.items())[:MAX_NAMED] if isinstance(claim, dict) else []
    found = {str(name): Resources.from_claim(value) for name, value in items}
    return {name: value for name, value in found.items() if value is not None}
