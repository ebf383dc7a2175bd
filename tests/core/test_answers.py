import pytest

from adaexplore.core.text.answers import answer_in


@pytest.mark.parametrize("reasoning", ["<think>a</think>", "a\n</think>\n\n", "<think>a</think>b</think> "])
def test_answer_follows_the_end_of_the_reasoning(reasoning: str) -> None:
    assert answer_in(f"{reasoning}x = 1\n") == "x = 1\n"


@pytest.mark.parametrize("reply", ["", " x = 1\n", "<think> about it"])
def test_reply_without_end_of_reasoning_is_whole(reply: str) -> None:
    assert answer_in(reply) == reply
