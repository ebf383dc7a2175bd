"""A problem's own TOLERANCE decides wherever outputs are compared with the reference's."""

import math
from typing import Any

import pytest

from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds

from .live import LiveJudge
from .sources import REFERENCE, with_forward

OWN: dict[str, Any] = {"max_atol": 1.0, "max_rtol": 0.0, "required_matched_ratio": 0.9}
FIRST_IS_WRONG = with_forward("y = torch.relu(self.linear(x))\ny[0, :10] = 1e3\nreturn y")


def source(own: object, reference: str = REFERENCE) -> str:
    return f"{reference}\nTOLERANCE = {own!r}\n"


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (3, "TOLERANCE must be a dict, not int"),
        ({"max_atoll": 1.0}, "TOLERANCE has the unknown key 'max_atoll'; it may have max_atol, max_rtol"),
        ({"required_matched_ratio": 2}, r"TOLERANCE\['required_matched_ratio'\]: .*less than or equal to 1"),
        ({"max_atol": "much"}, r"TOLERANCE\['max_atol'\]: .*valid number"),
        ({"max_atol": -math.inf}, r"TOLERANCE\['max_atol'\]: "),
    ],
)
def test_tolerance_that_cannot_be_used_is_named(own: object, why: str) -> None:
    text = source(own).replace("-inf", "-1e999")
    with pytest.raises(ReferenceFailed, match=f"^{why}"):
        Reference(text, Seeds(b"key"), "fp32", cuda=False)


def test_problem_report_names_a_wrong_tolerance(judge: LiveJudge) -> None:
    report = judge.post("/v2/problem", {"original_model_src": source({"atol": 1.0})}).json()
    assert not report["ok"]
    assert report["reason"].startswith("TOLERANCE has the unknown key 'atol'")


def test_errors_within_the_tolerance_raise_no_flag(judge: LiveJudge) -> None:
    metadata = judge.evaluate(FIRST_IS_WRONG, source(OWN))["metadata"]
    assert metadata["status"] == "passed", metadata
    assert metadata["integrity"] == ["no_own_kernel"]
    assert "loose_tolerance" in metadata["problem_flags"]
    evidence = metadata["problem_flags_evidence"][-1]["evidence"]
    assert evidence.startswith("the problem's TOLERANCE is ")


def test_tight_tolerance_makes_a_problem_sound(judge: LiveJudge) -> None:
    small = REFERENCE.replace("torch.relu(self.linear(x))", "torch.relu(self.linear(x)) * 1e-3")
    honest = with_forward("return torch.relu(self.linear(x)) * 1e-3")
    flags = judge.evaluate(honest, small)["metadata"]["problem_flags"]
    assert {"degenerate_problem", "loose_tolerance"} <= set(flags)
    own = {"max_atol": 1e-7, "max_rtol": 1e-4, "required_matched_ratio": 1.0}
    assert "problem_flags" not in judge.evaluate(honest, source(own, small))["metadata"]
    body = {"original_model_src": source(own, small), "thorough": True}
    assert judge.post("/v2/problem", body).json()["traits"]["flags"] == []
