"""A sweep against a candidate that is a thread: the evaluator's side and the candidate's, without a GPU."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.wire import EvaluationRequest
from online_judge.candidate import config_sweep
from online_judge.candidate.config_sweep import ConfigSweep, ContextLost
from online_judge.checks.facts.findings import Failure
from online_judge.common import trees
from online_judge.evaluator.config_sweep import Sweep
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.protocol.messages import Answer, Job, told
from online_judge.protocol.orders import Choose, Enter, Equip, Forward, Rate
from online_judge.protocol.shared_tensors import MappedTensors
from online_judge.sandbox.process_spec import ProcessSpec

from .scripted import scripted
from .sources import REFERENCE

TOGETHER = """
CASE = 0
TUNABLES = {{"CASE": {choices}}}
exec({sources}[CASE])
"""
CANDIDATE = """
import torch
import torch.nn as nn

COST = 8.0
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
    cost = COST
    def forward(self, x):
        return torch.relu(self.linear(x))BODY
"""


class Clock:
    """Says that a call takes what the model's ``cost`` is, with a little noise."""

    def __init__(self) -> None:
        self.calls: dict[float, int] = {}
        self._rng = random.Random(1)

    def block(self, call: Any, arguments: Any, places: Any, *, flushes: int = 0) -> Any:
        cost, count = call.cost, len(arguments)
        if cost < 0:
            raise RuntimeError("it fails when it is timed")
        self.calls[cost] = self.calls.get(cost, 0) + count
        times = [cost * self._rng.uniform(0.99, 1.01) for _ in range(count)]
        return SimpleNamespace(go=lambda: None, times=lambda: SimpleNamespace(calls=times))

    def cover(self, call_ms: float, *, passes: bool) -> int:
        return 1


class Lock:
    """Remembers how it was held."""

    def __init__(self) -> None:
        self.held: list[str] = []

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[Hold]:
        self.held.append("exclusive" if exclusive else "shared")
        yield Hold(exclusive, 0.0)
        self.held.append("free")

    @contextmanager
    def timing_memory(self) -> Iterator[None]:
        yield

    @contextmanager
    def compiling(self) -> Iterator[None]:
        yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        yield

    def stopped_s(self) -> float:
        return 0.0


class Result:
    """A sweep, and how it went."""

    def __init__(self, found: Swept, clock: Clock, lock: Lock, asked: list[Any]) -> None:
        self.found, self.clock, self.lock, self.asked = found, clock, lock, asked


def configuration(cost: float, body: str = "") -> str:
    return CANDIDATE.replace("8.0", str(cost)).replace("BODY", body)


def swept(
    folder: Path,
    sources: list[str],
    *,
    reference: str = REFERENCE,
    budget_s: float = 60.0,
    careful: bool = False,
    screened: bool = False,
) -> Result:
    """Sweep these configurations, by number; the first is the declared one."""
    source = TOGETHER.format(choices=[*range(1, len(sources))] or [0], sources=sources)
    problem = Problem(Reference(reference, Seeds(b"key"), "fp32", cuda=False))
    clock, lock = Clock(), Lock()
    state: dict[str, Any] = {}

    def reply(order: Any, fds: list[int]) -> list[bytes]:
        answer: dict[str, Any] = {}
        try:
            match order:
                case Equip():
                    state["config_sweep"] = ConfigSweep(folder, order, fds, clock, cuda=False)
                case Enter():
                    answer = state["config_sweep"].enter(order.sources, order.threads, order.limit_s)
                case Rate():
                    answer = state["config_sweep"].rate(order.calls, order.rounds)
                case Choose():
                    state["model"] = state["config_sweep"].chosen(order.number)
                case Forward():
                    answer = called(state["model"], order, fds)
        except ContextLost as lost:
            answer = {"failed": lost.failure.to_json()}
        return [json.dumps(answer).encode()]

    with scripted(reply) as candidate:
        wanted = SweepTerms(budget_s, (), careful, screened)
        request = EvaluationRequest(custom_model_src=source)
        job = Job(op="sweep", request=request, seeds="", alone=False, hardware="", sweep=wanted)
        spec = ProcessSpec("", "cpu", "", "sm_90", role="evaluator")

        def stopwatch() -> Any:
            pytest.fail("no clock is needed without a GPU")

        sweep = Sweep(candidate.dialogue, problem, job, spec, lock, stopwatch)
        try:
            found = sweep.run()
        finally:
            sweep.free()
        assert set(candidate.clock) <= {("none", ""), *((w, s.value) for w in WHOSE for s in Stage)}
        received: Any = told(json.loads(json.dumps(Answer(result=found).to_json())), "sweep")
        assert received.result == found
        return Result(received.result, clock, lock, candidate.asked)


WHOSE = ("tuning", "reference", "candidate")


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("online_judge.evaluator.config_sweep.os.cpu_count", lambda: 16)


def called(model: Any, order: Forward, fds: list[int]) -> dict[str, Any]:
    """Return what an honest candidate process makes of a call."""
    with MappedTensors(order.inputs, fds[:1]) as inputs, MappedTensors(order.outputs, fds[1:]) as outputs:
        tree = trees.take_apart(model(*trees.map_leaves(inputs.tree(), lambda leaf: leaf.clone())).detach())
        leaves = []
        for leaf, place in zip(tree.leaves, outputs.leaves, strict=True):
            if place.shape == leaf.shape:
                place.copy_(leaf)
            leaves.append([list(leaf.shape), str(leaf.dtype), "cpu", list(leaf.stride())])
        return {"structure": tree.signature(), "leaves": leaves}


COSTS = [8.0, *(1.0 + 0.5 * step for step in range(11))]


def test_fastest_wins_and_weak_ones_are_timed_less(tmp_path: Path) -> None:
    result = swept(tmp_path, [configuration(cost) for cost in COSTS])
    assert result.found.ranking[0] == COSTS.index(1.0)
    assert result.found.finished
    assert set(result.found.ms) == set(range(len(COSTS)))
    assert result.found.ms[DECLARED] == pytest.approx(8.0, rel=0.02)
    rates = [order for order in result.asked if isinstance(order, Rate)]
    rated = Counter(number for order in rates for number, _ in order.calls)
    assert {number for number, times in rated.items() if times > 1} == {COSTS.index(1.0), DECLARED}
    # the machine's speed decides how many calls a first trial has, 16 at most
    assert result.clock.calls[1.0] >= 2 * result.clock.calls[6.0]


def test_final_round_compares_configurations_near_the_fastest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConfigSweep, "_second_call", lambda held, entrant: 0.1)
    costs = (8.0, 1.0, 1.04, 1.2, 2.0)
    result = swept(tmp_path, [configuration(cost) for cost in costs])
    first, final = [dict(order.calls) for order in result.asked if isinstance(order, Rate)]
    assert set(first) == {0, 1, 2, 3, 4}
    assert set(final) == {0, 1, 2}
    # the first round only knows how long a call takes on the wall
    assert final[0] == 2
    assert final[1] in (8, 9)


def test_declared_values_win_within_measurement_noise(tmp_path: Path) -> None:
    result = swept(tmp_path, [configuration(cost) for cost in (2.0, 1.99, 2.5, 3.0)])
    assert result.found.ranking[0] == DECLARED


def test_those_that_fail_drop_out_with_their_reason(tmp_path: Path) -> None:
    broken = configuration(1.0).replace(
        "return torch", "raise ValueError('no such block')\n        return torch"
    )
    misspelt = configuration(1.0).replace("COST = 1.0", "COST = tl.constexpr(1.0)")
    fails = [broken, misspelt, configuration(-1.0), configuration(3.0, ".double()"), configuration(2.0)]
    result = swept(tmp_path, [configuration(8.0), *fails])
    failed = result.found.failed
    assert failed[1] == "ValueError: no such block"
    assert failed[2].startswith("NameError: ")
    assert failed[3] == "it failed while it was timed"
    assert result.found.ranking[0] == 5


def test_fast_and_wrong_is_no_winner(tmp_path: Path) -> None:
    wrong, right = configuration(1.0, " + 1.0"), configuration(2.0)
    result = swept(tmp_path, [configuration(8.0), wrong, right])
    assert result.found.ranking[0] == 2
    assert result.found.failed == {1: "its outputs are wrong"}


def test_shape_class_has_the_sizes_of_all_tensors(tmp_path: Path) -> None:
    many = REFERENCE.replace("(self, x)", "(self, x, *others)")
    many = many.replace("[torch.randn(8, 16)]", "[torch.randn(8, 16), 3, *torch.zeros(40, 1000, 1)]")
    candidate = configuration(2.0).replace("(self, x)", "(self, x, *others)")
    result = swept(tmp_path, [candidate], reference=many)
    assert result.found.shape == (4, 5, *(10, 1) * 40)


def test_half_precision_weights_stay_half_in_fp32(tmp_path: Path) -> None:
    narrow = configuration(2.0).replace(
        "nn.Linear(features, features)", "nn.Linear(features, features).half()"
    )
    narrow = narrow.replace(
        "return torch.relu(self.linear(x))",
        "held = self.linear\n        assert held.weight.dtype == held.bias.dtype == torch.float16\n"
        "        return torch.relu(nn.functional.linear(x, held.weight.float(), held.bias.float()))",
    )
    assert swept(tmp_path, [narrow, narrow]).found.failed == {}


def test_several_fast_wrong_configurations_are_excluded(tmp_path: Path) -> None:
    wrong = [configuration(cost, " + 1.0") for cost in (1.0, 1.5, 2.0)]
    result = swept(tmp_path, [configuration(8.0), *wrong, configuration(2.5)])
    assert result.found.ranking[0] == 4
    assert result.found.failed == dict.fromkeys((1, 2, 3), "its outputs are wrong")


def test_working_configuration_wins_when_declared_one_fails(tmp_path: Path) -> None:
    broken = configuration(1.0).replace(
        "return torch", "raise ValueError('out of resources')\n        return torch"
    )
    result = swept(tmp_path, [broken, configuration(2.0)])
    assert result.found.ranking == [1]
    assert DECLARED not in result.found.ms


@pytest.mark.parametrize("wrong", ["", " + 1.0", ".flatten()", ".double()"])
def test_screened_sweep_ends_when_declared_one_is_wrong(tmp_path: Path, wrong: str) -> None:
    declared = configuration(8.0, wrong)
    result = swept(tmp_path, [declared, configuration(1.0), configuration(2.0)], screened=True)
    assert (result.found.wrong, result.found.finished) == (bool(wrong), True)
    assert not result.found.suspects
    assert set(result.found.ready) == ({0} if wrong else {0, 1, 2})
    assert result.found.ranking[:1] == ([] if wrong else [1])
    assert any(isinstance(order, Rate) for order in result.asked) is not bool(wrong)


def test_screened_sweep_continues_when_declared_one_cannot_run(tmp_path: Path) -> None:
    broken = configuration(1.0).replace("return torch", "raise ValueError\n        return torch")
    result = swept(tmp_path, [broken, configuration(2.0)], screened=True)
    assert result.found.ranking == [1]


def test_check_rejects_nothing_when_declared_one_is_wrong(tmp_path: Path) -> None:
    result = swept(tmp_path, [configuration(cost, " + 1.0") for cost in (8.0, 1.0, 4.0)])
    assert result.found.ranking[0] == 1
    assert result.found.failed == {}


def test_device_is_held_exclusively_only_for_timing(tmp_path: Path) -> None:
    result = swept(tmp_path, [configuration(cost) for cost in (2.0, 1.0, 3.0)])
    held = result.lock.held
    rates = [order for order in result.asked if isinstance(order, Rate)]
    assert held.count("exclusive") == len(rates) >= 2


def test_long_calls_let_others_in_between(tmp_path: Path) -> None:
    costs = (200.0, 210.0, 220.0, 230.0)
    result = swept(tmp_path, [configuration(cost) for cost in costs])
    # what a call takes on the wall is nothing here, so only later ratings know how long the calls are
    later = [order for order in result.asked if isinstance(order, Rate)][1:]
    assert all(len(order.calls) == 1 for order in later)


def test_spent_budget_ends_sweep_with_partial_result(tmp_path: Path) -> None:
    result = swept(tmp_path, [configuration(cost) for cost in (2.0, 1.0, 3.0)], budget_s=1e-6)
    assert result.found.ready == {}
    assert result.found.ranking == []
    assert result.found.spent_s > 0


def test_stopped_time_does_not_count_toward_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always = itertools.count(step=1000)
    monkeypatch.setattr(Lock, "stopped_s", lambda lock: float(next(always)))
    assert swept(tmp_path, [configuration(cost) for cost in (2.0, 1.0, 3.0)]).found.spent_s == 0


def test_budget_ending_mid_round_keeps_timed_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = (200.0, 210.0, 220.0, 230.0, 240.0)
    rated: list[Rate] = []
    rate = ConfigSweep.rate

    def counted(held: ConfigSweep, calls: Any, rounds: int) -> dict[str, Any]:
        rated.append(Rate(calls, rounds))
        return rate(held, calls, rounds)

    monkeypatch.setattr(ConfigSweep, "rate", counted)
    monkeypatch.setattr(ConfigSweep, "_second_call", lambda held, entrant: 0.1)
    # the first round is one order; in the second, which knows how long the calls are, each is one of its own
    monkeypatch.setattr(Sweep, "_spent", property(lambda sweep: len(rated) >= 2))
    assert swept(tmp_path, [configuration(cost) for cost in costs]).found.ranking == [0, 1, 2, 3, 4]


def test_trying_configurations_alone_finds_the_breaking_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(error: BaseException, stage: Stage, *rest: Any, **more: Any) -> Failure:
        return Failure(Status.ILLEGAL_ACCESS, stage, "RuntimeError", "an illegal memory access")

    monkeypatch.setattr("online_judge.candidate.config_sweep.classification.describe", describe)
    breaking = configuration(1.0).replace("return torch", "raise RuntimeError\n        return torch")
    sources = [configuration(8.0), configuration(2.0), breaking, configuration(3.0)]
    together = swept(tmp_path, sources).found
    assert (together.finished, sorted(together.suspects), together.ranking) == (False, [0, 1, 2, 3], [])
    alone = swept(tmp_path, sources, careful=True).found
    assert (alone.finished, alone.suspects) == (False, [2])
    assert set(alone.ready) == {0, 3}


@pytest.mark.parametrize("autotuned", [False, True])
def test_first_calls_run_concurrently_unless_kernels_autotune(tmp_path: Path, autotuned: bool) -> None:
    note = "# triton.autotune\n" if autotuned else ""
    result = swept(tmp_path, [note + configuration(cost) for cost in (2.0, 1.0)])
    entered = [order for order in result.asked if isinstance(order, Enter)]
    assert (entered[0].threads == 1) == autotuned


def test_all_share_the_weights_of_the_reference(tmp_path: Path) -> None:
    """Half a gigabyte of them would not fit sixty-four times."""
    problem = Problem(Reference(REFERENCE, Seeds(b"key"), "fp32", cuda=False))
    seen: list[int] = []
    original: Callable[..., Any] = ConfigSweep._construct

    def construct(held: ConfigSweep, number: int, source: bytes) -> Any:
        entrant = original(held, number, source)
        seen.append(entrant.model.linear.weight.data_ptr())
        return entrant

    assert problem.reference.weights
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConfigSweep, "_construct", construct)
        swept(tmp_path, [configuration(cost) for cost in (2.0, 1.0)])
    assert len(seen) == 2
    assert len(set(seen)) == 1


@pytest.mark.parametrize(
    "claim",
    [None, 3, [1, 2], [[0, "fast"]], [[0, -1.0]], [[0, float("nan")]], [["0", 1.0]], [[77, 1.0]], [[0, 1e9]]],
)
def test_impossible_times_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: Any) -> None:
    monkeypatch.setattr(ConfigSweep, "enter", lambda held, *order: {"ready": claim})
    found = swept(tmp_path, [configuration(2.0)]).found
    assert found.ready == {}
    assert found.ranking == []


def test_reasons_of_a_candidate_process_can_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {"ready": [], "refused": [[0, "odd \ud800"], [1, ["\udfff"]], [2]]}
    monkeypatch.setattr(ConfigSweep, "enter", lambda held, *order: claim)
    found = swept(tmp_path, [configuration(cost) for cost in (2.0, 1.0, 3.0)]).found
    assert found.failed == {0: "odd ?", 1: "['\\udfff']"}


def test_kernels_compiling_much_longer_are_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_sweep, "_LEAST_S", 0.2)
    waiting = "import time\n        time.sleep(2)\n        return torch"
    slow = configuration(1.0).replace("return torch", waiting)
    result = swept(tmp_path, [configuration(cost) for cost in (8.0, 2.0, 3.0)] + [slow])
    assert result.found.failed == {3: config_sweep.LATE}
    assert result.found.ranking[0] == 1
    assert result.found.parts_s["compile"] < 1.5


def test_compiling_ends_in_time_for_the_rest(tmp_path: Path) -> None:
    waiting = "import time\n        time.sleep(2)\n        return torch"
    slow = [configuration(cost).replace("return torch", waiting) for cost in (8.0, 2.0)]
    result = swept(tmp_path, [*slow, configuration(3.0)], budget_s=1.0)
    assert set(result.found.failed) == {0, 1}
    assert result.found.ranking == [2]


def test_constructing_leaves_time_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the weights of a large layer sixty-four times took longer than the whole sweep was to take."""
    busy = configuration(1.0).replace(
        "super().__init__()",
        "super().__init__()\n        import time\n        begin = time.thread_time()\n"
        "        while time.thread_time() - begin < 0.3:\n            pass",
    )
    monkeypatch.setattr(config_sweep, "_CONSTRUCT_SHARE", 0.01)
    found = swept(tmp_path, [busy, busy, busy], budget_s=20.0).found
    assert found.failed == {1: config_sweep.SLOW, 2: config_sweep.SLOW}
    assert found.ranking == [0]
