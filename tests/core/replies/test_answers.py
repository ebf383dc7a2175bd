import pytest

from adaexplore.core.replies.answers import answer_in

CODE = "```python\nx = 1\n```\n"


@pytest.mark.parametrize(
    "reasoning",
    [
        "<think>a</think>",
        "a\n</think>\n\n",
        "[THINK]a[/THINK]",
        "<thinking>a</think>",
        "<think>a <think>b</think></think>",
    ],
)
def test_answer_follows_the_end_of_the_reasoning(reasoning: str) -> None:
    assert answer_in(f"{reasoning}x = 1\n") == "x = 1\n"


@pytest.mark.parametrize(
    "reply", ["", " x = 1\n", "a `<think>` tag\n", "the assistantfinal word", "x = '</think>'\n"]
)
def test_reply_without_reasoning_is_whole(reply: str) -> None:
    assert answer_in(reply) == reply


def test_text_before_reasoning_stays() -> None:
    assert answer_in(f"{CODE}<think>is it right?</think>It is.") == f"{CODE}It is."


def test_reasoning_without_end_holds_only_a_last_block() -> None:
    assert answer_in(f"<think>a\n{CODE}") == CODE
    assert answer_in(f"<think>a\n{CODE}b") == ""


def test_answer_ends_with_the_turn() -> None:
    assert answer_in(f"{CODE}<|im_end|>\n<|im_start|>user\nThanks") == CODE
    assert answer_in("</s>x = 1\n") == "x = 1\n"


def test_last_final_channel_is_the_answer() -> None:
    final = "<|start|>assistant<|channel|>final<|message|>"
    assert answer_in(f"a<|end|>{final}b<|end|>{final}c<|return|>") == "c"


def test_marks_in_code_are_text() -> None:
    code = '```python\nx = "<think>"  # </think>\n```\n'
    assert answer_in(code) == code
    unfinished = '```python\nx = "</think>"\ny = (  # <think>\n```\n'
    assert answer_in(unfinished) == unfinished


def test_line_ends_and_byte_order_marks_are_plain() -> None:
    assert answer_in("\ufeffa\r\nb\rc") == "a\nb\nc"
