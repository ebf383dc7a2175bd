"""The evaluator's side of its leases: ask the gateway for use of the device."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from online_judge.common.cores import Cores, run_on, time_on
from online_judge.protocol.channel import Channel
from online_judge.protocol.messages import Granted, Lease, Mode, Stopped

_NOISY_S = 30.0


@dataclass
class Hold:
    """One use of the device; ``held_s`` is 0 until it is given back.

    ``quiet`` says whether nobody else's work was left on it when exclusive use began.
    """

    exclusive: bool
    waited_s: float
    held_s: float = 0.0
    quiet: bool = True


@dataclass(eq=False)
class Leases:
    """Takes and returns leases over the evaluator's channel.

    :class:`online_judge.processes.gpu_lease.LeaseServer` answers. A :meth:`hold` inside another one takes no
    second lease; exclusive use inside shared use is refused. A :meth:`timing_memory` inside another one takes
    no second lease either. All methods raise ChannelClosed if the gateway is gone.
    """

    _control: Channel
    _cores: Cores  # under exclusive use this process runs on their timing part
    _synchronise: Callable[[], object]  # waits for its work on the device: it must not disturb the next user
    _wait_for_quiet: Callable[[], bool]  # waits for the work of stopped processes; False if it goes on
    _held: Hold | None = field(default=None, init=False)
    _has_timing_memory: bool = field(default=False, init=False)
    _noisy_until: float = field(default=0.0, init=False)  # somebody else uses it, so nobody waits for quiet

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[Hold]:
        """Hold the device within the block; yield the times of this use.

        Raises:
            RuntimeError: exclusive use was asked for inside shared use.
        """
        if self._held is not None:
            if exclusive and not self._held.exclusive:
                raise RuntimeError("shared use of a device cannot become exclusive")
            with _timed(Hold(exclusive, 0.0)) as inner:
                inner.quiet = not exclusive or self._wait_for_quiet()
                yield inner
            return
        with ExitStack() as lease:
            hold = Hold(exclusive, lease.enter_context(self._lease("exclusive" if exclusive else "shared")))
            if exclusive and time.monotonic() < self._noisy_until:
                hold.quiet = False
            elif exclusive and not self._wait_for_quiet():
                lease.close()  # work that stopped processes had queued goes on
                hold.waited_s += lease.enter_context(self._lease("exclusive", drained=True))
                hold.quiet = self._wait_for_quiet()
                if not hold.quiet:
                    self._noisy_until = time.monotonic() + _NOISY_S
            with _timed(hold) as self._held:
                try:
                    if exclusive:
                        time_on(self._cores.timing)
                    yield self._held
                finally:
                    self._synchronise()
                    if exclusive:
                        run_on(self._cores.others)
                    self._held = None

    @contextmanager
    def timing_memory(self) -> Iterator[None]:
        """Hold memory for timing within the block; few jobs may at a time. Take it before the device."""
        if self._has_timing_memory:
            yield
            return
        with self._lease("timing_memory"):
            self._has_timing_memory = True
            try:
                yield
            finally:
                self._has_timing_memory = False

    def memory(self, share: float) -> AbstractContextManager[float]:
        """Hold a share of the memory that jobs may need together. Take it before memory for timing."""
        return self._lease("memory", share)

    def compiling(self) -> AbstractContextManager[float]:
        """Hold cores for compiling configurations within the block."""
        return self._lease("compiling")

    def stopped(self) -> AbstractContextManager[float]:
        """Keep the candidate stopped within the block."""
        return self._lease("stopped")

    def stopped_s(self) -> float:
        """Return the total seconds for which others' exclusive use has stopped this job's processes."""
        self._control.send_json(Lease(lease="stopped_s").to_json())
        return Stopped.from_json(self._control.receive_json()[0]).stopped_s

    @contextmanager
    def _lease(self, kind: Mode, share: float = 0.0, *, drained: bool = False) -> Iterator[float]:
        """Hold a lease of this kind within the block; yield the seconds waited for it."""
        waited_s = self._take(Lease(lease="take", kind=kind, share=share, drained=drained))
        try:
            yield waited_s
        finally:
            self._return()

    def _take(self, lease: Lease) -> float:
        self._control.send_json(lease.to_json())
        return Granted.from_json(self._control.receive_json()[0]).granted

    def _return(self) -> None:
        """Return the lease that was taken last."""
        self._control.send_json(Lease(lease="return").to_json())


@contextmanager
def _timed(hold: Hold) -> Iterator[Hold]:
    begin = time.monotonic()
    try:
        yield hold
    finally:
        hold.held_s = time.monotonic() - begin
