"""A profile as text for prompts."""

from __future__ import annotations

from adaexplore.core.judging.profile import KernelProfile, Profile

PROFILE_LIMIT = 1500
"""Maximum bytes of a profile."""
LOW_OCCUPANCY = 0.25
"""Below this occupancy a kernel can hardly hide memory latency."""

_NAME_LIMIT = 60


def profile_text(profile: Profile) -> str:
    """Return call and bottleneck, then the kernels by time, up to ``PROFILE_LIMIT`` bytes."""
    lines = [line for line in (call_text(profile), bottleneck_text(profile)) if line]
    size = len("\n".join(lines).encode())
    for kernel in profile.kernels:
        line = _kernel(kernel)
        size += len(line.encode()) + 1
        if size > PROFILE_LIMIT:
            break
        lines.append(line)
    return "\n".join(lines)


def call_text(profile: Profile) -> str:
    """Return in one line a call's time, its bound, and its minimum work."""
    parts = [f"One call: {profile.gpu_us:.4g} us of GPU time, {profile.wall_us:.4g} us in all"]
    if profile.roofline is not None:
        parts.append(f"{profile.roofline:.0%} of what the GPU's peak allows")
    if profile.bound is not None:
        parts.append(f"bound by {profile.bound}")
    must = f"must move {profile.bytes / 1e6:.4g} MB"
    if profile.flops > 0:
        must += f" and compute {profile.flops / 1e9:.4g} GFLOP"
    return "; ".join([*parts, must])


def bottleneck_text(profile: Profile) -> str:
    """Return the main bottleneck of a call with its figure; "" if none is clear."""
    longest = next(iter(profile.kernels), None)
    if profile.bound == "launch":
        return f"Bottleneck: the host; the GPU works in {profile.gpu_us / profile.wall_us:.0%} of a call"
    if longest is not None and longest.own:
        where = f"{_short(longest.name)}, {longest.share:.0%} of the GPU time"
        if longest.spills:
            return f"Bottleneck: {longest.spills} registers a thread are spilled in {where}"
        if longest.occupancy is not None and longest.occupancy < LOW_OCCUPANCY:
            return f"Bottleneck: occupancy of {longest.occupancy:.0%} in {where}"
    if profile.bound is None or profile.roofline is None:
        return ""
    what = "memory traffic" if profile.bound == "memory" else "arithmetic"
    return f"Bottleneck: {what}, at {profile.roofline:.0%} of what the peak allows"


def _short(name: str) -> str:
    return " ".join(name.split())[:_NAME_LIMIT]


def _kernel(kernel: KernelProfile) -> str:
    facts = [
        counted(kernel.registers, "registers"),
        counted(kernel.spills, "spilled"),
        counted(kernel.shared_bytes, "B shared"),
        counted(kernel.warps, "warps"),
        counted(kernel.programs, "programs"),
        "" if kernel.occupancy is None else f"occupancy {kernel.occupancy:.0%}",
    ]
    told = ", ".join(fact for fact in facts if fact)
    name = _short(kernel.name)
    whose = "" if kernel.own else " (library)"
    line = f"- {kernel.share:.0%}, {kernel.us:.4g} us, {kernel.calls}x {name}{whose}"
    return f"{line}: {told}" if told else line


def counted(value: int | None, unit: str) -> str:
    return "" if value is None else f"{value} {unit}"
