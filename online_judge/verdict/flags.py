"""Flags of a kernel and of its problem: ids, severities, and the keys of a verdict's metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adaexplore.core.flags import ProblemFlag

_MAX_EVIDENCE = 300


class Severity(StrEnum):
    """Effect of a flag on a verdict: only ``reject`` makes it incorrect."""

    REJECT = "reject"
    SUSPECT = "suspect"
    NOTE = "note"


SEVERITIES = {
    # the numbers cannot be believed
    "timed_output_wrong": Severity.REJECT,  # the output of an audited timed call is wrong
    "clock_mismatch": Severity.REJECT,  # the claimed times do not fill the evaluator's wall clock
    "side_stream": Severity.REJECT,  # work goes on after the timed stream is done
    "inputs_changed": Severity.REJECT,  # inputs changed so that the reference's result differs
    "below_bandwidth_bound": Severity.REJECT,  # faster than its output can be written
    # a person should look
    "no_own_kernel": Severity.SUSPECT,  # a call launches no kernel that the candidate defines
    "decoy_kernel": Severity.SUSPECT,  # the output is the same without the candidate's own kernels
    "stale_weights": Severity.SUSPECT,  # weights changed in place have no effect
    "patched_functions": Severity.SUSPECT,  # functions of torch, triton or Python were replaced
    "below_soft_bound": Severity.SUSPECT,  # faster than all inputs and weights can be read, or computed
    "fails_scaled_inputs": Severity.SUSPECT,  # right on the problem's own inputs only
    "fails_shifted_inputs": Severity.SUSPECT,
    "fails_tied_inputs": Severity.SUSPECT,
    "fails_mixed_inputs": Severity.SUSPECT,
    "inputs_written": Severity.SUSPECT,  # inputs changed, the reference's result does not
    "output_aliases_input": Severity.SUSPECT,  # an output shares memory with an input, the reference's do not
    "output_reused": Severity.SUSPECT,  # two calls return the same memory while both results are held
    "low_precision": Severity.SUSPECT,  # the error is that of a lower precision than the task's
    "background_threads": Severity.SUSPECT,  # threads or processes go on after a call
    # good to know
    "global_flags": Severity.NOTE,  # precision or autotuning switches of torch were changed
    "library_bound": Severity.NOTE,  # most GPU time is spent in library kernels
    "launch_bound": Severity.NOTE,  # the host cannot keep the GPU busy
    "nondeterministic": Severity.NOTE,  # equal calls differ in their last bits, as atomics make them
    "baseline_drift": Severity.NOTE,  # the reference's time moved since it was first measured
    "baseline_unconfirmed": Severity.NOTE,  # the reference has no time without a candidate
    "throttled": Severity.NOTE,  # the GPU lowered its clocks while timing
    "static_clock": Severity.NOTE,  # the source names timing functions
    "static_streams": Severity.NOTE,
    "static_introspection": Severity.NOTE,  # frames, garbage collector, other modules' internals
    "static_process": Severity.NOTE,  # processes, sockets, files
    "static_fallback": Severity.NOTE,  # an except branch that computes the result in another way
}
"""Severity of a kernel's flag by id; these ids are what clients see."""

PROBLEM_FLAGS = {
    "degenerate_problem": "trivial answers pass: a speedup says little",
    "trivial_workload": "trivial answers pass on some workloads: the speedup there says little",
    "constant_inputs": "get_inputs() gives the same values under every seed",
    "loose_tolerance": "the tolerance exceeds a tenth of the output's spread",
    "unwritten_outputs": "the reference returns elements that it never wrote; they are not compared",
}
"""Meaning of a problem's flag by id; such a flag says nothing about the kernel."""


@dataclass(frozen=True)
class Flag:
    """One finding about a kernel or its measurement; ``evidence`` is one line with figures."""

    id: str
    evidence: str

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.id]


def merged(flags: Iterable[Flag]) -> list[Flag]:
    """Return one flag for each id, with the first one's evidence, the gravest first."""
    order = list(Severity)
    first: dict[str, Flag] = {}
    for flag in flags:
        first.setdefault(flag.id, flag)
    return sorted(first.values(), key=lambda flag: order.index(flag.severity))


def metadata(flags: Iterable[Flag]) -> dict[str, object]:
    """Return ``integrity``, the ids, and ``integrity_evidence``; empty without flags."""
    evidence = [
        {"id": flag.id, "severity": flag.severity.value, "evidence": flag.evidence[:_MAX_EVIDENCE]}
        for flag in merged(flags)
    ]
    return _with_ids("integrity", evidence)


def problem_metadata(flags: Iterable[ProblemFlag]) -> dict[str, object]:
    """Return ``problem_flags``, the ids, and ``problem_flags_evidence``; empty without flags."""
    evidence = [{"id": flag.id, "evidence": flag.evidence[:_MAX_EVIDENCE]} for flag in flags]
    if unknown := [each["id"] for each in evidence if each["id"] not in PROBLEM_FLAGS]:
        raise ValueError(f"{unknown[0]!r} is no flag of a problem; add it to PROBLEM_FLAGS")
    return _with_ids("problem_flags", evidence)


def _with_ids(key: str, evidence: list[dict[str, str]]) -> dict[str, object]:
    return {key: [each["id"] for each in evidence], f"{key}_evidence": evidence} if evidence else {}
