"""Tasks of other benchmarks by name."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.wire import EvaluationRequest, EvaluationResponse
from online_judge.api.benchmarks import completed
from online_judge.api.errors import add_handlers
from online_judge.queue.scheduler import QueueFull
from tests.verdicts import make_verdict

from .live import LiveJudge, running_judge

GOLD = "import torch\n\ndef double(x, out=None):\n    return torch.mul(x, 2, out=out)\n"
TEST = "import torch\nx = torch.randn(8, 4, device='cuda')\ndouble(x)\ndouble(x, out=torch.empty_like(x))\n"
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)

def double(x, out=None):
    y = torch.empty_like(x) if out is None else out
    double_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=32)
    return y
"""
DEFINITION = {
    "name": "double",
    "op_type": "elementwise",
    "axes": {"N": {"type": "var"}},
    "inputs": {"x": {"shape": ["N"], "dtype": "bfloat16"}},
    "outputs": {"y": {"shape": ["N"], "dtype": "bfloat16"}},
    "reference": "def run(x):\n    return x * 2\n",
}
WORKLOAD = {"uuid": "a", "axes": {"N": 64}, "inputs": {"x": {"type": "random"}}}
FILLING = "def run(x, y):\n    y.copy_(x * {factor})\n"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    root = tmp_path_factory.mktemp("benchmarks")
    (root / "double.py").write_text(f"{GOLD}\n{'#' * 146}\n{TEST}")
    (root / "sol" / "double").mkdir(parents=True)
    tolerance = {"max_atol": 0.0, "max_rtol": 0.05, "required_matched_ratio": 1.0}
    (root / "sol" / "double" / "definition.json").write_text(json.dumps(DEFINITION))
    workload = json.dumps(WORKLOAD | {"tolerance": tolerance})
    (root / "sol" / "double" / "workload.jsonl").write_text(workload)
    variables = {"TRITONBENCH_T_PATH": str(root), "FIB_DATASET_PATH": str(root / "sol")}
    with running_judge(root, **variables) as live:
        yield live


def evaluated(judge: LiveJudge, name: str, code: str, **fields: Any) -> dict[str, Any]:
    body = {"kernel_code": code, "task_id": "double", **fields}
    response = judge.post(f"/evaluate_{name}_kernel", body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "right"), [("2.0", True), ("3.0", False)])
def test_functions_are_judged_on_the_test_calls(judge: LiveJudge, factor: str, right: bool) -> None:
    answer = evaluated(judge, "tbt", KERNEL.replace("2.0", factor))
    assert answer["success"] is answer["correctness"] is right
    assert answer["metadata"]["status"] == ("passed" if right else "wrong_value")
    assert (answer["metadata"]["task_id"], answer["metadata"]["benchmark"]) == ("double", "TBT")
    assert "integrity" not in answer["metadata"]


@pytest.mark.slow
def test_evaluate_request_can_select_a_benchmark_task(judge: LiveJudge) -> None:
    answer = judge.evaluate(KERNEL, "", test_source="TritonBench_T", task_id="double", dtype_str="fp16")
    assert answer["correctness"] is True


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "right"), [("2.05", True), ("2.2", False)])
def test_own_tolerance_replaces_the_tier(judge: LiveJudge, factor: str, right: bool) -> None:
    answer = evaluated(judge, "fit", FILLING.format(factor=factor))
    assert answer["success"] is right
    metadata = answer["metadata"]
    assert metadata["tolerance"]["max_rtol"] == 0.05
    assert "tier" not in metadata
    if right:
        assert answer["runtime_stats"]["total_workloads"] == 1
    else:
        assert metadata["error_status"] == "wrong_value"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/evaluate", {"test_source": "TBT", "task_id": "double"}, "needs kernel_code and task_id"),
        ("/evaluate", {"test_source": "TBT", "kernel_code": "x"}, "needs kernel_code and task_id"),
        ("/evaluate_tbt_kernel", {"kernel_code": "x", "task_id": "../x"}, "no task '../x'"),
        ("/evaluate_tbg_kernel", {"kernel_code": "x", "task_id": "x"}, "set TRITONBENCH_G_PATH"),
        ("/evaluate_fit_kernel", {"kernel_code": '{"name": 1}', "task_id": "double"}, "kernel_code: "),
    ],
)
@pytest.mark.slow
def test_task_that_cannot_be_used_is_400(
    judge: LiveJudge, path: str, body: dict[str, str], said: str
) -> None:
    response = judge.post(path, body)
    assert response.status_code == 400
    assert said in response.json()["detail"]


@pytest.mark.slow
def test_jobs_take_tasks_by_name(judge: LiveJudge) -> None:
    request = {"test_source": "TBT", "kernel_code": KERNEL, "task_id": "double"}
    ticket = judge.post("/v2/jobs", {"request": request}).json()
    answer = judge.client.get(f"/v2/jobs/{ticket['id']}", params={"wait": 60}).json()
    assert answer["verdict"]["correctness"] is True


def test_timed_answer_has_the_release_fields() -> None:
    times = {"fast_p": 1.5, "baseline_time": 3.0}
    verdict = make_verdict(Status.PASSED, runtime_ms=2.0, runtime_stats=times)
    answer = EvaluationResponse(success=True, **to_metrics(verdict), execution_time=1.0)
    request = EvaluationRequest(test_source="TBG", task_id="double")
    stats = completed(answer, request, verdict).runtime_stats
    assert (stats["speedup_factor"], stats["reference_latency_ms"], stats["candidate_latency_ms"]) == (
        1.5,
        3,
        2,
    )


def test_full_queue_is_503_for_clients_of_v1() -> None:
    application = FastAPI()
    add_handlers(application)

    async def refuse() -> None:
        raise QueueFull("Queue is full")

    paths = ("/evaluate", "/evaluate_tbg_kernel", "/evaluate_fit_kernel", "/v2/jobs")
    for path in paths:
        application.add_api_route(path, refuse, methods=["POST"])
    client = TestClient(application)
    assert [client.post(path).status_code for path in paths] == [503, 503, 503, 429]


@pytest.mark.slow
def test_gradients_of_benchmark_tasks_are_refused(judge: LiveJudge) -> None:
    body = {"kernel_code": KERNEL, "task_id": 1, "test_source": "TBT", "direction": "both"}
    response = judge.post("/evaluate", body)
    assert response.status_code == 400
    assert "must have direction: forward" in response.text
    assert judge.post("/evaluate", body | {"direction": "forward"}).json()["correctness"] is True
