"""The release's form of verdicts: keys of other judges survive, names change in one module."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.judging.parts import DeviceUse, Effect, FailureText, RuntimeStats
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import from_metrics, to_metrics
from adaexplore.core.verdict import Verdict

WORKLOAD = {"name": "a", "weight": 2.0, "status": "passed", "correctness": True, "later": [1]}


def form(metadata: dict[str, Any], stats: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "compiled": True,
        "correctness": True,
        "metadata": {"status": "passed", **metadata},
        "runtime": 2.0,
        "runtime_stats": {"fast_p": 1.5, **(stats or {})},
    }


@pytest.mark.parametrize(
    ("metadata", "stats"),
    [
        ({"hardware": "A6000", "device": 0, "note": ["x"], "flags": 3, "unknown": {"a": 1}}, {}),
        ({"tier": "quarter", "precision": {"p": 1}, "tuned": [1], "workloads": "x"}, {}),
        ({"integrity": ["a"]}, {}),
        ({"integrity": ["degenerate_problem", "launch_bound"], "integrity_evidence": [7]}, {}),
        ({"workloads": [WORKLOAD], "worst_workload": {"name": "a", "why": "slow", "by": 2}}, {}),
        ({"tuned": {"values": {"A": True, "B": 64, "C": 0.5, "D": "x"}, "later": 1}}, {}),
        ({"other_gpus": {"H100": form({"hardware": "H100"})}, "error_type": "E", "lints": ["call-a"]}, {}),
        ({}, {"ci_low": "1", "speedup": 3, "use": 1, "runtime_ms": 2, "unknown": 3}),
        ({}, {"slot": {"held_s": 1.0, "waited_s": 0.0, "gpu_s": 0.5, "later": 1}, "clocks": {"at": 1}}),
        ({}, {"witness": {"block_ms": 1.0}, "baseline_clean_ms": None, "baseline_samples": [[0.1], [0.2]]}),
    ],
)
def test_every_key_survives_a_round_trip(metadata: dict[str, Any], stats: dict[str, Any]) -> None:
    told = form(metadata, stats)
    assert to_metrics(from_metrics(told)) == told
    assert from_metrics(to_metrics(from_metrics(told))) == from_metrics(told)


def test_program_and_wire_have_one_name_each() -> None:
    use = DeviceUse(held_s=1.0, waited_s=0.0, gpu_s=0.5)
    timing = RuntimeStats(runtime_ms=2.0, speedup=1.5, baseline_ms=3.0, use=use)
    told = to_metrics(Verdict(status=Status.PASSED, timing=timing))
    assert told["runtime"] == 2.0
    slot = {"held_s": 1.0, "waited_s": 0.0, "gpu_s": 0.5}
    assert told["runtime_stats"] == {"fast_p": 1.5, "baseline_time": 3.0, "slot": slot}
    assert from_metrics(told).timing == timing


def test_timed_calls_of_a_baseline_are_read() -> None:
    timing = from_metrics(form({}, {"baseline_samples": [[0.1, 0.2], [0.3]]})).timing
    assert timing is not None
    assert (timing.baseline_samples, timing.unknown) == (((0.1, 0.2), (0.3,)), {})


def test_only_given_facts_are_written() -> None:
    assert to_metrics(Verdict(status=Status.PASSED))["metadata"] == {"status": "passed"}
    failed = Verdict(status=Status.TIMEOUT, sandbox=None, failure=FailureText(error="late"))
    assert to_metrics(failed)["metadata"] == {"status": "timeout", "sandbox": None, "error": "late"}


def test_effects_survive_a_round_trip() -> None:
    written = Verdict(status=Status.PASSED, effects=(Effect(name="cache", role="input"),))
    assert to_metrics(written)["metadata"]["effects"] == [{"name": "cache", "role": "input"}]
    assert from_metrics(to_metrics(written)) == written


def test_infinite_numbers_are_written_as_null() -> None:
    timing = RuntimeStats(speedup=1.0, ci_high=math.inf)
    assert to_metrics(Verdict(status=Status.PASSED, timing=timing))["runtime_stats"]["ci_high"] is None


def test_times_belong_to_passed_verdicts() -> None:
    with pytest.raises(ValidationError, match="cannot have times"):
        Verdict(status=Status.CRASH, timing=RuntimeStats(speedup=1.0))
    with pytest.raises(ValidationError, match="cannot have times"):
        Verdict(status=Status.CRASH, interpreted=True)


def test_job_answers_hold_the_typed_verdict() -> None:
    verdict = from_metrics(form({"hardware": "GPU", "note": "x"}))
    answer = JobAnswer(id="a", kind="candidate", state="done", verdict=verdict)
    told = json.loads(answer.model_dump_json())
    assert told["verdict"] == {"status": "passed", **to_metrics(verdict)}
    assert JobAnswer.model_validate(told) == answer
    with pytest.raises(ValidationError, match="not a verdict"):
        JobAnswer.model_validate(told | {"verdict": {"status": "passed"}})
