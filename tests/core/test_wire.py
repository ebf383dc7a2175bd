from __future__ import annotations

import json
import math

import pytest
from pydantic import ValidationError

from adaexplore.core.wire import EvaluationRequest, JobRequest


def test_absent_best_so_far_is_not_sent() -> None:
    request = EvaluationRequest(custom_model_src="x = 1")
    assert "best_so_far" not in request.model_dump()
    assert "best_so_far" not in JobRequest(request=request).model_dump(mode="json")["request"]
    assert request.model_dump(include={"custom_model_src"}) == {"custom_model_src": "x = 1"}
    assert EvaluationRequest.model_validate(request.model_dump()) == request


def test_best_so_far_arrives_as_it_was_sent() -> None:
    request = EvaluationRequest(best_so_far=1.75)
    assert EvaluationRequest.model_validate_json(request.model_dump_json()).best_so_far == 1.75
    assert EvaluationRequest.model_validate({"best_so_far": None}).best_so_far is None


@pytest.mark.parametrize("value", [0, -1.5, True, "2", math.inf, math.nan])
def test_best_so_far_must_be_finite_and_positive(value: object) -> None:
    with pytest.raises(ValidationError):
        EvaluationRequest.model_validate({"best_so_far": value})
    with pytest.raises(ValidationError):
        EvaluationRequest.model_validate_json(json.dumps({"best_so_far": value}))


def test_gpu_may_be_name_list_or_absent() -> None:
    assert "gpu" not in EvaluationRequest().model_dump()
    assert EvaluationRequest(gpu="H100").gpus == ("H100",)
    sent = EvaluationRequest(gpu=["H100", "H200"]).model_dump_json()
    assert EvaluationRequest.model_validate_json(sent).gpus == ("H100", "H200")
    for wrong in ("", "-", [], [""], ["H100"] * 65, 7):
        with pytest.raises(ValidationError):
            EvaluationRequest.model_validate({"gpu": wrong})
