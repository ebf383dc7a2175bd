"""Separate the answer in a model's reply from the reasoning before it."""

from __future__ import annotations

_END_OF_REASONING = "</think>"


def answer_in(reply: str) -> str:
    """Return what follows the last ``</think>``; the whole reply if it has none.

    Some servers leave the reasoning in the reply. Its start may lack ``<think>``, because prompts of some
    models end with it.
    """
    _, tag, answer = reply.rpartition(_END_OF_REASONING)
    return answer.lstrip() if tag else reply
