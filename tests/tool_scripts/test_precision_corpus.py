"""The corpus of kernels of known precision, and what is measured with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.judge_server import Answer, JudgeServer
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.precision_corpus import Entry, Variant, entries, with_operands
from tool_scripts.judge_bench.service import running_judge
from tool_scripts.measure_compile_gate import gate
from tool_scripts.measure_precision import Graded, Round, main, summary

ENTRIES = tuple(entries())
TF32 = tuple(each for each in ENTRIES if each.variant == "tf32")
INTERPRETED = Path(__file__).parents[1] / "llm" / "offline" / "interpreted.py"
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
OUTPUTS = {
    "passed": Round("passed", "tf32"),
    "imprecise": Round("wrong_value", "half"),
    "failed": Round("compile"),
    "unknown": Round(None, error="no judge"),
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


def test_corpus_has_each_kernel_in_three_variants() -> None:
    names = {each.name for each in ENTRIES}
    assert {name.partition("/")[0] for name in names} >= {
        *("attention", "attention-shifted", "attention-tails", "conv-product", "gru"),
        *("linear", "lstm", "mlp4", "mlp8", "swiglu"),
    }
    assert len({each.id for each in ENTRIES}) == len(ENTRIES) == 3 * len(names)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_variants_differ_only_in_their_operands(entry: Entry) -> None:
    tf32 = next(each for each in TF32 if each.name == entry.name)
    pairs = zip(tf32.source.splitlines(), entry.source.splitlines(), strict=True)
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    types = {"tf32": [], "bf16": ["bfloat16"], "fp16": ["float16"]}[entry.variant]
    assert changed == [("OPERANDS = tl.float32", f"OPERANDS = tl.{kind}") for kind in types]
    assert entry.problem == tf32.problem


@pytest.mark.parametrize("entry", TF32, ids=lambda entry: entry.name)
def test_every_product_casts_both_operands(entry: Entry) -> None:
    operands = re.findall(r"tl\.dot\((.*)\)", entry.source)
    assert operands
    assert all(each.count(".to(OPERANDS)") == 2 for each in operands)
    models = entry.source.partition("class ModelNew")[2]
    assert not re.search(r" @ |torch\.(matmul|bmm|mm|einsum|baddbmm)|functional\.(linear|conv)", models)
    assert not re.search(r"self\.\w+\(", models.partition("def forward")[2])


def test_operands_must_be_set_exactly_once() -> None:
    with pytest.raises(ValueError, match="exactly once"):
        with_operands("x = 1\n", "bf16")


@pytest.mark.slow
def test_both_triton_kernels_compile_for_sm_90(tmp_path: Path) -> None:
    chosen = [each for each in ENTRIES if each.name.startswith("attention/")]
    with (
        running_judge("cpu", 1, tmp_path / "log", COMPILE_TARGET="sm_90") as url,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):
        gated = [gate(client, Candidate(each.id, each.name, each.problem, each.source)) for each in chosen]
    assert {each.candidate.id: each.status for each in gated} == {each.id: "passed" for each in chosen}


def graded(variant: Variant, *outcomes: str) -> Graded:
    return Graded(replace(TF32[0], variant=variant), tuple(OUTPUTS[each] for each in outcomes))


def test_targets_are_met_when_bf16_alone_fails() -> None:
    found = summary([graded("tf32", "passed"), graded("bf16", "imprecise"), graded("fp16", "imprecise")])
    assert found["targets_met"]
    assert found["fp16_rejected"]["kernels"] == 1


@pytest.mark.parametrize(
    ("variant", "outcome", "figure"),
    [
        ("tf32", "imprecise", "honest_rejected"),
        ("tf32", "failed", "honest_rejected"),
        ("bf16", "passed", "bf16_passed"),
        ("bf16", "failed", "bf16_failed_otherwise"),
    ],
)
def test_one_bad_round_misses_a_target(variant: Variant, outcome: str, figure: str) -> None:
    good = "passed" if variant == "tf32" else "imprecise"
    found = summary([graded(variant, good, outcome, good)])
    assert not found["targets_met"]
    assert found[figure]["rounds_by_kernel"] == {f"{TF32[0].name}/{variant}": 1}


def test_missing_verdict_is_no_rejection() -> None:
    found = summary([graded("tf32", "unknown")])
    assert found["honest_rejected"]["kernels"] == 0
    assert not found["targets_met"]
    assert found["not_judged"] == [TF32[0].id]


def run_command(out: Path, passing: str) -> int:
    """Run the command on a judge that passes kernels whose source matches ``passing``."""
    sources: dict[str, str] = {}

    def jobs(method: str, path: str, body: dict[str, Any], _key: str | None) -> Answer:
        if method == "POST":
            request = body["request"]
            assert (body["kind"], body["force"]) == ("candidate", True)
            assert (request["tf32"], request["tier"], request["num_correct_trials"]) == ("on", "tf32", 5)
            number = str(len(sources))
            sources[number] = request["custom_model_src"]
            return 202, {"id": number, "status": "queued", "position": 0}, {}
        source = sources[path.partition("?")[0].rpartition("/")[2]]
        status, tier = ("passed", "tf32") if re.search(passing, source) else ("wrong_value", "half")
        metadata = {"tier": tier, "precision": [{"rms": 1e-3}], "feedback": "first\nsecond"}
        return 200, {"state": "done", "verdict": {"status": status, "metadata": metadata}}, {}

    with JudgeServer(jobs=jobs) as server:
        return main(["--url", server.url, "--rounds", "2", "--slots", "1", "--out", str(out)])


def test_command_writes_results_and_reports_met_targets(tmp_path: Path) -> None:
    out = tmp_path / "new" / "precision.json"
    assert run_command(out, r"OPERANDS = tl\.float\d+") == 0
    kept = json.loads(out.read_text())
    assert kept.keys() >= {"command", "date", "hardware", "versions", "figures", "kernels"}
    assert len(kept["kernels"]) == len(ENTRIES)
    first = kept["kernels"][0]["rounds"]
    assert [(each["status"], each["tier"], each["feedback"]) for each in first] == [
        ("passed", "tf32", "first")
    ] * 2


def test_command_fails_when_bf16_passes(tmp_path: Path) -> None:
    assert run_command(tmp_path / "precision.json", "") == 1
    figures = json.loads((tmp_path / "precision.json").read_text())["figures"]
    assert figures["honest_rejected"]["kernels"] == 0
    assert figures["bf16_passed"]["kernels"] == figures["bf16_passed"]["of"] == len(TF32)
