"""Run the gateway on a Ray cluster in a child process, because Ray ends a process whose head is gone."""

import logging
import os
import signal
import time
from collections.abc import Callable

from online_judge.sandbox import linux

log = logging.getLogger(__name__)

LOST = 75
"""Exit code of a gateway that lost the Ray head."""
_OF_RAY = 1
"""Exit code of a process that Ray ends."""
_INTERRUPTED = 130
_LOOK_S = 0.2
_PAUSE_S = 2.0


def in_children(serve: Callable[[int | None, int], int], announce: int | None, parent: int | None) -> int:
    """Run a gateway in a child, and a new one whenever a signal or the loss of the head ends it.

    Args:
        serve: runs the gateway; gets ``announce`` and the process with which it ends, returns its exit code.
        announce: a descriptor for the first gateway only.
        parent: the process with which this one ends; None for none.

    Returns:
        The exit code of a gateway that ended in another way; 130 after SIGINT.
    """
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stopped.append(number))
    own = os.getpid()
    while True:
        child = os.fork()
        if child == 0:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            linux.die_with_parent(signal.SIGKILL, own)  # accepted jobs are in the journal
            os._exit(serve(announce, own))  # Ray's own exit handler may wait for a head that is gone
        if announce is not None:
            os.close(announce)
        announce, sent = None, False
        while True:
            if parent is not None and os.getppid() != parent and not stopped:
                stopped.append(signal.SIGTERM)
            if stopped and not sent:
                os.kill(child, signal.SIGTERM)
                sent = True
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            time.sleep(_LOOK_S)
        code = os.waitstatus_to_exitcode(status)
        if stopped or (code >= 0 and code not in (_OF_RAY, LOST)):
            return _INTERRUPTED if signal.SIGINT in stopped else max(code, 0)
        log.error("the gateway ended (%d): another one goes on with the jobs of the journal", code)
        time.sleep(_PAUSE_S)
