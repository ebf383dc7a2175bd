"""A limit on the CPU time of the main thread."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_S = 0.1


class CpuLimitReached(BaseException):
    """The limit is reached; ``except Exception`` does not catch it."""


@contextmanager
def cpu_limit(limit_s: float, message: str) -> Iterator[None]:
    """Raise in the main thread once it has used ``limit_s`` of CPU time within the block.

    Waiting and other threads do not count. Call it from the main thread. Code in the block can remove the
    limit, and a C call that does not return is not interrupted.

    Raises:
        CpuLimitReached: with ``message``.
    """
    begun_s = time.thread_time()

    def look(*_: object) -> None:
        if time.thread_time() - begun_s >= limit_s:
            raise CpuLimitReached(message)

    before = signal.signal(signal.SIGPROF, look)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, _LOOK_S, _LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
