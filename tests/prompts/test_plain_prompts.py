"""Two prompts that ask the same differ in measured figures only, and such a difference is no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.draft import ShownKernel
from adaexplore.core.environment import ReferenceFacts, TierLimits
from adaexplore.core.judging.profile import KernelProfile, Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.task import Task
from adaexplore.core.text.figures import first_difference
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.steps import Layout, StepPrompts, noted, repair_prompt
from tests.verdicts import make_verdict

LARGE, SMALL = (all_actions()[kind] for kind in (StepKind.LARGE, StepKind.SMALL))

SOURCE = "class ModelNew:\n    eps = 1e-5\n    scale = 0.5\n    def forward(self, x):\n        return x * 2\n"
TASK = Task(1, "7", "7_double", "class Model:\n    scale = 0.25\n", "fp32", Path("7_double.py"))
FACTS = JudgeFacts(
    "NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10, tier="strict", shows_flags=True, tunes=True
)


def profile(scale: float) -> Profile:
    kernel = KernelProfile("double", 1, 12.3 * scale, 0.8 / scale, own=True, registers=32, occupancy=0.5)
    return Profile((kernel,), 15.4 * scale, 31.5 * scale, 4096, 0.0, 0.62 / scale, "memory", "NVIDIA H200")


def reference(scale: float) -> ReferenceFacts:
    limits = {"strict": TierLimits(rms=1.23e-7 * scale, peak=4.1e-6 * scale)}
    return ReferenceFacts.model_validate({"limits": limits, "profile": profile(scale)})


def passed(scale: float, source: str = SOURCE, **metadata: Any) -> ShownKernel:
    workload = {
        "name": "wide",
        "shapes": {},
        "inputs": "8 x 16",
        "weight": 0.5,
        "status": "passed",
        "correctness": True,
        "speedup": 1.25 / scale,
        "gpu_ms": 0.125 * scale,
        "baseline_gpu_ms": 0.25,
    }
    evidence = f"{18 * scale:.4g} us in blocks"
    flags = {
        "integrity": ["clock_mismatch"],
        "integrity_evidence": [{"id": "x", "severity": "suspect", "evidence": evidence}],
    }
    found = make_verdict(
        status=Status.PASSED,
        runtime_ms=0.5 * scale,
        runtime_stats={"mean": 0.5, "fast_p": 2.0 / scale},
        metadata={"workloads": [workload], **flags, **metadata},
    )
    return ShownKernel(source, found, profile=profile(scale))


def wrong(scale: float) -> ShownKernel:
    feedback = f"wrong_value: 3 of 8 elements ({37 * scale:.4g} %), largest error {0.123 * scale:.6g}"
    return ShownKernel(SOURCE, make_verdict(status=Status.WRONG_VALUE, metadata={"feedback": feedback}))


def prompts(layout: Layout, scale: float, **changed: Any) -> list[Prompt]:
    """Return a prompt of each kind; all times are multiplied by ``scale``."""
    task, facts, source = TASK, FACTS, str(changed.pop("source", SOURCE))
    if "reference" in changed:
        task = replace(task, reference=changed.pop("reference"))
    tuned = {"tuned": {"values": {"BLOCK": changed.pop("block", 128)}}}
    written = StepPrompts(
        task, replace(facts, **changed), ("You cannot.",), layout=layout, reference=reference(scale)
    )
    chain = (wrong(scale), passed(scale, source, **tuned))
    found = [written.step(LARGE, chain, (passed(scale),)), written.step(SMALL, chain, guidance="1. Use 0.5.")]
    return [*found, *([written.review(chain)] if layout == "paper" else [])]


def differences(earlier: list[Prompt], now: list[Prompt]) -> list[int | None]:
    pairs = zip(earlier, now, strict=True)
    return [first_difference(old.text, new.text, new.plain or new.text) for old, new in pairs]


LAYOUTS: tuple[Layout, ...] = ("paper", "shared")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", [1.01, 0.97, 1.2])
def test_times_of_another_day_make_no_difference(layout: Layout, scale: float) -> None:
    earlier, now = prompts(layout, 1.0), prompts(layout, scale)
    assert all(old.text != new.text for old, new in zip(earlier, now, strict=True))
    assert not any(differences(earlier, now) + differences(now, earlier))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"source": SOURCE.replace("1e-5", "1e-6")}, "eps = 1e-5"),
        ({"source": SOURCE.replace("scale = 0.5", "scale = 0.7")}, "scale = 0.5"),
        ({"reference": "class Model:\n    scale = 0.75\n"}, "scale = 0.25"),
        ({"block": 256}, "tuned by the judge: BLOCK = 128"),
        ({"tolerance": 0.01}, "0.001"),
        ({"gpu_name": "NVIDIA H100"}, "NVIDIA H200"),
    ],
)
def test_changed_programs_and_conditions_make_a_difference(
    layout: Layout, changed: dict[str, Any], shown: str
) -> None:
    earlier, now = prompts(layout, 1.0), prompts(layout, 1.01, **changed)
    told = differences(earlier, now)
    for prompt, line in zip(earlier[:2], told[:2], strict=True):
        assert line is not None
        assert shown in prompt.text.split("\n")[line - 1]


def test_note_and_repair_are_compared_in_full() -> None:
    prompt = prompts("shared", 1.0)[0]
    for note in ("use 0.5", "use 0.6"):
        text = noted(prompt, note).text
        same = note == "use 0.5"
        new = noted(prompts("shared", 1.01)[0], "use 0.5")
        assert (first_difference(text, new.text, new.plain or "") is None) == same
    old, new = (repair_prompt(f"judged before: passed, {each}x", edits=True) for each in ("1.2", "1.3"))
    assert old.text != new.text
    assert first_difference(old.text, new.text, new.plain or "") is None
