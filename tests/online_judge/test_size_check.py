import os

import pytest

from online_judge.evaluator import size_check
from online_judge.evaluator.reference import ReferenceFailed

from .sources import REFERENCE

WRITING = """
import os
for fd in map(int, os.listdir("/proc/self/fd")):
    if fd not in {known} and "pipe:" in os.path.realpath(f"/proc/self/fd/{{fd}}"):
        os.write(fd, {text!r})
"""


@pytest.mark.parametrize("text", [b"\xff", b"[1]", b"{"])
def test_reference_writing_to_judge_pipe_is_refused(text: bytes) -> None:
    known = [int(fd) for fd in os.listdir("/proc/self/fd")]
    with pytest.raises(ReferenceFailed, match="writes to files"):
        size_check.check(WRITING.format(text=text, known=known) + REFERENCE, 10**6, 1e9)
