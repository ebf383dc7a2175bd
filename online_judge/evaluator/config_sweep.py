"""The evaluator's side of a sweep: which configuration of a candidate is the fastest, roughly.

Successive halving (Jamieson and Talwalkar, 2016): all configurations that work are timed shortly, the faster
half is timed for twice as long, and so on; the last two and the declared one meet in a final. All that is
known of them are claims of the candidate's own process; the winner is judged from the start, by another.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from adaexplore.core.verdict import Status
from online_judge.common import printable
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.job import CandidateJob
from online_judge.evaluator.reference import enough_memory
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.protocol.endings import Raised
from online_judge.protocol.findings import Stage
from online_judge.protocol.orders import Answer, Choose, Enter, Equip, Order, Rate
from online_judge.protocol.shared_tensors import SharedTensors, pack

MARGIN = 0.02
"""What another configuration must gain over the declared one to take its place."""
_TRIAL = "sweep"
_MOST_THREADS = 8
_ENTER_SHARE = 0.7  # of the budget, for compiling
_FIRST_MS = 4.0
_FINAL_MS = 40.0
_CALLS = (1, 100)  # fewest and most in a block
_MOST_MS = 1e7
_MAX_REASON = 200
_ROUNDS = 2
_FINAL_ROUNDS = 4
_BESIDE_MS = 0.25  # about what the flushes of the cache and the events of a call take
_HOLD_MS = 300.0  # about how long the device is kept from others at a time
_FINALISTS = 2
_MOST_CHECKED = 4
_PARTS: dict[type, str] = {Equip: "compile", Enter: "compile", Rate: "time"}


class Sweep(CandidateJob):
    """Sweeps one candidate; the source of its terms is the declared configuration."""

    _wanted: SweepTerms
    _found: Swept

    def run(self, wanted: SweepTerms) -> Swept:
        """Compare the ``wanted`` configurations until the budget is spent or the candidate process is gone.

        Raises:
            ReferenceFailed: the reference fails; NotEnoughMemory where that is the reason.
        """
        self._wanted, self._found = wanted, Swept()
        with enough_memory("a sweep"):
            try:
                if self._cuda:
                    self._measure_clean()
                self._found.wrong = not self._enter()
                if not self._found.wrong:
                    self._halve()
                    self._check()
                self._found.finished = True
            except (CandidateFailed, CandidateGone):
                pass  # what is known so far counts
        self._dialogue.clock("none", "")
        return self._found

    def _enter(self) -> bool:
        """Have configurations compiled and called, as many as most of the budget allows.

        Exclusive holders of the device stop the candidate process meanwhile. Return False if the declared
        configuration's outputs are wrong; then the others are not tried.
        """
        equip, shared_tensors = self._equipment()
        # a candidate that times its kernels itself is to do so undisturbed
        one_by_one = self._wanted.careful or "autotune" in self._request.custom_model_src
        threads = 1 if one_by_one else max(2, min((os.cpu_count() or 1) // 2, _MOST_THREADS))
        limit_s = _ENTER_SHARE * self._wanted.budget_s
        waiting = list(self._wanted.sources)

        def admit(most: int) -> None:
            batch = waiting[:most]
            del waiting[:most]
            sources = tuple((number, source.encode("utf-8", "surrogatepass")) for number, source in batch)
            numbers = [number for number, _ in batch]
            left_s = max(limit_s - self._found.spent_s, 0.0)
            answer = self._ask(Stage.FORWARD, Enter(sources, threads, left_s), numbers)
            self._found.ready |= _times(answer.get("ready"), numbers)
            self._found.failed |= {
                number: printable.text(str(value)[:_MAX_REASON])
                for number, value in _pairs(answer.get("refused"), numbers)
            }

        self._dialogue.clock("none", "")
        with self._leases.stoppable():
            self._ask(Stage.LOAD, equip, (), shared_tensors)
            if self._wanted.screened:
                admit(1)
        if DECLARED in self._found.ready and not self._is_right(DECLARED):
            return False
        self._dialogue.clock("none", "")
        with self._leases.stoppable():
            while waiting and self._found.spent_s < limit_s:
                admit(1 if one_by_one else len(waiting))
        return True

    def _equipment(self) -> tuple[Equip, tuple[SharedTensors, SharedTensors]]:
        reference = self._reference
        name = self._name(_TRIAL)
        with self._holding(exclusive=False):
            self._dialogue.clock("reference", Stage.CONSTRUCT.value)
            inputs, given = pack(reference.inputs(name), cuda=self._cuda)
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
            build_dir=self._terms.build_dir,
        )
        return equip, (inputs, weights)

    def _halve(self) -> None:
        ready, ms = self._found.ready, self._found.ms
        standing = sorted(ready, key=lambda number: ready[number])
        out: list[int] = []
        target_ms = _FIRST_MS
        while len(standing) > _FINALISTS and not self._spent:
            rated = self._rated(standing, target_ms, _ROUNDS)
            half = math.ceil(len(rated) / 2)
            out[:0] = rated[half:]
            standing = rated[:half]
            target_ms *= 2
        declared = [DECLARED] if DECLARED in ready and DECLARED not in standing else []
        final = self._rated([*standing, *declared], _FINAL_MS, _FINAL_ROUNDS)
        failed = self._found.failed
        ranking = [each for each in dict.fromkeys([*final, *out]) if each in ms and each not in failed]
        place = ranking.index(DECLARED) if declared and DECLARED in ranking else 0
        if place:  # it was in the final however slow it is
            ranking[place:] = sorted(ranking[place:], key=lambda number: ms[number])
        if DECLARED in ranking and ms[ranking[0]] > (1 - MARGIN) * ms[DECLARED]:
            ranking.remove(DECLARED)
            ranking.insert(0, DECLARED)
        self._found.ranking = ranking

    def _rated(self, numbers: Sequence[int], target_ms: float, rounds: int) -> list[int]:
        """Time configurations, holding the device exclusively for a short time each.

        Returns:
            Those that could be timed, the fastest first, then those that the budget left out, as they came.
        """
        waiting = list(numbers)
        timed: dict[int, float] = {}
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
            timed |= times
            for number in asked:
                if number not in times:
                    self._found.failed[number] = "it failed while it was timed"
        self._found.ms |= timed
        return [*sorted(timed, key=lambda number: timed[number]), *waiting]

    def _check(self) -> None:
        """Leave out the best ones as long as they are wrong.

        Where the declared one is wrong as well, this says nothing: the candidate may need weights of its own.
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
                    self._trials.free()
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
        """Ask on the sweep's time; ``numbers`` are those that may break the process by it."""
        begin, stopped_s = time.monotonic(), self._leases.stopped_s()
        try:
            with self._suspecting(numbers):
                return self._dialogue.ask(stage, order, shared, tuning=True)
        finally:
            stopped_s = self._leases.stopped_s() - stopped_s
            self._found.spend(_PARTS.get(type(order), "check"), time.monotonic() - begin - stopped_s)

    @contextmanager
    def _suspecting(self, numbers: Sequence[int]) -> Iterator[None]:
        """Blame these where what is done with them breaks the process, or raises."""
        self._found.suspects = list(numbers)
        yield
        self._found.suspects = []

    @property
    def _spent(self) -> bool:
        return self._found.spent_s >= self._wanted.budget_s


def _times(claim: object, numbers: Sequence[int]) -> dict[int, float]:
    """Return milliseconds of those that were asked about, as far as the claimed ones are possible."""
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
