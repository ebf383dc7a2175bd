"""Facts in, verdict out: statuses, flags and feedback, without torch and without a process."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.parts import DeviceUse, HostClock
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.text.tunables import read_tunables
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, EvaluationRequest, ProfileReport, Tier
from online_judge.checks.behaviour.process_changes import ProcessChanges
from online_judge.checks.check import Observation
from online_judge.checks.correctness.changed_inputs import InputsChanged
from online_judge.checks.correctness.equal_calls import EqualCallsDiffer
from online_judge.checks.correctness.low_precision import LowerPrecision
from online_judge.checks.correctness.other_inputs import VariantFailed
from online_judge.checks.correctness.output_memory import OutputAliasesInput, OutputReused
from online_judge.checks.correctness.stale_weights import LoadedWeightsUnused, StaleWeights
from online_judge.checks.facts.endings import (
    BelowTier,
    Ending,
    FarOff,
    OtherWeights,
    Passed,
    ProcessEnd,
    Raised,
    UnequalCalls,
    WrongAgain,
    WrongForm,
    WrongValue,
)
from online_judge.checks.facts.findings import Difference, Failure, Frame, Mismatch
from online_judge.checks.facts.kernels import KernelShare, KernelTime, Launches
from online_judge.checks.facts.precision import Error, Graded, Limit
from online_judge.checks.problem import ProblemFacts
from online_judge.checks.registry import all_flags
from online_judge.checks.timing.baseline import BaselineMoved, BaselineUnconfirmed
from online_judge.checks.timing.clocks import CallsDoneTogether, ClocksDisagree, UnevenCalls
from online_judge.checks.timing.side_stream import DeviceWorksOn, UnjoinedStream
from online_judge.checks.timing.throttling import GpuState
from online_judge.checks.timing.timed_outputs import TimedOutputLate, TimedOutputWrong
from online_judge.common.gpu_peaks import Peak, peak
from online_judge.common.texts import clip
from online_judge.protocol.config_sweep import Swept
from online_judge.protocol.measurement import Times, Timing
from online_judge.protocol.result import EvaluationResult, ProfileResult
from online_judge.verdict import assemble, reports, tuning
from online_judge.verdict.assemble import Target
from tests.verdicts import make_verdict, metadata_of, stats_of

REQUEST = EvaluationRequest(custom_model_src="x = 1", num_correct_trials=3, backend="triton")
CPU = Target("CPU (Triton interpreter, sm_90)", "cpu", cuda=False)
GPU = Target("NVIDIA H200", "cuda:0", cuda=True)
SANDBOX = {"level": 4, "evaluator": 4}
END = ProcessEnd("/judge/job-1", "with exit code 0", "", sandbox=SANDBOX)
LAUNCHED = Launches({"add[4, 1, 1]": 2}, 2, 1)
LIMITS: dict[Tier, Limit] = {
    "strict": Limit(1e-6, 1e-5),
    "tf32": Limit(1e-3, 1e-2),
    "half": Limit(4e-3, 4e-2),
}
HALF = Graded("half", Error(3e-3, 3e-2, 3e-3, 0.0), LIMITS, emulated=True)
STRICT = Graded("strict", Error(1e-7, 1e-6, 1e-7, 0.0), {"strict": LIMITS["strict"]}, emulated=False)
DIFFERENCE = Difference((Mismatch((0, 31), "1.5", "2.5"),), 16, 0, 64, 1.0, 0.25, "every second row")
FRAME = Frame(7, "forward", "add[(4,)](x, y)")
LAUNCH = Failure(Status.LAUNCH, Stage.FORWARD, "builtins.ValueError", "no at /judge/job-1/a.py", (FRAME,))
WRONG = WrongValue(difference=DIFFERENCE)
WRONG_TEXT = (
    "16 of 64 elements of {} (25 %) are wrong, largest error 1, mean error 0.25\n"
    "pattern: every second row\nfirst wrong elements:\n  [0, 31] got 1.5, want 2.5\nNext: "
)
WARM = GpuState(1980, 3201, 60, 500.0, 0, 2)


def result(ending: Ending | None = None, **facts: Any) -> EvaluationResult:
    """Return an evaluator's result after its way through JSON."""
    known = {"trials_passed": 3, "grades": (STRICT,), "launches": LAUNCHED, "passed_without_kernels": False}
    made = EvaluationResult(ending=ending or Passed(), **known | facts)
    received = EvaluationResult.from_json(json.loads(json.dumps(made.to_json())))
    assert received == made
    return received


def timing(**changes: Any) -> Timing:
    numbers: dict[str, Any] = {
        "times": Times(0.11, 0.1, 0.01, 0.09, 0.2, 0.095, 0.12, 0.002, 300),
        "speedup": 3.0,
        "ci_low": 2.9,
        "ci_high": 3.1,
        "gpu_ms": 0.1,
        "score_ms": 0.1,
        "e2e_ms": 0.12,
        "baseline_ms": 0.3,
        "recorded": False,
        "baseline_gpu_ms": 0.3,
        "baseline_e2e_ms": 0.33,
        "baseline_clean_ms": 0.3,
        "baseline_stays_slow": False,
        "baseline_slowed": False,
        "baseline_trials": 280,
        "rounds": 6,
        "stopped_early": False,
        "use": DeviceUse(held_s=1.5, waited_s=0.5, gpu_s=0.25, spent_s={"warm": 0.125}),
        "host": HostClock(
            wall_open_ms=0.2, baseline_open_ms=0.2, block_ms=10.0, tail_ms=0.01, graph_ms=None, copy_ms=0.002
        ),
        "before": None,
        "after": None,
        "peak": None,
        "output_bytes": 512,
        "read_bytes": 1600,
        "flops": 4096.0,
    }
    return Timing(**numbers | changes)


@pytest.mark.parametrize(
    ("ending", "status", "feedback"),
    [
        (
            Raised(failure=LAUNCH),
            Status.LAUNCH,
            "launch during forward in line 7: ValueError\n  line 7, forward: add[(4,)](x, y)\n"
            "no at a.py\nNext: ",
        ),
        (
            WrongForm(part="structure", expected="['T']", got="T"),
            Status.WRONG_SHAPE,
            "wrong_shape: Output structure mismatch: expected ['T'], got T (T is a tensor)\nNext: ",
        ),
        (
            WrongForm(part="shape", expected="[8, 16]", got="[16, 8]"),
            Status.WRONG_SHAPE,
            "wrong_shape: Output shape mismatch: expected [8, 16], got [16, 8]\nNext: ",
        ),
        (
            WrongForm(part="dtype", expected="torch.float32", got="torch.float16", output=1),
            Status.WRONG_DTYPE,
            "wrong_dtype: Output 1 dtype mismatch: expected torch.float32, got torch.float16\nNext: ",
        ),
        (
            WrongForm(part="device", expected="cuda", got="cpu"),
            Status.LAUNCH,
            "launch during forward: DeviceMismatch\nan output is on cpu, expected on cuda\nNext: ",
        ),
        (WRONG, Status.WRONG_VALUE, f"wrong_value: {WRONG_TEXT.format('the output')}"),
        (
            WrongValue(difference=DIFFERENCE, output=1),
            Status.WRONG_VALUE,
            f"wrong_value: {WRONG_TEXT.format('output 1')}",
        ),
        (
            WrongValue(difference=replace(DIFFERENCE, nonfinite=2)),
            Status.NONFINITE,
            f"nonfinite: {WRONG_TEXT.format('the output')}",
        ),
        (
            OtherWeights(),
            Status.WRONG_VALUE,
            "wrong_value: the output is that of other weights than the module has now\nNext: ",
        ),
        (
            WrongAgain(wrong=WRONG),
            Status.NONDETERMINISTIC,
            "nondeterministic: A second call with the same inputs gave another result\n"
            f"wrong_value: {WRONG_TEXT.format('the output')}",
        ),
        (
            UnequalCalls(error=Error(0.1, 1.0, 0.1, 0.0), limit=Limit(1e-3, 1e-2)),
            Status.NONDETERMINISTIC,
            "nondeterministic: A second call with the same inputs gave another result: "
            "they differ by 0.1 (rms) and 1 (at most) of the output's standard deviation; "
            "rounding explains 0.001\nNext: ",
        ),
        (
            FarOff(error=math.inf),
            Status.WRONG_VALUE,
            "wrong_value: with other weights or inputs of the same kind the error is inf of the output's "
            "standard deviation, more than rounding explains; elsewhere the tolerance hides it\nNext: ",
        ),
        (
            BelowTier(grade=HALF, needed="tf32", tf32="on"),
            Status.WRONG_VALUE,
            "wrong_value: the outputs are less precise than tier tf32: error 0.003 (rms), "
            "0.003 (less a common factor), 0.03 (largest); the limit is 0.001 (rms), "
            "0.001 (less a common factor), 0.01 (largest), 1.3 times the error of the reference with TF32 "
            "operands; all in standard deviations of the output\n"
            "likely cause: operands or intermediate results in bfloat16\nNext: ",
        ),
    ],
)
def test_every_ending_has_its_status_and_feedback(ending: Ending, status: Status, feedback: str) -> None:
    verdict = assemble.evaluated(REQUEST, CPU, result(ending, trials_passed=1), END)
    assert verdict.status is status
    assert verdict.feedback.startswith(feedback)
    assert len(verdict.feedback.rpartition("\nNext: ")[2]) > 20
    assert metadata_of(verdict)["correctness_trials"] == "(1 / 3)"
    assert (verdict.runtime_ms, stats_of(verdict)) == (None, {})


@pytest.mark.parametrize(
    ("observation", "flags"),
    [
        (ProcessChanges(), {}),
        (
            ProcessChanges(
                patched=("torch.equal",), patched_count=3, switched=("a", "b"), background=("t", "u")
            ),
            {
                "patched_functions": "replaced: torch.equal and 2 more",
                "background_threads": "t; u",
                "global_flags": "a; b",
            },
        ),
        (
            LoadedWeightsUnused(),
            {
                "stale_weights": "weights loaded after construction are not used: "
                "loading them makes the output wrong"
            },
        ),
        (StaleWeights(), {"stale_weights": "outputs do not follow weights that are changed in place"}),
        (
            StaleWeights(missing="norm.bias"),
            {"stale_weights": "weights cannot be loaded: nothing shows that norm.bias, a constant, is used"},
        ),
        (
            StaleWeights(wrong=OtherWeights()),
            {"stale_weights": "wrong_value: the output is that of other weights than the module has now"},
        ),
        (
            InputsChanged(),
            {"inputs_written": "a call changed its inputs; the reference's result stays the same"},
        ),
        (InputsChanged(timed_call=4), {"inputs_written": "timed call 4 changed its inputs"}),
        (
            InputsChanged(result_changes=True),
            {"inputs_changed": "a call changed its inputs so that the reference's result differs"},
        ),
        (
            OutputAliasesInput(),
            {"output_aliases_input": "an output lies in the memory of an input"},
        ),
        (
            OutputReused(),
            {"output_reused": "two calls gave outputs in the same memory"},
        ),
        (
            BaselineUnconfirmed(),
            {"baseline_unconfirmed": "not timed without a candidate: the GPU or the host was busy"},
        ),
        (
            EqualCallsDiffer(rms=0.00123),
            {"nondeterministic": "two equal calls differ by 0.0012 of the output's standard deviation"},
        ),
        (
            VariantFailed(variant="scaled", ending=Raised(failure=LAUNCH)),
            {"fails_scaled_inputs": "launch during forward in line 7: ValueError"},
        ),
        (
            LowerPrecision(reached="half", expected="tf32"),
            {"low_precision": "reaches half, the task's is tf32"},
        ),
        (
            TimedOutputWrong(round=2, call=None, wrong=1, total=4, largest=0.5),
            {
                "timed_output_wrong": "1 of 4 elements of the timed calls of round 2 are wrong, "
                "largest error 0.5"
            },
        ),
        (
            TimedOutputWrong(round=2, call=9, wrong=1, total=4, largest=0.5),
            {"timed_output_wrong": "1 of 4 elements of timed call 9 of round 2 are wrong, largest error 0.5"},
        ),
        (
            TimedOutputLate(round=0, call=9),
            {"timed_output_wrong": "timed call 9 of round 0 was written after its answer"},
        ),
        (
            UnjoinedStream(),
            {"side_stream": "work on another stream is not waited for: the calls cannot be captured"},
        ),
        (
            DeviceWorksOn(tail_ms=5.0, claimed_ms=0.25),
            {"side_stream": "the GPU works on for 5 ms after timed calls of 0.25 ms"},
        ),
        (
            UnevenCalls(median_ms=0.01, mean_ms=0.21, counted_ms=0.3),
            {
                "launch_bound": "calls of one block differ: 0.01 ms is the median, "
                "0.21 ms the mean; 0.3 ms count"
            },
        ),
        (
            CallsDoneTogether(call_ms=0.001, single_ms=0.004),
            {"launch_bound": "0.001 ms in blocks of many calls, 0.004 ms alone; the latter count"},
        ),
        (
            BaselineMoved(gpu_ms=0.3, clean_ms=0.2, after_ms=None, counted_ms=0.2),
            {"baseline_drift": "0.3 ms beside the candidate, 0.2 ms alone; 0.2 ms count"},
        ),
        (
            BaselineMoved(gpu_ms=0.3, clean_ms=0.2, after_ms=0.29, counted_ms=0.3),
            {
                "baseline_drift": "0.3 ms beside the candidate, 0.2 ms alone before, 0.29 ms after it; "
                "0.3 ms count"
            },
        ),
    ],
)
def test_every_observation_has_its_flags(observation: Observation, flags: dict[str, str]) -> None:
    verdict = assemble.evaluated(REQUEST, CPU, result(observations=(observation,)), END)
    assert {flag.id: flag.evidence for flag in verdict.flags} == flags
    rejected = [id_ for id_ in flags if all_flags()[id_].severity == "reject"]
    assert verdict.status is (Status.INTEGRITY if rejected else Status.PASSED)
    for id_ in rejected:
        assert verdict.feedback.startswith(f"integrity: {id_}: {flags[id_]}\nNext: ")
        assert metadata_of(verdict)["correctness_issue"] == id_


@pytest.mark.parametrize(
    ("graph_ms", "explained", "proven", "flag", "evidence"),
    [
        (None, False, True, "launch_bound", ", and it cannot be captured: 0.2 ms count"),
        (0.01, True, True, "launch_bound", ", 0.01 ms in a replayed graph; 0.2 ms count"),
        (0.2, False, False, "launch_bound", ", 0.2 ms in a replayed graph, 0.002 ms of it for copies"),
        (0.2, False, True, "clock_mismatch", ", 0.2 ms in a replayed graph, 0.002 ms of it for copies"),
    ],
)
def test_clock_disagreement_rejects_only_hidden_work(
    graph_ms: float | None, explained: bool, proven: bool, flag: str, evidence: str
) -> None:
    found = ClocksDisagree(
        gpu_ms=0.01,
        wall_ms=0.25,
        graph_ms=graph_ms,
        copy_ms=0.002,
        counted_ms=0.2,
        explained=explained,
        proven=proven,
    )
    verdict = assemble.evaluated(REQUEST, GPU, result(timing=timing(observations=(found,))), END)
    assert [(each.id, each.evidence) for each in verdict.flags] == [
        (flag, f"0.01 ms a call by events, 0.25 ms on the wall{evidence}")
    ]
    assert verdict.correct == (flag != "clock_mismatch")


def h200() -> Peak:
    known = peak("NVIDIA H200")
    assert known is not None
    return known


@pytest.mark.parametrize(
    ("facts", "status", "flags"),
    [
        ({}, Status.PASSED, []),
        ({"launches": Launches({}, 0, 0)}, Status.PASSED, ["no_own_kernel"]),
        ({"passed_without_kernels": True}, Status.PASSED, ["decoy_kernel"]),
        (
            {
                "passed_without_kernels": True,
                "problem": ProblemFacts(tolerance=0.05, constant_inputs=True),
            },
            Status.PASSED,
            [],
        ),
        (
            {"share": KernelShare(0.25, 2.0, 1, (KernelTime("gemm", 1.5, 1),))},
            Status.PASSED,
            ["library_bound"],
        ),
        (
            {"timing": timing(before=WARM, after=replace(WARM, reasons=4))},
            Status.PASSED,
            ["throttled"],
        ),
        (
            {"timing": timing(peak=h200(), output_bytes=2**32)},
            Status.INTEGRITY,
            ["below_bandwidth_bound", "below_soft_bound"],
        ),
        (
            {
                "timing": timing(peak=h200(), output_bytes=2**32),
                "problem": ProblemFacts(tolerance=0.05, trivial_answers=("zeros",)),
            },
            Status.PASSED,
            ["below_soft_bound"],
        ),
        (
            {"ending": WRONG, "launches": Launches({}, 0, 0), "passed_without_kernels": True},
            Status.WRONG_VALUE,
            [],
        ),
    ],
)
def test_timing_and_kernel_flags_require_correct_outputs(
    facts: dict[str, Any], status: Status, flags: list[str]
) -> None:
    verdict = assemble.evaluated(REQUEST, GPU, result(**facts), END)
    assert (verdict.status, [flag.id for flag in verdict.flags]) == (status, flags)
    assert (verdict.runtime_ms is not None) == (verdict.correct and "timing" in facts)


def test_kernels_of_another_backend_are_not_judged() -> None:
    request = REQUEST.model_copy(update={"backend": "cuda"})
    assert assemble.evaluated(request, GPU, result(launches=Launches({}, 0, 0)), END).flags == ()


def test_static_flags_come_from_the_request_source() -> None:
    request = REQUEST.model_copy(update={"custom_model_src": "import gc\ngc.collect()"})
    for ending in (Passed(), WRONG):
        verdict = assemble.evaluated(request, CPU, result(ending), END)
        assert [flag.id for flag in verdict.flags] == ["static_introspection"]


def test_problem_flags_are_listed_separately() -> None:
    problem = ProblemFacts(trivial_answers=("zeros",), constant_inputs=True, tolerance=0.05, looseness=0.5)
    verdict = assemble.evaluated(REQUEST, CPU, result(problem=problem), END)
    assert verdict.flags == ()
    assert [(flag.id, flag.evidence) for flag in verdict.problem_flags] == [
        ("degenerate_problem", "trivial answers pass: zeros"),
        ("constant_inputs", "get_inputs() gives the same values under every seed"),
        ("loose_tolerance", "the tolerance 0.05 is 0.5 standard deviations of the output"),
    ]


def test_untimed_verdict_reports_no_runtime_or_speedup() -> None:
    assert stats_of(assemble.evaluated(REQUEST, GPU, result(), END)) == {}
    interpreted = assemble.evaluated(REQUEST, CPU, result(), END)
    assert stats_of(interpreted) == {"fast_p": 1.0, "timing": "interpreter"}
    assert (interpreted.runtime_ms, interpreted.speedup) == (None, None)


def test_timing_that_stopped_early_says_so() -> None:
    verdict = assemble.evaluated(REQUEST, GPU, result(timing=timing(stopped_early=True)), END)
    assert stats_of(verdict)["stopped_early"] is True


def test_statistics_have_the_keys_of_the_wire() -> None:
    share = KernelShare(0.75, 0.1, 1, (KernelTime("add", 0.1, 1),))
    timed = timing(before=WARM, after=WARM, recorded=True, score_ms=0.2)
    verdict = assemble.evaluated(REQUEST, GPU, result(timing=timed, share=share), END)
    stats = stats_of(verdict)
    assert verdict.runtime_ms == 0.2  # not the mean: another time counts
    assert stats.keys() == {
        *("mean", "median", "std", "min", "max", "p10", "p90", "mad", "num_trials", "hardware", "device"),
        *("fast_p", "ci_low", "ci_high", "gpu_ms", "score_ms", "e2e_ms", "rounds", "slot", "witness"),
        *("baseline", "baseline_type", "baseline_time", "baseline_gpu_ms", "baseline_e2e_ms"),
        *("baseline_clean_ms", "baseline_trials", "clocks", "kernels"),
    }
    assert (stats["fast_p"], stats["baseline_type"], stats["baseline_time"]) == (3.0, "recorded", 0.3)
    assert stats["slot"] == {"held_s": 1.5, "waited_s": 0.5, "gpu_s": 0.25, "spent_s": {"warm": 0.125}}
    assert stats["witness"]["graph_ms"] is None
    assert stats["clocks"]["after"]["sm_mhz"] == 1980
    assert stats["kernels"] == {"own": 0.75, "total_ms": 0.1, "streams": 1, "kernels": [["add", 0.1, 1]]}


def test_every_verdict_says_where_it_comes_from() -> None:
    request = REQUEST.model_copy(update={"tf32": "paper"})
    facts = {"hardware": GPU.hardware, "device": "cuda:0", "notes": ["tf32_asymmetric"]}
    verdicts = [
        assemble.evaluated(request, GPU, result(), END),
        assemble.timed_out(request, GPU, limit_s=9, stage=Stage.LOAD, sandbox=SANDBOX),
        assemble.process_gone(request, GPU, stage=Stage.LOAD, why="", end=END),
    ]
    for verdict in verdicts:
        assert metadata_of(verdict).items() >= (facts | {"sandbox": SANDBOX}).items()
    assert metadata_of(assemble.evaluator_died_twice(request, GPU, Stage.LOAD)).items() >= facts.items()


@pytest.mark.parametrize(
    ("why", "end", "status", "error"),
    [
        ("", END, Status.CRASH, "the process ended with exit code 0 during forward"),
        ("it answered with []", END, Status.CRASH, "the process ended (it answered with []) during forward"),
        (
            "",
            replace(END, out_of_memory=True),
            Status.OUT_OF_MEMORY,
            "the process ran out of the host memory that it may have during forward",
        ),
    ],
)
def test_dead_process_is_crash_or_out_of_memory(
    why: str, end: ProcessEnd, status: Status, error: str
) -> None:
    verdict = assemble.process_gone(REQUEST, CPU, stage=Stage.FORWARD, why=why, end=end)
    assert (verdict.status, metadata_of(verdict)["runtime_error"]) == (status, error)
    assert verdict.feedback.startswith(f"{error}\nNext: ")


def test_time_that_is_up_names_limit_and_stage() -> None:
    verdict = assemble.timed_out(REQUEST, CPU, limit_s=9, stage=Stage.FORWARD, sandbox=None)
    assert verdict.status is Status.TIMEOUT
    assert metadata_of(verdict)["error"] == "Kernel execution timeout: exceeded 9s runtime limit"
    assert metadata_of(verdict)["stage"] == "forward"
    assert verdict.feedback.startswith("timeout during forward: not done after 9 s\nNext: ")


def test_death_beside_the_evaluator_is_a_crash() -> None:
    verdict = assemble.evaluator_died_twice(REQUEST, CPU, Stage.TIMING)
    text = "the process ended together with the judge's own processes, twice, during timing"
    assert (verdict.status, metadata_of(verdict)["runtime_error"]) == (Status.CRASH, text)


def test_printed_text_goes_with_failures_only() -> None:
    end = replace(END, printed="see /judge/job-1/out at 0x7f00aa11bb22\n")
    assert "stdout" not in metadata_of(assemble.evaluated(REQUEST, CPU, result(), end))
    for found in (result(WRONG), result(observations=(UnjoinedStream(),))):
        metadata = metadata_of(assemble.evaluated(REQUEST, CPU, found, end))
        assert metadata["stdout"] == "see out at 0x..."


def test_leftover_processes_are_flagged_when_candidate_passes() -> None:
    end = replace(END, orphans=2)
    (flag,) = assemble.evaluated(REQUEST, CPU, result(), end).flags
    assert (flag.id, flag.evidence) == ("background_threads", "2 processes were left running")
    assert assemble.evaluated(REQUEST, CPU, result(WRONG), end).flags == ()


def test_candidate_raising_before_first_trial_reports_no_trials() -> None:
    broken = result(Raised(failure=LAUNCH), trials_passed=0, grades=())
    assert "correctness_trials" not in metadata_of(assemble.evaluated(REQUEST, CPU, broken, END))
    wrong = assemble.evaluated(REQUEST, CPU, result(WRONG, trials_passed=0, grades=()), END)
    assert metadata_of(wrong)["correctness_trials"] == "(0 / 3)"
    assert "tier" not in metadata_of(wrong)


def test_least_precise_output_counts() -> None:
    metadata = metadata_of(assemble.evaluated(REQUEST, CPU, result(grades=(STRICT, HALF)), END))
    assert (metadata["tier"], metadata["precision"]["basis"]) == ("half", "emulated")


def test_infinite_numbers_are_null_on_the_wire() -> None:
    wild = replace(HALF, error=replace(HALF.error, rms=math.inf))
    metadata = metadata_of(assemble.evaluated(REQUEST, CPU, result(grades=(wild,)), END))
    assert metadata["precision"]["rms"] is None
    json.dumps(metadata, allow_nan=False)


def test_profile_is_reported_with_why_there_is_none() -> None:
    profile = Profile((), 1.0, 2.0, 3, 4.0, None, None, "NVIDIA H200")
    made = ProfileResult(ending=Passed(), profile=profile)
    received = ProfileResult.from_json(json.loads(json.dumps(made.to_json())))
    report = reports.profiled(received, "/judge/job-1")
    assert (report.status, report.profile, report.message) == ("passed", profile, "")
    silent = reports.profiled(ProfileResult(ending=Passed()), "/judge/job-1")
    assert silent.message == "the profiler does not work here, or saw nothing"
    failed = reports.profiled(ProfileResult(ending=Raised(failure=LAUNCH)), "/judge/job-1")
    assert (failed.status, failed.profile) == ("launch", None)
    assert failed.message.startswith("launch during forward in line 7: ValueError\n")


def test_profile_without_an_end_says_why() -> None:
    found = [
        reports.without_gpu(),
        reports.profile_timed_out(9, Stage.TIMING),
        reports.profiled_process_gone("from signal 9"),
    ]
    assert [(report.status, report.message) for report in found] == [
        ("not_checked", "profiles need a judge with a GPU"),
        ("timeout", "not done after 9 s during timing"),
        ("crash", "the process ended from signal 9"),
    ]


def test_source_of_the_limit_is_not_too_large() -> None:
    assert reports.excess("candidate", "é", 2) is None
    assert reports.excess("candidate", "\ud800", 3) is None
    assert reports.excess("reference", "éx", 2) == (
        "the reference has 3 bytes; this judge takes at most 2 (MAX_SOURCE_BYTES)"
    )


def test_large_source_is_a_load_failure() -> None:
    verdict, report, profile = (
        reports.too_large(kind, "it is large", hardware="H", device="cpu")
        for kind in ("candidate", "compile", "profile")
    )
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.LOAD
    assert metadata_of(verdict) == {
        "hardware": "H",
        "device": "cpu",
        "compilation_error_name": "SourceTooLarge",
        "compilation_error": "it is large",
        "feedback": "load: it is large\nNext: Make the source shorter; compute tables of numbers instead of "
        "writing them out.",
    }
    assert isinstance(report, CompileReport)
    assert (report.ok, report.status, report.message) == (False, "load", "it is large")
    assert report.error_name == "SourceTooLarge"
    assert isinstance(profile, ProfileReport)
    assert (profile.status, profile.profile, profile.message) == ("load", None, "it is large")


def test_seconds_of_the_stages_are_rounded() -> None:
    verdict = make_verdict(status=Status.PASSED, metadata={"tier": "strict"})
    timed = assemble.with_seconds(verdict, {"load": 0.12349, "lock": 1.0})
    assert metadata_of(timed) == {"tier": "strict", "seconds": {"load": 0.123, "lock": 1.0}}


def test_feedback_starts_with_unusable_tunables() -> None:
    failed = make_verdict(status=Status.LOAD, metadata={"feedback": "load: no\nNext: yes"})
    verdict = tuning.with_unused_tunables(failed, "its name is 3")
    assert metadata_of(verdict)["feedback"] == "TUNABLES was not used: its name is 3\nload: no\nNext: yes"
    assert metadata_of(verdict)["tuned"] == {"problem": "its name is 3"}
    passed = tuning.with_unused_tunables(Verdict(status=Status.PASSED), "its name is 3")
    assert metadata_of(passed)["feedback"] == "TUNABLES was not used: its name is 3"


def test_judge_that_times_nothing_names_the_declared_values() -> None:
    verdict = tuning.with_declared_values(Verdict(status=Status.PASSED), {"BLOCK": 64})
    assert metadata_of(verdict) == {"tuned": {"values": {"BLOCK": 64}, "timing": "interpreter"}}


def test_verdict_reports_the_sweep_that_chose_its_values() -> None:
    tunables = read_tunables("TUNABLES = {'BLOCK': [32, 64, 128]}\nBLOCK = 64\n")
    swept = Swept(
        ready={0: 9.0, 1: 8.0},
        failed={2: "é" * 100, 1: "x"},
        ms={0: 2.0, 1: 1.0},
        parts_s={"compile": 1.23456},
    )
    verdict = tuning.with_sweep(Verdict(status=Status.PASSED), tunables, 1, swept, 7.65432)
    assert metadata_of(verdict)["tuned"] == {
        "values": {"BLOCK": 32},
        "declared": {"BLOCK": 64},
        "tried": 3,
        "failed": 2,
        "reasons": {clip("é" * 100, 160): 1, "x": 1},
        "declared_ms": 2.0,
        "best_ms": 1.0,
        "seconds": 7.654,
        "spent_s": {"compile": 1.235},
    }
    unknown = tuning.with_sweep(Verdict(status=Status.PASSED), tunables, 2, swept, 1.0)
    assert metadata_of(unknown)["tuned"]["best_ms"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"ending": {"kind": "passed", "status": "passed"}},
        {"ending": {"kind": "perfect"}},
        {"trials_passed": "3"},
        {"observations": [{"kind": "clock_mismatch"}]},
        {"launches": None},
        {"flags": []},
        {"ending": WRONG.to_json(), "timing": timing().to_json()},
        {"ending": Raised(failure=LAUNCH).to_json() | {"failure": {"status": "passed"}}},
    ],
)
def test_malformed_results_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        EvaluationResult.from_json(result().to_json() | change)


def test_no_failure_passes() -> None:
    with pytest.raises(ValidationError, match="no candidate can report passed"):
        Raised(failure=replace(LAUNCH, status=Status.PASSED))


def test_verdicts_are_assembled_without_torch() -> None:
    program = (
        "import sys\nsys.modules['torch'] = sys.modules['triton'] = None\n"
        "import online_judge.verdict.assemble, online_judge.verdict.reports\n"
        "loaded = [name for name in sys.modules if name.startswith(('online_judge.evaluator',"
        " 'online_judge.candidate'))]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_verdict_includes_available_baseline_samples() -> None:
    rounds = ((0.3, 0.31), (0.29,))
    verdict = assemble.evaluated(REQUEST, GPU, result(timing=timing(baseline_samples=rounds)), END)
    assert stats_of(verdict)["baseline_samples"] == [[0.3, 0.31], [0.29]]
    plain = assemble.evaluated(REQUEST, GPU, result(timing=timing()), END)
    assert "baseline_samples" not in stats_of(plain)


def test_own_tolerance_brings_the_sol_score() -> None:
    h200 = peak("NVIDIA H200")
    assert h200 is not None
    moved = int(h200.bytes_per_s * 0.1e-3)  # 0.1 ms
    timed = timing(peak=h200, read_bytes=moved, output_bytes=0, gpu_ms=0.2, score_ms=0.2, flops=0.0)
    found = assemble.evaluated(REQUEST, GPU, result(timing=timed, tolerance=Tolerance()), END)
    assert stats_of(found)["sol_ms"] == pytest.approx(0.1, rel=1e-6)
    assert stats_of(found)["sol_score"] == pytest.approx(1 / (1 + 0.1 / 0.2), rel=1e-6)
    assert metadata_of(found)["tolerance"]["max_atol"] == 0.01
    assert found.tier is None
    assert "sol_score" not in stats_of(assemble.evaluated(REQUEST, GPU, result(timing=timed), END))
