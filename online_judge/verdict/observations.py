"""Turn an evaluator's observations into flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from adaexplore.core.flags import ProblemFlag
from online_judge.checks.facts.endings import Ending
from online_judge.checks.facts.kernels import KernelShare, Launches
from online_judge.protocol import observations as seen
from online_judge.protocol.measurement import GpuState
from online_judge.protocol.result import ProblemFacts
from online_judge.verdict import endings, feedback
from online_judge.verdict.flags import Flag

_LIBRARY_SHARE = 0.5
_DROP = 0.9
_IDLE = 0x01
"""Bit of NVML's clocks event reasons."""
_WITHOUT_FIGURES = {
    "loaded_weights_unused": Flag(
        "stale_weights", "weights loaded after construction are not used: loading them makes the output wrong"
    ),
    "output_aliases_input": Flag("output_aliases_input", "an output lies in the memory of an input"),
    "output_reused": Flag("output_reused", "two calls gave outputs in the same memory"),
    "unjoined_stream": Flag(
        "side_stream", "work on another stream is not waited for: the calls cannot be captured"
    ),
    "baseline_unconfirmed": Flag(
        "baseline_unconfirmed", "not timed without a candidate: the GPU or the host was busy"
    ),
}


def flags_of_all(observations: Iterable[seen.Observation], folder: str) -> list[Flag]:
    """Return the flags of several observations, in their order; paths in ``folder`` are shortened."""
    return [flag for observation in observations for flag in _flags_of(observation, folder)]


def _flags_of(observation: seen.Observation, folder: str) -> Iterator[Flag]:
    match observation:
        case seen.ProcessChanges():
            yield from of_process(observation)
        case seen.WithoutFigures(kind=kind):
            yield _WITHOUT_FIGURES[kind]
        case seen.StaleWeights(missing=str(name)):
            evidence = f"weights cannot be loaded: nothing shows that {name}, a constant, is used"
            yield Flag("stale_weights", evidence)
        case seen.StaleWeights(wrong=None):
            yield Flag("stale_weights", "outputs do not follow weights that are changed in place")
        case seen.StaleWeights(wrong=wrong):
            assert wrong is not None
            yield Flag("stale_weights", _explained(wrong, folder))
        case seen.InputsChanged(timed_call=None, result_changes=True):
            yield Flag("inputs_changed", "a call changed its inputs so that the reference's result differs")
        case seen.InputsChanged(timed_call=None):
            yield Flag("inputs_written", "a call changed its inputs; the reference's result stays the same")
        case seen.InputsChanged(timed_call=call):
            yield Flag("inputs_written", f"timed call {call} changed its inputs")
        case seen.EqualCallsDiffer(rms=rms):
            evidence = f"two equal calls differ by {rms:.2g} of the output's standard deviation"
            yield Flag("nondeterministic", evidence)
        case seen.VariantFailed(variant=variant, ending=ending):
            yield Flag(f"fails_{variant}_inputs", _explained(ending, folder))
        case seen.LowerPrecision(reached=reached, expected=expected):
            yield Flag("low_precision", f"reaches {reached}, the task's is {expected}")
        case seen.TimedOutputWrong(wrong=count, total=total, largest=largest):
            evidence = f"{count} of {total} elements of {_timed(observation)} are wrong"
            yield Flag("timed_output_wrong", f"{evidence}, largest error {largest:.4g}")
        case seen.TimedOutputLate():
            yield Flag("timed_output_wrong", f"{_timed(observation)} was written after its answer")
        case seen.DeviceWorksOn(tail_ms=tail_ms, claimed_ms=claimed_ms):
            evidence = f"the GPU works on for {tail_ms:.4g} ms after timed calls of {claimed_ms:.4g} ms"
            yield Flag("side_stream", evidence)
        case seen.UnevenCalls(median_ms=median_ms, mean_ms=mean_ms, counted_ms=counted_ms):
            both = f"{median_ms:.4g} ms is the median, {mean_ms:.4g} ms the mean"
            yield Flag("launch_bound", f"calls of one block differ: {both}; {counted_ms:.4g} ms count")
        case seen.CallsDoneTogether(call_ms=call_ms, single_ms=single_ms):
            evidence = f"{call_ms:.4g} ms in blocks of many calls, {single_ms:.4g} ms alone; the latter count"
            yield Flag("launch_bound", evidence)
        case seen.ClocksDisagree():
            yield _of_clocks(observation)
        case seen.BaselineMoved(gpu_ms=gpu_ms, clean_ms=clean_ms, after_ms=after_ms, counted_ms=counted_ms):
            without = f"{clean_ms:.4g} ms alone"
            without += "" if after_ms is None else f" before, {after_ms:.4g} ms after it"
            evidence = f"{gpu_ms:.4g} ms beside the candidate, {without}; {counted_ms:.4g} ms count"
            yield Flag("baseline_drift", evidence)
        case _:
            assert_never(observation)


def _explained(ending: Ending, folder: str) -> str:
    return feedback.first_line(endings.explain(ending, folder).metadata)


def of_process(changes: seen.ProcessChanges) -> list[Flag]:
    found = []
    if changes.patched_count:
        hidden = changes.patched_count - len(changes.patched)
        more = f" and {hidden} more" if hidden > 0 else ""
        found.append(Flag("patched_functions", f"replaced: {', '.join(changes.patched)}{more}"))
    if changes.switched:
        found.append(Flag("global_flags", "; ".join(changes.switched)))
    if changes.background:
        found.append(Flag("background_threads", "; ".join(changes.background)))
    return found


def of_kernels(
    launches: Launches, share: KernelShare | None, *, passed_without_kernels: bool | None
) -> list[Flag]:
    """Return the flags about a candidate's kernels; None means unknown.

    ``passed_without_kernels`` was tried on inputs for which no trivial answer is right.
    """
    found = []
    ran = launches.total > 0 or (share is not None and share.own > 0)
    hidden = "graph" in launches.unseen or ("compile" in launches.unseen and launches.defined > 0)
    blind = launches.extension or (hidden and share is None)
    if not ran and not blind:
        has = f"none of its {launches.defined} @triton.jit functions" if launches.defined else "no kernel"
        found.append(Flag("no_own_kernel", f"a call launches {has}{_longest(share)}"))
    if passed_without_kernels and launches.total > 0:
        names = ", ".join(launches.names[:4])
        evidence = f"the outputs are right without {names} ({launches.total} launches)"
        found.append(Flag("decoy_kernel", evidence))
    if share is not None and share.own < _LIBRARY_SHARE and not launches.extension:
        evidence = f"{share.own:.0%} of GPU time in its own kernels{_longest(share)}"
        found.append(Flag("library_bound", evidence))
    return found


def of_gpu_states(before: GpuState | None, after: GpuState | None) -> list[Flag]:
    """Flag clocks that dropped between two states, the second read while the GPU was still busy."""
    if after is None:
        return []
    clocks = f"SM {after.sm_mhz} MHz, {after.temperature_c} C, {after.power_w:.0f} W"
    if after.slowdowns:
        return [Flag("throttled", f"{', '.join(after.slowdowns)}: {clocks}")]
    if before is None or after.reasons & _IDLE or before.reasons & _IDLE:
        return []
    if after.sm_mhz < _DROP * before.sm_mhz or after.memory_mhz < _DROP * before.memory_mhz:
        was = f"SM {before.sm_mhz} MHz, memory {before.memory_mhz} MHz"
        return [Flag("throttled", f"from {was} to memory {after.memory_mhz} MHz, {clocks}")]
    return []


def of_problem(facts: ProblemFacts) -> list[ProblemFlag]:
    found = []
    if facts.trivial_answers:
        evidence = f"trivial answers pass: {', '.join(facts.trivial_answers)}"
        found.append(ProblemFlag("degenerate_problem", evidence))
    if facts.constant_inputs:
        found.append(ProblemFlag("constant_inputs", "get_inputs() gives the same values under every seed"))
    if facts.looseness is not None:
        times = f"{facts.looseness:.2g} standard deviations of the output"
        which = "problem's TOLERANCE" if facts.tolerance is None else f"tolerance {facts.tolerance:g}"
        found.append(ProblemFlag("loose_tolerance", f"the {which} is {times}"))
    if facts.unwritten is not None:
        evidence = f"the reference never writes {facts.unwritten:.2%} of its outputs, which are not compared"
        found.append(ProblemFlag("unwritten_outputs", evidence))
    return found


def _of_clocks(found: seen.ClocksDisagree) -> Flag:
    """Flag clocks that disagree; work was hidden only if that is proven."""
    measured = f"{found.gpu_ms:.4g} ms a call by events, {found.wall_ms:.4g} ms on the wall"
    if found.graph_ms is None:
        evidence = f"{measured}, and it cannot be captured: {found.counted_ms:.4g} ms count"
        return Flag("launch_bound", evidence)
    evidence = f"{measured}, {found.graph_ms:.4g} ms in a replayed graph"
    if found.explained:
        return Flag("launch_bound", f"{evidence}; {found.counted_ms:.4g} ms count")
    id_ = "clock_mismatch" if found.proven else "launch_bound"
    return Flag(id_, f"{evidence}, {found.copy_ms:.4g} ms of it for copies")


def _timed(found: seen.TimedOutputWrong | seen.TimedOutputLate) -> str:
    if found.call is None:
        return f"the timed calls of round {found.round}"
    return f"timed call {found.call} of round {found.round}"


def _longest(share: KernelShare | None) -> str:
    if share is None or not share.kernels:
        return ""
    return f"; longest: {share.kernels[0].name[:80]}, {share.kernels[0].ms:.4f} of {share.total_ms:.4f} ms"
