"""Integers and float8 among inputs, weights and outputs."""

from typing import Any

import pytest
import torch

from online_judge.common.modules import bits
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison, deviation, oracles, variants
from online_judge.evaluator.correctness.grading import Grading
from online_judge.evaluator.examination import examine
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.protocol.shared_tensors import pack
from tool_scripts.judge_bench.candidates import as_candidate

from .live import LiveJudge

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz]
WHOLE = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool]

QUANTISED = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (16, 16), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(16) + 0.5)

    def forward(self, x, codes):
        wide = x.to(torch.float32) @ (self.weight.to(torch.float32) * self.scale).T / 128
        return wide.to(x.dtype), (codes.to(torch.int32) @ self.weight.to(torch.int32).T).clamp(-9, 9).to(torch.int8)

def get_inputs():
    codes = torch.randint(-128, 128, (64, 16), dtype=torch.int8)
    return [torch.randn(64, 16).to(torch.float8_e4m3fn), codes]

def get_init_inputs():
    return []
"""  # noqa: E501


def problem() -> Problem:
    return Problem(Reference(QUANTISED, Seeds(b"key"), "native", cuda=False))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_may_be_the_neighbour_and_no_more(dtype: Any) -> None:
    bits = torch.arange(8, 100, dtype=torch.uint8)  # positive and finite in all formats
    want = bits.view(dtype)
    assert comparison.equals((bits + 1).view(dtype), want, 1e-6)
    assert comparison.equals((bits - 1).view(dtype), want, 1e-6)
    found = comparison.difference((bits + 3).view(dtype), want, 1e-6)
    assert found is not None
    assert found.wrong == want.numel()
    assert len(found.examples) == comparison.MAX_EXAMPLES


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_nan_must_be_where_it_is_expected(dtype: Any) -> None:
    want = torch.ones(8).to(dtype)
    got = torch.tensor([1.0] * 7 + [float("nan")]).to(dtype)
    found = comparison.difference(got, want, 0.05)
    assert found is not None
    assert (found.wrong, found.nonfinite) == (1, 1)
    assert comparison.equals(got, got, 0.05)


@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers_are_exact(dtype: Any) -> None:
    want = torch.arange(4).to(dtype)
    got = want.clone()
    got[0] = 1
    found = comparison.difference(got, want, 1e9)
    assert found is not None
    assert found.wrong == 1
    assert deviation.error(got, want).rms == float("inf")


def test_parts_of_large_tensors_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_CHUNK", 16)
    monkeypatch.setattr(deviation, "_CHUNK", 16)
    for dtype in (torch.float8_e4m3fn, torch.int8):
        want = torch.arange(64).to(dtype)
        got = want.clone()
        got.view(torch.uint8)[60] ^= 0x40
        found = comparison.difference(got, want, 0.05)
        assert found is not None
        assert [each.index for each in found.examples] == [(60,)]
        assert deviation.error(got, want).rms > 0


@pytest.mark.parametrize("dtype", [*FLOAT8, *WHOLE])
def test_tensors_are_shared_and_copied_bit_by_bit(dtype: Any) -> None:
    value = torch.randint(0, 2, (33, 5)).to(dtype).T
    shared, parcel = pack([value], cuda=False)
    view = shared.view(parcel.places[0])
    assert view.dtype == dtype
    assert costs.same_bits(view, value)
    assert costs.checksum(oracles.copied([value])[0]) == costs.checksum(value)  # type: ignore[arg-type]
    shared.fill(0xFF, shared.nbytes)
    assert not costs.same_bits(view, value)
    shared.free()


@pytest.mark.parametrize("dtype", FLOAT8)
def test_variants_change_float8_and_leave_integers(dtype: Any) -> None:
    values, codes = torch.randn(64).to(dtype), torch.arange(64, dtype=torch.int8)
    for variant in variants.VARIANTS:
        changed, same = variant.apply([values, codes], torch.Generator().manual_seed(0))
        assert isinstance(changed, torch.Tensor)
        assert changed.dtype == dtype
        assert not costs.same_bits(changed, values)
        assert torch.equal(same, codes)  # type: ignore[arg-type]
    assert variants.usable([values], [values])
    weights = {"weight": values, "codes": codes}
    fresh = variants.other_weights(weights, {"weight"}, "cpu", 1)
    assert fresh["weight"].dtype == dtype
    assert not costs.same_bits(fresh["weight"], values)
    assert torch.equal(fresh["codes"], codes)


def test_float8_of_a_timing_is_mixed_as_bytes() -> None:
    value = torch.randn(8).to(torch.float8_e4m3fn)
    as_bytes = bits(value)
    assert as_bytes.dtype == torch.uint8
    assert as_bytes.data_ptr() == value.data_ptr()
    wide = torch.randn(8)
    assert bits(wide) is wide


def test_quantised_problem_is_graded_by_value() -> None:
    of = problem()
    inputs = of.reference.inputs("one")
    expected = of.reference.outputs(inputs, "one")
    assert [leaf.dtype for leaf in expected.leaves] == [torch.float8_e4m3fn, torch.int8]
    assert of.trivial_answers(0.05) == ()
    wrong = [expected.leaves[0].float().mul(1.5).to(torch.float8_e4m3fn), expected.leaves[1]]
    grading = Grading(of, inputs, "one", expected)
    assert [grade.tier for grade in grading.grade(expected.leaves)] == ["strict", "strict"]
    assert [grade.tier for grade in grading.grade(wrong)] == ["legacy", "strict"]
    assert "nonfinite" not in examine(of).flags


def test_quantised_problem_passes_on_the_cpu_judge(judge: LiveJudge) -> None:
    right = as_candidate(QUANTISED)
    fields = {"dtype_str": "native", "tier": "half", "num_correct_trials": 2}
    answer = judge.evaluate(right, QUANTISED, **fields)
    assert answer["correctness"] is True, answer["metadata"]
    for old, new in ((".clamp(-9, 9)", ".clamp(-9, 8)"), ("/ 128", "/ 100")):
        answer = judge.evaluate(right.replace(old, new), QUANTISED, **fields)
        assert answer["correctness"] is False, answer["metadata"]
        assert "of output" in answer["metadata"]["feedback"]
