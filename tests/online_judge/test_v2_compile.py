"""Jobs of kind compile: every launch is compiled, none is executed."""

import time
from typing import Any

import pytest

from .live import LiveJudge, wait_until
from .sources import BAD, PASSING, REFERENCE, with_forward
from .test_v2_jobs import cancel, judged, look, submit

TWO_KERNELS = PASSING.replace(
    "class ModelNew",
    "@triton.jit\ndef helper(x):\n    return tl.exp(x) + tl.nothing(x)\n\n"
    "@triton.jit\ndef second_kernel(y_ptr, BLOCK: tl.constexpr):\n"
    "    y = tl.load(y_ptr + tl.arange(0, BLOCK))\n    tl.store(y_ptr + tl.arange(0, BLOCK), helper(y))\n\n"
    "class ModelNew",
).replace("        return y\n", "        second_kernel[(1,)](y, BLOCK=64)\n        return y\n")


def compiled(judge: LiveJudge, candidate: str, **fields: Any) -> dict[str, Any]:
    answer = judged(judge, candidate, kind="compile", **fields)
    assert (answer["state"], answer["verdict"], answer["error"]) == ("done", None, None), answer
    report: dict[str, Any] = answer["report"]
    assert set(report) == {"ok", "status", "kernel", "line", "message", "error_name"}
    return {key: value for key, value in report.items() if key != "error_name"}


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_candidate_that_compiles_is_ok_whatever_it_computes(judge: LiveJudge) -> None:
    for source in (PASSING, PASSING.replace("tl.maximum(x, 0.0)", "x * 7"), BAD["illegal_access"]):
        report = compiled(judge, source)
        assert report == {"ok": True, "status": "passed", "kernel": None, "line": None, "message": ""}


def test_requested_ptx_is_returned_for_each_kernel(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING, kind="compile", request={"asm": True})
    assert list(answer["report"]["asm"]) == ["relu_kernel"]
    assert ".visible .entry relu_kernel(" in answer["report"]["asm"]["relu_kernel"]
    failed = judged(judge, BAD["compile"], kind="compile", request={"asm": True})["report"]
    assert (failed["ok"], failed.get("asm")) == (False, None)


def test_kernel_is_not_executed(judge: LiveJudge) -> None:
    endless = PASSING.replace(
        "    x = tl.load", "    for _ in range(0, 1 << 30):\n        offsets += 0\n    x = tl.load"
    )
    assert compiled(judge, endless, request={"timeout": 20})["ok"] is True


def test_hidden_workloads_are_not_revealed(judge: LiveJudge) -> None:
    spy = (
        "import sys\nframe = sys._getframe()\nwhile 'request' not in frame.f_locals:\n"
        "    frame = frame.f_back\nraise ValueError(frame.f_locals['request'].hidden_workloads)\n"
    )
    report = compiled(judge, spy, request={"hidden_workloads": "def get_workloads(): ..."})
    assert (report["status"], report["message"]) == ("load", "None")


def test_compile_error_names_kernel_and_source_line(judge: LiveJudge) -> None:
    source = BAD["compile"]
    report = compiled(judge, source)
    assert (report["ok"], report["status"], report["kernel"]) == (False, "compile", "relu_kernel")
    assert report["line"] == line_of(source, "tl.maximun")
    assert "maximun" in report["message"]
    assert "/" not in report["message"].replace("cdiv", "").partition("\n")[0]


def test_error_in_called_helper_names_the_helper(judge: LiveJudge) -> None:
    report = compiled(judge, TWO_KERNELS)
    assert (report["status"], report["kernel"]) == ("compile", "helper")
    assert report["line"] == line_of(TWO_KERNELS, "tl.nothing")


@pytest.mark.parametrize(
    ("name", "status", "line"),
    [
        ("syntax", "syntax", 1),
        ("load", "load", 1),
        ("construct", "construct", None),
        ("launch-assert", "launch", 10),
        ("crash-exit", "crash", None),
        ("crash-signal", "crash", None),
    ],
)
def test_reason_for_unreached_launches_is_reported(
    judge: LiveJudge, name: str, status: str, line: int | None
) -> None:
    report = compiled(judge, BAD[name])
    assert (report["ok"], report["status"], report["kernel"]) == (False, status, None)
    assert report["line"] == line
    assert report["message"]


def test_candidate_that_takes_too_long_is_a_timeout(judge: LiveJudge) -> None:
    report = compiled(judge, with_forward("time.sleep(60)"), request={"timeout": 1})
    assert (report["ok"], report["status"]) == (False, "timeout")
    assert compiled(judge, PASSING)["ok"] is True


def test_failing_reference_fails_the_job(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING, kind="compile", request={"original_model_src": "x = 1"})
    assert answer["state"] == "failed"
    assert answer["error"].startswith("Reference failed: ")


FULL_SIZE = REFERENCE.replace("(8, 16)", "(16384, 8192)").replace("return [16]", "return [8192]")


def test_size_does_not_matter(judge: LiveJudge) -> None:
    begin = time.monotonic()
    assert compiled(judge, PASSING, request={"original_model_src": FULL_SIZE})["ok"] is True
    report = compiled(judge, BAD["compile"], request={"original_model_src": FULL_SIZE})
    assert (report["status"], report["kernel"]) == ("compile", "relu_kernel")
    assert time.monotonic() - begin < 20


def test_kernels_see_the_dtype_of_the_request(judge: LiveJudge) -> None:
    checked = PASSING.replace(
        "    x = tl.load", "    tl.static_assert(x_ptr.dtype.element_ty == tl.float16)\n    x = tl.load"
    )
    assert compiled(judge, checked)["status"] == "compile"
    assert compiled(judge, checked, request={"dtype_str": "fp16"})["ok"] is True


def test_candidate_needing_large_tensor_values_is_not_checked(judge: LiveJudge) -> None:
    needs = PASSING.replace("        return y\n", "        return y if y.sum().item() > 0 else h\n")
    report = compiled(judge, needs, request={"original_model_src": FULL_SIZE})
    assert (report["ok"], report["status"]) == (False, "not_checked")
    assert report["line"] == line_of(needs, ".item()")


def test_reference_that_needs_values_gets_them(judge: LiveJudge) -> None:
    needs = REFERENCE.replace(
        "[torch.randn(8, 16)]", "[torch.randn(100_000, 16)[: int(torch.ones(80_000).sum())]]"
    )
    report = compiled(judge, BAD["compile"], request={"original_model_src": needs})
    assert report["status"] == "compile"
    assert compiled(judge, PASSING, request={"original_model_src": needs})["ok"] is True


def test_reference_that_ends_its_process_fails_the_job(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING, kind="compile", request={"original_model_src": "import os\nos._exit(3)"})
    assert answer["state"] == "failed"
    assert "with exit status 3" in answer["error"]


def test_reference_that_is_killed_fails_the_job(judge: LiveJudge) -> None:
    source = "import os\nos.kill(os.getpid(), 9)"
    answer = judged(judge, PASSING, kind="compile", request={"original_model_src": source})
    assert (answer["state"], answer["report"]) == ("failed", None)


def test_compile_jobs_do_not_wait_for_the_device(judge: LiveJudge) -> None:
    slots = judge.client.get("/queue/status").json()["per_device"]["0"]["max_concurrent"]
    busy = [submit(judge, with_forward(f"time.sleep({60 + each})")).json()["id"] for each in range(slots)]
    wait_until(lambda: all(look(judge, job, wait=0)["state"] == "running" for job in busy))
    before = judge.client.get("/queue/status").json()
    assert compiled(judge, PASSING)["ok"] is True
    assert judge.client.get("/queue/status").json() == before
    assert {cancel(judge, job)["state"] for job in busy} == {"cancelled"}


def test_cancelled_compilation_leaves_nothing(judge: LiveJudge) -> None:
    job = submit(judge, with_forward("time.sleep(60)"), kind="compile").json()["id"]
    wait_until(lambda: look(judge, job, wait=0)["state"] == "running")
    assert cancel(judge, job)["state"] == "cancelled"
    assert compiled(judge, PASSING)["ok"] is True
