"""Each bundled rule, against the installed Triton: the forbidden construct fails, its counterpart works.

Everything is compiled for sm_90 on a machine with or without a GPU; nothing is launched.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton._C.libtriton import ir  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, make_backend  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402
from triton.runtime.jit import MockTensor  # noqa: E402

from skill_memory.distil import SAME_RULE, overlap  # noqa: E402
from skill_memory.store import injected, read_rules  # noqa: E402

TARGET = GPUTarget("cuda", 90, 32)
POINTER = MockTensor(tl.float32)
SHARED_MEMORY_BYTES = 232448  # of one block on sm_90
MEMORY = Path(__file__).parents[2] / "results" / "memory" / "general_memory_v1_200.txt"
JIT_DECORATOR = "@triton.jit"


@dataclass(frozen=True)
class Case:
    """A body with ``{}`` for the construct: ``forbidden`` fails with ``error``, ``works`` compiles."""

    rule: str  # how the rule begins, after "You cannot "
    body: str
    forbidden: tuple[str, ...]
    works: str
    error: str


CASES = [
    Case(
        "call a dtype",
        "tl.store(p, tl.load(p) + {})",
        ("tl.float32(0.0)",),
        "tl.full((), 0.0, tl.float32)",
        "'dtype' object is not callable",
    ),
    Case(
        "index a tensor",
        "i = tl.arange(0, 16)\nx = tl.load(p + i[:, None] * 16 + i[None, :])\ntl.store(p, tl.sum({}))",
        ("x[:, n]", "x[0, :]", "x[:, 0:4]", "tl.zeros((1,), tl.float32)[0]", "x[0]"),
        "x[:, :, None]",
        "unsupported tensor index",
    ),
    Case(
        "index a tensor",
        "acc = tl.zeros((16,), tl.float32)\n{}\ntl.store(p + tl.arange(0, 16), acc)",
        ("acc[0] += 1.0", "acc[n] = 1.0"),
        "acc = tl.where(tl.arange(0, 16) == 0, acc + 1.0, acc)",
        "must be provided outside of JIT|unsupported tensor index|__setitem__ is not supported",
    ),
    Case(
        "create values with",
        "tl.store(p + tl.arange(0, 16), {} + tl.zeros((16,), tl.float32))",
        (
            "tl.constant(1.0, tl.float32)",
            "tl.ones((16,), tl.float32)",
            "tl.full_like(tl.load(p + tl.arange(0, 16)), 1.0)",
            "tl.make_constant(1.0, tl.float32)",
        ),
        "tl.full((16,), 1.0, tl.float32)",
        "has no attribute",
    ),
    Case(
        "define a function inside",
        "{}\ntl.store(p, halved(tl.load(p)))",
        ("def halved(v):\n    return v * 0.5",),
        "",
        "nested function|StopIteration",
    ),
    Case(
        "make a block of more than 1048576",
        "i = tl.arange(0, 1024)\nj = tl.arange(0, {})\ntl.store(p + i[:, None] * 2048 + j[None, :], 0.0)",
        ("2048",),
        "1024",
        "exceeds triton maximum tensor numel",
    ),
    Case(
        "give tl.arange a bound computed",
        "tl.store(p + tl.arange(0, {}), 0.0)",
        ("n", "n * 2"),
        "B * 2",
        "must be of type tl.constexpr",
    ),
    Case(
        "take an element-wise maximum",
        "x = tl.load(p + tl.arange(0, 16))\ntl.store(p + tl.arange(0, 16), {})",
        ("tl.max(x, 0.0)", "tl.max(x, x * 2)", "tl.min(x, 0.0)"),
        "tl.minimum(tl.maximum(x, 0.0), 6.0)",
        "incompatible function arguments|must be provided outside of JIT",
    ),
    Case(
        "pass tensor.data_ptr()",
        "i = tl.arange(0, 16)\ntl.store(p + i, tl.load({} + i))",
        ("address", "n"),
        "p",
        "Unsupported ptr type",
    ),
    Case(
        "pass tensor.data_ptr()",
        "i = tl.arange(0, 16)\ntl.store({} + i, tl.load(p + i))",
        ("address",),
        "p",
        "Unsupported ptr type",
    ),
    Case(
        "make a block dimension that is not a power",
        "tl.store(p + tl.sum({}), 0.0)",
        ("tl.arange(0, 24)", "tl.zeros((24,), tl.int32)", "tl.reshape(tl.arange(0, 32), (24,))"),
        "tl.arange(0, 32)",
        "must be a power of 2",
    ),
    Case(
        "pass dtype= to tl.load",
        "i = tl.arange(0, 16)\ntl.store(p + i, {})",
        ("tl.load(p + i, dtype=tl.float16)", "tl.load(p + tl.arange(0, 16, dtype=tl.int32))"),
        "tl.load(p + i).to(tl.float16)",
        "unexpected keyword argument 'dtype'",
    ),
    Case(
        "use operations that triton.language lacks",
        "x = tl.load(p)\ntl.store(p, {})",
        ("tl.tanh(x)", "tl.log1p(x)", "tl.mod(x, 2.0)", "tl.matmul(x, x)", "tl.eq(x, 0.0)"),
        "libdevice.tanh(x) + libdevice.log1p(x) + (x % 2.0) + (x == 0.0)",
        "has no attribute",
    ),
    Case(
        "use break or continue",
        "for i in range(n):\n    if i == 7:\n        {}\n    tl.store(p + i, 0.0)",
        ("break", "continue"),
        "tl.store(p, 1.0)",
        "unsupported AST node type",
    ),
    Case(
        "apply tl.exp",
        "x = tl.load(p).to({})\ntl.store(p, FUNCTION(x))",
        ("tl.float16", "tl.bfloat16"),
        "tl.float32",
        "Expected dtype",
    ),
    Case(
        "pass other= to tl.store",
        "i = tl.arange(0, 16)\ntl.store(p + i, 0.0, mask=i < n{})",
        (", other=0.0",),
        "",
        "unexpected keyword argument 'other'",
    ),
    Case(
        "keep several tensors in a Python list",
        "{}\ntl.store(p + tl.arange(0, 16), acc)",
        (
            "accs = [tl.zeros((16,), tl.float32) for _ in range(2)]\nacc = accs[0]",
            "acc = tl.zeros((16,), tl.float32)\nacc = acc.at[0].set(1.0)",
        ),
        "acc = tl.zeros((16,), tl.float32)",
        "comprehension|ListComp|has no attribute 'at'",
    ),
    Case(
        "pass other= to tl.load without",
        "i = tl.arange(0, 16)\ntl.store(p + i, tl.load(p + i, {}other=0.0))",
        ("",),
        "mask=i < n, ",
        "cannot be provided without",
    ),
    Case(
        "compare a pointer with 0",
        "x = 1.0\nif {}:\n    x = tl.load(p)\ntl.store(p, x)",
        ("p != 0",),
        "B != 0",
        "invalid operands of type pointer",
    ),
    Case(
        "give one variable different dtypes",
        "x = tl.load(p)\nif n > 0:\n    x = {}\ntl.store(p, x)",
        ("x.to(tl.float16)", "tl.zeros((16,), tl.float32)"),
        "x * 2",
        "[Mm]ismatched type|initial value for .* is of type",
    ),
    Case(
        "give one variable different dtypes",
        "x = tl.load(p)\nfor i in range(n):\n    x = {}\ntl.store(p, x)",
        ("x.to(tl.float16)", "x + tl.zeros((16,), tl.float32)"),
        "x * 2",
        "Loop-carried variable",
    ),
    Case(
        "store a block through a scalar",
        "tl.store(p + n, {})",
        ("tl.zeros((1,), tl.float32)", "tl.load(p + tl.arange(0, 16))"),
        "tl.sum(tl.load(p + tl.arange(0, 16)))",
        "cannot be block type if pointer",
    ),
    Case(
        "read, after a loop",
        "{}for i in range(n):\n    x = tl.load(p + i)\ntl.store(p, x)",
        ("",),
        "x = 0.0\n",
        "is not defined",
    ),
    Case(
        "read, after a loop",
        "{}if n > 0:\n    x = tl.load(p)\ntl.store(p, x)",
        ("",),
        "x = 0.0\n",
        "is not defined",
    ),
    Case(
        "use x.astype",
        "x = tl.load(p)\ntl.store(p, {})",
        ("x.astype(tl.float16)", "tl.astype(x, tl.float16)"),
        "x.to(tl.float16)",
        "has no attribute 'astype'",
    ),
]
LAUNCH_RULES = (
    "choose tiles that need more shared memory",
    "pass a parameter that the autotune configs set",
    "use a num_warps that is not",
    "use meta outside",
    "launch a kernel without a value",
)


@triton.jit
def halved(v):
    return v * 0.5


def kernel_of(body: str, folder: Path, number: list[int]) -> Any:
    """A jitted kernel with ``body``, imported from a file so that Triton finds its source."""
    number[0] += 1
    path = folder / f"kernel_{number[0]}.py"
    indented = "\n".join("    " + line for line in body.splitlines())
    text = f"{JIT_DECORATOR}\ndef kernel(p, address, n, B: tl.constexpr):\n{indented}\n"
    path.write_text(text)
    names: dict[str, Any] = {
        "triton": triton,
        "tl": tl,
        "libdevice": libdevice,
        "halved": halved,
        "__name__": "kernels",
    }
    linecache.checkcache(str(path))
    exec(compile(text, str(path), "exec"), names)
    return names["kernel"]


def compile_to_ir(kernel: Any) -> None:
    source = ASTSource(
        kernel,
        signature={"p": "*fp32", "address": "i64", "n": "i32", "B": "constexpr"},
        constexprs={(3,): 16},
    )
    backend = make_backend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source.make_ir(
        TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )


def messages(error: BaseException | None) -> str:
    text = ""
    while error is not None:
        text += f"{type(error).__name__}: {error}\n"
        error = error.__cause__
    return text


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    folder, number = tmp_path_factory.mktemp("kernels"), [0]
    return lambda body: kernel_of(body, folder, number)


def expanded() -> Iterator[Any]:
    for case in CASES:
        functions = ("tl.exp", "tl.log", "tl.sqrt", "tl.sin", "tl.cos") if "FUNCTION" in case.body else ("",)
        for function in functions:
            body = case.body.replace("FUNCTION", function)
            for forbidden in case.forbidden:
                yield pytest.param(
                    body, forbidden, case, id=f"{case.rule[:24]}: {function}{forbidden[:24]!r}"
                )


@pytest.mark.parametrize(("body", "forbidden", "case"), list(expanded()))
def test_the_forbidden_construct_fails_and_its_counterpart_compiles(
    body: str, forbidden: str, case: Case, build: Callable[[str], Any]
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Triton raises many types; the message decides
        compile_to_ir(build(body.replace("{}", forbidden)))
    assert re.search(case.error, messages(caught.value)), messages(caught.value)
    compile_to_ir(build(body.replace("{}", case.works)))


class Hopper:
    """A driver for a GPU that is not there: enough to bind arguments and compile."""

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        return 0


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(driver, "_active", Hopper())


FILL = "i = tl.arange(0, B)\ntl.store(p + i, 0.0, mask=i < n)"


def test_num_warps_must_be_a_power_of_two(hopper: None, build: Callable[[str], Any]) -> None:
    with pytest.raises(AssertionError, match="num_warps must be a power of 2"):
        build(FILL).warmup(POINTER, 0, 5, B=16, num_warps=6, grid=(1,))
    build(FILL).warmup(POINTER, 0, 5, B=16, num_warps=4, grid=(1,))


def test_a_constexpr_without_default_must_be_given(hopper: None, build: Callable[[str], Any]) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        build(FILL).warmup(POINTER, 0, 5, grid=(1,))
    build(FILL).warmup(POINTER, 0, 5, B=16, grid=(1,))


def test_meta_is_known_to_the_grid_function_only(hopper: None, build: Callable[[str], Any]) -> None:
    with pytest.raises(KeyError, match="meta was specified but unrecognised"):
        build(FILL).warmup(POINTER, 0, 5, B=16, meta={"B": 16}, grid=(1,))
    build(FILL).warmup(POINTER, 0, 5, B=16, grid=(1,))
    config = triton.Config({"B": 16})
    assert not hasattr(config, "meta")
    assert config.kwargs == {"B": 16}


def test_what_autotune_sets_cannot_be_passed(hopper: None, build: Callable[[str], Any]) -> None:
    def tuned(*sizes: int) -> Any:
        return triton.autotune([triton.Config({"B": size}) for size in sizes], key=["n"])(build(FILL))

    with pytest.raises(ValueError, match="Conflicting meta-parameters"):
        tuned(16, 32)[(1,)](0, 0, 5, B=16)
    with pytest.raises(TypeError, match="multiple values"):
        tuned(16)[(1,)](0, 0, 5, B=16)
    with pytest.raises(TypeError, match="multiple values"):
        tuned(16).warmup(POINTER, 0, 5, 16, grid=(1,))
    tuned(16).warmup(POINTER, 0, 5, grid=(1,))


DOT = (
    "i = tl.arange(0, 128)\nk = tl.arange(0, B)\nacc = tl.zeros((128, 128), tl.float32)\n"
    "for step in range(n):\n"
    "    a = tl.load(p + i[:, None] * 4096 + k[None, :] + step * B)\n"
    "    b = tl.load(p + (k[:, None] + step * B) * 4096 + i[None, :])\n"
    "    acc += tl.dot(a, b)\n"
    "tl.store(p + i[:, None] * 4096 + i[None, :], acc)"
)


@pytest.mark.slow
def test_large_tiles_in_many_stages_exceed_shared_memory(build: Callable[[str], Any], hopper: None) -> None:
    def shared(block_k: int) -> int:
        source = ASTSource(
            build(DOT),
            signature={"p": "*fp32", "address": "i64", "n": "i32", "B": "constexpr"},
            constexprs={(3,): block_k},
            attrs={(0,): [["tt.divisibility", 16]]},
        )
        return int(triton.compile(source, target=TARGET, options={"num_stages": 4}).metadata.shared)

    assert shared(128) > SHARED_MEMORY_BYTES
    assert shared(32) <= SHARED_MEMORY_BYTES


def test_every_bundled_rule_has_a_reproducer() -> None:
    begins = {*(case.rule for case in CASES), *LAUNCH_RULES}
    rules = read_rules(MEMORY)
    for rule in rules:
        assert any(rule.text.startswith(f"You cannot {begin}") for begin in begins), rule.text
    for begin in begins:
        assert any(rule.text.startswith(f"You cannot {begin}") for rule in rules), begin


def test_the_bundled_memory_is_small_sorted_and_free_of_duplicates() -> None:
    rules = read_rules(MEMORY)
    assert 15 <= len(rules) <= 40
    assert [rule.count for rule in rules] == sorted((rule.count for rule in rules), reverse=True)
    block = "\n".join(injected(rules, 3))
    assert (
        len(re.findall(r"\w+|[^\w\s]", block)) * 1.3 < 1800
    )  # words and signs; a tokenizer splits some further
    pairs = [(a.text, b.text) for a in rules for b in rules if a is not b]
    assert max(overlap(a, b) for a, b in pairs) < 0.45 < SAME_RULE
