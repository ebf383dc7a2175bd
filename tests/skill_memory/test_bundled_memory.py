from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("triton")

from adaexplore.prompts.blocks import rules_block
from adaexplore.settings.config import RunConfig
from skill_memory.merge import SAME_RULE, overlap
from skill_memory.proof.compiler import Compiler, open_compiler
from skill_memory.proof.verify import check
from skill_memory.rule import Rule
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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text[11:50])
def test_each_bundled_rule_holds_with_the_installed_triton(rule: Rule, compiler: Compiler) -> None:
    found = check(rule, compiler)
    assert found.holds, found.reason


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
