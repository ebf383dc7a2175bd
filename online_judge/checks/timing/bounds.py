"""Is a call too short to be possible with a cold L2 cache?"""

from collections.abc import Iterator
from typing import ClassVar

from adaexplore.core.wire import DtypeName, Tier
from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Severity
from online_judge.common.gpu_peaks import Peak

SLACK = 0.85  # boards run a few percent over their datasheet, overclocked memory more
L2_MULTIPLE = 4  # smaller outputs may largely stay in the cache


class CallWork(CheckFact):
    """Time and work of one call, on a GPU with known rates."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement.measured"

    gpu_ms: float
    peak: Peak
    output_bytes: int  # that every call must write, without views of inputs and elements of stride 0
    read_bytes: int = 0  # of inputs and weights
    flops: float = 0.0  # of the reference; a better algorithm may need fewer
    dtype: DtypeName = "fp32"
    tier: Tier = "legacy"
    is_trivial: bool = False  # whether a trivial answer, written once and kept, passes


BELOW_BANDWIDTH_BOUND = FlagKind(
    "below_bandwidth_bound",
    Severity.REJECT,
    "the time, the bytes of the outputs (over 4 times the L2 cache) and the least time to write them",
    "discard: no kernel can be that fast",
    of_measurement=True,
)
BELOW_SOFT_BOUND = FlagKind(
    "below_soft_bound",
    Severity.SUSPECT,
    "the time, and the least time to read inputs and weights or to compute the reference's operations; also "
    "a time below the bandwidth bound where trivial answers pass",
    "look for skipped work; a better algorithm is an honest reason",
    of_measurement=True,
)


def _find(fact: CallWork) -> Iterator[Found]:
    gpu_ms, peak = fact.gpu_ms, fact.peak
    memory = f"{peak.bytes_per_s / 1e12:.2f} TB/s ({peak.name})"
    # the last writes may still be in the cache when the clock stops
    written = max(0, fact.output_bytes - peak.l2_bytes)
    least_ms = written / peak.bytes_per_s * 1e3
    if fact.output_bytes > L2_MULTIPLE * peak.l2_bytes and gpu_ms < SLACK * least_ms:
        evidence = f"writing {fact.output_bytes / 1e6:.1f} MB takes at least {least_ms:.4f} ms at {memory}"
        kind = BELOW_SOFT_BOUND if fact.is_trivial else BELOW_BANDWIDTH_BOUND
        yield kind.found(f"{gpu_ms:.4f} ms, but {evidence}")
    moved_ms = (fact.read_bytes + written) / peak.bytes_per_s * 1e3
    precision, rate = peak.precision(fact.dtype, fact.tier)
    computed_ms = fact.flops / rate * 1e3
    if gpu_ms < SLACK * max(moved_ms, computed_ms):
        evidence = f"moving {(fact.read_bytes + written) / 1e6:.1f} MB takes {moved_ms:.4f} ms at {memory}"
        if moved_ms < computed_ms:
            arithmetic = f"{rate / 1e12:.0f} TFLOP/s ({precision} on {peak.name})"
            evidence = f"{fact.flops / 1e9:.1f} GFLOP take {computed_ms:.4f} ms at {arithmetic}"
        yield BELOW_SOFT_BOUND.found(f"{gpu_ms:.4f} ms, but {evidence}")


CHECK = Check((BELOW_BANDWIDTH_BOUND, BELOW_SOFT_BOUND), (CallWork,), _find)
