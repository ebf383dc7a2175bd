"""The writer's answers to prompts."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.code_blocks import extract_code
from adaexplore.core.edits import apply_edits, parse_edits
from adaexplore.core.errors import ModelRequestError
from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.tunables import read_tunables, with_values
from adaexplore.core.verdict import Status, Verdict
from adaexplore.llm.offline import OfflineWriter
from adaexplore.llm.offline.choices import Choices, read_choices
from adaexplore.llm.offline.mistakes import MISTAKES, blunder, rule_for
from adaexplore.llm.offline.module import translate
from adaexplore.llm.offline.prompt import read_prompt
from adaexplore.llm.offline.writer import possible_designs
from adaexplore.llm.protocol import Finish, ModelRequest, Purpose, Turn
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.steps import Layout, StepPrompts
from tests.llm.offline.modules import MODULES

LINEAR = MODULES["linear_epilogue"]
SOFTMAX = MODULES["softmax_dim1"]
EXAMPLE = "```python\nclass Model:\n    pass\n```\nbecomes\n```python\nclass ModelNew:\n    pass\n```\n"


def prompt(reference: str, *shown: tuple[str, str], rules: tuple[str, ...] = ()) -> str:
    kernels = "".join(
        f"### Kernel {n}\n```python\n{source.rstrip()}\n```\nVerdict: {verdict}\n\n"
        for n, (source, verdict) in enumerate(shown)
    )
    warned = "".join(f"- {rule}\n" for rule in rules)
    task = f"{EXAMPLE}## Known pitfalls\n{warned}\n## The module\n```python\n{reference}```"
    return f"{task}\n\n{kernels}## Your answer\n"


def answer(text: str, purpose: Purpose, key: str = "1_1/1", seed: int = 0, share: float = 0.0) -> str:
    return OfflineWriter(seed, share).complete(ModelRequest(text, purpose, key)).text


def large(text: str, key: str = "1_1/1", seed: int = 0, share: float = 0.0) -> str:
    code = extract_code(answer(text, Purpose.LARGE, key, seed, share))
    assert code is not None
    return code


def small(text: str, source: str, key: str = "1_1/2", seed: int = 0, share: float = 0.0) -> str:
    return apply_edits(source, parse_edits(answer(text, Purpose.SMALL, key, seed, share)))


def test_reply_is_complete_and_counted() -> None:
    reply = OfflineWriter(0).complete(ModelRequest(prompt(LINEAR), Purpose.LARGE, "k"))
    assert (reply.finish, reply.model) == (Finish.COMPLETE, "offline")
    assert reply.usage.usd == 0.0
    assert reply.usage.input_tokens == -(-len(prompt(LINEAR)) // 4)
    assert reply.usage.output_tokens > 100


def test_answers_depend_on_seed_and_key_alone() -> None:
    texts = {(seed, key): large(prompt(LINEAR), key, seed) for seed in range(4) for key in ("a", "b", "c")}
    assert texts == {
        (seed, key): large(prompt(LINEAR), key, seed) for seed in range(4) for key in ("a", "b", "c")
    }
    assert len(set(texts.values())) > 3


def test_large_step_defines_the_model_of_the_reference_not_of_the_example() -> None:
    code = large(prompt(LINEAR))
    ast.parse(code)
    assert "self.fc = nn.Linear(33, 21)" in code


def test_large_steps_go_through_the_structures() -> None:
    shown: list[tuple[str, str]] = []
    for step in range(len(possible_designs(LINEAR))):
        shown.append((large(prompt(LINEAR, *shown), f"1_1/{step}"), "passed"))
    structures = {str(read_choices(source).structure) for source, _ in shown}  # type: ignore[union-attr]
    assert len(structures) == len(possible_designs(LINEAR)) > 1


def test_large_step_uses_the_best_measured_structure() -> None:
    designs = possible_designs(LINEAR)
    shown = [
        (translate(LINEAR, design), f"passed, {2.0 if n == 1 else 1.1:.3f}x")
        for n, design in enumerate(designs)
    ]
    for key in "abcde":
        assert read_choices(large(prompt(LINEAR, *shown), key)).structure == designs[1].structure  # type: ignore[union-attr]


def test_small_step_changes_a_number_of_a_passed_kernel() -> None:
    source = translate(SOFTMAX, Choices())
    changed = 0
    for key in "abcdefgh":
        result = small(prompt(SOFTMAX, (source, "passed, 1.100x (1 ms, reference 1.1 ms)")), source, key)
        assert result != source
        ast.parse(result)
        changed += read_choices(result).structure == Choices().structure  # type: ignore[union-attr]
    assert changed >= 5


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_small_step_repairs_each_mistake(mistake) -> None:
    for reference in (*MODULES.values(),):
        clean = translate(reference, Choices())
        broken = mistake.make(clean, stream(0, mistake.name))
        if broken is not None:
            break
    else:
        pytest.fail("no module on which this mistake can be made")
    assert broken != clean
    text = prompt(reference, (clean, "passed"), (broken, "compile\nsomething is wrong"))
    assert small(text, broken).strip() == clean.strip()


def test_small_step_edits_only_the_last_kernel() -> None:
    first, last = translate(SOFTMAX, Choices()), translate(SOFTMAX, Choices().with_number("ROW_WORK", 32))
    result = small(prompt(SOFTMAX, (first, "passed"), (last, "passed")), last)
    assert result not in (first, last)


def test_correct_kernel_that_fails_gets_another_structure() -> None:
    source = translate(LINEAR, Choices())
    result = small(prompt(LINEAR, (source, "launch\nValueError")), source)
    assert read_choices(result).structure != Choices().structure  # type: ignore[union-attr]


def test_foreign_kernel_gets_a_modest_edit() -> None:
    source = "class ModelNew:\n    def forward(self, x):\n        k[(1,)](x, BLOCK=1024, num_warps=4)\n"
    result = small(prompt(SOFTMAX, (source, "passed, 1.0x")), source)
    assert re.sub(r"\d+", "", result) == re.sub(r"\d+", "", source)
    assert result != source
    bare = "class ModelNew:\n    pass\n"
    assert answer(prompt(SOFTMAX, (bare, "passed")), Purpose.SMALL) == "no change"


def test_review_names_what_the_verdict_says() -> None:
    source = translate(SOFTMAX, Choices())
    text = answer(
        prompt(SOFTMAX, (source, "compile\nAttributeError: has no attribute 'tanh'")), Purpose.REVIEW
    )
    assert text.startswith("1. ")
    assert "tl.tanh" in text
    assert 1 <= len(answer(prompt(SOFTMAX, (source, "passed, 1.2x")), Purpose.REVIEW).splitlines()) <= 3


def test_mistakes_are_made_at_their_share() -> None:
    clean = {translate(SOFTMAX, choices).split("\n", 1)[1] for choices in possible_designs(SOFTMAX)}
    strip = lambda text: re.sub(r"^[A-Z_]+ = \d+$", "", text, flags=re.M)  # noqa: E731
    shapes = {strip(text).strip() for text in clean}
    count = sum(
        strip(large(prompt(SOFTMAX), str(n), share=0.25).split("\n", 1)[1]).strip() not in shapes
        for n in range(200)
    )
    assert 30 <= count <= 70
    assert all(
        strip(large(prompt(SOFTMAX), str(n), share=0.0).split("\n", 1)[1]).strip() in shapes
        for n in range(20)
    )


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.rule], ids=lambda mistake: mistake.name)
def test_a_rule_prevents_its_mistake(mistake) -> None:
    assert mistake.rule.startswith("You cannot")
    assert mistake.warned((mistake.rule,))
    source = next(
        s for s in (translate(r, Choices()) for r in MODULES.values()) if mistake.make(s, stream(0))
    )
    made = {mistake.make(source, stream(0, n)) for n in range(40)}
    assert any(blunder(source, (), stream(0, n)) in made for n in range(300))
    assert not any(blunder(source, (mistake.rule,), stream(0, n)) in made for n in range(300))


def test_rules_are_derived_from_errors_that_are_recognised() -> None:
    error = "ValueError: arange's range must be a power of 2"
    text = f"## The construct\ncall tl.arange\n\n## The failures\n```\n{error}\n```"
    assert answer(text, Purpose.RULE).startswith("You cannot give tl.arange")
    assert answer("## The failures\n```\nsegmentation fault\n```", Purpose.RULE) == "no rule"
    assert rule_for("TypeError: 'dtype' object is not callable") is not None


def test_prompts_without_a_module_are_refused_with_the_reason() -> None:
    with pytest.raises(ModelRequestError, match="no reference module"):
        answer("hello", Purpose.LARGE)
    with pytest.raises(ModelRequestError, match="not Python"):
        answer("```python\nclass Model(\ndef get_inputs(\n```", Purpose.LARGE)


def test_longer_fences_and_missing_speedups_are_read() -> None:
    text = "````python\nclass ModelNew:\n    '```'\n````\nVerdict: wrong_value\nfirst difference at 3\n\n"
    text += "## Next\n- You cannot x."
    reading = read_prompt(text)
    assert [(k.status, k.speedup, k.feedback, k.failed) for k in reading.kernels] == [
        ("wrong_value", None, "first difference at 3", True)
    ]
    assert reading.rules == ("You cannot x.",)


def test_a_repair_is_another_answer_to_what_the_conversation_began_with() -> None:
    source = translate(SOFTMAX, Choices())
    asked = prompt(SOFTMAX, (source, "passed, 1.100x"))
    turn = Turn(asked, Purpose.SMALL, "no change")
    reply = OfflineWriter(0, 0.0).complete(ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,)))
    assert apply_edits(source, parse_edits(reply.text)) != source
    turn = Turn(prompt(SOFTMAX), Purpose.LARGE, "nothing")
    reply = OfflineWriter(0, 0.0).complete(ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,)))
    assert "class ModelNew" in (extract_code(reply.text) or "")
    assert reply.usage.input_tokens > len(turn.prompt) // 4


@pytest.mark.parametrize("layout", ["paper", "shared"])
def test_prompts_of_both_layouts_are_read(layout: Layout) -> None:
    facts = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10, shows_flags=True, tunes=True)
    task = Task(1, "1", "1_x", SOFTMAX, "fp32", Path("1_x.py"))
    prompts = StepPrompts(task, facts, ("You cannot x.",), layout=layout)
    first = ShownKernel(translate(SOFTMAX, Choices()), Verdict(status=Status.COMPILE))
    second = ShownKernel(
        translate(SOFTMAX, Choices().with_number("ROW_WORK", 32)),
        Verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats={"mean": 1.0, "fast_p": 2.0}),
    )
    for text in (prompts.large((first, second)).text, prompts.small((first, second), "faster").text):
        reading = read_prompt(text)
        assert reading.reference is not None
        assert reading.reference.strip() == SOFTMAX.strip()
        assert [kernel.source.strip() for kernel in reading.kernels] == [
            first.source.strip(),
            second.source.strip(),
        ]
        assert [(kernel.status, kernel.speedup) for kernel in reading.kernels] == [
            ("compile", None),
            ("passed", 2.0),
        ]
        assert reading.rules == ("You cannot x.",)
    assert read_prompt(prompts.large(()).text).kernels == ()
    read = read_prompt(prompts.large((first, second, first, second)).text).kernels
    assert [kernel.source for kernel in read] == [first.source, second.source] * 2
    assert read_prompt(prompts.review((first, second)).text).kernels[-1].source == second.source


SWEEPS = '```python\nBLOCK_M = 64\nTUNABLES = {"BLOCK_M": [32, 64]}\n```\n'


@pytest.mark.parametrize("name", sorted(MODULES))
def test_numbers_are_left_to_the_judge_where_the_prompt_says_that_it_chooses_them(name: str) -> None:
    code = large(SWEEPS + prompt(MODULES[name]))
    tunables = read_tunables(code)
    assert bool(tunables) == bool(re.search(r"^[A-Z_]+ = \d+$", code, re.M))
    assert all(tunable.declared in tunable.choices for tunable in tunables)
    assert not read_tunables(large(prompt(MODULES[name])))


def test_numbers_of_a_product_come_first_where_there_are_more_than_a_sweep_takes() -> None:
    design = next(each for each in possible_designs(LINEAR) if each.structure["GEMM"] == "triton")
    declared = [each.name for each in read_tunables(translate(LINEAR, replace(design, swept=True)))]
    assert declared == ["TILE_M", "TILE_N", "TILE_K", "GROUP_M", "GEMM_WARPS", "STAGES"]


def test_edits_of_a_tuned_kernel_change_what_no_sweep_can() -> None:
    tuned = large(SWEEPS + prompt(SOFTMAX))
    tuned = with_values(tuned, {each.name: each.choices[-1] for each in read_tunables(tuned)})
    edited = {
        small(SWEEPS + prompt(SOFTMAX, (tuned, "passed, 1.200x")), tuned, f"1_1/{key}") for key in range(12)
    }
    assert all(read_tunables(each) for each in edited)
    structures = [read_choices(each).structure for each in edited]
    assert any(each != read_choices(tuned).structure for each in structures)
    advice = answer(SWEEPS + prompt(SOFTMAX, (tuned, "passed, 1.200x")), Purpose.REVIEW)
    assert not any(each.name in advice for each in read_tunables(tuned))


@pytest.mark.parametrize("purpose", [Purpose.LARGE, Purpose.SMALL])
def test_what_it_cannot_translate_is_left_to_pytorch(purpose: Purpose) -> None:
    kernels = [translate(SOFTMAX, design) for design in possible_designs(SOFTMAX)[:2]]
    failed = prompt(SOFTMAX, *[(kernel, "wrong_value") for kernel in kernels])
    source = large(failed) if purpose is Purpose.LARGE else small(failed, kernels[-1])
    assert "@triton.jit" not in source
    assert "class ModelNew" in source
    passed = prompt(SOFTMAX, (kernels[0], "wrong_value"), (kernels[1], "passed, 1.2x"))
    source = large(passed) if purpose is Purpose.LARGE else small(passed, kernels[-1])
    assert "@triton.jit" in source
