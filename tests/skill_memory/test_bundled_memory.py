from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from difflib import SequenceMatcher
from io import StringIO
from pathlib import Path

import pytest

pytest.importorskip("triton")

from adaexplore.prompts.blocks import rules_block
from adaexplore.settings.config import RunConfig
from skill_memory.merge import SAME_RULE, overlap
from skill_memory.proof.compiler import Compiler, open_compiler
from skill_memory.proof.verify import check
from skill_memory.rule import Proof, Rule
from skill_memory.store import injected, read_rules
from tests.online_judge.live import LiveJudge

FOLDER = Path(__file__).parents[2] / "results" / "memory"
RULES = read_rules(FOLDER / "general_memory_v1.jsonl")
RUN_TIME_ERRORS = re.compile(r"timeout|disk|network|worker|judge|subprocess", re.IGNORECASE)


@pytest.fixture
def compiler(judge: LiveJudge) -> Iterator[Compiler]:
    config = RunConfig(use_remote_eval=True, remote_eval_url=judge.url)
    with open_compiler(config) as compiler:
        yield compiler


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text[11:50])
def test_each_bundled_rule_holds_with_the_installed_triton(rule: Rule, compiler: Compiler) -> None:
    found = check(rule, compiler)
    assert found.holds, found.reason


def tokens(source: str) -> list[str]:
    return [
        each.string for each in tokenize.generate_tokens(StringIO(source).readline) if each.string.strip()
    ]


def distance(proof: Proof) -> int:
    """Return how many tokens differ between a reproducer and its counterpart."""
    one, other = tokens(proof.reproducer), tokens(proof.counterpart)
    changes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in changes if kind != "equal")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text[11:50])
def test_each_rule_is_tried_against_a_near_neighbour(rule: Rule) -> None:
    moved = 24 if "define a function" in rule.text else 13  # one that moves a function changes more
    assert min(distance(proof) for proof in rule.proofs) <= moved


PERMITTED = [
    ("give tl.arange a bound", "declared tl.constexpr", "b: tl.constexpr = B // 2"),
    ("data_ptr()", "cast it", ".to(tl.pointer_type(tl.float32))"),
    ("num_warps", "32", "num_warps=32"),
    ("other= to tl.store", "masked elements", "other=0.0), mask=i < n)"),
    ("compare a pointer", "'is not None'", "if x is not None:"),
    ("each parameter that has no default", "or triton.heuristics", "@triton.heuristics("),
    ("comprehension", "over range()", "[part * 2 for part in [v, v]]"),
    ("append", "as in [a, b]", "parts = parts + [v * k]"),
    ("nested tuple", "flat tuple or list", "lambda meta: [triton.cdiv(64, meta['B'])]"),
    ("meta outside it", "the grid function's meta", "B=(meta := {'B': 64})['B']"),
    ("first assigned inside it", "both branches of the if", "    else:\n        w = v * 2"),
    ("first assigned inside it", "a loop of range()", "for k in tl.static_range(4):\n        w"),
    ("to tl.cast", "by position", "tl.cast(dtype=tl.float16, input=v)"),
    ("tl.dot one-dimensional", "or of three", "tl.reshape(v, (2, 2, 16))"),
    ("in host code", "operations", "B=tl.constexpr(64)"),
    (
        "dtype or shape of a variable in a loop",
        "of range() or while",
        "in tl.static_range(4):\n        acc += v",
    ),
    ("Python's float()", "run-time value", "float('inf')"),
]
"""Part of a rule, the words that limit it, and a program that it once forbade although it compiles."""


@pytest.mark.parametrize(("part", "limit", "code"), PERMITTED, ids=lambda text: text[:20])
def test_rule_leaves_out_what_compiles(part: str, limit: str, code: str) -> None:
    (rule,) = [rule for rule in RULES if part in rule.text]
    assert limit in rule.text
    assert any(code in proof.counterpart for proof in rule.proofs)


def test_every_bundled_rule_was_verified_with_both_versions() -> None:
    assert len(RULES) >= 40
    for rule in RULES:
        assert rule.count == len(rule.tasks) >= 1, rule.text
        assert rule.evidence, rule.text
        assert rule.signatures, rule.text
        assert {(seen.triton, seen.target, seen.holds) for seen in rule.verified} == {
            ("3.6.0", "sm_90", True),
            ("3.7.1", "sm_90", True),
        }, rule.text


def test_no_rule_concerns_infrastructure_or_one_program() -> None:
    for rule in RULES:
        assert rule.text.startswith("You cannot "), rule.text
        assert not RUN_TIME_ERRORS.search(rule.text), rule.text
        assert not re.search(r"\bline \d|\bat \d+:|\.py\b|\w+_kernel\b", rule.text), rule.text


def test_text_memory_has_same_rules_sorted_without_duplicates() -> None:
    text = read_rules(FOLDER / "general_memory_v1_200.txt")
    assert [(rule.text, rule.count) for rule in text] == [(rule.text, rule.count) for rule in RULES]
    assert [rule.count for rule in text] == sorted((rule.count for rule in text), reverse=True)
    pairs = [(a.text, b.text) for a in text for b in text if a is not b]
    assert max(overlap(a, b) for a, b in pairs) < SAME_RULE


def test_the_block_in_a_prompt_is_small() -> None:
    shown = injected(RULES, 3)
    assert len(shown) >= 20
    assert len(rules_block(shown).encode()) / 4 <= 1800
    assert len(rules_block(injected(RULES, 1)).encode()) / 4 <= 1800
