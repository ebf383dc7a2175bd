"""What becomes of a sweep: which text is judged, what is told of it, what happens when something breaks."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.text.dispatch import with_dispatch, without_dispatch
from adaexplore.core.text.tunables import combination, read_tunables, with_values
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, Workload
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.slots.config_sweep import evaluate_tuned
from tests.verdicts import make_verdict, metadata_of

SOURCE = "BLOCK = 64\nTUNABLES = {'BLOCK': [32, 64, 128, 256]}\n"
SHAPES = [(3, 4), (9, 4)]
SEVERAL = {"original_model_src": "def get_workloads(): ...", "tune_s": 12.0}
WORKLOADS = [
    Workload(name="small", weight=1.0),
    Workload(name="large", weight=3.0),
    Workload(name="secret", weight=9.0, hidden=True),
]


class Slot:
    """Answers sweeps in turn; candidates with a block that is listed do not pass."""

    def __init__(self, *sweeps: Swept | None, executes: bool = True, failing: tuple[int, ...] = ()) -> None:
        self.executes = executes
        self.judged: list[str] = []
        self.asked: list[SweepTerms] = []
        self.swept: list[int] = []
        self._sweeps = list(sweeps)
        self._failing = failing

    def evaluate(self, request: EvaluationRequest, recorded_ms: Any, cancelled: Any) -> Verdict:
        self.judged.append(request.custom_model_src)
        if any(f"BLOCK = {block}\n" in request.custom_model_src for block in self._failing):
            return make_verdict(status=Status.WRONG_VALUE, metadata={"feedback": "wrong_value: f\nNext: g"})
        return make_verdict(status=Status.PASSED, metadata={"tier": "strict"}, runtime_stats={"fast_p": 2.0})

    def sweep(
        self, request: EvaluationRequest, wanted: SweepTerms, cancelled: Any, workload: int
    ) -> Swept | None:
        self.asked.append(wanted)
        self.swept.append(workload)
        swept = self._sweeps.pop(0)
        return swept and replace(swept, shape=SHAPES[workload])

    def workloads(self, request: EvaluationRequest, cancelled: Any) -> list[Workload]:
        return WORKLOADS


def judged(slot: Slot, source: str = SOURCE, **fields: Any) -> Verdict:
    given: dict[str, Any] = {"custom_model_src": source, "measure_performance": True, "tune_s": 10.0} | fields
    return evaluate_tuned(slot, EvaluationRequest(**given), None, threading.Event())


def text(number: int) -> str:
    return with_values(SOURCE, combination(read_tunables(SOURCE), number))


def ranked(*numbers: int, **more: Any) -> Swept:
    ms = {number: 1.0 + place for place, number in enumerate(numbers)}
    return Swept(
        ready=dict(ms), ms=ms, ranking=list(numbers), finished=True, parts_s={"compile": 2.0}, **more
    )


def test_winner_is_judged_as_the_recorded_text() -> None:
    slot = Slot(ranked(2, DECLARED, 1, failed={3: "OutOfResources: shared memory"}))
    verdict = judged(slot)
    tuned = metadata_of(verdict)["tuned"]
    assert slot.judged == [text(2)]
    assert with_values(SOURCE, tuned["values"]) == slot.judged[0]
    assert tuned["declared"] == {"BLOCK": 64}
    assert (tuned["tried"], tuned["failed"]) == (4, 1)
    assert tuned["reasons"] == {"OutOfResources: shared memory": 1}
    assert (tuned["best_ms"], tuned["declared_ms"]) == (1.0, 2.0)
    assert tuned["seconds"] >= 0
    assert tuned["spent_s"] == {"compile": 2.0}
    assert verdict.tuned_values == tuned["values"]


def test_declared_values_are_a_configuration_and_the_first() -> None:
    slot = Slot(ranked(DECLARED, 1))
    assert judged(slot).tuned_values == {"BLOCK": 64}
    assert slot.judged == [SOURCE]
    assert slot.asked == [SweepTerms(10.0, screened=True)]


def test_failing_winner_falls_back_to_declared_values() -> None:
    slot = Slot(ranked(1, DECLARED), failing=(32, 128, 256))
    verdict = judged(slot)
    assert verdict.correct
    assert slot.judged[1:] == [SOURCE]
    assert verdict.tuned_values == {"BLOCK": 64}
    assert metadata_of(verdict)["tuned"]["reasons"] == {"wrong_value": 1}


def test_declared_failure_is_reported_when_nothing_works() -> None:
    slot = Slot(Swept(failed=dict.fromkeys(range(4), "it raises"), finished=True), failing=(64,))
    verdict = judged(slot)
    assert verdict.status is Status.WRONG_VALUE
    assert slot.judged == [SOURCE]
    assert metadata_of(verdict)["tuned"]["declared_ms"] is None


def test_candidate_wrong_as_declared_is_not_swept() -> None:
    slot = Slot(Swept(ready={0: 1.0}, finished=True, wrong=True), failing=(64,))
    verdict = judged(slot)
    assert verdict.status is Status.WRONG_VALUE
    assert slot.judged == [SOURCE]
    assert [terms.screened for terms in slot.asked] == [True]
    assert (metadata_of(verdict)["tuned"]["tried"], metadata_of(verdict)["tuned"]["failed"]) == (1, 1)


def test_candidate_with_own_weights_is_swept_after_passing() -> None:
    screening = Swept(ready={0: 1.0}, finished=True, wrong=True, parts_s={"compile": 1.5, "check": 0.5})
    slot = Slot(screening, ranked(2, DECLARED, 1, 3))
    verdict = judged(slot)
    assert [terms.budget_s for terms in slot.asked] == [10.0, 8.0]
    assert metadata_of(verdict)["tuned"]["spent_s"] == {"compile": 3.5, "check": 0.5}
    assert [terms.screened for terms in slot.asked] == [True, False]
    assert slot.judged == [SOURCE, text(2)]
    assert verdict.tuned_values is not None
    assert with_values(SOURCE, verdict.tuned_values) == slot.judged[1]


def test_process_breaking_configuration_is_isolated_and_excluded() -> None:
    first = Swept(ready={0: 1.0, 1: 1.0}, suspects=[0, 1, 2, 3], parts_s={"compile": 1.0})
    second = Swept(ready={0: 1.0, 1: 1.0}, suspects=[2], parts_s={"compile": 1.0})
    slot = Slot(first, second, ranked(3, 0, 1))
    verdict = judged(slot)
    assert [terms.careful for terms in slot.asked] == [False, True, True]
    assert [terms.screened for terms in slot.asked] == [True, False, False]
    assert [terms.left_out for terms in slot.asked] == [(), (), (2,)]
    assert [terms.budget_s for terms in slot.asked] == [10.0, 9.0, 8.0]
    assert slot.judged == [text(3)]
    assert metadata_of(verdict)["tuned"]["reasons"] == {"it breaks the process that it runs in": 1}


def test_sweep_with_spent_budget_is_not_repeated() -> None:
    partial = Swept(
        ready={0: 1.0, 1: 1.0}, ms={0: 2.0, 1: 1.0}, ranking=[1, 0], suspects=[2], parts_s={"compile": 9.9}
    )
    slot = Slot(partial)
    judged(slot)
    assert slot.judged == [text(1)]


def test_ranked_configuration_that_breaks_process_is_not_chosen() -> None:
    slot = Slot(Swept(ms={0: 2.0, 2: 1.0}, ranking=[2, 0], suspects=[2], parts_s={"compile": 9.9}))
    judged(slot)
    assert slot.judged == [SOURCE]


def test_ranking_survives_three_failed_candidate_processes() -> None:
    first = Swept(ms={0: 2.0, 1: 1.0}, ranking=[1, 0], suspects=[2, 3], parts_s={"time": 1.0})
    nothing = Swept(suspects=[2, 3], parts_s={"time": 1.0})
    slot = Slot(first, nothing, nothing, ranked(3))
    judged(slot)
    assert len(slot.asked) == 3
    assert slot.judged == [text(1)]


def test_judge_failure_in_sweep_keeps_declared_values() -> None:
    slot = Slot(None)
    verdict = judged(slot)
    assert slot.judged == [SOURCE]
    assert verdict.tuned_values == {"BLOCK": 64}


def test_declared_values_are_judged_without_a_gpu() -> None:
    slot = Slot(executes=False)
    assert metadata_of(judged(slot))["tuned"] == {"values": {"BLOCK": 64}, "timing": "interpreter"}
    assert slot.judged == [SOURCE]


def test_sweep_needs_declared_tunables_and_timing() -> None:
    plain, untimed = Slot(), Slot()
    assert "tuned" not in metadata_of(judged(plain, "BLOCK = 64\n"))
    assert "tuned" not in metadata_of(judged(untimed, measure_performance=False))
    assert plain.asked == untimed.asked == []


@pytest.mark.parametrize("failing", [(), (64,)])
def test_unusable_tunables_add_one_feedback_line(failing: tuple[int, ...]) -> None:
    slot = Slot(failing=failing)
    source = SOURCE.replace("'BLOCK'", "'BLOCKS'")
    verdict = judged(slot, source)
    lines = verdict.feedback.splitlines()
    problem = "line 2: BLOCKS is assigned nowhere at the top level; write BLOCKS = <literal> once"
    assert lines[0] == f"TUNABLES was not used: {problem}"
    assert lines[1:] == (["wrong_value: f", "Next: g"] if failing else [])
    assert metadata_of(verdict)["tuned"] == {"problem": problem}
    assert verdict.tuned_values is None
    assert slot.judged == [source]


def test_each_workload_has_numbers_of_its_own() -> None:
    slot = Slot(ranked(1, DECLARED), ranked(3, DECLARED))
    verdict = judged(slot, **SEVERAL)
    values = {number: combination(read_tunables(SOURCE), number) for number in (1, 3)}
    assert slot.swept == [1, 0]  # the heaviest first, no hidden one
    assert [terms.budget_s for terms in slot.asked] == [6.0, 6.0]
    expected = with_dispatch(text(1), {(9, 4): values[1], (3, 4): values[3]})
    assert slot.judged == [expected]
    tuned = metadata_of(verdict)["tuned"]
    assert verdict.tuned_values == values[1]
    assert verdict.tuned_by_shape == {(9, 4): values[1], (3, 4): values[3]}
    assert [(each["workload"], each["best_ms"]) for each in tuned["by_shape"]] == [
        ("large", 1.0),
        ("small", 1.0),
    ]
    assert tuned["spent_s"] == {"compile": 4.0}


def test_workloads_that_agree_need_no_dispatch() -> None:
    slot = Slot(ranked(2, DECLARED), ranked(2, DECLARED))
    judged(slot, **SEVERAL)
    assert slot.judged == [text(2)]


def test_dispatch_of_earlier_sweep_is_removed_first() -> None:
    before = with_dispatch(SOURCE, {(1,): {"BLOCK": 256}})
    slot = Slot(ranked(DECLARED, 1), ranked(DECLARED, 1))
    judged(slot, before, **SEVERAL)
    assert slot.judged == [SOURCE] == [without_dispatch(before)]


def test_failing_dispatch_falls_back_to_one_sweep() -> None:
    slot = Slot(ranked(1, DECLARED), ranked(3, DECLARED), ranked(2, DECLARED), failing=(32,))
    verdict = judged(slot, **SEVERAL)
    assert slot.swept == [1, 0, 0]
    assert slot.judged[1:] == [text(2)]
    assert verdict.tuned_by_shape == {}


def test_small_budget_sweeps_only_the_first_workload() -> None:
    slot = Slot(ranked(2, DECLARED))
    judged(slot, **SEVERAL | {"tune_s": 4.0})
    assert (slot.swept, slot.judged) == ([0], [text(2)])


def test_constant_that_a_kernel_reads_has_one_value() -> None:
    source = SOURCE.replace("BLOCK = 64", "BLOCK = tl.constexpr(64)")
    slot = Slot(ranked(DECLARED, 1))
    judged(slot, source, **SEVERAL)
    assert (slot.swept, slot.judged) == ([0], [source])
