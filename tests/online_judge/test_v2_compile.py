"""Jobs of kind compile: every launch is compiled, none is executed."""

from typing import Any

import pytest

from .live import LiveJudge
from .sources import BAD, PASSING, with_forward
from .test_v2_jobs import judged

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
    assert set(report) == {"ok", "status", "kernel", "line", "message"}
    return report


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_candidate_that_compiles_is_ok_whatever_it_computes(judge: LiveJudge) -> None:
    for source in (PASSING, PASSING.replace("tl.maximum(x, 0.0)", "x * 7"), BAD["illegal_access"]):
        report = compiled(judge, source)
        assert report == {"ok": True, "status": "passed", "kernel": None, "line": None, "message": ""}


def test_kernel_is_not_executed(judge: LiveJudge) -> None:
    endless = PASSING.replace(
        "    x = tl.load", "    for _ in range(0, 1 << 30):\n        offsets += 0\n    x = tl.load"
    )
    assert compiled(judge, endless, request={"timeout": 20})["ok"] is True


def test_compile_error_names_kernel_and_line_of_the_source(judge: LiveJudge) -> None:
    source = BAD["compile"]
    report = compiled(judge, source)
    assert (report["ok"], report["status"], report["kernel"]) == (False, "compile", "relu_kernel")
    assert report["line"] == line_of(source, "tl.maximun")
    assert "maximun" in report["message"]
    assert "/" not in report["message"].replace("cdiv", "").partition("\n")[0]


def test_error_in_a_function_that_a_later_kernel_calls_is_found_there(judge: LiveJudge) -> None:
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
    ],
)
def test_what_keeps_launches_from_being_reached_is_told(
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
