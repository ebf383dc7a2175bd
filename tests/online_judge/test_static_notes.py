"""Notes name lines and constructs; the text alone never says more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.judging.flags import Flag
from online_judge.checks.behaviour.static_notes import SourceText
from online_judge.checks.check import Severity
from online_judge.verdict.flags import of_candidate


def notes(source: str) -> list[Flag]:
    return of_candidate([SourceText(text=source)], "/job")


FUSED = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=4)], key=["n"])
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

class ModelNew(nn.Module):
    def __init__(self, size, time=3, open=None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.time, self.id, self.signal = time, 0, open
        torch.backends.cuda.matmul.allow_tf32 = True
        setattr(self, "name", 1)
        setattr(torch.backends.cudnn, "benchmark", True)

    def forward(self, x):
        id = self.id
        try:
            index = torch.cuda.current_device()
        except RuntimeError:
            index = torch.cuda.device_count()
        torch.cuda.synchronize()
        y = torch.empty_like(x.contiguous())
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return F.relu(y) + math.sqrt(id + index)
"""


def test_plain_candidate_gets_no_note() -> None:
    assert notes(FUSED) == []


@pytest.mark.parametrize(
    ("id_", "line", "construct"),
    [
        ("static_clock", "import time; time.perf_counter()", "time.perf_counter"),
        ("static_clock", "from time import perf_counter as pc; pc()", "time.perf_counter"),
        ("static_clock", "torch.cuda.Event(enable_timing=True)", "torch.cuda.Event"),
        ("static_clock", "start.elapsed_time(end)", ".elapsed_time"),
        ("static_clock", "from triton import testing as t; t.do_bench(f)", "triton.testing.do_bench"),
        ("static_streams", "side = torch.cuda.Stream()", "torch.cuda.Stream"),
        ("static_streams", "with torch.cuda.graph(g): pass", "torch.cuda.graph"),
        ("static_streams", "from torch.cuda import CUDAGraph as G; G()", "torch.cuda.CUDAGraph"),
        ("static_streams", "g.replay()", ".replay"),
        ("static_introspection", "import gc; gc.get_objects()", "gc.get_objects"),
        ("static_introspection", "import sys; sys._getframe(1).f_locals", "sys._getframe"),
        ("static_introspection", "cache[id(x)] = y", "id()"),
        ("static_introspection", "cache[x.data_ptr()] = y", ".data_ptr"),
        ("static_introspection", "import ctypes; ctypes.CDLL(None)", "ctypes.CDLL"),
        ("static_introspection", "torch.allclose = lambda *a: True", "assigns torch.allclose"),
        ("static_introspection", "torch.Tensor.copy_ = lambda *a: 0", "assigns torch.Tensor.copy_"),
        ("static_introspection", "setattr(torch.cuda, 'synchronize', f)", "setattr on torch.cuda"),
        ("static_introspection", "exec(code)", "exec()"),
        ("static_introspection", "__import__('gc')", "__import__()"),
        ("static_introspection", "torch.library.Library('aten', 'IMPL')", "torch.library.Library"),
        ("static_process", "import os; os._exit(0)", "os._exit"),
        ("static_process", "import os; os.environ['A'] = '1'", "os.environ"),
        ("static_process", "open('/proc/self/maps')", "open()"),
        ("static_process", "import socket as s; s.socket()", "socket.socket"),
        ("static_process", "from subprocess import run; run(['ls'])", "subprocess.run"),
        ("static_process", "import threading; threading.Thread(target=f).start()", "threading.Thread"),
        ("static_fallback", "try:\n    k()\nexcept Exception:\n    y = torch.relu(x)", "torch.relu"),
        ("static_fallback", "try:\n    k()\nexcept:\n    y = F.linear(x, w)", "torch.nn.functional.linear"),
        (
            "static_fallback",
            "class M:\n  def f(self):\n    try: k()\n    except ValueError: return super().f()",
            "super().f",
        ),
    ],
)
def test_construct_gets_its_note(id_: str, line: str, construct: str) -> None:
    found = notes(f"import torch\nimport torch.nn.functional as F\n{line}\n")
    assert [flag.id for flag in found] == [id_]
    assert found[0].severity == Severity.NOTE
    assert construct in found[0].evidence
    assert found[0].evidence.startswith("line ")


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.path.join('a', 'b')",
        "def f(open, id): return open(id)",
        "try:\n    import cupy\nexcept ImportError:\n    cupy = None",
        "try:\n    k()\nexcept Exception as error:\n    raise RuntimeError(str(error))",
        "x.time.sleep()",
        "import time",
    ],
)
def test_ordinary_construct_gets_none(line: str) -> None:
    assert notes(line) == []


def test_one_note_an_id_with_bounded_evidence() -> None:
    lines = [f"torch.Tensor.m{index} = f" for index in range(50)]
    (flag,) = notes("\n".join(["import torch", *lines]))
    assert flag.evidence.endswith("and 46 more")
    assert "line 2: assigns torch.Tensor.m0" in flag.evidence


@pytest.mark.parametrize("source", ["", "def f(:", "\0", "(" * 5000, "x = " + "-" * 100_000 + "1"])
def test_source_that_does_not_parse_gets_none(source: str) -> None:
    assert notes(source) == []


def test_invalid_escape_of_the_candidate_is_no_warning() -> None:
    assert notes("x = '\\d'") == []


@pytest.mark.usefixtures("threads_that_switch_while_a_tree_is_built")
def test_candidates_are_read_side_by_side() -> None:
    source = ("x = " + "[" * 40 + "1" + "]" * 40 + "\n") * 8
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(notes, [source] * 100)) == [[]] * 100
