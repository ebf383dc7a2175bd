"""Problems in each form of inputs and models on a real GPU: checked, timed, tuned and profiled."""

import pytest

from tests.online_judge.forms import FORMS
from tests.online_judge.live import LiveJudge
from tests.online_judge.test_v2_jobs import judged

from .test_judge_on_gpu import TIMED

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

TUNABLE = "\nBLOCK = 1024\nTUNABLES = {'BLOCK': [512, 1024]}\n"


@pytest.mark.parametrize(("problem", "candidate"), FORMS.values(), ids=FORMS)
def test_right_candidate_is_timed_in_each_form(gpu_judge: LiveJudge, problem: str, candidate: str) -> None:
    answer = gpu_judge.evaluate(candidate, problem, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
    assert answer["runtime_stats"]["fast_p"] > 0


@pytest.mark.parametrize("form", ["inputs by keyword", "function by keyword"])
def test_compiled_baseline_reads_the_same_form(gpu_judge: LiveJudge, form: str) -> None:
    problem, candidate = FORMS[form]
    answer = gpu_judge.evaluate(candidate, problem, baseline="compile", **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
    assert answer["runtime_stats"]["fast_p"] > 0


@pytest.mark.parametrize("form", ["init by keyword", "keyword tensor", "function by keyword"])
def test_sweep_and_profile_read_the_same_form(gpu_judge: LiveJudge, form: str) -> None:
    problem, candidate = FORMS[form]
    tunable = candidate.replace("BLOCK=1024", "BLOCK=BLOCK") + TUNABLE
    answer = gpu_judge.evaluate(tunable, problem, tune_s=20.0, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
    assert answer["metadata"]["tuned"]["tried"] >= 1
    profiled = judged(gpu_judge, candidate, kind="profile", request={"original_model_src": problem})
    assert profiled["report"]["profile"] is not None, profiled


@pytest.mark.parametrize("form", ["keyword tensor", "function by keyword"])
def test_gradients_are_timed_in_each_form(gpu_judge: LiveJudge, form: str) -> None:
    problem, _ = FORMS[form]
    answer = gpu_judge.evaluate(problem + "\nModelNew = Model\n", problem, direction="both", **TIMED)
    assert answer["metadata"]["status"] == "passed", answer
