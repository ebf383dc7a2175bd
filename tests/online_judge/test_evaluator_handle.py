"""An evaluator from its slot's side, with a thread instead of its process."""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import EvaluationRequest, ProblemRequest
from online_judge.processes.gpu_lease import Cancelled, GpuLeases
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.messages import Answer, CandidateGone, Clock, Job, Operation
from online_judge.sandbox import linux
from online_judge.slots.evaluator_handle import EvaluatorFailed, EvaluatorHandle, Evaluators

from .live import wait_until
from .test_leases import child, state_of_child
from .test_pool import REPORT

Reply = Callable[[dict[str, Any]], list[bytes]]
GONE = b'{"result": {"kind": "candidate_gone", "stage": "load", "why": ""}}'
JOB = Job(op="evaluate", request=EvaluationRequest(), seeds="", alone=False, hardware="")


class Evaluator:
    """A handle on a thread that answers each message; its supervisor has a child that sleeps."""

    def __init__(self, folder: Path, leases: GpuLeases, supervisor: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.supervisor = supervisor
        self.answer: Reply = honest
        self.heard: list[dict[str, Any]] = []
        self.left = threading.Event()
        ours, theirs = channel.pair()
        lifeline, self._end_of_lifeline = channel.pair()
        self.process = Channel(theirs)
        self.handle = EvaluatorHandle(ProcessHandle(ours, lifeline, supervisor, folder), leases)
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._serve, self._supervise)
        ]
        for thread in self._threads:
            thread.start()

    def _serve(self) -> None:
        try:
            while True:
                self.heard.append(self.process.receive_json()[0])
                for message in self.answer(self.heard[-1]):
                    self.process.send(message)
        except ChannelClosed:
            self.process.close()
            self.left.set()

    def _supervise(self) -> None:
        """Report the end of the process when that is asked for."""
        lifeline = Channel(self._end_of_lifeline)
        try:
            lifeline.receive()
        except ChannelClosed:
            lifeline.send_json(REPORT)
            lifeline.close()

    def close(self) -> None:
        self.handle.end()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()


def honest(message: dict[str, Any]) -> list[bytes]:
    if message == {"op": "release"}:
        return [b'{"result": {"kind": "release"}}']
    return [b'{"clock": "candidate", "stage": "load"}', GONE] if message else []


def leave(message: dict[str, Any]) -> list[bytes]:
    raise ChannelClosed


@pytest.fixture
def leases(tmp_path: Path) -> GpuLeases:
    return GpuLeases(tmp_path / "gpu.lock")


@pytest.fixture
def evaluator(tmp_path: Path, leases: GpuLeases) -> Iterator[Evaluator]:
    with child() as supervisor:
        made = Evaluator(tmp_path / "evaluator", leases, supervisor)
        yield made
        made.close()


def state(evaluator: Evaluator) -> str:
    return state_of_child(evaluator.supervisor)


def heard(evaluator: Evaluator, seconds: float = 10.0) -> Clock | Answer | None:
    """Wait for its messages, except those about leases."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (message := evaluator.handle.hear(0.05)) is not None:
            return message
    return None


def test_order_is_answered(evaluator: Evaluator) -> None:
    evaluator.handle.order(JOB, [])
    assert heard(evaluator) == Clock(clock="candidate", stage=Stage.LOAD)
    assert heard(evaluator) == Answer(result=CandidateGone(stage=Stage.LOAD, why=""))
    assert evaluator.handle.hear(0) is None
    assert evaluator.heard == [JOB.to_json()]


@pytest.mark.parametrize(
    "said",
    [
        b'{"clock": "nobody", "stage": ""}',
        b'{"clock": "candidate", "stage": "lunch"}',
        b'{"clock": ["candidate"], "stage": ""}',
        b'{"clock": "candidate"}',
        b"{}",
        b"[]",
    ],
)
def test_invalid_message_breaks_the_conversation(evaluator: Evaluator, said: bytes) -> None:
    evaluator.answer = lambda message: [said]
    evaluator.handle.order(JOB, [])
    with pytest.raises(ChannelClosed):
        heard(evaluator)


@pytest.mark.parametrize("op", ["evaluate", "problem"])
@pytest.mark.parametrize(
    "result",
    [
        "3",
        "null",
        "{}",
        '{"kind": "verdict"}',
        '{"kind": "release"}',
        '{"kind": "profile", "ending": {"kind": "passed"}}',
        '{"kind": "reference_failed", "reason": 3, "broken": false}',
        '{"kind": "evaluate", "ending": {"kind": "fast"}}',
        '{"kind": "evaluate", "ending": {"kind": "passed"}, "trials_passed": "1.5"}',
        '{"kind": "candidate_gone", "stage": "load", "why": ""}, "more": 1',
    ],
)
def test_result_that_cannot_be_read_ends_the_evaluator(
    evaluator: Evaluator, op: Operation, result: str
) -> None:
    request = ProblemRequest(original_model_src="") if op == "problem" else EvaluationRequest()
    evaluator.answer = lambda message: [f'{{"result": {result}}}'.encode()]
    evaluator.handle.order(JOB.model_copy(update={"op": op, "request": request}), [])
    with pytest.raises(EvaluatorFailed, match=r"^the evaluator's result cannot be read$"):
        heard(evaluator)
    assert evaluator.handle.ended


def test_wrong_answer_to_rest_order_ends_evaluator(evaluator: Evaluator) -> None:
    evaluator.answer = lambda message: [GONE]
    evaluator.handle.rest()
    assert evaluator.handle.ended


def test_problem_check_rejects_a_candidate_gone_answer(evaluator: Evaluator) -> None:
    job = JOB.model_copy(update={"op": "problem", "request": ProblemRequest(original_model_src="")})
    evaluator.answer = lambda message: [GONE]
    evaluator.handle.order(job, [])
    with pytest.raises(EvaluatorFailed):
        heard(evaluator)


def test_resting_evaluator_is_stopped_until_it_is_woken(evaluator: Evaluator) -> None:
    evaluator.handle.rest()
    assert evaluator.heard == [{"op": "release"}]
    wait_until(lambda: evaluator.handle.stopped)
    assert state(evaluator) == "T"
    assert evaluator.handle.wake()
    wait_until(lambda: state(evaluator) == "S")
    assert not evaluator.handle.ended


def test_evaluator_that_speaks_unasked_gets_no_order(evaluator: Evaluator) -> None:
    assert evaluator.handle.wake()
    evaluator.process.send_json({"result": {"kind": "verdict", "verdict": "forged"}})
    assert not evaluator.handle.wake()


def test_scarcity_ends_an_evaluator_without_a_reference(evaluator: Evaluator, leases: GpuLeases) -> None:
    pool = SimpleNamespace(take=lambda cancelled: evaluator.handle.process)
    evaluators = Evaluators("cpu", cast(Pool, pool), leases)
    evaluators.start()
    evaluators.free_idle()
    assert not evaluator.folder.exists()
    evaluators.free_idle()
    evaluators.close()


def test_evaluator_that_had_a_candidate_is_replaced(evaluator: Evaluator, leases: GpuLeases) -> None:
    pool: Any = Mock()
    pool.take.side_effect = [evaluator.handle.process, Cancelled]
    evaluators = Evaluators("cpu", pool, leases)
    handle = evaluators.of("x", threading.Event(), untouched=True)
    assert evaluators.of("x", threading.Event(), untouched=True) is handle
    handle.touched = True
    assert evaluators.of("x", threading.Event()) is handle
    with pytest.raises(Cancelled):
        evaluators.of("x", threading.Event(), untouched=True)
    assert handle.ended


@pytest.mark.parametrize("end", [lambda handle: handle.end(), lambda handle: handle.rest()])
def test_ended_evaluator_leaves_nothing(
    evaluator: Evaluator, leases: GpuLeases, end: Callable[[EvaluatorHandle], None]
) -> None:
    evaluator.answer = lambda message: []
    evaluator.process.send_json({"lease": "take", "kind": "exclusive"})
    assert heard(evaluator, 0.2) is None
    wait_until(lambda: evaluator.heard)
    evaluator.answer = leave
    end(evaluator.handle)
    assert evaluator.handle.ended
    assert not evaluator.folder.exists()
    with leases.take("exclusive") as waited_s:
        assert waited_s < 5
    assert not evaluator.handle.wake()
    evaluator.handle.rest()
    with pytest.raises(ChannelClosed):
        evaluator.handle.hear(0)


def test_lease_request_is_granted_but_answers_no_order(evaluator: Evaluator) -> None:
    evaluator.answer = lambda message: []
    evaluator.process.send_json({"lease": "take", "kind": "shared"})
    assert heard(evaluator, 0.2) is None
    wait_until(lambda: evaluator.heard)
    assert evaluator.heard[0].keys() == {"granted"}


def test_late_result_is_heard_after_all(evaluator: Evaluator) -> None:
    evaluator.handle.order(JOB, [])
    assert evaluator.handle.settle() == Answer(result=CandidateGone(stage=Stage.LOAD, why=""))
    assert not evaluator.handle.ended


@pytest.mark.parametrize("answer", [leave, lambda message: [b"{"], lambda message: [b'{"result": 3}']])
def test_evaluator_without_a_result_is_ended(evaluator: Evaluator, answer: Reply) -> None:
    evaluator.answer = answer
    evaluator.handle.order(JOB, [])
    begin = time.monotonic()
    assert evaluator.handle.settle() is None
    assert time.monotonic() - begin < 5
    assert evaluator.handle.ended


def test_evaluator_that_left_is_ended_and_not_stopped(evaluator: Evaluator) -> None:
    evaluator.answer = leave
    evaluator.handle.order(JOB, [])
    assert evaluator.left.wait(10)
    evaluator.handle.rest()
    assert evaluator.handle.ended


def test_stopped_evaluator_is_not_waited_for(evaluator: Evaluator) -> None:
    (sleeping,) = linux.children(evaluator.supervisor)
    os.kill(sleeping, signal.SIGSTOP)
    wait_until(lambda: evaluator.handle.stopped)
    begin = time.monotonic()
    assert evaluator.handle.settle() is None
    assert time.monotonic() - begin < 5
    assert evaluator.handle.ended


def test_unusable_lock_file_is_the_judges_error(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, mode: int = 0, *, exist_ok: bool = False) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    evaluator.answer = lambda message: []
    monkeypatch.setattr(os, "makedirs", fail)
    evaluator.process.send_json({"lease": "take", "kind": "exclusive"})
    with pytest.raises(EvaluatorFailed, match=r"lock files cannot be used: .*No space left"):
        wait_until(lambda: evaluator.handle.hear(0.1))
    assert evaluator.handle.ended
