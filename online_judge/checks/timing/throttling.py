"""Did the GPU lower its clocks while timing?"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Severity

_DROP = 0.9
_IDLE = 0x01
# bits of NVML's clocks event reasons that mean a slowdown; idle, application clocks and sync boost do not
_SLOWDOWNS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True)
class GpuState:
    sm_mhz: int  # clock of the multiprocessors
    memory_mhz: int  # clock of the memory
    temperature_c: int  # of the chip
    power_w: float  # drawn
    reasons: int  # NVML's bit mask of why the clocks are not higher
    processes: int  # compute processes on it, the judge's own included

    @property
    def slowdowns(self) -> tuple[str, ...]:
        return tuple(name for bit, name in _SLOWDOWNS.items() if self.reasons & bit)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "slowdowns": list(self.slowdowns)}


class GpuStates(CheckFact):
    """The GPU before and after a timing, while it was still busy; None if unreadable."""

    MEASURED_BY: ClassVar = "evaluator.timing.gpu_state.snapshot"

    before: GpuState | None
    after: GpuState | None


THROTTLED = FlagKind(
    "throttled",
    Severity.NOTE,
    "why the GPU lowered its clocks; clocks, temperature, power",
    "repeat the measurement on a cooler GPU",
    of_measurement=True,
)


def _find(fact: GpuStates) -> Iterator[Found]:
    before, after = fact.before, fact.after
    if after is None:
        return
    clocks = f"SM {after.sm_mhz} MHz, {after.temperature_c} C, {after.power_w:.0f} W"
    if after.slowdowns:
        yield THROTTLED.found(f"{', '.join(after.slowdowns)}: {clocks}")
        return
    if before is None or after.reasons & _IDLE or before.reasons & _IDLE:
        return
    if after.sm_mhz < _DROP * before.sm_mhz or after.memory_mhz < _DROP * before.memory_mhz:
        was = f"SM {before.sm_mhz} MHz, memory {before.memory_mhz} MHz"
        yield THROTTLED.found(f"from {was} to memory {after.memory_mhz} MHz, {clocks}")


CHECK = Check((THROTTLED,), (GpuStates,), _find)
