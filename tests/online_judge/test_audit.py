"""Replaced functions and leftovers of a candidate are named, honest changes are not."""

from __future__ import annotations

import gc
import importlib.util
import json
import random
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton.testing
from triton.runtime.jit import JITFunction

from adaexplore.core.judging.flags import Flag
from online_judge.candidate.overlap import share_memory
from online_judge.candidate.patch_audit import Watchdog
from online_judge.candidate.switches import GlobalFlags
from online_judge.checks.behaviour.process_changes import ProcessChanges
from online_judge.common import modules
from online_judge.cpu import simulated_cuda
from online_judge.verdict.flags import of_candidate

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def replacement(*args: Any, **kwargs: Any) -> Any:
    return True


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (torch, "allclose"),
        (torch, "equal"),
        (torch, "empty_like"),
        (torch.testing, "assert_close"),
        (torch.nn.functional, "linear"),
        (torch.nn.Module, "__call__"),
        (torch.Tensor, "__eq__"),
        (torch.Tensor, "is_cuda"),
        (torch.cuda, "synchronize"),
        (torch.cuda, "Event"),
        (torch.cuda, "current_stream"),
        (torch.cuda.Event, "elapsed_time"),
        (torch.cuda.Event, "record"),
        (triton.testing, "do_bench"),
        (JITFunction, "run"),
        (time, "perf_counter"),
        (json, "dumps"),
        (socket.socket, "sendmsg"),
        ("os", "_exit"),
        ("builtins", "divmod"),
        ("gc", "collect"),
        (modules, "seed_everything"),
    ],
)
def test_replaced_function_is_named(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    owner = sys.modules[owner] if isinstance(owner, str) else owner
    watchdog = Watchdog()
    monkeypatch.setattr(owner, name, replacement)
    changes = watchdog.changes()
    monkeypatch.undo()
    assert len(changes) >= 1
    assert all(change.endswith(f".{name}") for change in changes)
    assert watchdog.changes() == []


@pytest.mark.parametrize("name", ["copy_", "data_ptr", "clone", "contiguous", "nbytes"])
def test_method_put_over_an_inherited_one_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    watchdog = Watchdog()
    monkeypatch.setattr(torch.Tensor, name, replacement)
    assert watchdog.changes() == [f"torch.Tensor.{name}"]


def test_exchanged_code_of_a_function_is_named() -> None:
    watchdog = Watchdog()
    code = modules.seed_everything.__code__
    modules.seed_everything.__code__ = replacement.__code__
    changes = watchdog.changes()
    modules.seed_everything.__code__ = code
    assert changes == ["online_judge.common.modules.seed_everything"]


def test_builtin_shadowed_in_a_judge_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    monkeypatch.setattr(modules, "list", replacement, raising=False)
    assert watchdog.changes() == ["online_judge.common.modules.list"]


def test_exchanged_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    monkeypatch.setitem(sys.modules, "statistics", types.ModuleType("statistics"))
    assert watchdog.changes() == ["sys.modules['statistics']"]


def test_what_intercepts_calls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    traced, profiled = sys.gettrace(), sys.getprofile()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    gc.callbacks.append(replacement)
    mode = torch.overrides.TorchFunctionMode()
    mode.__enter__()
    sys.setprofile(lambda *_: None)
    alarmed = signal.signal(signal.SIGALRM, lambda *_: None)
    changes = watchdog.changes()
    signal.signal(signal.SIGALRM, alarmed)
    sys.setprofile(profiled)
    mode.__exit__(None, None, None)
    gc.callbacks.remove(replacement)
    handle.remove()
    assert changes == [
        "gc.callbacks",
        "signal handlers",
        "sys.setprofile",
        "torch function modes",
        "torch.nn.modules.module._global_forward_hooks",
    ]
    assert (sys.gettrace(), watchdog.changes()) == (traced, [])


def test_operation_implemented_anew_is_named() -> None:
    watchdog = Watchdog()
    library = torch.library.Library("aten", "IMPL")
    library.impl("sinc", lambda x: x, "CUDA")
    changes = watchdog.changes()
    library._destroy()
    assert changes == ["implementations of aten operations"]


HONEST = """
import time, json, threading, functools, ctypes, torch.testing, torch.utils.cpp_extension
import torch, torch.nn as nn, torch.nn.functional as F, triton, triton.language as tl

def allclose(a, b):
    return True

time_it = synchronize = perf_counter = allclose

class Tensor:
    def copy_(self, other): ...

@functools.cache
def do_bench(): ...

@torch.library.custom_op("test_audit::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

class Doubled(torch.Tensor):
    def data_ptr(self): return 0

torch.set_default_device("cpu")
torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark
compiled = torch.compile(nn.Linear(3, 3), backend="eager")
compiled(torch.ones(2, 3))
twice(torch.ones(3))
torch.jit.trace(nn.ReLU(), torch.ones(2))
with torch.autocast("cpu"), torch.no_grad():
    F.linear(torch.ones(3, 3), torch.ones(3, 3))
torch.set_default_device(None)
"""


def printed_by(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_honest_module_replaces_nothing(tmp_path: Path) -> None:
    """In a process of its own: torch.compile wraps functions of torch once."""
    (tmp_path / "honest.py").write_text(HONEST)
    program = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from online_judge.candidate import patch_audit, switches\n"
        "from online_judge.protocol import shared_tensors\n"
        "watchdog = patch_audit.Watchdog()\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import honest\n"
        "print(watchdog.changes())\n"
    )
    assert printed_by(program) == "[]\n"


def test_watchdog_is_quick() -> None:
    """In a process of its own: the cost grows with the imported modules, and this process has them all."""
    program = (
        "import time\n"
        "from online_judge.candidate import process\n"
        "from online_judge.candidate.patch_audit import Watchdog\n"
        "for _ in range(4):\n"
        "    begin = time.thread_time()\n"
        "    Watchdog().changes()\n"
        "    print(time.thread_time() - begin)\n"
    )
    assert min(map(float, printed_by(program).split())) < 0.1  # 25 ms


def recorded_sources() -> list[str]:
    return [
        step["code"]
        for file in sorted(TRACES.glob("kb-l2-p*.json"))
        for step in json.loads(file.read_text())["steps"]
        if step["code"]
    ]


@pytest.mark.skipif(not TRACES.is_dir(), reason="no recorded kernels beside the repository")
@pytest.mark.filterwarnings("ignore")
def test_no_recorded_candidate_replaces_anything(tmp_path: Path) -> None:
    sources = random.Random(3).sample(recorded_sources(), 240)
    flags = GlobalFlags()
    found = {}
    try:
        with simulated_cuda("sm_90"):
            watchdog = Watchdog()
            for index, source in enumerate(sources):
                file = tmp_path / f"recorded_{index}.py"
                file.write_text(source)
                spec = importlib.util.spec_from_file_location(file.stem, file)
                assert spec is not None
                assert spec.loader is not None
                module = importlib.util.module_from_spec(spec)
                try:
                    spec.loader.exec_module(module)
                except (SyntaxError, AttributeError):
                    continue
                if changes := watchdog.changes():
                    found[index] = changes
    finally:
        flags.restore()
    assert found == {}


def flags_of_patched(claim: object) -> list[Flag]:
    return of_candidate([ProcessChanges.from_claim({"patched": claim})], "/job")


def test_flag_for_replaced_functions_is_one_bounded_line() -> None:
    (flag,) = flags_of_patched(["torch.equal", "time.time"])
    assert (flag.id, flag.evidence) == ("patched_functions", "replaced: torch.equal, time.time")
    (huge,) = flags_of_patched(["x" * 10**5] * 1000)
    assert huge.evidence.endswith(" and 980 more")
    assert len(huge.evidence) < 3000
    assert [flags_of_patched(claim) for claim in (None, [], "torch.equal", {"a": 1})] == [[]] * 4


@pytest.fixture
def flags() -> Iterator[GlobalFlags]:
    initial = GlobalFlags()
    yield GlobalFlags()
    initial.restore()


def set_backend(path: str, value: Any) -> Callable[[], None]:
    def change() -> None:
        owner: Any = torch.backends
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, name, value)

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_backend("cuda.matmul.allow_tf32", True), "torch.backends.cuda.matmul.allow_tf32: False -> True"),
        (
            set_backend("cuda.matmul.fp32_precision", "tf32"),
            "torch.backends.cuda.matmul.fp32_precision: none -> tf32",
        ),
        (set_backend("cudnn.benchmark", True), "torch.backends.cudnn.benchmark: False -> True"),
        (set_backend("cudnn.allow_tf32", False), "torch.backends.cudnn.allow_tf32: True -> False"),
        (set_backend("cudnn.deterministic", True), "torch.backends.cudnn.deterministic: False -> True"),
        (
            lambda: torch.set_float32_matmul_precision("high"),
            "torch.float32_matmul_precision: highest -> high",
        ),
        (lambda: torch.set_default_dtype(torch.float64), "default dtype: torch.float32 -> torch.float64"),
        (lambda: torch.set_default_device("meta"), "default device: None -> meta"),
        (lambda: torch.set_grad_enabled(False), "gradients: True -> False"),
        (
            lambda: torch.use_deterministic_algorithms(True),
            "deterministic algorithms: (False, False) -> (True, False)",
        ),
        (
            lambda: torch.set_num_threads(torch.get_num_threads() + 1),
            f"CPU threads: {torch.get_num_threads()} -> {torch.get_num_threads() + 1}",
        ),
        (lambda: torch.set_autocast_enabled("cuda", True), "autocast on cuda: False -> True"),
    ],
)
def test_changed_switch_is_named_and_set_back(
    flags: GlobalFlags, change: Callable[[], Any], named: str
) -> None:
    if GlobalFlags()._values["torch.backends.cuda.matmul.fp32_precision"] == "ieee":
        named = named.replace("none ->", "ieee ->")  # another test has used the older names
    change()
    assert named in flags.changes()
    flags.restore()
    assert flags.changes() == []


def test_switches_left_alone_are_no_finding(flags: GlobalFlags) -> None:
    with torch.no_grad(), torch.autocast("cpu"):
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert flags.changes() == []
    assert of_candidate([ProcessChanges.from_claim({"global_flags": flags.changes()})], "/job") == []
    (note,) = of_candidate(
        [ProcessChanges.from_claim({"global_flags": ["gradients: True -> False"]})], "/job"
    )
    assert (note.id, note.severity) == ("global_flags", "note")


def test_views_share_memory_and_copies_do_not() -> None:
    whole = torch.arange(100.0)
    assert share_memory([torch.ones(3), whole[50:]], [whole[:60]])
    assert share_memory([whole.view(10, 10).T], [whole])
    assert not share_memory([whole[:50]], [whole[50:]])
    assert not share_memory([whole.clone()], [whole])
    assert not share_memory([whole[:0]], [whole])
    assert not share_memory([torch.empty(3, device="meta")], [torch.empty(3, device="meta")])


def test_reuse_of_previous_result_memory_is_detected() -> None:
    kept = torch.zeros(5)
    assert share_memory([kept], [torch.ones(5), kept.view(1, 5)])
    assert not share_memory([kept], [torch.ones(5)])
