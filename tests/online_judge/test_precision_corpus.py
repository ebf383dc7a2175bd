"""The corpus of kernels of known precision; tests/gpu judges it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.precision_corpus import OPERANDS, Entry, entries
from tests.online_judge.live import LiveJudge, running_judge

ENTRIES = tuple(entries())
TF32 = tuple(each for each in ENTRIES if each.variant == "tf32")
INTERPRETED = Path(__file__).parents[1] / "offline_writer" / "interpreted.py"
# not multiples of the kernels' blocks, and more than one block where that is quick
SMALL = {
    "BATCH": 3,
    "LENGTH": 80,
    "DIM": 32,
    "HEADS": 2,
    "FEATURES": 40,
    "HIDDEN": 24,
    "OUTPUTS": 70,
    "STEPS": 3,
    "CHANNELS": 3,
    "FILTERS": 5,
    "SIDE": 6,
}


def shrunk(problem: str) -> str:
    def small(constant: re.Match[str]) -> str:
        return f"{constant[1]} = {SMALL.get(constant[1], constant[2])}"

    return re.sub(r"^([A-Z]+) = (\d+)$", small, problem, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def differences() -> dict[str, str | None]:
    """From a process under Triton's interpreter: None for equal outputs."""
    cases = [
        {
            "name": each.name,
            "reference": shrunk(each.problem),
            "candidate": each.source,
            "dtype": "float32",
            "transposed": False,
        }
        for each in TF32
    ]
    done = subprocess.run(
        [sys.executable, str(INTERPRETED)],
        input=json.dumps(cases),
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [each.name for each in TF32])
def test_kernel_equals_its_reference(name: str, differences: dict[str, str | None]) -> None:
    assert differences[name] is None


def test_corpus_has_each_kernel_in_both_variants() -> None:
    names = {each.name for each in ENTRIES}
    assert {name.partition("/")[0] for name in names} >= {
        *("attention", "attention-shifted", "attention-tails", "conv-product", "gru"),
        *("linear", "lstm", "mlp4", "mlp8", "swiglu"),
    }
    assert len({each.id for each in ENTRIES}) == len(ENTRIES) == 2 * len(names)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_variants_differ_only_in_their_operands(entry: Entry) -> None:
    tf32 = next(each for each in TF32 if each.name == entry.name)
    pairs = zip(tf32.source.splitlines(), entry.source.splitlines(), strict=True)
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    bf16 = [("OPERANDS = tl.float32", "OPERANDS = tl.bfloat16")]
    assert changed == (bf16 if entry.variant == "bf16" else [])
    assert entry.problem == tf32.problem


@pytest.mark.parametrize("entry", TF32, ids=lambda entry: entry.name)
def test_every_product_casts_both_operands(entry: Entry) -> None:
    operands = re.findall(r"tl\.dot\((.*)\)", entry.source)
    assert operands
    assert all(each.count(".to(OPERANDS)") == 2 for each in operands)
    models = entry.source.partition("class ModelNew")[2]
    assert not re.search(r" @ |torch\.(matmul|bmm|mm|einsum|baddbmm)|functional\.(linear|conv)", models)
    assert not re.search(r"self\.\w+\(", models.partition("def forward")[2])


def test_operands_are_set_exactly_once() -> None:
    assert {each.source.count(OPERANDS) for each in TF32} == {1}


def compiled(judge: LiveJudge, entry: Entry) -> str:
    request = {"original_model_src": entry.problem, "custom_model_src": entry.source}
    job = judge.post("/v2/jobs", {"kind": "compile", "request": request}).json()["id"]
    status: str = judge.client.get(f"/v2/jobs/{job}", params={"wait": 60}).json()["report"]["status"]
    return status


@pytest.mark.slow
def test_both_triton_kernels_compile_for_sm_90(tmp_path: Path) -> None:
    chosen = [each for each in ENTRIES if each.name.startswith("attention/")]
    with running_judge(tmp_path, COMPILE_TARGET="sm_90") as judge:
        found = {each.id: compiled(judge, each) for each in chosen}
    assert found == {each.id: "passed" for each in chosen}
