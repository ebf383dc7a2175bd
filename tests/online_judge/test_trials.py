"""Single calls: whatever a candidate process claims, the evaluator looks at the data."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.dialects.arguments import Arguments
from adaexplore.core.judging.status import Status
from online_judge.evaluator import trials as trials_module
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.evaluator.trials import Called, Trials
from online_judge.protocol.orders import Construct, Forward, Reweigh
from online_judge.protocol.shared_tensors import MappedTensors
from online_judge.verdict.endings import explain
from tests.verdicts import metadata_of

from .scripted import scripted
from .sources import REFERENCE

TWO = REFERENCE.replace(
    "return torch.relu(self.linear(x))",
    "y = self.linear(x)\n        return {'a': torch.relu(y), 'b': y.sum(1)}",
)
STRIDED = REFERENCE.replace("return torch.relu(self.linear(x))", "return torch.relu(self.linear(x)).T")
Spoil = Callable[[dict[str, Any], MappedTensors, MappedTensors], None]


def leave(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
    """Return what an honest candidate process does besides."""


def called(source: str = REFERENCE, spoil: Spoil = leave, **options: Any) -> Called:
    """One call of a candidate that computes with the reference, then spoils what it tells and leaves."""
    seeds = Seeds(b"key")
    problem = Problem(Reference(source, seeds, "fp32", cuda=False))
    truth = Reference(source, seeds, "fp32", cuda=False)

    def reply(order: Any, fds: list[int]) -> list[bytes]:
        assert isinstance(order, Forward)
        with MappedTensors(order.inputs, fds[:1]) as inputs, MappedTensors(order.outputs, fds[1:]) as outputs:
            assert all(bool(leaf.isnan().all()) for leaf in outputs.leaves)
            given = [leaf.clone() for leaf in inputs.leaves]
            tree = truth.outputs(given, "one")
            leaves = []
            for leaf, place in zip(tree.leaves, outputs.leaves, strict=True):
                place.copy_(leaf)
                leaves.append([list(leaf.shape), str(leaf.dtype), "cpu", list(leaf.stride())])
            answer = {"structure": tree.signature(), "leaves": leaves}
            spoil(answer, inputs, outputs)
        return [json.dumps(answer).encode()]

    with scripted(reply) as candidate:
        one = Trials(candidate.dialogue, problem, 0.05, nullcontext)
        try:
            found = one.call("one", problem.reference.inputs("one"), **options)
        finally:
            one.free()
        whose = [whose for whose, _ in candidate.clock]
        assert whose == ["reference", "candidate", "reference"]
        return found


def claiming(**claims: Any) -> Spoil:
    return lambda answer, inputs, outputs: answer.update(claims)


def status_of(spoil: Spoil, source: str = REFERENCE) -> Status:
    with pytest.raises(CandidateFailed) as failed:
        called(source, spoil)
    explained = explain(failed.value.ending, "/job")
    assert len(metadata_of(explained)["feedback"].encode()) <= 1500
    return explained.status


@pytest.mark.parametrize("source", [REFERENCE, TWO, STRIDED])
def test_right_outputs_are_right(source: str) -> None:
    found = called(source, graded=True)
    assert found.changed is None
    assert {grade.tier for grade in found.grades} == {"strict"}
    assert found.strides == tuple(tuple(leaf.stride()) for leaf in found.expected.leaves)


def test_values_are_looked_at_and_not_claimed() -> None:
    def wrong(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
        outputs.leaves[0][3, 5] += 1.0

    assert status_of(wrong) is Status.WRONG_VALUE


def test_unwritten_output_is_nonfinite() -> None:
    def unwritten(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
        outputs.leaves[0].view(torch.uint8).fill_(0xFF)

    assert status_of(unwritten) is Status.NONFINITE


def test_second_output_counts_as_well() -> None:
    def wrong(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
        outputs.leaves[1][0] += 100.0

    assert status_of(wrong, TWO) is Status.WRONG_VALUE


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"structure": ["T", "T"]}, Status.WRONG_SHAPE),
        ({"structure": None}, Status.WRONG_SHAPE),
        ({"leaves": None}, Status.WRONG_SHAPE),
        ({"leaves": [[[16, 8], "torch.float32", "cpu", [8, 1]]]}, Status.WRONG_SHAPE),
        ({"leaves": []}, Status.WRONG_SHAPE),
        ({"leaves": [3]}, Status.WRONG_SHAPE),
        ({"leaves": [[[8, 16], "torch.float16", "cpu", [16, 1]]]}, Status.WRONG_DTYPE),
    ],
)
def test_wrong_form_is_reported_before_wrong_values(claims: dict[str, Any], status: Status) -> None:
    assert status_of(claiming(**claims)) is status


def test_changed_inputs_are_returned_with_new_values() -> None:
    def change(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
        inputs.leaves[0][7, 15] = 42.0

    changed = called(REFERENCE, change).changed
    assert changed is not None
    assert float(changed[0][7, 15]) == 42.0
    assert called(REFERENCE.replace("self.linear(x)", "self.linear(x.mul_(2))"), change).changed is None


def test_zeros_of_another_sign_are_a_change() -> None:
    zeros = REFERENCE.replace("torch.randn(8, 16)", "torch.zeros(8, 16)")
    assert called(zeros, lambda answer, inputs, outputs: inputs.leaves[0].neg_()).changed is not None


def test_nan_in_an_input_is_no_change() -> None:
    nan = REFERENCE.replace("torch.randn(8, 16)", "torch.full((8, 16), float('nan'))")
    assert called(nan).changed is None


def test_larger_outputs_may_have_larger_errors() -> None:
    def off(answer: dict[str, Any], inputs: MappedTensors, outputs: MappedTensors) -> None:
        outputs.leaves[0].add_(0.3)

    assert status_of(off) is Status.WRONG_VALUE
    called(REFERENCE, off, scale=(10.0,))


@pytest.mark.parametrize(
    "claim",
    [
        None,
        [True, 1],
        [16],
        [16, 1, 1],
        [-16, 1],
        [16.0, 1],
        ["16", 1],
        [10**12, 1],
        [4 * 8 * 16, 4 * 8 * 16],
        [2**70, 2**70],
    ],
)
def test_impossible_strides_are_ignored(claim: Any) -> None:
    found = called(REFERENCE, claiming(leaves=[[[8, 16], "torch.float32", "cpu", claim]]))
    assert found.strides == ((16, 1),)


@pytest.mark.parametrize("claim", [[16, 1], [1, 8], [20, 1], [0, 1], [32, 2]])
def test_possible_strides_are_used(claim: list[int]) -> None:
    found = called(REFERENCE, claiming(leaves=[[[8, 16], "torch.float32", "cpu", claim]]))
    assert found.strides == (tuple(claim),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
LEAF = st.tuples(
    st.just([8, 16]) | JSON,
    st.just("torch.float32") | JSON,
    st.just("cpu") | JSON,
    st.lists(st.integers()) | JSON,
).map(list)


@settings(max_examples=50)
@given(st.just("T") | JSON, st.lists(LEAF | JSON, max_size=2) | JSON)
def test_no_claim_breaks_the_evaluator(structure: Any, leaves: Any) -> None:
    try:
        found = called(REFERENCE, claiming(structure=structure, leaves=leaves))
    except (CandidateFailed, CandidateGone):
        return
    assert all(type(stride) is int for stride in found.strides[0])


def test_observations_of_a_call_are_read_as_claims() -> None:
    own = {"own": 0.5, "total_ms": 1.0, "streams": 1, "kernels": []}
    launches = {"counts": {"mine[1, 1, 1]": 2}, "total": 2, "defined": 1, "unseen": []}
    found = called(spoil=claiming(launches=launches, aliases=True, reused=True, share=own))
    assert (found.launches.total, found.aliases, found.reused) == (2, True, True)
    assert found.share is not None
    assert found.share.own == 0.5


@pytest.mark.parametrize("claim", [None, 1, "true", [True], 10**400, {"own": 10**400, "total": 10**400}])
def test_impossible_observations_are_ignored(claim: Any) -> None:
    found = called(spoil=claiming(launches=claim, aliases=claim, reused=claim, share=claim))
    assert found.launches.counts == {}
    assert (found.aliases, found.reused, found.share) == (False, False, None)


def test_memory_is_given_back_with_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Remembered(trials_module.SharedTensors):
        def __init__(self, nbytes: int, **options: bool) -> None:
            super().__init__(nbytes, **options)
            made.append(self)

    monkeypatch.setattr("online_judge.protocol.shared_tensors.SharedTensors", Remembered)
    called()
    with pytest.raises(CandidateFailed):
        called(REFERENCE, claiming(structure="nothing"))
    assert len(made) == 4
    assert all(shared.fds == [] for shared in made)


def test_construct_and_reweigh_accept_only_plain_true() -> None:
    problem = Problem(Reference(REFERENCE, Seeds(b"key"), "fp32", cuda=False))
    claims = [{"loaded": True}, {"loaded": "yes"}, {"loaded": False, "shapes": [[2], [2], "x", ["y"]]}]
    answers = iter([{"changed": True}, {"changed": 1}, {}, *claims])
    with scripted(lambda order, fds: [json.dumps(next(answers)).encode()]) as candidate:
        one = Trials(candidate.dialogue, problem, 0.05, nullcontext)
        assert [one.construct(load=True), one.construct(load=True), one.construct(load=False)] == [
            True,
            False,
            False,
        ]
        weights = problem.reference.weights
        assert [one.reweigh(weights) for _ in claims] == [None, {}, {(2,): 2, (): 1}]
        assert [type(order) for order in candidate.asked] == [Construct] * 3 + [Reweigh] * 3
        assert candidate.asked[0].init_inputs == Arguments((16,))


def test_unsendable_weights_are_the_problems_fault() -> None:
    source = REFERENCE.replace(
        "self.linear =",
        "self.register_buffer('adjacency', torch.eye(4).to_sparse())\n        self.linear =",
    )
    problem = Problem(Reference(source, Seeds(b"key"), "fp32", cuda=False))
    with scripted(lambda order, fds: []) as candidate:
        one = Trials(candidate.dialogue, problem, 0.05, nullcontext)
        with pytest.raises(ReferenceFailed, match=r"gives a tensor of layout torch\.sparse_coo"):
            one.construct(load=True)
