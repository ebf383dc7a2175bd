"""Failures that are tried again alone on the device."""

import pytest

from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from online_judge.checks.facts.findings import Failure
from online_judge.common import memory_errors
from online_judge.verdict import feedback


def verdict(status: Status, message: str) -> Verdict:
    failure = Failure(status, Stage.FORWARD, "builtins.RuntimeError", message)
    return feedback.of_failure(failure, "/folder")


@pytest.mark.parametrize(
    ("status", "message", "explained"),
    [
        (Status.OUT_OF_MEMORY, "CUDA out of memory", True),
        (Status.LAUNCH, "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", True),
        (Status.LAUNCH, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", True),
        (Status.CONSTRUCT, "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", True),
        (Status.LAUNCH, "cuDNN error: CUDNN_STATUS_BAD_PARAM", False),
        (Status.WRONG_VALUE, "CUDNN_STATUS_INTERNAL_ERROR", False),
    ],
)
def test_memory_may_be_the_cause(status: Status, message: str, explained: bool) -> None:
    assert memory_errors.explains(verdict(status, message)) is explained
