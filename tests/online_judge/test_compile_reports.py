"""Where in the candidate's text a compile error is."""

import textwrap

from adaexplore.core.judging.status import Stage, Status
from online_judge.checks.facts.findings import Failure, Frame
from online_judge.verdict.reports import compilation_timed_out, compiled, compiler_gone

SOURCE = textwrap.dedent(
    """\
    import triton

    @triton.jit
    def first(x_ptr):
        x = 1
        y = x + 2

    @triton.jit
    def second(x_ptr,
               y_ptr):
        x = 1
        y = x @ 2

    first[(1,)](second)
    """
)


def failure(message: str, status: Status = Status.COMPILE) -> Failure:
    frames = (Frame(14, "<module>", "first[(1,)](second)"),)
    return Failure(status, Stage.FORWARD, "t.CompilationError", message, frames)


def test_the_excerpt_tells_kernel_and_line() -> None:
    report = compiled(failure("at 4:8:\n    x = 1\n    y = x @ 2\n        ^\nno"), SOURCE, "/x")
    assert (report.kernel, report.line) == ("second", 12)
    assert report.message.endswith("no")


def test_unknown_excerpt_falls_back_to_the_calling_line() -> None:
    for message in ("at 4:8:\n    z = 9\n        ^\nno", "at 900:8:\n    y = x @ 2\n    ^\nno", "no place"):
        report = compiled(failure(message), SOURCE, "/x")
        assert (report.kernel, report.line) == (None, 14)


def test_only_compile_errors_have_such_places() -> None:
    report = compiled(failure("at 4:8:\n    y = x @ 2\n        ^\nno", Status.LAUNCH), SOURCE, "/x")
    assert (report.kernel, report.line) == (None, 14)


def test_compilation_without_an_end_says_why() -> None:
    late = compilation_timed_out(9, Stage.FORWARD)
    assert (late.ok, late.status, late.message) == (False, "timeout", "not done after 9 s during forward")
    for out_of_memory, status in ((False, "crash"), (True, "out_of_memory")):
        gone = compiler_gone("from signal 9", Stage.LOAD, out_of_memory=out_of_memory)
        assert (gone.status, gone.message) == (status, "the process ended from signal 9 during load")
