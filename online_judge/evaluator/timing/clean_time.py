"""Time a baseline with nobody else around, in an evaluator that has had no candidate."""

from __future__ import annotations

from contextlib import ExitStack

from adaexplore.core.judging.status import Stage
from online_judge.evaluator.job import CALLS_OF_TIMING, ReferenceJob
from online_judge.evaluator.reference import enough_memory
from online_judge.evaluator.timing.setup import TimingSetup, without_data
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.messages import BaselineTimed

_TRIAL = "facts"


class CleanTiming(ReferenceJob):
    """Times one baseline."""

    def run(self) -> BaselineTimed:
        """Return its time, if nobody else used the GPU.

        Raises:
            ReferenceFailed: the reference fails; NotEnoughMemory if that is the reason.
        """
        with ExitStack() as kept, enough_memory("its inputs and outputs"):
            self._compile_baseline()  # with all cores, as exclusive use does not allow
            with self._hold_if_alone(kept), self._memory(CALLS_OF_TIMING, timed=True):
                return BaselineTimed(ms=self._clean_ms())

    def _clean_ms(self) -> CleanMs | None:
        reference, (name, rng) = self._reference, self._race()
        with self._timing_memory(), ExitStack() as kept:
            with self._holding(exclusive=False):
                self._clock("reference", Stage.TIMING.value)
                call = reference.call(self._request.baseline)
                expected = without_data(reference.outputs(reference.inputs(_TRIAL), _TRIAL).leaves)
                setup = TimingSetup(reference, name, call, self._stopwatch(), expected, rng, shared=False)
                kept.callback(setup.free)
            with self._holding(exclusive=True) as hold:
                self._clock("reference", Stage.TIMING.value)
                ms = setup.clean_ms()
        return ms if hold.quiet else None
