"""Prompts are held by snapshots; after a deliberate change run with UPDATE_SNAPSHOTS=1 and read the diff."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import Tier
from adaexplore.prompts.blocks import (
    FEEDBACK_LIMIT,
    FLAGS_LIMIT,
    JudgeFacts,
    ShownKernel,
    explain,
    fence_for,
    finding,
    flags_line,
)
from adaexplore.prompts.render import render
from adaexplore.prompts.steps import large_prompt, repair_prompt, review_prompt, small_prompt

SNAPSHOTS = Path(__file__).parent / "snapshots"
TASK = Task(
    level=1,
    problem_id="7",
    name="7_double",
    reference=(
        "import torch.nn as nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n        return x * 2\n"
    ),
    dtype="fp32",
    path=Path("7_double.py"),
)
FACTS = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10)
RULES = ("You cannot call `tl.tanh`.", "You cannot use `break` in a kernel.")
FAST = ShownKernel(
    "class ModelNew: ...  # fast",
    Verdict(status=Status.PASSED, runtime_ms=0.5, runtime_stats={"mean": 0.5, "fast_p": 2.0}),
)
BROKEN = ShownKernel(
    "class ModelNew: ...  # broken",
    Verdict(status=Status.COMPILE, metadata={"feedback": "line 3: cannot call tl.tanh"}),
)


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def test_first_large_step_has_task_example_rules_and_no_pool() -> None:
    check("large_first", large_prompt(TASK, FACTS, RULES, (), (), with_example=True))


def test_large_step_prints_elite_before_recent_kernels() -> None:
    check("large_pools", large_prompt(TASK, FACTS, (), (FAST,), (BROKEN, FAST), with_example=False))


def test_review_shows_one_kernel() -> None:
    check("review", review_prompt(TASK, FACTS, RULES, BROKEN))


def test_small_step_shows_the_chain_oldest_first() -> None:
    check("small", small_prompt(TASK, FACTS, RULES, (BROKEN, FAST), "1. Use more warps."))


def test_small_step_without_a_review_gets_the_standing_guidance() -> None:
    assert render("guidance_default") in small_prompt(TASK, FACTS, (), (FAST,), "  ")


def test_repair_names_reason_and_nearest_lines() -> None:
    check(
        "repair",
        repair_prompt("a = 1\nb = 2\n", "<old_str_1>a=1</old_str_1>", "Edit 1: not found", "1: a = 1"),
    )


def test_growing_blocks_follow_fixed_ones() -> None:
    without = large_prompt(TASK, FACTS, RULES, (), (), with_example=True)
    with_pool = large_prompt(TASK, FACTS, RULES, (), (FAST,), with_example=True)
    fixed = TASK.reference.strip()
    end = without.index(fixed) + len(fixed)
    assert with_pool[:end] == without[:end]
    assert RULES[1] in with_pool[:end]


def test_missing_and_unused_values_raise() -> None:
    with pytest.raises(ValueError, match=r"missing \['accuracy', 'guidance'"):
        render("small", rules="", hardware="", fence="", reference="", kernels="", trials=5, tolerance="1")
    with pytest.raises(ValueError, match=r"unused \['nonsense'\]"):
        render("guidance_default", nonsense="x")


def test_interpreter_times_enter_no_prompt() -> None:
    verdict = Verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"})
    assert finding(verdict) == "passed"


def test_finding_gives_speedup_and_both_times() -> None:
    assert finding(FAST.verdict) == "passed, 2.000x (0.5 ms, reference 1 ms)"


SUSPECT = ShownKernel(
    "class ModelNew: ...  # torch only",
    Verdict(
        status=Status.PASSED,
        runtime_ms=0.5,
        metadata={
            "integrity": ["no_own_kernel", "launch_bound"],
            "integrity_evidence": [
                {"id": "no_own_kernel", "severity": "suspect", "evidence": "0 of 5 calls\nlaunch one"},
                {"id": "launch_bound", "severity": "note", "evidence": "18 us"},
            ],
        },
        runtime_stats={"mean": 0.5, "fast_p": 2.0},
    ),
)


def test_the_model_is_told_what_makes_a_correct_kernel_suspect_in_one_line() -> None:
    facts = replace(FACTS, shows_flags=True)
    line = "passed, 2.000x (0.5 ms, reference 1 ms)\nflags: no_own_kernel: 0 of 5 calls launch one\n"
    for prompt in (
        large_prompt(TASK, facts, (), (SUSPECT,), (), with_example=False),
        review_prompt(TASK, facts, (), SUSPECT),
        small_prompt(TASK, facts, (), (SUSPECT,), ""),
    ):
        assert line in prompt
    assert "flags:" not in small_prompt(TASK, facts, (), (FAST, BROKEN), "")


def test_without_that_wish_flags_change_no_prompt() -> None:
    unflagged = ShownKernel(SUSPECT.source, SUSPECT.verdict.model_copy(update={"metadata": {}}))  # type: ignore[union-attr]
    assert small_prompt(TASK, FACTS, (), (SUSPECT,), "") == small_prompt(TASK, FACTS, (), (unflagged,), "")


def test_a_long_list_of_flags_is_cut() -> None:
    names = [f"flag_number_{number}" for number in range(100)]
    line = flags_line(Verdict(status=Status.PASSED, metadata={"integrity": names}))
    assert len(line) == FLAGS_LIMIT
    assert "\n" not in line


@pytest.mark.parametrize(
    ("tier", "said"), [("strict", "no TF32, no half"), ("tf32", "with TF32 products"), ("half", "bf16")]
)
def test_the_model_is_told_the_precision_that_is_asked_for(tier: Tier, said: str) -> None:
    facts = replace(FACTS, tier=tier, dtype="bf16" if tier == "half" else "fp32")
    assert said in large_prompt(TASK, facts, (), (), (), with_example=False)
    assert said in small_prompt(TASK, facts, (), (FAST,), "")


def test_explanations_of_other_judges_are_cut_from_the_front() -> None:
    verdict = Verdict(status=Status.LAUNCH, metadata={"runtime_error": "x" * 5000 + "the cause"})
    text = explain(verdict)
    assert len(text) == FEEDBACK_LIMIT
    assert text.endswith("the cause")


def test_fence_is_longer_than_any_in_the_source() -> None:
    assert fence_for('"""\n```\n"""') == "````"


def test_a_reference_that_holds_a_fence_stays_in_one_block() -> None:
    reference = '"""\n```python\nprint(1)\n```\n"""\n' + TASK.reference
    task = replace(TASK, reference=reference)
    block = f"````python\n{reference.strip()}\n````"
    assert block in large_prompt(task, FACTS, (), (), (), with_example=True)
    assert block in review_prompt(task, FACTS, (), FAST)
    assert block in small_prompt(task, FACTS, (), (FAST,), "")
