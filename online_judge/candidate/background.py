"""Find threads and processes that a candidate leaves running after a call."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from types import FrameType

from online_judge.candidate import provenance
from online_judge.sandbox import linux

_POOL = "concurrent/futures/thread.py"
_LIBRARIES = ("/torch/", "/triton/", "/numpy/", "/tqdm/")
_LIBRARY_THREADS = ("cuda", "pt_")  # of the CUDA driver; of torch
_COMPILERS = {
    "gcc", "g++", "cc", "c++", "cc1", "cc1plus", "as", "collect2", "ld", "clang", "clang++", "ninja",
    "nvcc", "cicc", "cudafe++", "fatbinary", "nvlink", "ptxas", "ptxas-blackwell",
}  # fmt: skip
_COMPILE_WORKER = "/torch/_inductor/compile_worker/"


class Background:
    """Finds work beside the main thread. Make it before the candidate is loaded, query it after a call.

    A Python thread is judged by its frames. Pools of torch, Triton and OpenMP start with the first calls, so
    other threads and processes count only if they are new since :meth:`settle`.
    """

    def __init__(self) -> None:
        self._here = set(sys._current_frames())
        self._threads: dict[int, str] = {}
        self._processes: set[int] = set()
        self.settled = False

    def settle(self) -> None:
        """Accept everything that runs now, after the second call."""
        self._threads, self._processes = _native_threads(), _processes_below()
        self.settled = True

    def found(self) -> list[str]:
        """Return one line for each thread and process at work; call it right after the candidate's call."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        lines = [
            f"thread {names.get(ident, '?')} is in {place}"
            for ident, frame in sys._current_frames().items()
            if ident not in self._here and ident != threading.get_ident() and (place := _work(frame))
        ]
        return lines + (self._new() if self.settled else [])

    def _new(self) -> list[str]:
        """Return one line for each new native thread and process that belongs to no library."""
        threads, processes = _native_threads(), _processes_below()
        known = {thread.native_id for thread in threading.enumerate()} | self._threads.keys()
        return [
            f"native thread {name} is new since an earlier call"
            for ident, name in threads.items()
            if ident not in known and not name.startswith(_LIBRARY_THREADS)
        ] + [
            f"process {linux.process_name(pid)} is new since an earlier call"
            for pid in sorted(processes - self._processes)
            if linux.is_running(pid) and not _compiles(pid)
        ]


def _native_threads() -> dict[int, str]:
    """Return names of this process's threads by native id; ``/proc`` may show ids of an outer namespace."""
    threads = {}
    for entry in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # the thread has exited
            text = Path("/proc/self/task", entry, "status").read_text()
            status = dict(line.partition(":\t")[::2] for line in text.splitlines())
            threads[int(status.get("NSpid", entry).split()[-1])] = status["Name"]
    return threads


def _processes_below() -> set[int]:
    return set(linux.descendants(int(os.readlink("/proc/self"))))


def _compiles(pid: int) -> bool:
    """Return True if it is a compiler or one of torch's compile workers."""
    try:
        program, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return os.path.basename(program) in _COMPILERS or _COMPILE_WORKER in "".join(arguments[:1])


def _work(innermost: FrameType) -> str | None:
    """Return where a thread is working; None for idle workers and threads of libraries."""
    files: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None:
        file = frame.f_code.co_filename
        if provenance.is_candidates(file):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        files.append(file)
        frame = frame.f_back
    name = innermost.f_code.co_name
    is_idle = name == "_worker" and files[0].endswith(_POOL)
    if is_idle or any(library in file for file in files for library in _LIBRARIES):
        return None
    return f"{os.path.basename(files[0])}:{name}"
