from __future__ import annotations

import pytest

from adaexplore.llm.rejection import public_url, read_rejection


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too odd", "type": "x", "param": None, "code": None}},
        {"message": "too odd", "type": "x", "param": None, "code": 400},
        {"type": "error", "error": {"type": "x", "message": "too odd"}},
        {"error": "too odd"},
        {"detail": "too odd"},
        "too odd",
    ],
)
def test_every_dialect_tells_its_message(body: object) -> None:
    assert read_rejection(400, body).message == "too odd"


@pytest.mark.parametrize("body", [None, "", {}, [], {"error": None}, 7])
def test_wordless_answers_are_read(body: object) -> None:
    advice = read_rejection(400, body).advice(where="there", model="m", key_variable="KEY")
    assert advice.startswith("400 from there: the request was refused")


@pytest.mark.parametrize(
    "key", ["sk-proj-abcdefghij", "sk-ant-api03-abc_def-ghi", "sk-*******wxyz", "Bearer abcdefgh.ijkl"]
)
def test_whatever_looks_like_a_key_is_masked(key: str) -> None:
    told = read_rejection(401, {"error": {"message": f"Incorrect key: {key}. Try again."}}).message
    assert key[-4:] not in told
    assert told.startswith("Incorrect key: ***")


def test_words_about_keys_are_shown() -> None:
    said = "Incorrect API key provided: sk-*******wxyz. You can find your API key online."
    told = read_rejection(401, {"error": {"message": said}}).message
    assert told == "Incorrect API key provided: ***. You can find your API key online."


def test_message_is_one_bounded_line() -> None:
    told = read_rejection(400, "a\nb\t c" + "x" * 9999).message
    assert told.startswith("a b cx")
    assert len(told) == 300


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:geheim@host:81/v1/?key=geheim", "https://host:81/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://[::1", "(unreadable)"),
        ("host/v1?key=geheim", "host/v1"),
    ],
)
def test_address_is_shown_without_secrets(url: str, shown: str) -> None:
    assert public_url(url) == shown
