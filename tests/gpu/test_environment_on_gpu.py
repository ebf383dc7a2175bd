"""What a judge with a GPU states about it, compared with torch and nvidia-smi."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.task import Task
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.http import HttpJudge
from online_judge.common.gpu_peaks import peak
from tests.gpu.test_judge_on_gpu import REFERENCE
from tests.online_judge.live import LiveJudge

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

_PROPERTIES = """
import json, torch
found = torch.cuda.get_device_properties(0)
names = ("name major minor multi_processor_count shared_memory_per_block_optin regs_per_multiprocessor "
         "max_threads_per_multi_processor L2_cache_size total_memory").split()
print(json.dumps({name: getattr(found, name) for name in names} | {"cuda": torch.version.cuda}))
"""


def test_environment_states_what_torch_and_nvidia_smi_say(gpu_judge: LiveJudge) -> None:
    found = Environment.model_validate(gpu_judge.client.get("/v2/environment").json())
    asked = subprocess.run(
        [sys.executable, "-c", _PROPERTIES], capture_output=True, text=True, check=True, timeout=120
    )
    torch_says = json.loads(asked.stdout)
    device = found.devices[0]
    assert found.hardware == device.name == torch_says["name"]
    assert found.versions["cuda"] == torch_says["cuda"]
    assert device.capability == f"{torch_says['major']}.{torch_says['minor']}"
    assert device.multiprocessors == torch_says["multi_processor_count"]
    assert device.shared_bytes_per_block == torch_says["shared_memory_per_block_optin"]
    assert device.registers_per_multiprocessor == torch_says["regs_per_multiprocessor"]
    assert device.threads_per_multiprocessor == torch_says["max_threads_per_multi_processor"]
    assert device.l2_bytes == torch_says["L2_cache_size"]
    assert device.memory_bytes == torch_says["total_memory"]
    known = peak(device.name)
    if known is not None:
        assert (device.bytes_per_s, device.flops) == (known.bytes_per_s, known.flops)
    assert found.timing is not None
    assert found.timing.cold_l2
    if shutil.which("nvidia-smi"):
        query = [
            "nvidia-smi",
            "--id=0",
            "--query-gpu=memory.total,compute_cap",
            "--format=csv,noheader,nounits",
        ]
        memory, capability = subprocess.check_output(query, text=True, timeout=60).strip().split(", ")
        assert device.memory_bytes == pytest.approx(int(memory) * 2**20, rel=0.05)
        assert capability == device.capability


def test_facts_of_a_reference_agree_with_each_other(gpu_judge: LiveJudge) -> None:
    task = Task(1, "1", "1_gate", REFERENCE, "fp32", Path("1_gate.py"))
    evaluation = EvaluationRequest(tf32="off", tier="strict")
    with open_client() as client:
        found = HttpJudge(
            Connection(gpu_judge.url, client=client), evaluation, try_reference=True
        ).check_problem(task)
    assert found is not None
    assert [(each.role, each.shape) for each in found.tensors] == [
        ("input", (4096, 8192)),
        ("weight", (1,)),
        ("output", (4096, 8192)),
    ]
    assert 0 < found.limits["strict"].rms <= found.limits["strict"].peak
    assert found.profile is not None
    assert found.profile.bytes == sum(each.bytes for each in found.tensors)
    assert found.profile.kernels
    assert sum(kernel.us for kernel in found.profile.kernels) <= 1.01 * found.profile.gpu_us
