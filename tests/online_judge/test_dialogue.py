"""An evaluator's orders, and answers of hostile candidate processes."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.judging.status import Stage, Status
from online_judge.evaluator.dialogue import BlockRefused, CandidateFailed, CandidateGone
from online_judge.evaluator.reference import ReferenceFailed
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.orders import DONE, GO, Block, Construct, Observe
from online_judge.verdict.endings import explain
from tests.verdicts import metadata_of

from .scripted import ANSWER_BYTES, Scripted, scripted

READY = b'{"ready": true}'
TIMES = {"starts": [0.0], "ends": [1.0], "tail": 0.0}
BLOCK = Block(1)


def always(*messages: bytes) -> Callable[[Any, list[int]], list[bytes]]:
    return lambda order, fds: list(messages)


def timing(*after_go: bytes) -> Callable[[Any, list[int]], list[bytes]]:
    return lambda order, fds: list(after_go) if order == GO else [READY]


def ask(candidate: Scripted) -> dict[str, Any]:
    return candidate.dialogue.ask(Stage.FORWARD, Observe())


def run(candidate: Scripted) -> tuple[float, dict[str, Any]]:
    candidate.dialogue.ready_block(BLOCK)
    return candidate.dialogue.run_block()


def test_order_arrives_and_the_answer_comes_back() -> None:
    with scripted(always(b'{"patched": []}')) as candidate:
        assert ask(candidate) == {"patched": []}
        assert candidate.asked == [Observe()]
        assert candidate.clock == [("candidate", "forward")]


def test_tuning_time_is_separate() -> None:
    with scripted(always(b"{}")) as candidate:
        candidate.dialogue.ask(Stage.FORWARD, Observe(), tuning=True)
        assert candidate.clock == [("tuning", "forward")]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"x",
        b"[]",
        b"null",
        b"3",
        b"\xff\xfe",
        b'{"a":',
        b"[" * 100_000,
        b"9" * 5000,
        b'"' + b"x" * 999 + b'"',
    ],
)
def test_malformed_answer_ends_the_match(said: bytes) -> None:
    with scripted(always(said)) as candidate, pytest.raises(CandidateGone) as gone:
        ask(candidate)
    assert gone.value.stage is Stage.FORWARD
    assert gone.value.why.startswith("it answered with ")


def test_answer_that_is_too_long_ends_the_match() -> None:
    with (
        scripted(always(b" " * (ANSWER_BYTES + 1))) as candidate,
        pytest.raises(CandidateGone, match="limit"),
    ):
        ask(candidate)


def test_closed_channel_means_candidate_gone_without_reason() -> None:
    def leave(order: Any, fds: list[int]) -> list[bytes]:
        raise ChannelClosed

    with scripted(leave) as candidate, pytest.raises(CandidateGone) as gone:
        ask(candidate)
    assert gone.value.why == ""


@pytest.mark.parametrize("depth", [60, 100, 900])
def test_deep_answer_ends_only_the_match(depth: int) -> None:
    said = b'{"patched": ' + b"[" * depth + b"]" * depth + b"}"
    with scripted(always(said)) as candidate:
        if depth < 64:
            assert ask(candidate)
            return
        with pytest.raises(CandidateGone, match=r"deep|recursion"):
            ask(candidate)


def test_descriptors_sent_by_candidate_are_closed() -> None:
    with open("/dev/null") as file:
        fds = [file.fileno()] * 8
        ours, theirs = channel.pair()
        with ours, theirs:
            candidate, evaluator = Channel(theirs), Channel(ours, ANSWER_BYTES, max_fds=0)
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(5):
                candidate.send_json({"loaded": True}, fds)
                assert evaluator.receive_json() == ({"loaded": True}, [])
            assert len(os.listdir("/proc/self/fd")) == before


def test_failure_is_the_candidates_and_the_clock_stops() -> None:
    claim = {
        "status": "compile",
        "name": "t.CompilationError",
        "message": "at 1:1",
        "frames": [],
    }
    with scripted(always(json.dumps({"failed": claim}).encode())) as candidate:
        with pytest.raises(CandidateFailed) as failed:
            ask(candidate)
        assert candidate.clock[-1] == ("reference", "forward")
    explained = explain(failed.value.ending, "/job")
    assert explained.status is Status.COMPILE
    assert failed.value.is_final
    assert len(metadata_of(explained)["feedback"].encode()) <= 1500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=10,
)
FAILURES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from([*Status]) | JSON,
        "name": JSON,
        "message": JSON,
        "frames": st.lists(st.tuples(st.integers(), JSON, JSON) | JSON, max_size=3),
    },
)


@settings(max_examples=60)
@given(FAILURES | JSON)
def test_claimed_failure_never_passes_or_breaks_the_evaluator(claim: object) -> None:
    answer = json.dumps({"failed": claim}).encode()
    with scripted(always(answer)) as candidate, pytest.raises(CandidateFailed) as failed:
        ask(candidate)
    explained = explain(failed.value.ending, "/job")
    assert explained.status not in (
        Status.PASSED,
        Status.TIMEOUT,
        Status.CRASH,
        Status.INTEGRITY,
    )
    assert json.loads(json.dumps(metadata_of(explained))) == metadata_of(explained)


def test_block_is_timed_from_go_to_done() -> None:
    with scripted(timing(DONE, json.dumps(TIMES).encode())) as candidate:
        wall_ms, claim = run(candidate)
        assert candidate.asked == [BLOCK, GO]
        assert candidate.clock == [("candidate", "timing")] * 2
    assert 0 < wall_ms < 5000
    assert claim == TIMES


@pytest.mark.parametrize("said", [b"{}", b'{"ready": false}', b'{"ready": 1}', b'{"ready": "true"}'])
def test_block_that_is_not_ready_is_not_begun(said: bytes) -> None:
    with scripted(always(said)) as candidate:
        with pytest.raises(BlockRefused):
            candidate.dialogue.ready_block(BLOCK)
        assert candidate.asked == [BLOCK]


@pytest.mark.parametrize("word", [b"{}", b"DONE", b"done ", b"[1]", b"\xff", json.dumps(TIMES).encode()])
def test_block_ends_with_one_word(word: bytes) -> None:
    with scripted(timing(word)) as candidate, pytest.raises(CandidateGone) as gone:
        run(candidate)
    assert gone.value.stage is Stage.TIMING
    assert gone.value.why


def test_candidate_may_fail_within_a_block() -> None:
    failure = b'{"failed": {"status": "launch", "name": "builtins.ValueError", "message": "no"}}'
    for reply in (always(failure), timing(failure), timing(DONE, failure)):
        with scripted(reply) as candidate, pytest.raises(CandidateFailed) as failed:
            run(candidate)
        assert explain(failed.value.ending, "/job").status is Status.LAUNCH


def test_unsendable_order_is_the_references_fault() -> None:
    order = Construct(load=True, init_inputs=[lambda: 0], weights=None, seed=1, dtype="fp32")  # type: ignore[arg-type]
    with (
        scripted(always(b"{}")) as candidate,
        pytest.raises(ReferenceFailed, match="get_init_inputs"),
    ):
        candidate.dialogue.ask(Stage.CONSTRUCT, order)
