"""An evaluator process without a candidate, as the gateway hears it."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from adaexplore.core.judging.status import Stage, Status
from online_judge.checks.facts.endings import Raised
from online_judge.checks.facts.findings import Failure
from online_judge.common import cuda_driver
from online_judge.cpu import simulated_cuda
from online_judge.evaluator import process, rehearsal
from online_judge.evaluator.process import Evaluator
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel
from online_judge.sandbox.process_spec import ProcessSpec

from .sources import REFERENCE

PATIENCE_S = 60.0
PROBLEM = {
    "op": "problem",
    "request": {"original_model_src": REFERENCE},
    "seeds": "00",
    "alone": False,
    "hardware": "a GPU",
}


def serve(control: Channel) -> None:
    with contextlib.suppress(channel.ChannelClosed), simulated_cuda("sm_90"):
        Evaluator(control, ProcessSpec("", "cuda", "", "sm_90", role="evaluator")).serve()


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(rehearsal, "rehearse", lambda spec: None)  # it shares memory of a GPU
    monkeypatch.setattr(cuda_driver, "has_illegal_access", lambda: False)
    ours, theirs = (Channel(end) for end in channel.pair())
    thread = threading.Thread(target=serve, args=[theirs])
    thread.start()
    yield ours
    ours.close()
    thread.join(PATIENCE_S)
    theirs.close()


def messages(gateway: Channel) -> list[dict[str, Any]]:
    """Grant all leases until the evaluator is ready or has a result; return all that it says."""
    heard: list[dict[str, Any]] = []
    while not heard or not heard[-1].keys() & {"ready", "result"}:
        assert channel.is_readable(PATIENCE_S, gateway)
        heard.append(gateway.receive_json()[0])
        if heard[-1].get("lease") == "take":
            gateway.send_json({"granted": 0.0})
    return heard


def test_waiting_for_the_device_is_nobodys_time(gateway: Channel) -> None:
    messages(gateway)
    gateway.send_json(PROBLEM)
    heard = messages(gateway)
    result = heard[-1]["result"]
    assert (result["kind"], result["traits"]) == ("problem", None)
    assert {each["role"] for each in result["tensors"]} >= {"input", "output"}
    takes = [number for number, message in enumerate(heard) if message.get("lease") == "take"]
    assert len(takes) == 3  # to load the module, for its move to the device, and for the call
    for number in takes:
        assert [heard[number - 1]["clock"], heard[number + 1]["clock"]] == ["none", "reference"]


@pytest.mark.parametrize(("illegal", "kind"), [(True, "reference_failed"), (False, "judge_failed")])
def test_illegal_access_found_later_is_the_references_fault(
    gateway: Channel, monkeypatch: pytest.MonkeyPatch, *, illegal: bool, kind: str
) -> None:
    def fail(reference: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(process, "tensors_of", fail)
    monkeypatch.setattr(cuda_driver, "has_illegal_access", lambda: illegal)
    messages(gateway)
    gateway.send_json(PROBLEM)
    assert messages(gateway)[-1]["result"]["kind"] == kind


def test_answer_says_what_lacked_memory(gateway: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reference: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nand more")

    monkeypatch.setattr(process, "tensors_of", fail)
    messages(gateway)
    gateway.send_json(PROBLEM)
    result = messages(gateway)[-1]["result"]
    why = "the GPU has too little free memory for the problem (CUDA out of memory. Tried to allocate 2 GiB"
    assert result == {"kind": "not_enough_memory", "why": why}


@pytest.mark.parametrize(
    ("status", "message", "lacks"),
    [
        (Status.OUT_OF_MEMORY, "CUDA out of memory", True),
        (Status.LAUNCH, "Triton Error [CUDA]: out of memory", True),
        (Status.LAUNCH, "invalid argument", False),
        (Status.CONSTRUCT, "CUDA out of memory", True),
    ],
)
def test_candidates_may_have_lacked_memory(status: Status, message: str, lacks: bool) -> None:
    failure = Failure(status=status, stage=Stage.FORWARD, message=message)
    ending = Raised.model_construct(failure=failure)
    assert process._lack_of_memory(ending) == (message if lacks else None)
