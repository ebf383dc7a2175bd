"""Use of the device, as the evaluator asks the gateway for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from online_judge.common.cores import Cores, run_on, time_on
from online_judge.protocol.channel import Channel


@dataclass
class Hold:
    """One use of the device; ``held_s`` is 0 until it is given back."""

    exclusive: bool
    waited_s: float
    held_s: float = 0.0


class Leases:
    """Asks over the evaluator's channel, see :class:`online_judge.processes.gpu_lease.EvaluatorLeases`.

    Within a block another :meth:`hold` is nothing new, unless it asks for exclusive use where the outer one
    does not; so is a second :meth:`timing_memory`. All methods raise ChannelClosed where the gateway is gone.
    """

    def __init__(self, control: Channel, cores: Cores) -> None:
        """Take nothing; with exclusive use this process runs on the ``cores`` for timing."""
        self._control = control
        self._cores = cores
        self._held: Hold | None = None
        self._has_timing_memory = False

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[Hold]:
        """Hold the device for the length of the block; gives the times of this use.

        Raises:
            RuntimeError: it is held shared, and asked for exclusively.
        """
        if self._held is not None:
            if exclusive and not self._held.exclusive:
                raise RuntimeError("shared use of a device cannot become exclusive")
            with _timed(Hold(exclusive, 0.0)) as inner:
                yield inner
            return
        kind = "exclusive" if exclusive else "shared"
        with self._lease(kind) as waited_s, _timed(Hold(exclusive, waited_s)) as self._held:
            try:
                if exclusive:
                    time_on(self._cores.timing)
                yield self._held
            finally:
                if exclusive:
                    run_on(self._cores.others)
                self._held = None

    def give_way(self) -> None:
        """Return shared use of the device and take it again, after all who wait for exclusive use."""
        if self._held is None or self._held.exclusive:
            return
        self._return()
        self._take("shared")

    @contextmanager
    def timing_memory(self) -> Iterator[None]:
        """Have memory for timing, as few have at a time; to be asked for before the device itself."""
        if self._has_timing_memory:
            yield
            return
        with self._lease("timing_memory"):
            self._has_timing_memory = True
            try:
                yield
            finally:
                self._has_timing_memory = False

    def compiling(self) -> AbstractContextManager[float]:
        """Have cores for compiling configurations within the block."""
        return self._lease("compiling")

    def stoppable(self) -> AbstractContextManager[float]:
        """Let exclusive users of the device stop the candidate within the block."""
        return self._lease("stoppable")

    def stopped(self) -> AbstractContextManager[float]:
        """Stop the candidate for the length of the block."""
        return self._lease("stopped")

    def stopped_s(self) -> float:
        """Return for how many seconds candidates have been stopped by exclusive users so far."""
        self._control.send_json({"lease": "stopped_s"})
        return float(self._control.receive_json()[0]["stopped_s"])

    @contextmanager
    def _lease(self, kind: str) -> Iterator[float]:
        """Have a lease of this kind for the length of the block; gives the seconds waited for it."""
        waited_s = self._take(kind)
        try:
            yield waited_s
        finally:
            self._return()

    def _take(self, kind: str) -> float:
        self._control.send_json({"lease": "take", "kind": kind})
        return float(self._control.receive_json()[0]["granted"])

    def _return(self) -> None:
        """Return what was taken last."""
        self._control.send_json({"lease": "return"})


@contextmanager
def _timed(hold: Hold) -> Iterator[Hold]:
    begin = time.monotonic()
    try:
        yield hold
    finally:
        hold.held_s = time.monotonic() - begin
