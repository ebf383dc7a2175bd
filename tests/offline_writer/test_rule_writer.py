from __future__ import annotations

import pytest

from adaexplore.llm.protocol import MergeData, RuleData
from adaexplore.offline_writer.rule_writer import same_rule, write_rule

ATTRIBUTE = "AttributeError: module 'triton.language' has no attribute '{}'"


@pytest.mark.parametrize(
    ("construct", "error", "begins"),
    [
        (
            "launch",
            "ValueError: Conflicting meta-parameters: BLOCK.",
            "You cannot pass a parameter that the autotune",
        ),
        ("index number", "unsupported tensor index: constexpr[0]", "You cannot index a tensor"),
        ("launch", "AssertionError: num_warps must be a power of 2", "You cannot use a num_warps"),
        (
            "call tl.arange",
            "ValueError: arange's range must be a power of 2",
            "You cannot give tl.arange a range",
        ),
        (
            "call tl.sort dim=",
            "sort() got an unexpected keyword argument 'dim'",
            "You cannot pass dim= to tl.sort",
        ),
        (
            "call tl.cat",
            "ValueError: shapes must match",
            "You cannot use tl.cat in this way: shapes must match.",
        ),
        (
            "call tl.cat",
            "Invoked with: <ir.builder object at 0x...>",
            "You cannot use tl.cat with these arguments",
        ),
        ("name", "NameError: name 'foo' is not defined", "no rule"),
        ("call _", "TypeError: helper() got an unexpected keyword argument 'tmp'", "no rule"),
        ("unknown", "segmentation fault", "no rule"),
    ],
)
def test_a_rule_is_composed_from_error_and_construct(construct: str, error: str, begins: str) -> None:
    assert write_rule(RuleData((construct,), (error,))).startswith(begins)


def test_several_missing_names_share_one_rule() -> None:
    errors = tuple(ATTRIBUTE.format(name) for name in ("ones", "eq", "ones"))
    assert "tl.ones, tl.eq, which" in write_rule(RuleData(("attribute tl.ones", "attribute tl.eq"), errors))
    assert "tl.tanh" in write_rule(RuleData(("attribute tl.tanh",), (ATTRIBUTE.format("tanh"),)))


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ("You cannot pass other= to tl.store.", "You cannot pass other= to tl.store at all.", "same"),
        ("You cannot pass other= to tl.store.", "You cannot pass dtype= to tl.load.", "different"),
        ("You cannot use break in a kernel.", "You cannot compare pointers.", "different"),
    ],
)
def test_rules_match_when_words_and_names_agree(one: str, other: str, answer: str) -> None:
    assert same_rule(MergeData(one, other)) == answer
