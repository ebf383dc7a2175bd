"""A profile as the model gets to read it."""

from __future__ import annotations

from adaexplore.core.profile import KernelProfile, Profile

PROFILE_LIMIT = 1500
"""Most bytes of a profile."""

_NAME_LIMIT = 60


def profile_text(profile: Profile) -> str:
    """The call in one line, then its kernels by time, as many as fit into ``PROFILE_LIMIT`` bytes."""
    lines = [call_text(profile)]
    size = len(lines[0].encode())
    for kernel in profile.kernels:
        line = _kernel(kernel)
        size += len(line.encode()) + 1
        if size > PROFILE_LIMIT:
            break
        lines.append(line)
    return "\n".join(lines)


def call_text(profile: Profile) -> str:
    """Tell in one line what a call takes, what limits it and the least that it must do."""
    parts = [f"One call: {profile.gpu_us:.4g} us of GPU time, {profile.wall_us:.4g} us in all"]
    if profile.roofline is not None:
        parts.append(f"{profile.roofline:.0%} of what the GPU's peak allows")
    if profile.bound is not None:
        parts.append(f"bound by {profile.bound}")
    must = f"must move {profile.bytes / 1e6:.4g} MB"
    if profile.flops > 0:
        must += f" and compute {profile.flops / 1e9:.4g} GFLOP"
    return "; ".join([*parts, must])


def _kernel(kernel: KernelProfile) -> str:
    facts = [
        _fact(kernel.registers, "registers"),
        _fact(kernel.spills, "spilled"),
        _fact(kernel.shared_bytes, "B shared"),
        _fact(kernel.warps, "warps"),
        _fact(kernel.programs, "programs"),
        "" if kernel.occupancy is None else f"occupancy {kernel.occupancy:.0%}",
    ]
    told = ", ".join(fact for fact in facts if fact)
    name = " ".join(kernel.name.split())[:_NAME_LIMIT]
    whose = "" if kernel.own else " (library)"
    line = f"- {kernel.share:.0%}, {kernel.us:.4g} us, {kernel.calls}x {name}{whose}"
    return f"{line}: {told}" if told else line


def _fact(value: int | None, unit: str) -> str:
    return "" if value is None else f"{value} {unit}"
