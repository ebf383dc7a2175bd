"""The same request to two judges with the same secret."""

from collections.abc import Callable
from pathlib import Path

from .live import LiveJudge
from .sources import BAD, PASSING, with_forward

NAMES = [
    "wrong_value",
    "compile",
    "launch",
    "illegal_access",
    "nonfinite",
    "crash-exit",
    "syntax",
    "out_of_memory",
]


PLACES = with_forward(
    "import tempfile\n"
    "raise OSError(f'{os.getcwd()}/x {__file__} {tempfile.mktemp()} {object()} {set(dir(x))}')"
)


def findings(judge: LiveJudge, source: str) -> dict:
    answer = judge.evaluate(source, num_correct_trials=2)
    return {key: value for key, value in answer.items() if key not in ("execution_time", "queue_time")}


def test_judges_with_one_secret_agree_to_the_byte(
    judge: LiveJudge, own_judge: Callable[..., LiveJudge], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    other = own_judge(TMPDIR=str(tmp_path / "linked"), PYTHONHASHSEED="3")
    sources = [PASSING, PLACES, *(BAD[name] for name in NAMES)]
    assert [findings(judge, source) for source in sources] == [findings(other, source) for source in sources]
    assert findings(judge, BAD["wrong_value"]) == findings(judge, BAD["wrong_value"])


def test_inputs_depend_on_the_secret(judge: LiveJudge, own_judge: Callable[..., LiveJudge]) -> None:
    source = BAD["wrong_value"]
    assert findings(own_judge(ADAEXPLORE_JUDGE_SECRET="another"), source) != findings(judge, source)


def test_inputs_depend_on_the_requests_seed(judge: LiveJudge) -> None:
    first, second = (judge.evaluate(BAD["wrong_value"], seed_num=seed) for seed in (1, 2))
    assert first["metadata"]["max_difference"] != second["metadata"]["max_difference"]
