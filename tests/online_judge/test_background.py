"""Work that a candidate leaves running is found, that of libraries is not."""

from __future__ import annotations

import _thread
import ctypes
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tqdm import TMonitor, tqdm

from online_judge.candidate.background import Background
from online_judge.checks.behaviour.process_changes import ProcessChanges
from online_judge.verdict.flags import of_candidate

from .live import wait_until


def wait_for(event: threading.Event) -> None:
    event.wait(60)


def test_thread_in_the_candidates_code_is_found() -> None:
    before = Background()
    assert before.found() == []
    event = threading.Event()
    thread = threading.Thread(target=wait_for, args=(event,), name="late")
    thread.start()
    lines = before.found()
    event.set()
    thread.join()
    assert len(lines) == 1
    assert lines[0].startswith("thread late is in test_background.py:")
    assert before.found() == []


def test_preexisting_unnamed_thread_is_no_finding() -> None:
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        end.wait(60)

    _thread.start_new_thread(work, ())
    begun.wait()
    before = Background()
    assert before.found() == []
    end.set()


def test_only_busy_pool_workers_are_found() -> None:
    before = Background()
    event = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        wait_until(lambda: before.found() == [])
        pool.submit(event.wait, 60)
        lines = wait_until(before.found)
        event.set()
    assert len(lines) == 1


@contextmanager
def native_thread(name: str | None = None) -> Iterator[None]:
    """Run a thread of the C library that Python does not know."""
    library = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    assert library.pthread_create(ctypes.byref(thread), None, library.sleep, ctypes.c_void_p(60)) == 0
    if name is not None:
        library.pthread_setname_np(thread, name.encode())
    try:
        yield
    finally:
        library.pthread_cancel(thread)
        library.pthread_join(thread, None)


@contextmanager
def process(*arguments: str) -> Iterator[None]:
    """Run a waiting shell under the arguments of another program."""
    with subprocess.Popen(arguments, executable="/bin/sh", stdin=subprocess.PIPE) as child:
        yield
        child.communicate()


def settled() -> Background:
    taken = Background()
    taken.settle()
    return taken


def test_tasks_of_earlier_calls_are_no_finding() -> None:
    with native_thread(), process("hog", "-c", "read line"):
        assert settled().found() == []


def test_late_monitor_of_tqdm_is_no_finding() -> None:
    taken = settled()
    monitor = TMonitor(tqdm, 60)
    assert taken.found() == []
    monitor.exit()  # type: ignore[no-untyped-call]


def test_later_python_thread_is_found_once() -> None:
    taken = settled()
    event = threading.Event()
    thread = threading.Thread(target=wait_for, args=(event,))
    thread.start()
    lines = taken.found()
    event.set()
    thread.join()
    assert len(lines) == 1
    assert "test_background.py:" in lines[0]


def test_later_native_thread_is_found() -> None:
    taken = settled()
    with native_thread("hog"):
        assert taken.found() == ["native thread hog is new since an earlier call"]
    assert taken.found() == []


@pytest.mark.parametrize("name", ["pt_autograd_0", "cuda-EvtHandlr"])
def test_native_thread_of_a_library_is_no_finding(name: str) -> None:
    taken = settled()
    with native_thread(name):
        assert taken.found() == []


def test_forked_child_is_found_until_it_exits() -> None:
    taken = settled()
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads
        child = os.fork()
    if not child:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    lines = taken.found()
    os.close(write)
    wait_until(lambda: taken.found() == [])
    os.waitpid(child, 0)
    os.close(read)
    assert len(lines) == 1
    assert lines[0].startswith("process ")


def test_compiler_and_compile_worker_are_no_finding(tmp_path: Path) -> None:
    worker = tmp_path / "torch/_inductor/compile_worker/__main__.py"
    worker.parent.mkdir(parents=True)
    worker.write_text("read line\n")
    taken = settled()
    with process("/opt/bin/ptxas", "-c", "read line"), process(sys.executable, str(worker), "--kind=fork"):
        assert taken.found() == []


def test_process_that_merely_names_a_compiler_is_found() -> None:
    taken = settled()
    with process("hog", "-c", "read line", "ptxas"):
        assert taken.found() == ["process sh is new since an earlier call"]


def test_flag_for_background_work() -> None:
    changes = ProcessChanges.from_claim({"background": ["thread late is in candidate.py:7"]})
    (flag,) = of_candidate([changes], "/job")
    assert flag.id == "background_threads"
    claims: list[object] = [None, [], 3]
    told = [ProcessChanges.from_claim({"background": claim}) for claim in claims]
    assert [of_candidate([changes], "/job") for changes in told] == [[]] * 3
