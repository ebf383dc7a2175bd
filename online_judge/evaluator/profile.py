"""Profile a candidate: where a call's time goes, and the least that the problem needs."""

import dataclasses

import torch

from adaexplore.core.judging.profile import Bound, KernelProfile, Profile
from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.facts.endings import Passed
from online_judge.checks.facts.kernels import MAX_NAMED, KernelShare, KernelTime, Resources, plain_name
from online_judge.common import gpu_peaks
from online_judge.common.gpu_peaks import Peak
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.job import CandidateJob
from online_judge.evaluator.reference import enough_memory
from online_judge.protocol.orders import Inspect, Inspected
from online_judge.protocol.result import ProfileResult
from online_judge.protocol.shared_tensors import pack

_TRIAL = "profile"
_MAX_NAME = 80
_LAUNCH_BOUND = 1.3  # from this ratio of wall time to GPU time on, the host limits a call
_WARP = 32
_REGISTER_UNIT = 256  # registers are allocated to warps in portions of this size
_WARP_UNIT = 4  # and to this many warps at a time
_SHARED_UNIT = 128
_SYSTEM_SHARED = 1024  # bytes that the system reserves per thread block, since compute capability 8.0
# Thread blocks that a multiprocessor may hold, by compute capability; from the CUDA C++ Programming Guide,
# table "Technical Specifications per Compute Capability".
_BLOCKS = {(7, 0): 32, (8, 0): 32, (8, 9): 24, (9, 0): 32, (10, 0): 32, (12, 0): 24}
_FEWEST_BLOCKS = 16


class Profiling(CandidateJob):
    def run(self) -> ProfileResult:
        """Profile it.

        Raises:
            CandidateGone, ReferenceFailed: as :class:`Trials`, and NotEnoughMemory.
        """
        try:
            return ProfileResult(ending=Passed(), profile=self._run())
        except CandidateFailed as failed:
            return ProfileResult(ending=failed.ending)

    def _run(self) -> Profile | None:
        with enough_memory("a profile"):
            self._load()
            with self._holding(exclusive=False):
                self._clock("reference", Stage.TIMING.value)
                cost = self._problem.cost
                request = self._request.model_copy(update={"dtype_str": self._reference.arithmetic})
                shared, parcel = pack(self._reference.inputs(_TRIAL), cuda=True)
                self._kept.callback(shared.free)
                order = Inspect(parcel, self._reference.call_seed(_TRIAL))
                self._dialogue.ask(Stage.TIMING, order, [shared], tuning=True)  # this starts the profiler
            with self._holding(exclusive=True):
                claim = self._dialogue.ask(Stage.TIMING, order, [shared])
        self._clock("reference", Stage.TIMING.value)
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        return profile_of(claim, cost, self._job.hardware, device, request)


def profile_of(
    claim: Inspected, cost: Cost, hardware: str, device: object, request: EvaluationRequest
) -> Profile | None:
    """Compare a candidate process's claims about its calls with the least that the problem needs.

    ``device`` are ``torch.cuda.get_device_properties``.

    Raises:
        CandidateGone: the claim cannot be read.
    """
    listed = claim.get("shares")
    if not isinstance(listed, list):
        raise CandidateGone(Stage.TIMING, "it answered with a profile that cannot be")
    read = (KernelShare.from_claim(each) for each in listed)
    shares = sorted((each for each in read if each is not None), key=lambda each: each.total_ms)
    if not shares or shares[0].total_ms <= 0:
        return None
    share = shares[len(shares) // 2]
    gpu_us = share.total_ms * 1e3
    wall_ms = claim.get("wall_ms")
    wall_us = wall_ms * 1e3 if isinstance(wall_ms, float) and 0 < wall_ms < 1e9 else gpu_us
    resources = _resources(claim.get("resources"))
    roofline, bound = _limits(gpu_us, wall_us, cost, gpu_peaks.peak(hardware, device), request)
    kernels = tuple(
        _kernel(
            each, share.total_ms, resources.get(each.name) or resources.get(plain_name(each.name)), device
        )
        for each in share.kernels
    )
    return Profile(
        kernels=kernels,
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
    """Return the share of the roofline, and the limiting resource."""
    if peak is None:
        return None, None
    rate = peak.flops["half"]
    if request.dtype_str == "fp32":
        rate = peak.flops["fp32" if request.tf32 == "off" else "tf32"]
    moved_us = (cost.read_bytes + cost.output_bytes) / peak.bytes_per_s * 1e6
    computed_us = cost.flops / rate * 1e6
    roofline = min(max(moved_us, computed_us) / gpu_us, 1.0)
    if wall_us > _LAUNCH_BOUND * gpu_us:
        return roofline, "launch"
    return roofline, "compute" if computed_us > moved_us else "memory"


def _kernel(kernel: KernelTime, total_ms: float, found: Resources | None, device: object) -> KernelProfile:
    share = kernel.ms / total_ms
    name = kernel.name[:_MAX_NAME]
    if found is None:
        return KernelProfile(name, kernel.count, kernel.ms * 1e3, share)
    full = None
    if found.registers is not None and found.shared_bytes is not None and found.warps is not None:
        full = occupancy(found.registers, found.shared_bytes, found.warps, device)
    return KernelProfile(
        name, kernel.count, kernel.ms * 1e3, share, own=True, occupancy=full, **dataclasses.asdict(found)
    )


def _resources(claim: object) -> dict[str, Resources]:
    items = list(claim.items())[:MAX_NAMED] if isinstance(claim, dict) else []
    found = {str(name): Resources.from_claim(value) for name, value in items}
    return {name: value for name, value in found.items() if value is not None}


def occupancy(registers: int, shared_bytes: int, warps: int, properties: object) -> float | None:
    """Return resident warps as a share of a multiprocessor's maximum, whatever the size of the grid.

    The formula is that of NVIDIA's CUDA Occupancy Calculator: thread blocks are limited by their number, by
    warps, by registers (given to warps of 32 threads in portions of 256, to four warps at a time) and by
    shared memory (in portions of 128 bytes, and 1 KiB more a block since compute capability 8.0).

    Registers are those of a thread, bytes and warps those of a thread block. None if ``properties``, of
    ``torch.cuda.get_device_properties``, lack a needed value.
    """

    def value(name: str) -> int:
        return int(getattr(properties, name, 0) or 0)

    threads = value("max_threads_per_multi_processor")
    file = value("regs_per_multiprocessor")
    memory = value("shared_memory_per_multiprocessor")
    if warps <= 0 or not (threads and file and memory):
        return None
    capability = (value("major"), value("minor"))
    most_warps = threads // _WARP
    blocks = min(_BLOCKS.get(capability, _FEWEST_BLOCKS), most_warps // warps)
    if registers > 0:
        a_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        blocks = min(blocks, file // a_warp // _WARP_UNIT * _WARP_UNIT // warps)
    system = _SYSTEM_SHARED if capability >= (8, 0) else 0
    a_block = -(-shared_bytes // _SHARED_UNIT) * _SHARED_UNIT + system
    if a_block > 0:
        blocks = min(blocks, memory // a_block)
    return blocks * warps / most_warps
