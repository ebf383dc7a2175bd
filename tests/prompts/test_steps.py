"""Prompts are held by snapshots; after a deliberate change run with UPDATE_SNAPSHOTS=1 and read the diff."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.judging.profile import KernelProfile, Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.task import Task
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Tier
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import (
    FEEDBACK_LIMIT,
    FLAGS_LIMIT,
    JudgeFacts,
    ShownKernel,
    contract_block,
    explain,
    fence_for,
    finding,
    flags_line,
)
from adaexplore.prompts.directions import direction_text
from adaexplore.prompts.profile import PROFILE_LIMIT, profile_text
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.steps import (
    Layout,
    StepPrompts,
    repair_prompt,
    review_first,
)
from tests.differences import apply_differences
from tests.verdicts import make_verdict

LARGE, SMALL = (all_actions()[kind] for kind in (StepKind.LARGE, StepKind.SMALL))

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
    make_verdict(status=Status.PASSED, runtime_ms=0.5, runtime_stats={"mean": 0.5, "fast_p": 2.0}),
)
BROKEN = ShownKernel(
    "class ModelNew: ...  # broken",
    make_verdict(status=Status.COMPILE, metadata={"feedback": "line 3: cannot call tl.tanh"}),
)
VARIED = (
    "class ModelNew: ...  # varied\n"
    + "".join(f"a{line} = b{line} + {line}\n" for line in range(30))
    + "BLOCK = {}\n"
)


SUSPECT = ShownKernel(
    "class ModelNew: ...  # torch only",
    make_verdict(
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


PAPER = StepPrompts(TASK, FACTS, RULES, example=True, layout="paper")
SHARED = StepPrompts(TASK, replace(FACTS, shows_flags=True, tunes=True), RULES, example=True, layout="shared")
BOTH: tuple[Layout, Layout] = ("paper", "shared")


def check(name: str, prompt: Prompt | str) -> None:
    text = prompt.text if isinstance(prompt, Prompt) else prompt
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def test_prompts_of_the_paper_are_as_they_were() -> None:
    check("large_first", PAPER.step(LARGE, ()))
    check("large_pools", replace(PAPER, rules=(), example=False).step(LARGE, (BROKEN, FAST), (FAST,)))
    check("review", PAPER.review((FAST, BROKEN)))
    check("small", PAPER.step(SMALL, (BROKEN, FAST), guidance="1. Use more warps."))


def test_prompts_that_begin_alike() -> None:
    check("shared_first", SHARED.step(LARGE, ()))
    check("shared_large", SHARED.step(LARGE, (BROKEN, FAST)))
    check("shared_reviewed", SHARED.step(SMALL, (FAST, BROKEN), guidance=review_first()))
    check("shared_small", SHARED.step(SMALL, (BROKEN, FAST)))


def test_small_step_without_review_gets_default_guidance() -> None:
    for prompts in (PAPER, SHARED):
        assert prompts.step(SMALL, (FAST,), guidance="  ") == prompts.step(SMALL, (FAST,))
        assert render("guidance_default") in prompts.step(SMALL, (FAST,)).now


def test_repair_names_the_error_and_answer_format() -> None:
    check("repair_edits", repair_prompt("Edit 1: not found.\nThe nearest lines:\n1: a = 1", edits=True))
    check("repair_kernel", repair_prompt("There is no code in your answer.", edits=False))


def test_prompts_of_one_task_share_a_prefix() -> None:
    prompts = [
        SHARED.step(LARGE, ()),
        SHARED.step(LARGE, (FAST, BROKEN)),
        SHARED.step(SMALL, (BROKEN,)),
        SHARED.step(SMALL, (BROKEN, FAST), guidance=review_first()),
    ]
    assert len({(prompt.fixed, prompt.task) for prompt in prompts}) == 1
    module = TASK.reference.strip()
    for prompt in prompts:
        assert prompt.text.index(module) + len(module) < prompt.cuts[1]
        assert all(rule in prompt.text[: prompt.cuts[0]] for rule in RULES)


def test_the_fixed_part_knows_no_task() -> None:
    other = replace(TASK, reference="class Model: ...\n", name="other")
    assert replace(SHARED, task=other).step(LARGE, ()).fixed == SHARED.step(LARGE, ()).fixed


def test_a_longer_chain_begins_like_the_shorter_one() -> None:
    chain = (BROKEN, FAST, SUSPECT)
    shorter, longer, again = (
        SHARED.step(SMALL, chain[:2]),
        SHARED.step(SMALL, chain),
        SHARED.step(SMALL, chain, guidance=review_first()),
    )
    assert longer.text.startswith(shorter.text[: shorter.cuts[-1]])
    assert longer.text[: longer.cuts[-1]] == again.text[: again.cuts[-1]]
    assert longer.cuts[-2] == shorter.cuts[-1]
    assert len(longer.now) < 250


def test_pool_that_begins_like_chain_shares_its_prefix() -> None:
    chain, pool = SHARED.step(SMALL, (FAST,), guidance=review_first()), SHARED.step(LARGE, (FAST, BROKEN))
    assert pool.text.startswith(chain.text[: chain.cuts[-1]])


NEAR, NEARER = (replace(FAST, source=VARIED.format(width)) for width in (64, 128))


def test_near_duplicate_pool_kernels_are_shown_as_diffs() -> None:
    check("shared_differences", SHARED.step(LARGE, (FAST, NEAR, NEARER, BROKEN, NEAR)))
    text = SHARED.step(LARGE, (NEAR, NEARER)).text
    (told,) = re.findall(r"^Kernel 0 with these changes:\n```diff\n(.*?)^```$", text, re.M | re.S)
    assert apply_differences(NEAR.source.rstrip("\n"), told) == NEARER.source.rstrip("\n")


def test_very_different_kernel_is_shown_whole() -> None:
    text = SHARED.step(LARGE, (NEAR, FAST, replace(NEAR, source=NEAR.source.replace("+", "-")))).text
    assert "with these changes" not in text


def test_chains_and_paper_prompts_show_whole_kernels() -> None:
    chain = (NEAR, NEARER, NEAR)
    for prompt in (SHARED.step(SMALL, chain), PAPER.step(SMALL, chain), PAPER.step(LARGE, chain)):
        assert prompt.text.count("class ModelNew: ...  # varied") == 3
        assert "with these changes" not in prompt.text


def test_growing_pool_keeps_the_prompt_prefix() -> None:
    pool = (NEAR, NEARER, FAST, NEAR)
    for size in range(1, len(pool)):
        shorter, longer = SHARED.step(LARGE, pool[:size]), SHARED.step(LARGE, pool)
        assert longer.text.startswith(shorter.text[: shorter.cuts[-1]])


def test_the_paper_marks_nothing() -> None:
    assert PAPER.step(LARGE, (FAST,)).cuts == PAPER.step(SMALL, (FAST,)).cuts == ()


PROFILE = Profile(
    kernels=(
        KernelProfile("_fused", 2, 250.0, 0.625, True, 64, 0, 16384, 4, 1024, 0.5),
        KernelProfile("gemm\nlibrary", 1, 150.0, 0.375),
    ),
    gpu_us=400.0,
    wall_us=420.0,
    bytes=134_217_728,
    flops=0.0,
    roofline=0.35,
    bound="memory",
    hardware="NVIDIA H200",
)


def test_profile_comes_after_all_kernels() -> None:
    profiled = replace(FAST, profile=PROFILE)
    check("profile", profile_text(PROFILE))
    for with_it, without in (
        (
            SHARED.step(SMALL, (BROKEN, profiled), guidance="x"),
            SHARED.step(SMALL, (BROKEN, FAST), guidance="x"),
        ),
        (SHARED.step(LARGE, (profiled, BROKEN)), SHARED.step(LARGE, (FAST, BROKEN))),
    ):
        assert with_it.text.startswith(without.text[: without.cuts[-1]])
        assert profile_text(PROFILE) in with_it.growing[-1]
        assert with_it.now == without.now
    assert PAPER.step(SMALL, (profiled,), guidance="x") == PAPER.step(SMALL, (FAST,), guidance="x")


@pytest.mark.parametrize(
    ("changed", "kernel", "said"),
    [
        ({"bound": "launch", "wall_us": 1000.0}, {}, "the host; the GPU works in 40% of a call"),
        ({}, {"spills": 12, "occupancy": 0.1}, "12 registers a thread are spilled in _fused, 62%"),
        ({}, {"occupancy": 0.12}, "occupancy of 12% in _fused, 62% of the GPU time"),
        ({}, {"occupancy": 0.12, "own": False}, "memory traffic, at 35% of what the peak allows"),
        ({"bound": "compute"}, {}, "arithmetic, at 35% of what the peak allows"),
        ({"bound": None, "roofline": None}, {}, None),
    ],
)
def test_a_profile_names_one_bottleneck(
    changed: dict[str, Any], kernel: dict[str, Any], said: str | None
) -> None:
    longest, *others = PROFILE.kernels
    text = profile_text(replace(PROFILE, kernels=(replace(longest, **kernel), *others), **changed))
    named = [line for line in text.splitlines() if line.startswith("Bottleneck: ")]
    assert len(named) == (said is not None)
    assert said is None or named[0].startswith(f"Bottleneck: {said}")


def test_a_profile_keeps_within_its_limit() -> None:
    kernels = tuple(replace(PROFILE.kernels[0], name="k" * 500) for _ in range(100))
    text = profile_text(replace(PROFILE, kernels=kernels))
    assert PROFILE_LIMIT - 200 < len(text.encode()) <= PROFILE_LIMIT


def test_tunables_are_requested_only_for_tuning_judges() -> None:
    assert "TUNABLES = {" in SHARED.step(LARGE, ()).fixed
    assert "TUNABLES" not in replace(SHARED, facts=FACTS).step(LARGE, ()).text
    assert "TUNABLES" not in replace(PAPER, facts=SHARED.facts).step(LARGE, ()).text


def test_prompt_states_tuned_values_and_repeated_program() -> None:
    tuned = make_verdict(status=Status.PASSED, metadata={"tuned": {"values": {"BLOCK": 128, "STAGES": 3}}})
    text = SHARED.step(SMALL, (replace(FAST, verdict=tuned, repeated=True),), guidance="x").text
    assert "Verdict: passed\ntuned by the judge: BLOCK = 128, STAGES = 3\nnote: the same program" in text
    plain = PAPER.step(SMALL, (replace(FAST, verdict=tuned, repeated=True),), guidance="x").text
    assert "tuned by" not in plain
    assert "same program" not in plain


def kernel(name: str, speedup: float | None) -> ShownKernel:
    source = f"class ModelNew: ...  # {name}" + "\nx = 1" * 200
    if speedup is None:
        return ShownKernel(source, Verdict(status=Status.COMPILE))
    return ShownKernel(
        source,
        make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats={"mean": 1.0, "fast_p": speedup}),
    )


def remains(prompts: StepPrompts, names: str, pool: bool) -> list[str]:
    """Return the parts of a prompt by ever smaller limits: kernels by letter, E(xample), P(rofile), rules."""
    shown = tuple(kernel(name, speed) for name, speed in zip(names, (1.0, 3.0, None, 2.0), strict=True))
    shown = (*shown[:3], replace(shown[3], profile=PROFILE)) if not pool else shown
    left: list[str] = []
    for budget in range(3000, 0, -5):
        fitted = replace(prompts, max_tokens=budget)
        text = (fitted.step(LARGE, shown) if pool else fitted.step(SMALL, shown, guidance="x")).text
        parts = "".join(name for name in names if f"# {name}\n" in text)
        parts += "P" * ("Profile of" in text) + "E" * ("form of an answer" in text)
        parts += str(sum(rule in text for rule in RULES))
        if estimate_tokens(text) > budget:
            break
        if not left or left[-1] != parts:
            left.append(parts)
    return left


def test_chain_over_budget_drops_profile_and_oldest_first() -> None:
    found = remains(SHARED, "abcd", pool=False)
    assert found == ["abcdPE2", "abcdE2", "bcdE2", "cdE2", "dE2", "d2", "d1", "d0"]


def test_pool_over_budget_drops_worst_kernels_first() -> None:
    assert remains(SHARED, "abcd", pool=True) == ["abcdE2", "abdE2", "bdE2", "bE2", "b2", "b1", "b0"]
    assert remains(PAPER, "abcd", pool=True) == ["abcdE2", "abdE2", "bdE2", "bE2", "b2", "b1", "b0"]


def test_essential_parts_are_sent_whatever_the_budget() -> None:
    text = (
        replace(SHARED, max_tokens=1)
        .step(SMALL, (kernel("a", 1.0), kernel("b", None)), guidance="mend it")
        .text
    )
    assert "# b\n" in text
    assert "mend it" in text
    assert TASK.reference.strip() in text


def test_missing_and_unused_values_raise() -> None:
    with pytest.raises(ValueError, match=r"missing \['guidance', 'judge'"):
        render("small", rules="", hardware="", fence="", reference="", kernels="")
    with pytest.raises(ValueError, match=r"unused \['nonsense'\]"):
        render("guidance_default", nonsense="x")


def test_interpreter_times_enter_no_prompt() -> None:
    verdict = make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"})
    assert finding(verdict) == "passed"


def test_finding_gives_speedup_and_both_times() -> None:
    assert finding(FAST.verdict) == "passed, 2.000x (0.5 ms, reference 1 ms)"


@pytest.mark.parametrize("layout", BOTH)
def test_flags_of_suspect_kernel_are_one_line(layout: Layout) -> None:
    prompts = StepPrompts(TASK, replace(FACTS, shows_flags=True), layout=layout)
    line = "passed, 2.000x (0.5 ms, reference 1 ms)\nflags: no_own_kernel: 0 of 5 calls launch one\n"
    for prompt in (
        prompts.step(LARGE, (), (SUSPECT,)),
        prompts.review((SUSPECT,)),
        prompts.step(SMALL, (SUSPECT,)),
    ):
        assert line in prompt.text
    assert "flags:" not in prompts.step(SMALL, (FAST, BROKEN)).text


@pytest.mark.parametrize("layout", BOTH)
def test_flags_are_hidden_unless_shows_flags_is_set(layout: Layout) -> None:
    prompts = StepPrompts(TASK, FACTS, layout=layout)
    unflagged = ShownKernel(SUSPECT.source, SUSPECT.verdict.model_copy(update={"flags": ()}))  # type: ignore[union-attr]
    assert prompts.step(SMALL, (SUSPECT,)) == prompts.step(SMALL, (unflagged,))


def test_a_long_list_of_flags_is_cut() -> None:
    names = [f"flag_number_{number}" for number in range(100)]
    line = flags_line(make_verdict(status=Status.PASSED, metadata={"integrity": names}))
    assert len(line) == FLAGS_LIMIT
    assert "\n" not in line


@pytest.mark.parametrize(
    ("tier", "said"), [("strict", "no TF32, no half"), ("tf32", "with TF32 products"), ("half", "bf16")]
)
def test_prompt_states_the_required_precision(tier: Tier, said: str) -> None:
    facts = replace(FACTS, tier=tier, dtype="bf16" if tier == "half" else "fp32")
    for layout in BOTH:
        prompts = StepPrompts(TASK, facts, layout=layout)
        assert said in prompts.step(LARGE, ()).text
        assert said in prompts.step(SMALL, (FAST,)).text


def test_explanations_of_other_judges_lose_their_beginning() -> None:
    verdict = make_verdict(status=Status.LAUNCH, metadata={"runtime_error": "x" * 5000 + "the cause"})
    text = explain(verdict)
    assert len(text) == FEEDBACK_LIMIT
    assert text.endswith("the cause")


def test_fence_is_longer_than_any_in_the_source() -> None:
    assert fence_for('"""\n```\n"""') == "````"


def test_reference_with_a_fence_stays_one_block() -> None:
    reference = '"""\n```python\nprint(1)\n```\n"""\n' + TASK.reference
    task = replace(TASK, reference=reference)
    block = f"````python\n{reference.strip()}\n````"
    for layout in BOTH:
        prompts = StepPrompts(task, FACTS, layout=layout)
        for prompt in (
            prompts.step(LARGE, ()),
            prompts.review((FAST,)),
            prompts.step(SMALL, (FAST,)),
        ):
            assert block in prompt.text


def test_direction_comes_last_and_changes_nothing_before() -> None:
    for write in (
        lambda name: SHARED.step(LARGE, (FAST,), direction=name),
        lambda name: SHARED.step(SMALL, (FAST,), guidance="x", direction=name),
    ):
        free, told = write(""), write("algebra")
        assert told.text == free.text + direction_text("algebra")
        assert told.cuts == free.cuts
    assert PAPER.step(LARGE, (FAST,), direction="algebra") == PAPER.step(LARGE, (FAST,))


def test_prompt_asks_for_gradients_where_they_are_judged() -> None:
    assert "autograd" not in contract_block(FACTS)
    both, backward = (contract_block(replace(FACTS, direction=each)) for each in ("both", "backward"))
    assert "`torch.autograd.Function` with a `backward` of its own" in both
    assert "What is to become faster is the backward pass." not in both
    assert "What is to become faster is the backward pass." in backward
