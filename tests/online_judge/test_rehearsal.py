from adaexplore.core.verdict import Status
from online_judge.evaluator import rehearsal


def test_rehearsal_goes_to_the_end_and_grades_precision() -> None:
    verdict = rehearsal.rehearse(cuda=False)
    assert verdict.status is Status.PASSED
    assert verdict.metadata["precision"]["limits"].keys() == {"strict", "tf32"}
    assert "integrity" not in verdict.metadata
