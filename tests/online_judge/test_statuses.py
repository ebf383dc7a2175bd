"""One bad candidate per status, judged by a real judge."""

from collections.abc import Callable

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import from_metrics
from tests.verdicts import metadata_of

from .live import LiveJudge
from .sources import BAD, HONEST, PASSING, with_forward
from .test_v2_jobs import judged


@pytest.mark.parametrize("name", BAD)
def test_bad_candidate_gets_its_status(judge: LiveJudge, name: str) -> None:
    answer = judge.evaluate(BAD[name], num_correct_trials=2)
    status = Status(name.partition("-")[0])
    assert answer["metadata"]["status"] == status, answer["metadata"]
    assert answer["success"] is True
    assert answer["compiled"] is status.module_imported
    assert answer["correctness"] is False
    assert answer["runtime"] == -1.0
    assert answer["runtime_stats"] == {}
    verdict = from_metrics(answer)
    assert verdict.status is status
    assert 0 < len(verdict.feedback.encode()) <= 1500
    assert ("max_difference" in metadata_of(verdict)) is (status is Status.WRONG_VALUE)


@pytest.mark.parametrize("candidate", [PASSING, with_forward(HONEST)], ids=["triton", "torch"])
def test_correct_candidate_passes_without_times(judge: LiveJudge, candidate: str) -> None:
    answer = judge.evaluate(candidate, num_correct_trials=3, measure_performance=True)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]
    assert answer["metadata"]["correctness_trials"] == "(3 / 3)"
    assert answer["metadata"]["hardware"] == "CPU (Triton interpreter, sm_90)"
    assert answer["metadata"]["device"] == "cpu"
    assert (answer["compiled"], answer["correctness"], answer["runtime"]) == (True, True, -1.0)
    assert answer["runtime_stats"] == {"fast_p": 1.0, "timing": "interpreter"}
    assert answer["error"] is None


def test_cuda_backend_is_judged_the_same_way(judge: LiveJudge) -> None:
    assert judge.evaluate(PASSING, backend="cuda")["metadata"]["status"] == "passed"


def test_timeout_is_a_verdict_not_compile_error(judge: LiveJudge) -> None:
    answer = judge.evaluate(with_forward("time.sleep(60)"), timeout=1)
    assert answer["success"] is False  # what v1's clients know time-outs by
    assert answer["compiled"] is True
    assert answer["metadata"]["status"] == "timeout"
    assert answer["metadata"]["stage"] == "forward"
    assert answer["error"] == "Kernel execution timeout: exceeded 1s runtime limit"
    assert answer["metadata"]["error"] == answer["error"]


def test_timeout_while_loading_names_that_stage(judge: LiveJudge) -> None:
    answer = judge.evaluate("while True: pass", timeout=1)
    assert (answer["metadata"]["status"], answer["metadata"]["stage"]) == ("timeout", "load")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["candidate", "compile"])
def test_an_endless_loop_while_loading_is_named(judge: LiveJudge, kind: str) -> None:
    answer = judged(judge, "import time\nwhile True:\n    pass", kind=kind)
    found = answer["report"] if kind == "compile" else answer["verdict"]["metadata"]
    assert found["status"] == "load"
    text = found["message"] if kind == "compile" else found["feedback"]
    assert "10 s of CPU time; is there an endless loop" in text
    assert "while True" in text or found["line"] in (2, 3)


def test_timeout_is_at_most_the_judges(own_judge: Callable[..., LiveJudge]) -> None:
    judge = own_judge(RUNTIME_TIMEOUT="2")
    for asked in ({}, {"timeout": 60}):
        answer = judge.evaluate(with_forward("time.sleep(60)"), **asked)
        assert answer["error"] == "Kernel execution timeout: exceeded 2s runtime limit"


def test_compile_feedback_shows_line_and_caret(judge: LiveJudge) -> None:
    metadata = judge.evaluate(BAD["compile"])["metadata"]
    assert "tl.maximun(x, 0.0)" in metadata["feedback"]
    assert "^" in metadata["feedback"]
    assert "CompilationError" in metadata["runtime_error_name"]


def test_triton_library_error_points_to_kernel_line(judge: LiveJudge) -> None:
    feedback = judge.evaluate(PASSING.replace("tl.maximum(x, 0.0)", "tl.sum(x, 3)"))["metadata"]["feedback"]
    assert "tl.sum(x, 3), mask=mask)\n" in feedback
    assert "^\ninvalid axis 3" in feedback
    assert "def sum(" not in feedback


def test_wrapped_compile_error_is_still_one(judge: LiveJudge) -> None:
    metadata = judge.evaluate(BAD["compile-wrapped"])["metadata"]
    assert "CompilationError" in metadata["runtime_error_name"]


def test_wrong_values_name_indices_got_and_want(judge: LiveJudge) -> None:
    metadata = judge.evaluate(BAD["wrong_value"], num_correct_trials=4)["metadata"]
    assert metadata["correctness_issue"] == "Output mismatch"
    assert metadata["correctness_trials"] == "(0 / 4)"
    assert float(metadata["max_difference"][0]) > float(metadata["avg_difference"][0]) > 0
    assert metadata["feedback"].count(" got ") == 5
    assert "want 0\n" in metadata["feedback"]


def test_wrong_shape_says_both_shapes(judge: LiveJudge) -> None:
    metadata = judge.evaluate(BAD["wrong_shape"])["metadata"]
    assert metadata["correctness_issue"] == "Output shape mismatch: expected [8, 16], got [16, 8]"


def test_feedback_has_only_the_candidates_own_frames(judge: LiveJudge) -> None:
    metadata = judge.evaluate(with_forward("return torch.relu(self.linear(x.T))"))["metadata"]
    assert metadata["status"] == "launch"
    assert "return torch.relu(self.linear(x.T))" in metadata["feedback"]
    assert "site-packages" not in metadata["feedback"]
    assert "/" not in metadata["feedback"].partition("Next:")[0]


def test_cuda_extension_without_compiler_is_a_typed_outcome(judge: LiveJudge) -> None:
    source = (
        "from torch.utils.cpp_extension import load_inline\n"
        "m = load_inline('m', cpp_sources='', cuda_sources='__global__ void k(){}', functions=[])\n"
        "class ModelNew: pass\n"
    )
    metadata = judge.evaluate(source)["metadata"]
    assert metadata["status"] in ("load", "not_checked")


def test_tolerance_is_the_requests(judge: LiveJudge) -> None:
    close = with_forward("return torch.relu(self.linear(x)) + 1e-3")
    assert judge.evaluate(close)["correctness"] is True
    assert judge.evaluate(close, tolerance=1e-4)["metadata"]["status"] == "wrong_value"
