"""Where in the candidate's text a compile error is."""

import textwrap
from typing import Any

from online_judge.verdict.compile_report import compile_report

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


def failure(message: str, status: str = "compile") -> dict[str, Any]:
    return {"message": message, "status": status, "frames": [[14, "first[(1,)](second)"]]}


def test_the_excerpt_tells_kernel_and_line() -> None:
    report = compile_report(failure("at 4:8:\n    x = 1\n    y = x @ 2\n        ^\nno"), SOURCE, "/x")
    assert (report.kernel, report.line) == ("second", 12)
    assert report.message.endswith("no")


def test_an_excerpt_that_is_not_in_the_source_leaves_the_line_that_led_there() -> None:
    for message in ("at 4:8:\n    z = 9\n        ^\nno", "at 900:8:\n    y = x @ 2\n    ^\nno", "no place"):
        report = compile_report(failure(message), SOURCE, "/x")
        assert (report.kernel, report.line) == (None, 14)


def test_only_compile_errors_have_such_places() -> None:
    report = compile_report(failure("at 4:8:\n    y = x @ 2\n        ^\nno", "launch"), SOURCE, "/x")
    assert (report.kernel, report.line) == (None, 14)
