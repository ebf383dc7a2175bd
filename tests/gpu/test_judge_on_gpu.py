"""The judge on a real GPU."""

import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from tests.online_judge.live import LiveJudge, running_judge
from tests.online_judge.sources import HONEST, with_forward

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), scale))
    def forward(self, x):
        return torch.sigmoid(torch.relu(x) * self.scale + 1.0) * x

def get_inputs():
    return [torch.randn(4096, 8192)]

def get_init_inputs():
    return [0.5]
"""
FUSED = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, scale_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr).to(tl.float32)
    y = tl.sigmoid(tl.maximum(x, 0.0) * scale + 1.0) * x
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)

class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), scale))
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 1024),)](x, self.scale, y, n, BLOCK=1024)
        return y
"""
SPINNING = FUSED.replace("y_ptr, n, BLOCK", "y_ptr, flag_ptr, n, BLOCK").replace(
    "    mask = offsets < n\n",
    "    mask = offsets < n\n    while tl.atomic_add(flag_ptr, 0) == 0:\n        n += 0\n",
)
SPINNING = SPINNING.replace(
    "self.scale, y, n,", "self.scale, y, torch.zeros(1, dtype=torch.int32, device=x.device), n,"
)
MATMUL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(256, 2048), torch.randn(2048, 256)]

def get_init_inputs():
    return []
"""
DOT = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        inner = start + tl.arange(0, B)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)

class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
        kernel[(a.shape[0] // 32, b.shape[1] // 32)](a, b, c, a.shape[0], b.shape[1], a.shape[1], B=32)
        return c
"""
TIMED = {"measure_performance": True, "num_correct_trials": 5, "num_perf_trials": 100}


def status_of(judge: LiveJudge, candidate: str, **fields: object) -> str:
    answer = judge.evaluate(candidate, REFERENCE, **fields)
    assert len(answer["metadata"].get("feedback", "").encode()) <= 1500
    return str(answer["metadata"]["status"])


def rejects_and_suspects(answer: dict[str, Any]) -> list[str]:
    found = answer["metadata"].get("integrity", [])
    return [flag for flag in found if all_flags()[flag].severity is not Severity.NOTE]


def as_candidate(reference: str) -> str:
    return reference.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")


def test_health_names_the_gpu(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.client.get("/health").json()
    assert (answer["cuda_available"], answer["judge_device"]) == (True, "cuda")
    assert answer["devices"][0]["name"] == answer["hardware"]
    assert answer["devices"][0]["memory_total"] > 2**30
    assert answer["compile_target"].startswith("sm_")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_fused_kernel_passes_and_is_faster(gpu_judge: LiveJudge, dtype: str) -> None:
    answer = gpu_judge.evaluate(FUSED, REFERENCE, dtype_str=dtype, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]
    assert answer["metadata"]["notes"] == ["tf32_asymmetric"]
    stats = answer["runtime_stats"]
    assert stats["fast_p"] == pytest.approx(stats["baseline_time"] / stats["score_ms"])
    assert stats["fast_p"] > 1.5
    assert stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"] < 1.05 * stats["ci_low"]
    assert answer["runtime"] == stats["mean"]
    assert stats["score_ms"] == stats["gpu_ms"] == stats["median"]
    assert 0 < stats["min"] <= stats["p10"] <= stats["median"] <= stats["p90"] <= stats["max"]
    assert stats["e2e_ms"] > stats["gpu_ms"]  # it has the copy of the outputs in it
    assert stats["num_trials"] >= 20
    assert (stats["baseline"], stats["baseline_type"]) == ("eager", "measured")
    assert stats["baseline_time"] == pytest.approx(stats["baseline_clean_ms"], rel=0.03)
    assert stats["hardware"] == answer["metadata"]["hardware"]
    assert rejects_and_suspects(answer) == []


def test_verdict_states_its_measurements(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(FUSED, REFERENCE, **TIMED)
    stats, metadata = answer["runtime_stats"], answer["metadata"]
    slot, seen = stats["slot"], stats["witness"]
    assert 0 < slot["gpu_s"] < slot["held_s"] < 10
    assert slot["waited_s"] >= 0
    assert seen["copy_ms"] > 0
    assert abs(seen["wall_open_ms"] - seen["baseline_open_ms"]) < 2
    assert seen["tail_ms"] < 0.5
    assert stats["clocks"]["before"]["sm_mhz"] > 0
    assert stats["clocks"]["after"]["memory_mhz"] > 0
    assert stats["kernels"]["own"] > 0.9
    assert stats["kernels"]["kernels"][0][0] == "kernel"
    assert (metadata["tier"], metadata["correctness_trials"]) == ("strict", "(5 / 5)")
    assert metadata["sandbox"]


def test_requested_precision_is_required(gpu_judge: LiveJudge) -> None:
    precise = "tl.sigmoid(tl.maximum(x, 0.0) * scale + 1.0) * x"
    assert precise in FUSED
    factors = precise.rpartition(" * ")
    rounded = FUSED.replace(precise, f"({factors[0]}).to(tl.bfloat16) * {factors[2]}.to(tl.bfloat16)")
    legacy = gpu_judge.evaluate(rounded, REFERENCE)
    assert (legacy["metadata"]["tier"], legacy["correctness"]) == ("half", True)
    assert "low_precision" in legacy["metadata"]["integrity"]
    strict = gpu_judge.evaluate(rounded, REFERENCE, tier="strict", **TIMED)
    assert (strict["metadata"]["status"], strict["runtime_stats"]) == ("wrong_value", {})
    assert "less precise than tier strict" in strict["metadata"]["feedback"]


def test_compiled_baseline_is_named_and_faster(gpu_judge: LiveJudge) -> None:
    stats = gpu_judge.evaluate(FUSED, REFERENCE, baseline="compile", timeout=300, **TIMED)["runtime_stats"]
    assert stats["baseline"] == "compile"
    assert 0.7 < stats["fast_p"] < 1.5


def test_reference_against_itself_is_about_one(gpu_judge: LiveJudge) -> None:
    for _ in range(3):
        answer = gpu_judge.evaluate(as_candidate(REFERENCE), REFERENCE, **TIMED)
        assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.02), answer


# as cuDNN without memory for a workspace: the process chooses a slower algorithm, and keeps it; it seldom
# looks, because the driver answers late while other processes use it
SCARCE = """
import os
import time
import torch
import torch.nn as nn

LOOKED = [0.0]

class Model(nn.Module):
    def forward(self, x):
        if time.monotonic() > LOOKED[0] + 0.2:
            LOOKED[0] = time.monotonic()
            if torch.cuda.mem_get_info()[0] < 16 * 2**30:
                os.environ["SLOW"] = "1"
        if "SLOW" in os.environ:
            torch.cuda._sleep(4_000_000)
        return x.sin().cos()

def get_inputs():
    return [torch.rand(2**24)]

def get_init_inputs():
    return []
"""
TAKES_MEMORY = """
KEPT = []
def forward(self, x):
    if not KEPT:
        spare = torch.cuda.mem_get_info()[0] // 2**30 - 12
        KEPT.extend(torch.empty(2**30, dtype=torch.uint8, device="cuda") for _ in range(spare))
    return x.sin().cos()

ModelNew.forward = forward
"""


@pytest.mark.parametrize("measured", [True, False])
def test_slowing_the_baseline_for_good_gains_nothing(cuda: None, tmp_path: Path, measured: bool) -> None:
    """The candidate is timed or only checked; the same code after it gains nothing either."""
    honest = as_candidate(SCARCE)
    greedy = honest + TAKES_MEMORY
    with running_judge(tmp_path, JUDGE_DEVICE="cuda") as judge:  # with one slot, so one evaluator

        def fast_p(candidate: str, seed_num: int) -> float:
            answer = judge.evaluate(candidate, SCARCE, seed_num=seed_num, **TIMED)
            assert answer["metadata"]["status"] == "passed", answer
            flags = answer["metadata"]["integrity"]
            assert "baseline_unconfirmed" not in flags
            drifts.append("baseline_drift" in flags)
            answers.append(answer)
            return float(answer["runtime_stats"]["fast_p"])

        drifts: list[bool] = []
        answers: list[object] = []
        fast = [fast_p(honest, 42)]
        if measured:
            fast.append(fast_p(greedy, 42))
        else:
            assert judge.evaluate(greedy, SCARCE, seed_num=42)["metadata"]["status"] == "passed"
        fast.append(fast_p(honest, 43))  # its time without a candidate is not known yet
        fast.append(fast_p(honest, 42))
        log = (tmp_path / "judge.log").read_text()
    assert fast == pytest.approx([1.0] * len(fast), abs=0.1), answers
    assert ("stays slow" in log) == measured
    assert drifts == [False, *([True] if measured else []), False, False]


def test_without_measuring_there_are_no_times(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(FUSED, REFERENCE)
    assert (answer["correctness"], answer["runtime"], answer["runtime_stats"]) == (True, -1.0, {})


@pytest.mark.parametrize(
    ("status", "candidate"),
    [
        ("wrong_value", FUSED.replace("+ 1.0", "+ 1.5")),
        ("compile", FUSED.replace("tl.maximum", "tl.maximun")),
        ("compile", FUSED.replace("tl.arange(0, BLOCK)", "tl.arange(0, 1000)")),
        ("launch", FUSED.replace("x, self.scale, y, n, BLOCK", "x, self.scale, y, BLOCK")),
        ("illegal_access", FUSED.replace("y_ptr + offsets,", "y_ptr + offsets.to(tl.int64) + (1 << 40),")),
        ("out_of_memory", FUSED.replace("empty_like(x)", "empty(2**44, device='cuda')")),
        ("wrong_shape", FUSED.replace("return y", "return y.T")),
        ("wrong_dtype", FUSED.replace("return y", "return y.half()")),
        ("nonfinite", FUSED.replace("+ 1.0) * x", "+ 1.0) * x / (x - x)")),
        ("crash", FUSED.replace("return y", "import os; os._exit(0)")),
        ("launch", FUSED.replace("y = torch.empty_like(x)", "y = torch.empty_like(x).cpu()")),
    ],
)
def test_bad_candidate_gets_its_status(gpu_judge: LiveJudge, status: str, candidate: str) -> None:
    assert candidate != FUSED
    assert status_of(gpu_judge, candidate, **TIMED) == status
    assert status_of(gpu_judge, FUSED) == "passed"


def test_timeout_on_the_device_is_a_timeout(gpu_judge: LiveJudge) -> None:
    hanging = FUSED.replace("y = torch.empty_like(x)", "import time; time.sleep(99); y = x")
    assert status_of(gpu_judge, hanging, timeout=5) == "timeout"
    assert status_of(gpu_judge, SPINNING, timeout=10) == "timeout"
    assert status_of(gpu_judge, FUSED) == "passed"


def test_tf32_policy_reaches_tritons_dot(gpu_judge: LiveJudge) -> None:
    def status(policy: str) -> str:
        answer = gpu_judge.evaluate(DOT, MATMUL, tf32=policy, tolerance=1e-3)
        return str(answer["metadata"]["status"])

    assert status("off") == "passed"
    assert status("paper") == "wrong_value"


def test_killed_candidate_processes_leave_no_memory_behind(gpu_judge: LiveJudge) -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("nvidia-smi is missing")

    def used_mib() -> int:
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])

    crashing = FUSED.replace("return y", "import os; os._exit(0)")
    status_of(gpu_judge, crashing)
    before = used_mib()
    for _ in range(6):
        status_of(gpu_judge, crashing)
    assert used_mib() - before < 1500  # each holds 256 MiB of shared inputs and outputs


def test_concurrent_evaluations_are_timed_one_at_a_time(gpu_judge: LiveJudge) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda _: gpu_judge.evaluate(as_candidate(REFERENCE), REFERENCE, **TIMED), range(4))
        )
    for answer in answers:
        assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.05)


def test_candidate_on_the_cpu_is_no_shortcut(gpu_judge: LiveJudge) -> None:
    linear = "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n"
    linear += (
        "    def __init__(self, n):\n        super().__init__()\n        self.linear = nn.Linear(n, n)\n"
    )
    linear += "    def forward(self, x):\n        return torch.relu(self.linear(x))\n"
    linear += (
        "def get_inputs():\n    return [torch.randn(64, 128)]\ndef get_init_inputs():\n    return [128]\n"
    )
    assert gpu_judge.evaluate(with_forward(HONEST), linear)["correctness"] is True
    on_cpu = with_forward("return torch.relu(self.linear(x)).cpu()")
    assert gpu_judge.evaluate(on_cpu, linear)["metadata"]["status"] == "launch"


def test_reference_with_outputs_on_the_cpu_is_judged(gpu_judge: LiveJudge) -> None:
    reference = REFERENCE.replace("+ 1.0) * x", "+ 1.0).mul(x).cpu()")
    answer = gpu_judge.evaluate(as_candidate(reference), reference, measure_performance=False)
    assert answer["correctness"] is True


RECURRENT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.KIND(features, features, 2, batch_first=True)
        self.last = nn.Linear(features, features)
    def forward(self, x):
        return self.last(self.layers(x)[0][:, -1])

def get_inputs():
    return [torch.randn(16, 12, 64)]

def get_init_inputs():
    return [64]
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_weights_in_one_buffer_are_judged(gpu_judge: LiveJudge, kind: str) -> None:
    reference = RECURRENT.replace("KIND", kind)
    candidate = reference.replace("class Model", "class ModelNew").partition("def get_inputs")[0]
    answer = gpu_judge.evaluate(
        candidate, reference, measure_performance=True, num_correct_trials=2, tier="tf32", tf32="on"
    )
    assert answer["metadata"]["status"] == "passed", answer
    assert "stale_weights" not in answer["metadata"].get("integrity", [])


CHOLESKY = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.cholesky(x)

def get_inputs():
    half = torch.randn(4, 64, 64)
    return [half @ half.mT + 4 * torch.eye(64)]

def get_init_inputs():
    return []
"""


def test_reference_with_positive_definite_inputs_is_timed(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(as_candidate(CHOLESKY), CHOLESKY, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
    assert answer["runtime"] > 0


UNWRITTEN = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        found = torch.empty(1024, 128, device=x.device)
        found[:, :96] = torch.relu(x)
        return found

def get_inputs():
    return [torch.randn(1024, 96)]

def get_init_inputs():
    return []
"""


def test_unwritten_elements_are_free_when_timed(gpu_judge: LiveJudge) -> None:
    right = as_candidate(UNWRITTEN).replace("torch.empty(1024, 128, ", "torch.full((1024, 128), 5.0, ")
    answer = gpu_judge.evaluate(right, UNWRITTEN, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
    assert "unwritten_outputs" in answer["metadata"]["problem_flags"]
    assert answer["runtime"] > 0
    wrong = gpu_judge.evaluate(right.replace("relu", "abs"), UNWRITTEN, **TIMED)
    assert wrong["metadata"]["status"] == "wrong_value", wrong


def breaking_context(when: str) -> str:
    """Return a reference whose calls on the GPU break the CUDA context if ``when`` is true."""
    body = (
        f"if x.is_cuda and {when}:\n"
        "            torch.zeros(2, device='cuda')[torch.full((1,), 5, device='cuda')].sum().item()\n"
        "        return torch.sigmoid("
    )
    waiting = "import time\n\ndef waits_until(end):\n    left_s = end - time.time()\n"
    waiting += "    time.sleep(max(left_s, 0.0))\n    return left_s > 0\n\n"
    return waiting + REFERENCE.replace("return torch.sigmoid(", body).replace("4096, 8192", "64, 64")


def test_lost_context_is_replaced_and_tried_again(gpu_judge: LiveJudge) -> None:
    until = time.time() + 8
    answer = gpu_judge.evaluate(FUSED, breaking_context(f"waits_until({until})"))
    assert time.time() > until, "no call broke the context"
    assert answer["metadata"]["status"] == "passed", answer


def test_reference_that_loses_contexts_is_a_problem_error(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(FUSED, breaking_context("True"))
    assert answer["success"] is False
    assert "forward() fails" in answer["error"]
    assert gpu_judge.evaluate(FUSED, REFERENCE)["correctness"] is True
