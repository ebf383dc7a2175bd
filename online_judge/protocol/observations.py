"""Facts that an evaluator observes about a candidate besides its outputs; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from adaexplore.core.wire import Tier
from online_judge.checks.facts.endings import Ending, WrongOutputs
from online_judge.checks.facts.findings import Fact
from online_judge.common import printable

_MAX_PATCHED = 20
_MAX_SWITCHED = 12
_MAX_BACKGROUND = 8
_MAX_NAME = 120
_MAX_SWITCH = 100


class ProcessChanges(Fact):
    """A candidate's changes in its process; claims of that process."""

    kind: Literal["process_changes"] = "process_changes"
    patched: tuple[str, ...] = ()  # the first names of replaced functions
    patched_count: int = 0  # how many were replaced
    switched: tuple[str, ...] = ()  # global flags of torch that were changed, with both values
    background: tuple[str, ...] = ()  # threads and processes that go on after a call

    @classmethod
    def from_claim(cls, claim: Mapping[str, Any]) -> Self:
        """Read the answer to :class:`~online_judge.protocol.orders.Observe`; non-lists count as empty."""
        names = claim.get("patched")
        return cls(
            patched=_texts(names, _MAX_PATCHED, _MAX_NAME),
            patched_count=len(names) if isinstance(names, list) else 0,
            switched=_texts(claim.get("global_flags"), _MAX_SWITCHED, _MAX_SWITCH),
            background=_texts(claim.get("background"), _MAX_BACKGROUND, _MAX_NAME),
        )


class WithoutFigures(Fact):
    """Something without figures.

    ``loaded_weights_unused``: weights that are loaded after construction make the outputs wrong;
    ``output_aliases_input``: an output shares memory with an input, the reference's outputs do not;
    ``output_reused``: two calls gave outputs in the same memory; ``unjoined_stream``: the calls cannot be
    captured in a CUDA graph, because work on another stream is not waited for; ``baseline_unconfirmed``: the
    baseline's time without a candidate is not known, because others used the GPU or the host was slow.
    """

    kind: Literal[
        "loaded_weights_unused",
        "output_aliases_input",
        "output_reused",
        "unjoined_stream",
        "baseline_unconfirmed",
    ]


class StaleWeights(Fact):
    """Outputs do not follow weights that are changed in place, or nothing shows that they do."""

    kind: Literal["stale_weights"] = "stale_weights"
    missing: str | None = None  # a constant weight of the reference for which the candidate has no place
    wrong: WrongOutputs | None = None  # how the outputs were wrong; None where the tolerance hides it


class InputsChanged(Fact):
    kind: Literal["inputs_changed"] = "inputs_changed"
    result_changes: bool = False  # whether the reference gives another result for the changed inputs
    timed_call: int | None = None  # index of the timed call; None for a call of the correctness trials


class EqualCallsDiffer(Fact):
    """Two equal calls differ in their last bits."""

    kind: Literal["equal_calls_differ"] = "equal_calls_differ"
    rms: float  # of the difference, in standard deviations of the output


class VariantFailed(Fact):
    """A call with inputs of another distribution failed; ``mixed`` ones are those of the timing."""

    kind: Literal["variant_failed"] = "variant_failed"
    variant: Literal["scaled", "shifted", "tied", "mixed"]
    ending: Ending  # how it failed


class LowerPrecision(Fact):
    """The outputs are less precise than the arithmetic of the task."""

    kind: Literal["lower_precision"] = "lower_precision"
    reached: Tier
    expected: Tier


class TimedOutputWrong(Fact):
    kind: Literal["timed_output_wrong"] = "timed_output_wrong"
    round: int  # of the interleaved timing
    call: int | None  # index of the call; None if elements of all calls of the round were compared
    wrong: int  # wrong elements, of ``total``
    total: int
    largest: float  # largest absolute difference


class TimedOutputLate(Fact):
    """The output of a timed call was written after the candidate's answer."""

    kind: Literal["timed_output_late"] = "timed_output_late"
    round: int
    call: int


class DeviceWorksOn(Fact):
    """The GPU works on after the timed stream is done."""

    kind: Literal["device_works_on"] = "device_works_on"
    tail_ms: float  # for how long, beyond the reference
    claimed_ms: float  # of the calls of a block by their events


class UnevenCalls(Fact):
    """A few calls of each block took much longer by their events."""

    kind: Literal["uneven_calls"] = "uneven_calls"
    median_ms: float
    mean_ms: float
    counted_ms: float


class CallsDoneTogether(Fact):
    """Calls take much longer in blocks of one call each than in blocks of many."""

    kind: Literal["calls_done_together"] = "calls_done_together"
    call_ms: float  # that would count without them
    single_ms: float


class ClocksDisagree(Fact):
    """Calls take longer by the evaluator's clock than by their events."""

    kind: Literal["clocks_disagree"] = "clocks_disagree"
    gpu_ms: float  # of a call by events
    wall_ms: float  # of a call by the evaluator's clock
    graph_ms: float | None  # of a call within a replayed graph; None if the calls cannot be captured
    copy_ms: float  # of copying the outputs of one call
    counted_ms: float  # the time that counts
    explained: bool  # whether the replayed graph confirms the events
    proven: bool  # whether neither a slow host nor others on the GPU explain the difference


class BaselineMoved(Fact):
    """The baseline's time beside the candidate differs from its time without it."""

    kind: Literal["baseline_moved"] = "baseline_moved"
    gpu_ms: float  # beside the candidate
    clean_ms: float  # before any candidate was loaded
    after_ms: float | None  # after the timing, with the candidate stopped; None if not measured
    counted_ms: float  # the time that counts


Observation = Annotated[
    ProcessChanges
    | WithoutFigures
    | StaleWeights
    | InputsChanged
    | EqualCallsDiffer
    | VariantFailed
    | LowerPrecision
    | TimedOutputWrong
    | TimedOutputLate
    | DeviceWorksOn
    | UnevenCalls
    | CallsDoneTogether
    | ClocksDisagree
    | BaselineMoved,
    Field(discriminator="kind"),
]


def _texts(claim: object, most: int, chars: int) -> tuple[str, ...]:
    listed = claim if isinstance(claim, list) else []
    return tuple(printable.text(str(item)[:chars]) for item in listed[:most])
