"""The evaluator's side of a sweep: find roughly the fastest configuration of a candidate.

A few configurations are compiled and timed briefly, then neighbours of the fastest ones, until all of these
are measured or most of the budget is spent. In a final the fastest and the declared one are timed again. The
candidate process reports these times, so they are claims; another process judges the winner from the start.
"""

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch

from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.text.dispatch import shape_class
from adaexplore.core.text.tunables import Tunable, combination, read_tunables, with_values
from online_judge.checks.facts.endings import Raised
from online_judge.common import printable
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.job import CandidateJob
from online_judge.evaluator.reference import enough_memory
from online_judge.evaluator.timing.config_search import ConfigSearch
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.protocol.orders import Answer, Choose, Enter, Equip, Order, Rate
from online_judge.protocol.shared_tensors import SharedTensors, pack

MARGIN = 0.02
"""A configuration replaces the declared one only if it is faster by this share."""
_TRIAL = "sweep"
_MOST_THREADS = 8
_ENTER_SHARE = 0.7  # of the budget, for compiling
_BATCH = 8  # configurations that are compiled side by side
_FIRST_MS = 4.0
_FINAL_MS = 40.0
_CALLS = (1, 100)  # fewest and most in a block
_MOST_MS = 1e7
_MAX_REASON = 200
_ROUNDS = 2
_FINAL_ROUNDS = 4
_FINALISTS = 4
_CLOSE = 1.1  # finalists took at most this many times as long as the fastest
_BESIDE_MS = 0.25  # about the time of a call's cache flushes and events
_HOLD_MS = 300.0  # about how long the device is held exclusively at a time
_MOST_CHECKED = 4
_PARTS: dict[type, str] = {Equip: "compile", Enter: "compile", Rate: "time"}


class Sweep(CandidateJob):
    """Sweeps one candidate; the source of its terms is the declared configuration."""

    _wanted: SweepTerms
    _found: Swept

    def run(self) -> Swept:
        """Search the configurations until the budget is spent or the candidate process is gone.

        Raises:
            ReferenceFailed: the reference fails; NotEnoughMemory if that is the reason.
        """
        assert self._job.sweep is not None
        self._wanted, self._found = self._job.sweep, Swept()
        with enough_memory("a sweep"):
            try:
                self._found.wrong = not self._search()
                if not self._found.wrong:
                    self._rank()
                    self._check()
                self._found.finished = True
            except (CandidateFailed, CandidateGone):
                pass  # the results so far count
        self._clock("none", "")
        return self._found

    def _search(self) -> bool:
        """Compile and time as many configurations as most of the budget allows.

        Return False if the declared configuration's outputs are wrong; then no other is tried.
        """
        equip, shared_tensors = self._equipment()
        with self._holding(exclusive=False):
            self._ask(Stage.LOAD, equip, (), shared_tensors)
        tunables = read_tunables(self._request.custom_model_src)
        search = ConfigSearch(tunables, self._wanted.left_out)
        batch = search.first()
        if self._wanted.screened and batch[:1] == [DECLARED]:
            self._enter(tunables, [batch.pop(0)])
            if DECLARED in self._found.ready and not self._is_right(DECLARED):
                return False
        while batch and self._left_to_enter_s > 0:
            self._enter(tunables, batch)
            known = self._found.ms.keys() | self._found.failed.keys()
            self._rate([number for number in self._found.ready if number not in known], _FIRST_MS, _ROUNDS)
            batch = search.next(self._found.ms, _BATCH)
        return True

    def _enter(self, tunables: Sequence[Tunable], numbers: Sequence[int]) -> None:
        """Have configurations compiled and called as far as the budget allows.

        The candidate process is stopped while others have the device alone.
        """
        source = self._request.custom_model_src
        # the candidate may time its kernels itself: do not disturb it
        one_by_one = self._wanted.careful or "autotune" in source
        threads = 1 if one_by_one else max(2, min((os.cpu_count() or 1) // 2, _MOST_THREADS))
        waiting = [
            (number, with_values(source, combination(tunables, number)).encode("utf-8", "surrogatepass"))
            for number in numbers
        ]
        self._clock("none", "")
        with self._leases.compiling(), self._holding(exclusive=False):
            while waiting and (left_s := self._left_to_enter_s) > 0:
                size = 1 if one_by_one else len(waiting)
                batch, waiting = waiting[:size], waiting[size:]
                asked = [number for number, _ in batch]
                answer = self._ask(Stage.FORWARD, Enter(tuple(batch), threads, left_s), asked)
                self._found.ready |= _times(answer.get("ready"), asked)
                self._found.failed |= {
                    number: printable.text(str(value)[:_MAX_REASON])
                    for number, value in _pairs(answer.get("refused"), asked)
                }

    def _equipment(self) -> tuple[Equip, tuple[SharedTensors, SharedTensors]]:
        reference = self._reference
        name = self._name(_TRIAL)
        with self._holding(exclusive=False):
            self._clock("reference", Stage.CONSTRUCT.value)
            self._problem.mask_unwritten()
            drawn = reference.inputs(name)
            tensors = [each for each in drawn if isinstance(each, torch.Tensor)]
            self._found.shape = shape_class(size for each in tensors for size in each.shape)
            inputs, given = pack(drawn, cuda=self._cuda)
            self._kept.callback(inputs.free)
            weights, held = pack(reference.weights, cuda=self._cuda)
            self._kept.callback(weights.free)
        equip = Equip(
            inputs=given,
            weights=held,
            init_inputs=reference.init_inputs,
            construct_seed=reference.construct_seed,
            call_seed=reference.call_seed(name),
            dtype=reference.dtype,
            tf32=self._request.tf32,
            default_dtype=reference.default_dtype,
            build_dir=self._job.build_dir,
            direction=reference.direction,
            names=reference.names,
        )
        return equip, (inputs, weights)

    def _rank(self) -> None:
        """Time the fastest and the declared one again in a final, and rank all."""
        ms, failed = self._found.ms, self._found.failed

        def by_time(numbers: Iterable[int]) -> list[int]:
            return sorted(
                (number for number in numbers if number not in failed), key=lambda number: ms[number]
            )

        fast = by_time(ms)
        final = [number for number in fast[:_FINALISTS] if ms[number] <= _CLOSE * ms[fast[0]]]
        others = fast[len(final) :]
        self._rate([*final, DECLARED] if DECLARED in others else final, _FINAL_MS, _FINAL_ROUNDS)
        ranking = [*by_time(final), *by_time(others)]
        if DECLARED in ranking and ms[ranking[0]] > (1 - MARGIN) * ms[DECLARED]:
            ranking.remove(DECLARED)
            ranking.insert(0, DECLARED)
        self._found.ranking = ranking

    def _rate(self, numbers: Sequence[int], target_ms: float, rounds: int) -> None:
        """Time configurations while the budget lasts, holding the device exclusively for a short time."""
        waiting = list(numbers)
        while waiting and not self._spent:
            calls: list[tuple[int, int]] = []
            hold_ms = 0.0
            while waiting and (not calls or hold_ms < _HOLD_MS):
                number = waiting.pop(0)
                call_ms = self._found.ms.get(number, self._found.ready[number]) + _BESIDE_MS
                count = max(_CALLS[0], min(math.ceil(target_ms / rounds / call_ms), _CALLS[1]))
                calls.append((number, count))
                hold_ms += rounds * count * call_ms
            with self._holding(exclusive=True):
                asked = [number for number, _ in calls]
                answer = self._ask(Stage.TIMING, Rate(tuple(calls), rounds), asked)
            times = _times(answer.get("ms"), asked)
            self._found.ms |= times
            for number in asked:
                if number not in times:
                    self._found.failed[number] = "it failed while it was timed"

    def _check(self) -> None:
        """Drop the best one while its outputs are wrong.

        If the declared one is wrong too, this says nothing: the candidate may need its own weights.
        """
        ranking = self._found.ranking
        wrong: list[int] = []
        declared = [DECLARED] if DECLARED in ranking else []
        for number in dict.fromkeys([*ranking[:_MOST_CHECKED], *declared]):
            if self._is_right(number):
                for other in wrong:
                    ranking.remove(other)
                    self._found.failed[other] = "its outputs are wrong"
                return
            wrong.append(number)

    def _is_right(self, number: int) -> bool:
        self._ask(Stage.FORWARD, Choose(number), [number])
        with self._holding(exclusive=False), self._suspecting([number]):
            try:
                self._trials.call(self._name(f"{_TRIAL}:{number}"))
            except CandidateFailed as failed:
                if not failed.is_final:  # nothing broke: its outputs are not those of the reference
                    self._trials.put_back()
                    return False
                ending = failed.ending
                status = ending.failure.status if isinstance(ending, Raised) else Status.LAUNCH
                self._found.failed[number] = status.value
                self._found.ranking = [each for each in self._found.ranking if each != number]
                raise
        return True

    def _ask(
        self, stage: Stage, order: Order[Answer], numbers: Sequence[int], shared: Sequence[SharedTensors] = ()
    ) -> Answer:
        """Ask on the sweep's time; ``numbers`` are the configurations that this may crash."""
        stopped_s, begin = self._leases.stopped_s(), time.monotonic()
        try:
            with self._suspecting(numbers):
                return self._dialogue.ask(stage, order, shared, tuning=True)
        finally:
            passed_s = time.monotonic() - begin
            stopped_s = self._leases.stopped_s() - stopped_s
            self._found.spend(_PARTS.get(type(order), "check"), passed_s - stopped_s)

    @contextmanager
    def _suspecting(self, numbers: Sequence[int]) -> Iterator[None]:
        """Record these numbers as suspects if the block raises."""
        self._found.suspects = list(numbers)
        yield
        self._found.suspects = []

    @property
    def _left_to_enter_s(self) -> float:
        return _ENTER_SHARE * self._wanted.budget_s - self._found.spent_s

    @property
    def _spent(self) -> bool:
        return self._found.spent_s >= self._wanted.budget_s


def _times(claim: object, numbers: Sequence[int]) -> dict[int, float]:
    """Return the claimed milliseconds of ``numbers``, without impossible ones."""
    return {
        number: value
        for number, value in _pairs(claim, numbers)
        if type(value) is float and math.isfinite(value) and 0 < value < _MOST_MS
    }


def _pairs(claim: object, numbers: Sequence[int]) -> list[tuple[int, object]]:
    listed = claim if isinstance(claim, list) else []
    return [
        (part[0], part[1])
        for part in listed
        if isinstance(part, list) and len(part) == 2 and type(part[0]) is int and part[0] in numbers
    ]
