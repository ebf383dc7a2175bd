"""Tunables and profiles on a judge without a GPU: nothing is measured, and nothing is claimed."""

from typing import Any

import pytest

from adaexplore.core.wire import EvaluationRequest, JobRequest
from online_judge.queue.cache import Question

from .live import LiveJudge
from .sources import PASSING, with_forward
from .test_v2_jobs import judged, submit

TUNABLE = PASSING.replace("class ModelNew", "SIZE = 16\nTUNABLES = {'SIZE': [8, 16]}\n\nclass ModelNew")
MALFORMED = TUNABLE.replace("[8, 16]", "range(8)")
TUNED: dict[str, Any] = {"measure_performance": True, "tune_s": 5.0}


def test_declared_values_are_judged_and_named(judge: LiveJudge) -> None:
    metadata = judged(judge, TUNABLE, request=TUNED)["verdict"]["metadata"]
    assert metadata["status"] == "passed"
    assert metadata["tuned"] == {"values": {"SIZE": 16}, "timing": "interpreter"}


def test_nobody_tunes_unasked(judge: LiveJudge) -> None:
    assert "tuned" not in judge.evaluate(TUNABLE, measure_performance=True)["metadata"]
    assert judge.evaluate(TUNABLE, **TUNED)["metadata"]["tuned"]["values"] == {"SIZE": 16}


def test_unusable_tunables_are_noted_without_failing(judge: LiveJudge) -> None:
    metadata = judged(judge, MALFORMED, request=TUNED)["verdict"]["metadata"]
    line = MALFORMED[: MALFORMED.index("TUNABLES")].count("\n") + 1
    assert metadata["status"] == "passed"
    assert metadata["feedback"] == (
        f'TUNABLES was not used: line {line}: TUNABLES must be a literal like {{"BLOCK_M": [32, 64], '
        '"NUM_WARPS": [4, 8]}'
    )


def test_failure_feedback_keeps_its_space(judge: LiveJudge) -> None:
    broken = MALFORMED + with_forward("raise ValueError('x' * 3000)")
    feedback = judged(judge, broken, request=TUNED)["verdict"]["metadata"]["feedback"]
    assert feedback.startswith("TUNABLES was not used: line ")
    assert "ValueError" in feedback
    assert len(feedback.encode()) <= 1500


def test_tuning_budget_distinguishes_only_tunable_candidates() -> None:
    def question(source: str, tune_s: float) -> Question:
        return Question.of(EvaluationRequest(custom_model_src=source, tune_s=tune_s), None, [])

    assert question(TUNABLE, 5.0) != question(TUNABLE, 0.0)
    assert question(TUNABLE, 5.0) != question(TUNABLE, 9.0)
    assert question(PASSING, 5.0) == question(PASSING, 0.0)


def test_profile_is_no_verdict() -> None:
    request = EvaluationRequest(custom_model_src=PASSING)
    verdict, profile = Question.of(request, None, []), Question.of(request, None, [], "profile")
    assert verdict.exact != profile.exact


def test_profile_without_a_gpu_says_what_it_needs(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING, kind="profile")
    assert (answer["state"], answer["verdict"], answer["cached"]) == ("done", None, False)
    assert answer["report"] == {
        "status": "not_checked",
        "profile": None,
        "message": "profiles need a judge with a GPU",
    }


@pytest.mark.parametrize("tune_s", [-1, 601, "long", None])
def test_impossible_budget_is_refused(judge: LiveJudge, tune_s: object) -> None:
    assert submit(judge, TUNABLE, request={"tune_s": tune_s}).status_code == 422


def test_tuned_job_survives_the_journal() -> None:
    body = JobRequest(request=EvaluationRequest(custom_model_src=TUNABLE, tune_s=5.0), kind="profile")
    assert JobRequest.model_validate_json(body.model_dump_json()) == body


def test_verdict_with_samples_answers_no_request_without() -> None:
    plain, sampled = (Question.of(EvaluationRequest(samples=wanted), None, []) for wanted in (False, True))
    assert plain.exact != sampled.exact
