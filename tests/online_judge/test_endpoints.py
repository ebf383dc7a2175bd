"""The v1 protocol: fields, codes, refusals."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .live import LiveJudge, judge_environment, start_command
from .sources import PASSING, REFERENCE


def test_root_has_the_fields_of_v1(judge: LiveJudge) -> None:
    answer = judge.client.get("/").json()
    assert answer["status"] == "online"
    assert answer["cuda_available"] is False
    assert (answer["device_count"], answer["available_gpus"]) == (0, [])
    assert answer["gpu_allocation_mode"] == "auto"
    assert set(answer) == {
        "status",
        "service",
        "cuda_available",
        "device_count",
        "available_gpus",
        "gpu_allocation_mode",
        "queue_status",
    }


def test_health_names_the_hardware(judge: LiveJudge) -> None:
    answer = judge.client.get("/health").json()
    assert answer["status"] == "healthy"
    assert answer["cuda_available"] is False
    assert answer["judge_device"] == "cpu"
    assert answer["hardware"] == "CPU (Triton interpreter, sm_90)"
    assert answer["compile_target"] == "sm_90"
    assert set(answer["versions"]) == {"torch", "triton", "python"}
    assert all(answer["versions"].values())


def test_queue_status_has_string_keys_per_device(judge: LiveJudge) -> None:
    answer = judge.client.get("/queue/status").json()
    assert answer == {
        "total_queued": 0,
        "total_processing": 0,
        "per_device": {"0": {"queued": 0, "processing": 0, "max_concurrent": 2}},
        "max_concurrent": 2,
        "max_queue_size": 100,
    }


def test_body_of_the_released_client_is_accepted(judge: LiveJudge) -> None:
    body = {
        "original_model_src": REFERENCE,
        "custom_model_src": PASSING,
        "seed_num": 42,
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "verbose": False,
        "measure_performance": True,
        "build_dir": None,
        "device": 3,
        "backend": "triton",
        "dtype_str": "fp32",
        "gpu_name": "A6000",
        "level": "2",
        "problem_id": "63",
        "timeout": 1800,
    }
    answer = judge.post("/evaluate", body).json()
    assert list(answer) == [
        "success",
        "compiled",
        "correctness",
        "runtime",
        "runtime_stats",
        "metadata",
        "execution_time",
        "queue_time",
        "error",
    ]
    assert answer["correctness"] is True
    assert answer["runtime_stats"]["fast_p"] == 1.0
    assert answer["execution_time"] >= answer["queue_time"] >= 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"timeout": 0}, "body.timeout"),
        ({"timeout": 3601}, "body.timeout"),
        ({"num_correct_trials": 0}, "body.num_correct_trials"),
        ({"dtype_str": "fp8"}, "body.dtype_str"),
        ({"backend": "hip"}, "body.backend"),
        ({"level": 2}, "body.level"),
        ({"original_model_src": None}, "body.original_model_src"),
    ],
)
def test_malformed_request_is_400_in_v1_format(judge: LiveJudge, fields: dict, field: str) -> None:
    response = judge.post("/evaluate", fields)
    assert response.status_code == 400
    answer = response.json()
    assert answer["detail"] == "Request validation failed"
    assert [entry["field"] for entry in answer["errors"]] == [field]
    assert set(answer["errors"][0]) == {"field", "message", "type", "input"}


def test_body_that_is_no_json_is_400(judge: LiveJudge) -> None:
    response = judge.client.post("/evaluate", content=b"{", headers={"content-type": "application/json"})
    assert response.status_code == 400


def test_other_test_sources_are_kernelbench(judge: LiveJudge) -> None:
    assert judge.evaluate(PASSING, test_source="SYN")["correctness"] is True


def test_source_with_invalid_unicode_is_answered(judge: LiveJudge) -> None:
    body = b'{"original_model_src": "x", "custom_model_src": "x = \'\\ud800\'"}'
    response = judge.client.post("/evaluate", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 200


def test_importing_application_starts_nothing_and_loads_no_torch() -> None:
    code = (
        "import sys, os, online_judge\n"
        "from online_judge import app\n"
        "import online_judge.app_with_queue as a\n"
        "assert a.app is app and app is online_judge.app\n"
        "assert not {'torch', 'triton', 'numpy'} & set(sys.modules)\n"
        "assert not open(f'/proc/self/task/{os.getpid()}/children').read()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AVAILABLE_GPUS", "none"),
        ("JUDGE_DEVICE", "tpu"),
        ("MAX_QUEUE_SIZE", "many"),
    ],
)
def test_unusable_setting_stops_the_start(variable: str, value: str) -> None:
    done = subprocess.run(
        start_command(),
        env=judge_environment(**{variable: value}),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode != 0
    assert variable in done.stderr


def test_requesting_missing_cuda_is_503(own_judge: Callable[..., LiveJudge]) -> None:
    if importlib.import_module("torch").cuda.is_available():
        pytest.skip("this machine has CUDA")
    judge = own_judge(JUDGE_DEVICE="cuda")
    response = judge.post("/evaluate", {"original_model_src": REFERENCE, "custom_model_src": PASSING})
    assert response.status_code == 503
    assert judge.client.get("/health").json()["status"] == "healthy"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/evaluate", {"measure_performance": 0}),
        ("/evaluate", {"verbose": "yes"}),
        ("/evaluate", {"seed_num": True}),
        ("/evaluate", {"timeout": "5"}),
        ("/evaluate", {"tolerance": "0.1"}),
        ("/v2/problem", {"original_model_src": "", "thorough": 1}),
        ("/v2/jobs", {"request": {}, "force": 0}),
        ("/v2/jobs", {"request": {}, "priority": False}),
    ],
)
def test_value_of_another_json_type_is_refused(judge: LiveJudge, path: str, fields: dict[str, Any]) -> None:
    response = judge.post(path, fields)
    assert response.status_code == (422 if path == "/v2/jobs" else 400)
    (error,) = response.json()["errors"]
    assert error["field"] == f"body.{list(fields)[-1]}"


def test_whole_number_may_be_written_with_a_point(judge: LiveJudge) -> None:
    assert judge.evaluate(PASSING, num_correct_trials=2.0)["correctness"] is True


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v2/jobs/x", "DELETE, GET"), ("/v2/jobs", "POST"), ("/evaluate", "POST"), ("/health", "GET")],
)
def test_405_names_all_methods_of_the_path(judge: LiveJudge, path: str, allowed: str) -> None:
    response = judge.client.put(path)
    assert (response.status_code, response.headers["Allow"]) == (405, allowed)
    assert response.json() == {"detail": "Method Not Allowed"}


def test_openapi_describes_the_errors_that_are_sent(judge: LiveJudge) -> None:
    document = judge.client.get("/openapi.json").json()
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, code in (("/evaluate", "400"), ("/v2/problem", "400"), ("/v2/jobs", "422")):
        responses = document["paths"][path]["post"]["responses"]
        assert {"400", "422"} & set(responses) >= {code}
        assert "Malformed" in json.dumps(responses[code])
        sent = judge.post(path, {"request": 1, "timeout": 0}).json()
        assert set(sent) == set(document["components"]["schemas"]["Malformed"]["properties"])
        assert set(sent["errors"][0]) == set(document["components"]["schemas"]["FieldError"]["properties"])
    assert "422" not in document["paths"]["/evaluate"]["post"]["responses"]


@pytest.mark.parametrize(("path", "name"), [("/", "Root"), ("/livez", "Alive"), ("/readyz", "Readiness")])
def test_openapi_describes_plain_answers(judge: LiveJudge, path: str, name: str) -> None:
    schemas = judge.client.get("/openapi.json").json()["components"]["schemas"]
    assert set(judge.client.get(path).json()) <= set(schemas[name]["properties"])


@pytest.mark.parametrize(
    ("variable", "value"),
    [("JUDGE_STATE", "/dev/null"), ("AVAILABLE_GPUS", "99"), ("BUILD_DIR", "/dev/null")],
)
def test_start_that_fails_says_why_in_one_line(variable: str, value: str) -> None:
    command = [sys.executable, "-m", "uvicorn", "online_judge:app", "--port", "0"]
    done = subprocess.run(
        command, env=judge_environment(**{variable: value}), capture_output=True, text=True, timeout=90
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if variable in line]) == 1
