from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.judging.flags import Flag
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, Tf32Policy, Tier
from online_judge.checks.facts.findings import Difference, Failure, Frame, Mismatch
from online_judge.checks.facts.precision import Error, Graded, Limit
from online_judge.common import texts
from online_judge.verdict import assemble, feedback
from tests.verdicts import metadata_of


@given(st.text(max_size=20000), st.lists(st.text(max_size=400), max_size=8), st.sampled_from(list(Status)))
def test_feedback_is_bounded_whatever_the_candidate_says(
    message: str, code: list[str], status: Status
) -> None:
    frames = tuple(Frame(number, "forward", line) for number, line in enumerate(code))
    verdict = feedback.of_failure(Failure(status, Stage.FORWARD, "x.Error", message, frames), "/judge/job-1")
    assert len(verdict.feedback.encode()) <= feedback.MAX_BYTES
    assert sum(len(str(value).encode()) for value in metadata_of(verdict).values()) < 2600


def test_long_triton_message_keeps_its_caret_and_reason() -> None:
    message = "at 99:4:\n" + "    x = tl.load(pointer)\n" * 200 + "    ^\nno such thing"
    verdict = feedback.of_failure(Failure(Status.COMPILE, Stage.FORWARD, "t.CompilationError", message), "/j")
    assert "    ^\nno such thing" in verdict.feedback


def test_equal_status_and_stage_are_stated_once() -> None:
    failure = Failure(Status.CONSTRUCT, Stage.CONSTRUCT, "builtins.TypeError", "no such argument")
    assert feedback.of_failure(failure, "/j").feedback.startswith("construct: TypeError\n")
    failure = Failure(Status.COMPILE, Stage.FORWARD, "t.CompilationError", "no")
    assert feedback.of_failure(failure, "/j").feedback.startswith("compile during forward: CompilationError")


def test_run_specific_text_is_scrubbed() -> None:
    text = "/tmp/judge-x/job-3/candidate.py at 0x7f00aa11bb22 in pid 4711: /a/lib/site-packages/torch/nn.py"
    assert texts.scrub(text, "/tmp/judge-x/job-3") == "candidate.py at 0x... in pid N: torch/nn.py"


def test_the_judges_own_folder_is_scrubbed() -> None:
    assert (
        texts.scrub("no '/tmp/judge-x' nor '/tmp/judge-x/job-3'", "/tmp/judge-x/job-3") == "no '..' nor '.'"
    )


def test_only_temporary_file_names_are_scrubbed() -> None:
    text = "ptxas /tmp/judge-x/job-3/tmp/tmp0a_xy9z1.ptx, line 5: tmp_pointer, tmp0a_xy9z1 / tmp_pointer"
    expected = "ptxas tmp/tmp....ptx, line 5: tmp_pointer, tmp0a_xy9z1 / tmp_pointer"
    assert texts.scrub(text, "/tmp/judge-x/job-3") == expected


def test_gpu_verdict_notes_the_released_precision() -> None:
    for tf32, cuda, notes in (("paper", True, ("tf32_asymmetric",)), ("off", True, ()), ("paper", False, ())):
        request = EvaluationRequest(tf32=tf32)
        found = assemble.evaluator_died_twice(request, assemble.Target("H", "d", cuda), Stage.LOAD)
        assert found.notes == notes


def test_small_hexadecimal_numbers_stay() -> None:
    assert texts.scrub("mask 0xff", "/j") == "mask 0xff"


def test_difference_feedback_has_share_indices_and_next_step() -> None:
    found = Difference((Mismatch((0, 31), "1.5", "2.5"),), 16, 0, 64, 1.0, 0.25)
    verdict = feedback.of_difference(found, "output 1")
    assert verdict.failure.max_difference == ("1.000000",)
    assert verdict.failure.avg_difference == ("0.250000",)
    assert "16 of 64 elements of output 1 (25 %)" in verdict.feedback
    assert "[0, 31] got 1.5, want 2.5" in verdict.feedback
    assert "Next: " in verdict.feedback


def test_candidate_claims_cannot_pass_or_break_the_format() -> None:
    for claim in (
        None,
        3,
        {"status": "passed"},
        {"status": ["x"], "frames": [[1], "x", [1, 2, 3]], "message": {}},
    ):
        failure = Failure.from_claim(Stage.CONSTRUCT, claim)
        assert failure.status is Status.CONSTRUCT
        assert all(isinstance(frame.code, str) for frame in failure.frames)


def test_status_must_suit_the_stage() -> None:
    assert Failure.from_claim(Stage.LOAD, {"status": "illegal_access"}).status is Status.LOAD
    assert Failure.from_claim(Stage.FORWARD, {"status": "illegal_access"}).status is Status.ILLEGAL_ACCESS


def test_long_stack_frames_leave_space_for_the_reason() -> None:
    frames = tuple(Frame(number, "forward", "f(" + "x, " * 90) for number in range(8))
    message = "at 9:4:\n" + "    x = tl.load(pointer)\n" * 200 + "    ^\nno such thing"
    for name in ("t.CompilationError", "t." + "E" * 200):
        failure = Failure(Status.COMPILE, Stage.FORWARD, name, message, frames)
        verdict = feedback.of_failure(failure, "/j")
        assert "    x = tl.load(pointer)\n    ^\nno such thing\nNext: " in verdict.feedback
        assert verdict.feedback.count("  line ") == 4


def graded(tier: Tier) -> Graded:
    """Return an output of that tier, with limits from emulation."""
    errors = {"strict": 1e-7, "tf32": 7e-4, "half": 3e-3, "legacy": 0.1}
    rms = errors[tier]
    known = {"strict": Limit(1e-6, 1e-5), "tf32": Limit(1e-3, 1e-2), "half": Limit(4e-3, 4e-2)}
    return Graded(tier, Error(rms, 10 * rms, rms, 0.0), known, emulated=True)


TIERS: tuple[Tier, ...] = get_args(Tier)
SHORTFALLS = [(a, b) for a in TIERS for b in TIERS if TIERS.index(a) > TIERS.index(b)]


@pytest.mark.parametrize("tf32", get_args(Tf32Policy))
@pytest.mark.parametrize(("got", "needed"), SHORTFALLS)
def test_precision_names_error_limit_and_cause(got: Tier, needed: Tier, tf32: Tf32Policy) -> None:
    grade = graded(got)
    verdict = feedback.of_tier(grade, needed, tf32)
    text = verdict.feedback
    assert verdict.failure.correctness_issue == f"Precision {got}, needed {needed}"
    assert text.startswith(f"wrong_value: the outputs are less precise than tier {needed}: ")
    assert f"error {grade.error.rms:.2g} (rms)" in text
    assert f"the limit is {grade.limits[needed].rms:.2g} (rms)" in text
    assert text.count("\nlikely cause: ") == text.count("\nNext: ") == 1
    assert ("ieee" in text) == (needed == "strict")
    assert ("TF32 is precise enough" in text) == (needed != "strict" and tf32 != "off")


def test_few_wrong_elements_are_no_lower_precision() -> None:
    limits = {"strict": Limit(1e-6, 1e-5), "tf32": Limit(1e-3, 1e-2), "half": Limit(4e-3, 4e-2)}
    grade = Graded("legacy", Error(1e-4, 0.5, 1e-4, 0.0), limits, emulated=False)
    text = feedback.of_tier(grade, "tf32", "on").feedback
    assert "likely cause: few elements are far off" in text
    assert "times the error of the reference" not in text


def of_status(status: Status) -> Verdict:
    """Return a verdict of a status as the judge words it, whatever the request."""
    if status in (Status.WRONG_VALUE, Status.NONFINITE):
        nonfinite = int(status is Status.NONFINITE)
        return feedback.of_difference(Difference((), 1, nonfinite, 8, 1.0, 0.125), "the output")
    if status in (Status.WRONG_SHAPE, Status.WRONG_DTYPE):
        return feedback.of_issue(status, "Output shape mismatch")
    if status is Status.NONDETERMINISTIC:
        return feedback.of_unequal_calls(Error(0.1, 1.0, 0.1, 0.0), Limit(1e-3, 1e-2))
    if status is Status.INTEGRITY:
        return feedback.of_integrity([Flag("clock_mismatch", "reject", "x")])
    if status is Status.TIMEOUT:
        return feedback.of_timeout(10, Stage.FORWARD)
    if status is Status.CRASH:
        return feedback.of_crash("from signal 11", Stage.FORWARD)
    return feedback.of_failure(Failure(status, Stage.FORWARD, "builtins.ValueError", "text"), "/job")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("tf32", get_args(Tf32Policy))
@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_hints_fit_the_request(status: Status, tf32: Tf32Policy, tier: Tier) -> None:
    texts = [of_status(status).feedback]
    if status is Status.WRONG_VALUE and tier != "legacy":
        texts.append(feedback.of_tier(graded("legacy"), tier, tf32).feedback)
        texts.append(feedback.of_far_off(1.2).feedback)
    for text in texts:
        assert text.startswith(status.value) or status is Status.CRASH
        assert len(text.rpartition("\nNext: ")[2]) > 20
        assert len(text.encode()) <= feedback.MAX_BYTES
        assert "ieee" not in text or tier == "strict"
        assert "TF32" not in text or tf32 != "off" or tier != "strict"


def test_nondeterminism_feedback_describes_the_wrong_result() -> None:
    found = Difference((Mismatch((3,), "1", "2"),), 1, 0, 8, 1.0, 0.125)
    wrong = feedback.of_difference(found, "the output")
    verdict = feedback.of_repeat(wrong)
    assert verdict.feedback.startswith("nondeterministic: A second call")
    assert "[3] got 1, want 2" in verdict.feedback
    assert verdict.feedback.count("\nNext: ") == 1
    assert verdict.failure.max_difference == wrong.failure.max_difference


def test_rejection_names_every_reason_within_its_bounds() -> None:
    rejects = [Flag("clock_mismatch", "reject", "x" * 1200), Flag("side_stream", "reject", "y" * 1200)]
    verdict = feedback.of_integrity(rejects)
    assert verdict.failure.correctness_issue == "clock_mismatch, side_stream"
    assert "integrity: clock_mismatch: xxx" in verdict.feedback
    assert len(verdict.feedback.encode()) <= feedback.MAX_BYTES
