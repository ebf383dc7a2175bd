from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from skill_memory.failures.construct import construct_of, offending_line
from skill_memory.failures.signature import Signature, normalise, signature_of
from tests.verdicts import changed, make_verdict

COMPILE = """Traceback (most recent call last):
  File "/tmp/candidate_{n}.py", line {n}, in forward
triton.compiler.errors.CompilationError: at {n}:8:
    offs = tl.arange(0, BLOCK)
    x = tl.load(p + offs, dtype=tl.float16)
        ^
TypeError("load() got an unexpected keyword argument 'dtype'")"""


def verdict(text: str, status: Status = Status.LAUNCH, name: str = "") -> Verdict:
    metadata = {"runtime_error": text, "runtime_error_name": name}
    return make_verdict(status=status, metadata=metadata)


def key(text: str, status: Status = Status.LAUNCH, name: str = "") -> str | None:
    signature = signature_of(verdict(text, status, name))
    return signature and signature.key


def test_same_mistake_elsewhere_has_the_same_signature() -> None:
    first, second = (key(COMPILE.format(n=n), Status.COMPILE) for n in (12, 331))
    assert first == second == "compile | TypeError | load() got an unexpected keyword argument 'dtype' | "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "ValueError: Conflicting meta-parameters: BLOCK.",
            "ValueError: Conflicting meta-parameters: A, BM.",
        ),
        ("NameError('mask_rows is not defined')", "NameError('a_tile is not defined')"),
        ("NameError: name 'foo' is not defined", "NameError: name 'bar_2' is not defined"),
        ("RuntimeError: shape [2, 4] does not fit", "RuntimeError: shape [16, 4096, 3] does not fit"),
        ("RuntimeError: cannot open /a/b.so", "RuntimeError: cannot open /x/y/z.so"),
        ("RuntimeError: bad thing at line 4", "RuntimeError: bad thing at line 77"),
        ("RuntimeError: bad pointer 0x7f00aa", "RuntimeError: bad pointer 0x11"),
        (
            "AssertionError('mismatched type for b between then block (<[64, 32], fp32>)')",
            "AssertionError('mismatched type for mask between then block (<[128, 16], fp16>)')",
        ),
    ],
)
def test_particulars_do_not_matter(one: str, other: str) -> None:
    assert key(one) is not None
    assert key(one) == key(other)


def test_suggestions_of_python_are_left_out() -> None:
    text = "tensor() got an unexpected keyword argument 'dtype'"
    assert normalise(f"{text}. Did you mean 'type'?") == normalise(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "AttributeError: module 'triton.language' has no attribute 'tanh'",
            "AttributeError: module 'triton.language' has no attribute 'constant'",
        ),
        ("ValueError: x", "TypeError: x"),
        (
            "ValueError('unsupported tensor index: int32[]')",
            "ValueError('unsupported tensor index: constexpr[0]')",
        ),
        (
            "AttributeError(\"'tensor' object has no attribute 'at'\")",
            "AttributeError(\"'dtype' object has no attribute 'at'\")",
        ),
    ],
)
def test_different_mistakes_stay_apart(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_the_stage_is_part_of_the_signature() -> None:
    assert key("ValueError: x", Status.LOAD) != key("ValueError: x", Status.LAUNCH)


def test_the_inner_exception_is_the_one_that_counts() -> None:
    text = "triton.compiler.errors.CompilationError: TypeError(\"'dtype' object is not callable\")"
    assert key(text, Status.COMPILE) == "compile | TypeError | 'dtype' object is not callable | "


def test_error_under_a_caret_is_identified_by_construct() -> None:
    text = (
        "triton.compiler.errors.CompilationError: at 3:4:\n    x = tl.load(q, other=tl.float32)\n        ^\n"
    )
    assert key(text, Status.COMPILE, "triton.compiler.errors.CompilationError") == (
        "compile | CompilationError | in tl.load tl.fp# | "
    )
    assert offending_line(text) == "x = tl.load(q, other=tl.float32)"


def test_the_cause_above_a_final_caret_is_found() -> None:
    text = "ValueError: arange's range must be a power of 2\nCompilationError: at 3:4:\n    f(x)\n    ^"
    assert key(text, Status.COMPILE) == "compile | ValueError | arange's range must be a power of # | "


@pytest.mark.parametrize(
    "status",
    [
        Status.WRONG_VALUE,
        Status.NONFINITE,
        Status.NONDETERMINISTIC,
        Status.TIMEOUT,
        Status.NOT_CHECKED,
        Status.CRASH,
        Status.INTEGRITY,
    ],
)
def test_failures_that_teach_nothing_have_no_signature(status: Status) -> None:
    assert signature_of(make_verdict(status=status, metadata={"runtime_error": "ValueError: x"})) is None


def test_a_timeout_with_a_compile_error_is_material() -> None:
    found = signature_of(make_verdict(status=Status.TIMEOUT, metadata={"compilation_error": "ValueError: x"}))
    assert found is not None


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"error": "Subprocess failed", "returncode": 1, "stdout": "", "stderr": "ValueError: x"},
        {"runtime_error": "OSError: [Errno 28] No space left on device"},
        {"compilation_error": "PermissionError: [Errno 13] Permission denied: '/x'"},
        {"runtime_error": "CompilationError:     ^"},
    ],
)
def test_environment_errors_and_bare_carets_have_no_signature(metadata: dict[str, object]) -> None:
    assert signature_of(make_verdict(status=Status.LOAD, metadata=metadata)) is None


def test_feedback_is_used_without_an_error_name() -> None:
    found = signature_of(
        make_verdict(status=Status.WRONG_SHAPE, metadata={"feedback": "got (4, 8), want (4, 16)"})
    )
    assert found is not None
    assert found.message == "got <shape>, want <shape>"


def test_a_signature_is_bounded() -> None:
    assert len(normalise("x " * 5000)) <= 200


KERNEL = """
import triton.language as tl

class Wrapped:
    def kernel(x_ptr, n, BLOCK: tl.constexpr):
        {line}
"""


@pytest.mark.parametrize(
    ("line", "column", "reason", "construct"),
    [
        ("acc = tl.float32(0.0)", 6, "TypeError(\"'dtype' object is not callable\")", "call tl.<dtype>"),
        ("v = tl.load(x_ptr, dtype=tl.float16)", 4, "load() got an unexpected keyword argument 'dtype'",
         "call tl.load dtype="),
        ("v = tl.tanh(n)", 4, "AttributeError(\"module 'triton.language' has no attribute 'tanh'\")",
         "attribute tl.tanh"),
        ("v = n.astype(tl.float16)", 4, "AttributeError(\"'tensor' object has no attribute 'astype'\")",
         "attribute _.astype"),
        ("v = n[0, :] * 2", 4, "unsupported tensor index: constexpr[0]", "index number"),
        ("v = n[:, n:BLOCK]", 4, "unsupported tensor index: slice", "index slice"),
        ("n[BLOCK] += 1", 0, "must be provided outside of JIT functions.", "assign to index value"),
        ("i = tl.arange(0, n) + 1", 4, "arange's arguments must be of type tl.constexpr", "call tl.arange"),
        ("if x_ptr != 0: pass", 3, "invalid operands of type pointer<fp32>", "compare NotEq"),
        ("break", 0, "unsupported AST node type: Break", "Break"),
    ],
)  # fmt: skip
def test_the_construct_is_at_the_caret(line: str, column: int, reason: str, construct: str) -> None:
    source = KERNEL.format(line=line) if line != "break" else "while 1:\n    break\n"
    head = f"at 2:{column}:\ndef kernel(x_ptr, n, BLOCK: tl.constexpr):"
    text = f"{head}\n    {line}\n    {' ' * column}^\n{reason}"
    assert construct_of(source, text) == construct


def test_construct_of_a_launch_is_found_by_line() -> None:
    source = "def forward(x):\n    other(x)\n    kernel[(1,)](x, BLOCK=x.size(0))\n"
    text = "kernel[(1,)](x, BLOCK=x.size(0))\nConflicting meta-parameters: BLOCK."
    assert construct_of(source, text) == construct_of(source, "another text", line=3) == "launch"
    assert construct_of(source, "no such line") == ""


def test_a_signature_is_read_back_from_its_key() -> None:
    signature = Signature("compile", "ValueError", "a | b", "call tl.load")
    assert Signature.from_key(signature.key) == signature
    assert Signature.from_key("something else") is None


def test_recorded_failures_fall_into_few_kinds() -> None:
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "traces"
    if not folder.is_dir():
        pytest.skip("no recorded trajectories beside the repository")
    kinds, failures = set(), 0
    for path in sorted(folder.glob("*.json")):
        for step in json.loads(path.read_text())["steps"]:
            error = step["error"] or ""
            if not step["code"] or step["score"]["correct"] or ": " not in error:
                continue
            status = Status.COMPILE if "compiler.errors" in error else Status.LAUNCH
            found = key(error, status)
            if found:
                failures += 1
                kinds.add(found)
    assert failures > 200
    assert len(kinds) < failures / 3


def test_failure_on_a_hidden_workload_teaches_no_rule() -> None:
    failed = verdict("TypeError: no", Status.COMPILE)
    hidden = {"worst_workload": {"name": "a hidden workload", "why": "compile"}}
    assert signature_of(failed) is not None
    assert signature_of(changed(failed, hidden)) is None
