from online_judge.evaluator import rehearsal
from online_judge.protocol.endings import Passed
from online_judge.protocol.precision import least_precise
from online_judge.verdict.observations import flags_of_all


def test_rehearsal_goes_to_the_end_and_grades_precision() -> None:
    result = rehearsal.rehearse(cuda=False)
    assert isinstance(result.ending, Passed)
    assert least_precise(result.grades).limits.keys() == {"strict", "tf32"}
    assert flags_of_all(result.observations, "/job") == []
