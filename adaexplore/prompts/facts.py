"""Facts about judge, GPU and reference in prompts; a missing fact has no line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adaexplore.core.environment import (
    CheckRules,
    DeviceFacts,
    Environment,
    FactName,
    PrecisionTest,
    ReferenceFacts,
    TimingRules,
    TritonFacts,
)
from adaexplore.core.task import Task
from adaexplore.core.wire import TensorFacts, Tier
from adaexplore.prompts.blocks import JudgeFacts, gradients_sentences, hardware_values, wanted_accuracy
from adaexplore.prompts.profile import counted, profile_text
from adaexplore.prompts.render import render

_MOST_TENSORS = 12
_WORKLOADS = re.compile(r"^def get_workloads\b", re.MULTILINE)
_TOLERANCE = re.compile(r"^TOLERANCE\b", re.MULTILINE)
_PRECISIONS = {"fp64": "fp64", "fp32": "fp32", "tf32": "TF32", "half": "half precision", "fp8": "fp8"}
_VERSIONS = {"torch": "PyTorch", "triton": "Triton", "cuda": "CUDA"}


def measured_block(facts: JudgeFacts) -> str:
    """Return the facts of the whole run: hardware, correctness checks, timing."""
    found = facts.environment or Environment(hardware=facts.gpu_name)
    device = next((each for each in found.devices[:1] if facts.gpu_name in each.name), None)

    def stated(name: FactName, line: str) -> str:
        return "" if name in facts.omitted else line

    lines = [
        stated("peaks", _peaks(device)),
        stated("versions", _versions(found)),
        stated("language", _language(found.triton)),
        stated("measurement", _calls(found.checks, facts)),
        stated("measurement", _timing(found.timing)),
        stated("sweep", _sweep(found.checks) if facts.tunes else ""),
    ]
    wanted = wanted_accuracy(facts)
    accuracy = f" {render('precision', wanted=wanted)}" if wanted else ""
    return render(
        "measured",
        **hardware_values(facts),
        hardware=stated("hardware", _hardware(device)),
        tolerance=f"{facts.tolerance:g}",
        trials=facts.trials,
        accuracy=accuracy
        + stated("precision", _precision(found.precision, facts.tier) if wanted else "")
        + gradients_sentences(facts),
        facts="\n".join(f"- {line}" for line in lines if line),
    ).rstrip()


def reference_block(facts: JudgeFacts, task: Task, found: ReferenceFacts | None) -> str:
    """Return the facts of this task, with the judge's facts about the reference, or ""."""
    lines = _inputs(facts, task)
    own_tolerance = _TOLERANCE.search(task.reference) is not None
    if own_tolerance:
        lines.append(render("fact_tolerance"))
    if found is not None and "reference" not in facts.omitted:
        lines += _tensors(found.tensors)
        limits = found.limits.get(facts.tier)
        if limits is not None and "precision" not in facts.omitted and not own_tolerance:
            told = render("fact_limits", rms=f"{limits.rms:.3g}", peak=f"{limits.peak:.3g}")
            lines.append(facts.measured(told))
        if found.profile is not None:
            lines.append(facts.measured(profile_text(found.profile)))
    return render("reference", facts="\n".join(lines)) + "\n\n" if lines else ""


def _inputs(facts: JudgeFacts, task: Task) -> list[str]:
    checks = None if facts.environment is None else facts.environment.checks
    if checks is None or checks.inputs != "get_inputs" or "measurement" in facts.omitted:
        return []
    if task.hidden_workloads is not None:
        return [render("fact_inputs_hidden")]
    return [render("fact_inputs_several" if _WORKLOADS.search(task.reference) else "fact_inputs")]


def _hardware(device: DeviceFacts | None) -> str:
    if device is None:
        return ""
    parts = [
        f"compute capability {device.capability}",
        counted(device.multiprocessors, "SMs"),
        _sized(device.shared_bytes_per_block, "KiB", "shared memory for one program"),
        counted(device.registers_per_multiprocessor, "registers an SM"),
        counted(device.threads_per_multiprocessor, "threads an SM"),
        _sized(device.l2_bytes, "MiB", "L2 cache"),
        _sized(device.memory_bytes, "GiB", "memory"),
    ]
    return f": {_joined(parts)}"


def _peaks(device: DeviceFacts | None) -> str:
    if device is None:
        return ""
    moved = "" if device.bytes_per_s is None else f"{device.bytes_per_s / 1e12:.4g} TB/s of memory"
    rates = _joined(f"{rate / 1e12:.4g} {_PRECISIONS.get(kind, kind)}" for kind, rate in device.flops.items())
    peaks = _joined([moved, f"TFLOP/s: {rates}" if rates else ""], "; ")
    return f"Peaks: {peaks}" if peaks else ""


def _versions(found: Environment) -> str:
    return _joined(
        f"{name} {found.versions[key]}" for key, name in _VERSIONS.items() if key in found.versions
    )


def _language(triton: TritonFacts | None) -> str:
    if triton is None:
        return ""
    options = ", ".join(f"`{name}`" for name in triton.range_options)
    descriptors = " and ".join(f"`{name}`" for name in triton.descriptors)
    gone = ", ".join(f"`{name.replace('triton.language', 'tl')}`" for name in triton.gone)
    return _joined(
        [
            f"`tl.range` takes {options}" if options else "",
            triton.range_note.rstrip("."),
            f"Tensor descriptors: {descriptors}" if descriptors else "",
            f"No longer in this Triton: {gone}" if gone else "",
        ],
        ". ",
    )


def _calls(checks: CheckRules | None, facts: JudgeFacts) -> str:
    if checks is None:
        return ""
    flags = checks.flags.get(facts.tf32)
    products = ""
    if flags is not None:
        products = f"PyTorch's float32 products have `allow_tf32` {'on' if flags.allow_tf32 else 'off'}"
        products += f", and `tl.dot` has `input_precision` {flags.dot!r} by default" if flags.dot else ""
    return _joined(
        [
            f"Calls: autograd is {'on' if checks.gradients or facts.direction != 'forward' else 'off'}",
            "modules stay in the mode that their constructor leaves, so `self.training` is as in `Model`"
            if checks.mode == "constructed"
            else "modules are in eval mode",
            f"outputs may have {'any' if checks.output_strides == 'any' else 'only the same'} strides",
            products,
        ],
        "; ",
    )


def _timing(timing: TimingRules | None) -> str:
    if timing is None:
        return ""
    return render(
        "fact_timing",
        statistic=timing.statistic,
        least_calls=timing.least_calls,
        l2="cold" if timing.cold_l2 else "warm",
        warmup_s=f"{timing.warmup_s:g}",
    )


def _sweep(checks: CheckRules | None) -> str:
    skipped = checks is not None and checks.failed_combinations == "skipped"
    return render("fact_sweep") if skipped else ""


def _precision(test: PrecisionTest | None, tier: Tier) -> str:
    if test is None:
        return ""
    times = f"{test.strict_times:g}"
    if tier == "strict":
        ulp = f"{test.strict_floor_ulp:g}"
        return " " + render("fact_precision_strict", sets=test.sets, times=times, ulp=ulp)
    if tier not in test.mantissa_bits or tier not in test.noise:
        return ""
    return " " + render(
        "fact_precision_looser",
        sets=test.sets,
        times=times,
        rounded_times=f"{test.rounded_times:g}",
        bits=test.mantissa_bits[tier],
        noise=f"{test.noise[tier]:g}",
    )


def _tensors(tensors: Iterable[TensorFacts]) -> list[str]:
    shown = [
        f"{each.role} {each.name}: {each.dtype} {list(each.shape)}, {_bytes(each.bytes)}" for each in tensors
    ]
    left = len(shown) - _MOST_TENSORS
    return shown[:_MOST_TENSORS] + ([f"and {left} more tensors"] if left > 0 else [])


def _bytes(count: int) -> str:
    return f"{count / 1e6:.4g} MB" if count >= 1e5 else f"{count} B"


def _sized(value: int | None, unit: str, what: str) -> str:
    size = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    return "" if value is None else f"{value / size:.4g} {unit} of {what}"


def _joined(parts: Iterable[str], between: str = ", ") -> str:
    return between.join(part for part in parts if part)
