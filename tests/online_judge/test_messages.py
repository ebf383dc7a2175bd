"""Messages between gateway and evaluator, as they travel."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, ProblemTraits
from online_judge.checks.facts import kernels
from online_judge.checks.facts.endings import Passed
from online_judge.checks.facts.findings import Failure
from online_judge.protocol import messages
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.messages import Answer, Clock, Job, Release, told
from online_judge.protocol.result import EvaluationResult, ProfileResult

SURROGATE = "x = '\ud800'"
ASKED = EvaluationRequest(original_model_src="y = 1", custom_model_src=SURROGATE, best_so_far=1.5)
KNOWN: dict[str, Any] = {"seeds": "00ff", "alone": True, "hardware": "a GPU"}


def sent(message: Any) -> Any:
    return json.loads(json.dumps(message.to_json()))


@pytest.mark.parametrize(
    "order",
    [
        Job(
            op="evaluate",
            request=ASKED,
            recorded_ms=1.5,
            clean_ms=CleanMs(2.0, 3.0, 1.0),
            name="n",
            build_dir="/b",
            **KNOWN,
        ),
        Job(op="baseline", request=ASKED, **KNOWN),
        Job(op="profile", request=ASKED, **KNOWN),
        Job(op="sweep", request=ASKED, sweep=SweepTerms(10.0, (3, 5), careful=True), **KNOWN),
        Job(op="problem", request=ProblemRequest(original_model_src=SURROGATE, thorough=True), **KNOWN),
        Release(),
    ],
    ids=lambda order: order.op,
)
def test_order_arrives_as_it_was_sent(order: Job | Release) -> None:
    assert messages.ORDERS.validate_python(sent(order)) == order


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("problem", {"request": ASKED}),
        ("evaluate", {"request": ProblemRequest(original_model_src="")}),
        ("sweep", {"request": ASKED}),
        ("profile", {"request": ASKED, "sweep": SweepTerms(1.0)}),
    ],
)
def test_impossible_job_is_refused(op: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no job"):
        Job(op=op, **KNOWN, **fields)


@pytest.mark.parametrize(
    ("op", "result"),
    [
        ("evaluate", EvaluationResult(ending=Passed())),
        ("profile", ProfileResult(ending=Passed())),
        ("sweep", Swept(ready={0: 1.0}, ms={0: 0.5}, ranking=[0], failed={1: "late"}, suspects=[2])),
        ("baseline", messages.BaselineTimed(ms=CleanMs(0.5, 0.6, 0.4))),
        ("baseline", messages.BaselineTimed(ms=None)),
        ("problem", messages.ProblemRuns()),
        (
            "problem",
            messages.ProblemRuns(
                traits=ProblemTraits(flags=[], elements=1, call_ms=math.inf, operators=["add"], graph="")
            ),
        ),
        ("release", messages.Released()),
        ("sweep", messages.CandidateGone(stage=Stage.TIMING, why="")),
        ("problem", messages.NotEnoughMemory(why="no memory")),
        ("profile", messages.Failed(kind="reference_failed", reason="it raises", broken=True)),
        ("evaluate", messages.Failed(kind="judge_failed", reason="KeyError: 3", broken=False)),
    ],
)
def test_answer_arrives_as_it_was_sent(op: str, result: Any) -> None:
    assert told(sent(Answer(result=result)), op) == Answer(result=result)


@pytest.mark.parametrize("stage", ["", *Stage])
def test_clock_arrives_as_it_was_sent(stage: Any) -> None:
    clock = Clock(clock="tuning", stage=stage)
    assert told(sent(clock), "evaluate") == clock


@pytest.mark.parametrize(
    "read",
    [
        lambda: kernels.Launches.from_claim({"counts": {}, "total": 1, "defined": 1}).total == 1,
        lambda: Failure.from_claim(Stage.LOAD, {"status": "syntax"}).status == "syntax",
    ],
)
def test_later_claims_build_no_reader(monkeypatch: pytest.MonkeyPatch, read: Callable[[], bool]) -> None:
    def build(*given: object, **options: object) -> None:
        raise AssertionError("a TypeAdapter is built")

    assert read()
    monkeypatch.setattr(TypeAdapter, "__init__", build)
    assert read()
