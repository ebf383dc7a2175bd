import pytest

from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.policy import paper_reward


@pytest.mark.parametrize(
    ("speedup", "reward"),
    [(0.5, 0.448485), (1.0, 0.509091), (1.2, 0.533333), (2.0, 0.630303), (5.0, 0.993939), (10.0, 1.6)],
)
def test_correct_candidates_earn_the_papers_values(speedup, reward):
    assert paper_reward(Score(True, True, speedup)) == pytest.approx(reward, abs=1e-6)


def test_speedups_are_clipped_at_tenth_and_ten():
    assert paper_reward(Score(True, True, 0.0)) == paper_reward(Score(True, True, 0.1)) == 0.4
    assert paper_reward(Score(True, True, 1e9)) == paper_reward(Score(True, True, 10.0)) == 1.6


def test_reward_of_wrong_and_unimportable_candidates():
    assert paper_reward(Score(True, False, 0.0)) == 0.05
    assert paper_reward(NO_SCORE) == 0.0


def test_recorded_reward_is_reproduced_exactly():
    assert paper_reward(Score(True, True, 1.0557880055788007)) == 0.5158530915853092
