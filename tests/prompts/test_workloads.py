"""What prompts say of workloads: shown ones with their times, hidden ones never."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel, workloads_text
from adaexplore.prompts.steps import StepPrompts
from tests.verdicts import make_verdict

LARGE, SMALL = (all_actions()[kind] for kind in (StepKind.LARGE, StepKind.SMALL))

TASK = Task(1, "7", "7_double", "class Model: ...\n", "fp32", Path("7.py"), "SECRET = 'source'\n")
FACTS = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10, shows_flags=True)


def entry(name: str, speedup: float | None = 2.0, hidden: bool = False, **more: Any) -> dict[str, Any]:
    known = {"name": name, "weight": 1.0, "hidden": hidden, "inputs": "" if hidden else "float32[4, 8]"}
    times = {"gpu_ms": 0.5, "baseline_gpu_ms": 1.0} if speedup is not None else {}
    passed = {"status": "passed", "correctness": True, "speedup": speedup, "flags": []}
    return known | passed | times | more


def verdict(*entries: dict[str, Any], **metadata: Any) -> Verdict:
    stats = {"fast_p": 2.0}
    metadata = {"workloads": list(entries)} | metadata
    return make_verdict(status=Status.PASSED, metadata=metadata, runtime_ms=0.5, runtime_stats=stats)


def test_each_shown_workload_lists_its_times() -> None:
    found = verdict(
        entry("tall", weight=3.0),
        entry("wide", None, status="wrong_value", correctness=False),
        worst_workload={"name": "tall", "why": "speedup 0.8"},
    )
    assert workloads_text(found).splitlines()[1:] == [
        "- tall (weight 3, inputs float32[4, 8]): 2.000x (0.5 ms, reference 1 ms)",
        "- wide (weight 1, inputs float32[4, 8]): wrong_value",
        "Too slow on tall: speedup 0.8",
    ]


def test_no_prompt_shows_a_hidden_workload() -> None:
    hidden = entry("SECRET", 0.5, hidden=True, inputs="float32[37]")
    found = verdict(entry("tall"), hidden, worst_workload={"name": "a hidden workload", "why": "speedup 0.5"})
    kernel = ShownKernel("class ModelNew: ...", found)
    for prompts in (StepPrompts(TASK, FACTS, layout="shared"), StepPrompts(TASK, FACTS, layout="paper")):
        for prompt in (
            prompts.step(LARGE, (kernel,)),
            prompts.step(SMALL, (kernel,)),
            prompts.review((kernel,)),
        ):
            assert "SECRET" not in prompt.text
            assert "37" not in prompt.text
    assert "Too slow on a hidden workload: speedup 0.5" in workloads_text(found)


def test_prompts_of_the_paper_have_no_table() -> None:
    facts = replace(FACTS, shows_flags=False)
    kernel = ShownKernel("class ModelNew: ...", verdict(entry("tall"), entry("wide")))
    assert "Workloads" not in StepPrompts(TASK, facts).step(LARGE, (kernel,)).text


def test_one_workload_has_no_table() -> None:
    assert workloads_text(Verdict(status=Status.PASSED)) == workloads_text(None) == ""
    assert workloads_text(verdict(*([] * 2))) == ""


def test_of_many_the_worst_are_listed() -> None:
    found = verdict(*(entry(str(number), 1.0 + number) for number in range(20, 0, -1)))
    lines = workloads_text(found).splitlines()[1:]
    assert [line.split()[1] for line in lines[:-1]] == [str(number) for number in range(12, 0, -1)]
    assert lines[-1] == "- 8 more"


def test_metadata_of_another_shape_is_no_workload() -> None:
    assert (
        make_verdict(status=Status.PASSED, metadata={"workloads": "x", "worst_workload": 3}).workloads == ()
    )
