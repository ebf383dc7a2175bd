"""The writer's answers to prompts."""

import ast
import re
from dataclasses import replace

import pytest

from adaexplore.core.draft import ShownKernel
from adaexplore.core.errors import ModelRequestError
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Purpose
from adaexplore.core.streams import stream
from adaexplore.core.text.code_blocks import extract_code
from adaexplore.core.text.edits import apply_edits, parse_edits
from adaexplore.core.text.identity import source_identity
from adaexplore.core.text.tunables import read_tunables, with_values
from adaexplore.llm.protocol import (
    Finish,
    ModelRequest,
    RequestData,
    RuleData,
    StepData,
    Turn,
)
from adaexplore.offline_writer.choices import Choices, directed, read_choices
from adaexplore.offline_writer.mistakes import blunder, mistake_table, rule_for
from adaexplore.offline_writer.module import translate
from adaexplore.offline_writer.writer import OfflineWriter, possible_designs
from adaexplore.prompts.directions import offered_directions
from tests.offline_writer.modules import MODULES
from tests.verdicts import make_verdict

LINEAR = MODULES["linear_epilogue"]
SOFTMAX = MODULES["softmax_dim1"]


def judged(source: str, verdict: str) -> ShownKernel:
    """Read a verdict such as ``passed, 1.2x`` or ``compile: explanation``."""
    status, _, feedback = verdict.partition(": ")
    status, _, speedup = status.partition(", ")
    times = {"runtime_stats": {"fast_p": float(speedup.rstrip("x"))}} if speedup else {}
    found = make_verdict(status=Status(status), metadata={"feedback": feedback}, **times)
    return ShownKernel(source, found)


def ask(
    reference: str,
    *shown: tuple[str, str],
    rules: tuple[str, ...] = (),
    direction: str = "",
    tunes: bool = False,
) -> StepData:
    kernels = tuple(judged(source, verdict) for source, verdict in shown)
    return StepData(reference, kernels, rules, direction, tunes)


def answer(
    data: RequestData | None, purpose: Purpose, key: str = "1_1/1", seed: int = 0, share: float = 0.0
) -> str:
    if isinstance(data, StepData):
        data = replace(data, edits=purpose is Purpose.SMALL)
    return OfflineWriter(seed, share).complete(ModelRequest("a prompt", purpose, key, data=data)).text


def large(data: StepData, key: str = "1_1/1", seed: int = 0, share: float = 0.0) -> str:
    code = extract_code(answer(data, Purpose.LARGE, key, seed, share))
    assert code is not None
    return code


def small(data: StepData, source: str, key: str = "1_1/2", seed: int = 0, share: float = 0.0) -> str:
    return apply_edits(source, parse_edits(answer(data, Purpose.SMALL, key, seed, share)))


def test_reply_is_complete_and_counted() -> None:
    reply = OfflineWriter(0).complete(ModelRequest("p" * 401, Purpose.LARGE, "k", data=ask(LINEAR)))
    assert (reply.finish, reply.model) == (Finish.COMPLETE, "offline")
    assert reply.usage.usd == 0.0
    assert reply.usage.input_tokens == 101
    assert reply.usage.output_tokens > 100


def test_answers_depend_on_seed_and_key_alone() -> None:
    texts = {(seed, key): large(ask(LINEAR), key, seed) for seed in range(4) for key in ("a", "b", "c")}
    assert texts == {
        (seed, key): large(ask(LINEAR), key, seed) for seed in range(4) for key in ("a", "b", "c")
    }
    assert len(set(texts.values())) > 3


def test_large_step_defines_the_model_of_the_reference() -> None:
    code = large(ask(LINEAR))
    ast.parse(code)
    assert "self.fc = nn.Linear(33, 21)" in code


def test_large_steps_go_through_the_structures() -> None:
    shown: list[tuple[str, str]] = []
    for step in range(len(possible_designs(LINEAR))):
        shown.append((large(ask(LINEAR, *shown), f"1_1/{step}"), "passed"))
    structures = {str(read_choices(source).structure) for source, _ in shown}  # type: ignore[union-attr]
    assert len(structures) == len(possible_designs(LINEAR)) > 1


def test_large_step_uses_the_best_measured_structure() -> None:
    designs = possible_designs(LINEAR)
    shown = [
        (translate(LINEAR, design), f"passed, {2.0 if n == 1 else 1.1:.3f}x")
        for n, design in enumerate(designs)
    ]
    for key in "abcde":
        assert read_choices(large(ask(LINEAR, *shown), key)).structure == designs[1].structure  # type: ignore[union-attr]


def test_small_step_changes_a_passed_kernels_number() -> None:
    source = translate(SOFTMAX, Choices())
    changed = 0
    for key in "abcdefgh":
        result = small(ask(SOFTMAX, (source, "passed, 1.1x")), source, key)
        assert result != source
        ast.parse(result)
        changed += read_choices(result).structure == Choices().structure  # type: ignore[union-attr]
    assert changed >= 5


@pytest.mark.parametrize("mistake", mistake_table().mistakes, ids=lambda mistake: mistake.name)
def test_small_step_repairs_each_mistake(mistake) -> None:
    for reference in (*MODULES.values(),):
        clean = translate(reference, Choices())
        broken = mistake.make(clean, stream(0, mistake.name))
        if broken is not None:
            break
    else:
        pytest.fail("no module on which this mistake can be made")
    assert broken != clean
    text = ask(reference, (clean, "passed"), (broken, "compile: something is wrong"))
    assert small(text, broken).strip() == clean.strip()


def test_small_step_edits_only_the_last_kernel() -> None:
    first, last = translate(SOFTMAX, Choices()), translate(SOFTMAX, Choices().with_number("ROW_WORK", 32))
    result = small(ask(SOFTMAX, (first, "passed"), (last, "passed")), last)
    assert result not in (first, last)


def test_correct_kernel_that_fails_gets_another_structure() -> None:
    source = translate(LINEAR, Choices())
    result = small(ask(LINEAR, (source, "launch: ValueError")), source)
    assert read_choices(result).structure != Choices().structure  # type: ignore[union-attr]


def test_foreign_kernel_gets_a_modest_edit() -> None:
    source = "class ModelNew:\n    def forward(self, x):\n        k[(1,)](x, BLOCK=1024, num_warps=4)\n"
    result = small(ask(SOFTMAX, (source, "passed, 1.0x")), source)
    assert re.sub(r"\d+", "", result) == re.sub(r"\d+", "", source)
    assert result != source
    bare = "class ModelNew:\n    pass\n"
    assert answer(ask(SOFTMAX, (bare, "passed")), Purpose.SMALL) == "no change"


def test_review_names_what_the_verdict_says() -> None:
    source = translate(SOFTMAX, Choices())
    text = answer(ask(SOFTMAX, (source, "compile: AttributeError: has no attribute 'tanh'")), Purpose.REVIEW)
    assert text.startswith("1. ")
    assert "tl.tanh" in text
    assert 1 <= len(answer(ask(SOFTMAX, (source, "passed, 1.2x")), Purpose.REVIEW).splitlines()) <= 3


def test_mistakes_are_made_at_their_share() -> None:
    clean = {translate(SOFTMAX, choices).split("\n", 1)[1] for choices in possible_designs(SOFTMAX)}
    strip = lambda text: re.sub(r"^[A-Z_]+ = \d+$", "", text, flags=re.M)  # noqa: E731
    shapes = {strip(text).strip() for text in clean}
    count = sum(
        strip(large(ask(SOFTMAX), str(n), share=0.25).split("\n", 1)[1]).strip() not in shapes
        for n in range(200)
    )
    assert 30 <= count <= 70
    assert all(
        strip(large(ask(SOFTMAX), str(n), share=0.0).split("\n", 1)[1]).strip() in shapes for n in range(20)
    )


@pytest.mark.parametrize(
    "mistake", [m for m in mistake_table().mistakes if m.rule], ids=lambda mistake: mistake.name
)
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
    assert answer(RuleData(("call tl.arange",), (error,)), Purpose.RULE).startswith(
        "You cannot give tl.arange"
    )
    assert answer(RuleData((), ("segmentation fault",)), Purpose.RULE) == "no rule"
    assert rule_for("TypeError: 'dtype' object is not callable") is not None


def test_unanswerable_request_is_refused_with_a_reason() -> None:
    with pytest.raises(ModelRequestError, match="reads no prompts"):
        answer(None, Purpose.LARGE)
    with pytest.raises(ModelRequestError, match="not Python"):
        answer(ask("class Model(\n"), Purpose.LARGE)


def test_repair_answers_the_original_request_again() -> None:
    source = translate(SOFTMAX, Choices())
    asked = ask(SOFTMAX, (source, "passed, 1.1x"))

    def repaired(data: StepData, purpose: Purpose) -> str:
        turn = Turn("a prompt", purpose, "no change")
        request = ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,), data=data)
        return OfflineWriter(0, 0.0).complete(request).text

    assert apply_edits(source, parse_edits(repaired(replace(asked, edits=True), Purpose.SMALL))) != source
    assert "class ModelNew" in (extract_code(repaired(ask(SOFTMAX), Purpose.LARGE)) or "")


@pytest.mark.parametrize("name", sorted(MODULES))
def test_numbers_become_tunables_for_a_sweeping_judge(name: str) -> None:
    code = large(ask(MODULES[name], tunes=True))
    tunables = read_tunables(code)
    assert bool(tunables) == bool(re.search(r"^[A-Z_]+ = \d+$", code, re.M))
    assert all(tunable.declared in tunable.choices for tunable in tunables)
    assert not read_tunables(large(ask(MODULES[name])))


def test_product_numbers_come_first_when_tunables_are_limited() -> None:
    design = next(each for each in possible_designs(LINEAR) if each.structure["GEMM"] == "triton")
    declared = [each.name for each in read_tunables(translate(LINEAR, replace(design, swept=True)))]
    assert declared == ["TILE_M", "TILE_N", "TILE_K", "GROUP_M", "GEMM_WARPS", "STAGES"]


def test_tuned_kernel_is_edited_beyond_its_tunables() -> None:
    tuned = large(ask(SOFTMAX, tunes=True))
    tuned = with_values(tuned, {each.name: each.choices[-1] for each in read_tunables(tuned)})
    edited = {
        small(ask(SOFTMAX, (tuned, "passed, 1.2x"), tunes=True), tuned, f"1_1/{key}") for key in range(12)
    }
    assert all(read_tunables(each) for each in edited)
    structures = [read_choices(each).structure for each in edited]
    assert any(each != read_choices(tuned).structure for each in structures)
    advice = answer(ask(SOFTMAX, (tuned, "passed, 1.2x"), tunes=True), Purpose.REVIEW)
    assert not any(each.name in advice for each in read_tunables(tuned))


@pytest.mark.parametrize("purpose", [Purpose.LARGE, Purpose.SMALL])
def test_unknown_code_is_left_to_pytorch(purpose: Purpose) -> None:
    kernels = [translate(SOFTMAX, design) for design in possible_designs(SOFTMAX)[:2]]
    failed = ask(SOFTMAX, *[(kernel, "wrong_value") for kernel in kernels])
    source = large(failed) if purpose is Purpose.LARGE else small(failed, kernels[-1])
    assert "@triton.jit" not in source
    assert "class ModelNew" in source
    passed = ask(SOFTMAX, (kernels[0], "wrong_value"), (kernels[1], "passed, 1.2x"))
    source = large(passed) if purpose is Purpose.LARGE else small(passed, kernels[-1])
    assert "@triton.jit" in source


@pytest.mark.parametrize("reference", [SOFTMAX, LINEAR])
def test_first_drafts_of_siblings_differ_by_their_directions(reference: str) -> None:
    names = offered_directions(reference).large
    drafts = [large(ask(reference, direction=name)) for name in names]
    assert len(set(map(source_identity, drafts))) == len(names) > 5


@pytest.mark.parametrize(("name", "gemm"), [("library_product", "library"), ("own_product", "triton")])
def test_first_draft_follows_its_direction(name: str, gemm: str) -> None:
    choices = read_choices(large(ask(LINEAR, direction=name)))
    assert choices is not None
    assert choices.structure["GEMM"] == gemm


def test_writer_supports_every_large_step_direction() -> None:
    every = offered_directions("matmul sum").large
    places = [directed(Choices(), name) for name in every]
    assert [place for _, place in filter(None, places)] == list(range(1, len(every) + 1))
