"""Text of a candidate that no JSON answer can carry."""

import pytest

from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from online_judge.checks.facts.findings import Failure
from online_judge.common import printable

from .live import LiveJudge
from .sources import PASSING, REFERENCE, with_forward
from .test_v2_jobs import judged

SURROGATE = "Strange = type('Strange', (Exception,), {'__module__': '\\udc80'})\nraise Strange('\\udc81')"


def test_lone_surrogates_are_replaced_at_every_depth() -> None:
    found = printable.tree({"\udc80": ["a\ud800", {"b": ("é", 1, None)}]})
    assert found == {"?": ["a?", {"b": ("é", 1, None)}]}


def test_verdicts_become_printable_and_keep_their_types() -> None:
    told = FailureText(error="\ud800")
    stated = Verdict(status=Status.CRASH, failure=told, feedback="a\ud800", tuned=None)
    found = printable.tree(stated)
    assert (found.status, found.failure.error, found.feedback) == (Status.CRASH, "?", "a?")
    assert found.model_fields_set == stated.model_fields_set


def test_claimed_failure_has_printable_text() -> None:
    claim = {"name": "m.\udc80", "message": "\udc80", "frames": [[1, "\udc80", "\udc80"]]}
    failure = Failure.from_claim(Stage.FORWARD, claim)
    (frame,) = failure.frames
    assert (failure.name, failure.message, frame.function, frame.code) == ("m.?", "?", "?", "?")


def test_unprintable_exception_is_a_verdict_that_is_kept(judge: LiveJudge) -> None:
    """After a restart of the judge too: see :mod:`.test_v2_journal`."""
    source = with_forward(SURROGATE)
    first, again = judged(judge, source), judged(judge, source)
    assert first["verdict"]["metadata"]["runtime_error_name"] == "?.Strange"
    assert (again["cached"], again["verdict"]) == (True, first["verdict"])
    assert judge.evaluate(source)["metadata"]["status"] == "launch"


@pytest.mark.parametrize(
    ("kind", "reference", "candidate", "state"),
    [
        ("compile", REFERENCE, with_forward(SURROGATE), "done"),
        ("compile", SURROGATE, PASSING, "failed"),
        ("problem", SURROGATE, "", "done"),
        ("candidate", SURROGATE, PASSING, "failed"),
        ("candidate", REFERENCE, with_forward("print('\\udc80')\nraise ValueError('\\udc80')"), "done"),
        ("candidate", REFERENCE, with_forward(SURROGATE, top="TUNABLES = {'\\udc80': ['\\udc80']}"), "done"),
    ],
)
def test_unprintable_text_of_either_side_is_answered(
    judge: LiveJudge, kind: str, reference: str, candidate: str, state: str
) -> None:
    answer = judged(judge, candidate, kind=kind, request={"original_model_src": reference, "tune_s": 1})
    assert answer["state"] == state
    v1 = judge.post("/evaluate", {"original_model_src": reference, "custom_model_src": candidate})
    assert v1.status_code == 200
