"""How stored answers of the judge are made and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tool_scripts import golden_corpus
from tool_scripts.golden_corpus import compare, main, read, units

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
NAME = "adversarial/honest_gate"


def line(name: str = NAME, device: str = "cpu", **changes: Any) -> dict[str, Any]:
    metadata = {"status": "passed", "precision": {"rms": 1e-7}, "integrity": [], "integrity_evidence": []}
    answer = {"correctness": True, "execution_time": 1.0, "runtime_stats": {"fast_p": 1.0}}
    answer |= {"metadata": metadata | changes.pop("metadata", {})} | changes
    return {"key": f"{name}#0", "device": device, "http": 200, "answer": answer}


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the names of the fields that differ between two answers to one candidate."""
    found = compare({"key": one}, {"key": other})
    return [text.split()[1] for text in found.get("key", [])]


def flagged(flag: str, evidence: str) -> dict[str, Any]:
    return {"integrity": [flag], "integrity_evidence": [{"id": flag, "evidence": evidence}]}


def test_times_and_measurements_are_not_compared() -> None:
    assert differing(line(), line(execution_time=2.0, runtime_stats={"fast_p": 3.0})) == []
    assert differing(line(), line(runtime_stats={})) == ["runtime_stats"]


def test_each_field_that_differs_is_named() -> None:
    other = line(correctness=False, metadata={"status": "crash", "precision": {"rms": 2e-7}})
    assert differing(line(), other) == ["correctness", "metadata.precision.rms", "metadata.status"]


def test_precision_counts_on_the_cpu_alone() -> None:
    other = {"precision": {"rms": 2e-7}}
    assert differing(line(device="cuda"), line(device="cuda", metadata=other)) == []


def test_flags_of_timing_do_not_count_on_cuda() -> None:
    drift = flagged("baseline_drift", "5 %")
    assert differing(line(device="cuda"), line(device="cuda", metadata=drift)) == []
    assert differing(line(), line(metadata=drift)) != []


def test_numbers_in_evidence_are_ignored_on_cuda() -> None:
    one, other = (flagged("clock_mismatch", f"{share} % of the clock") for share in ("41.5", "7"))
    assert differing(line(device="cuda", metadata=one), line(device="cuda", metadata=other)) == []
    assert differing(line(metadata=one), line(metadata=other)) == ["metadata.integrity_evidence"]


def test_renamed_modules_of_the_judge_are_equal() -> None:
    one = flagged("patched_functions", "replaced: online_judge.a.first, online_judge.b.second, torch.sum")
    other = flagged("patched_functions", "replaced: online_judge.c.third, torch.sum")
    assert differing(line(metadata=one), line(metadata=other)) == []


def test_verdicts_of_unstable_candidates_do_not_count() -> None:
    name = next(iter(golden_corpus.UNSTABLE))
    assert differing(line(name), line(name, correctness=False)) == []
    assert differing(line(name), line(name, metadata={"sandbox": {"network": False}})) != []


def test_lists_of_exceptions_name_candidates_that_exist() -> None:
    named = {*golden_corpus.UNSTABLE, *golden_corpus.UNSTABLE_FIELDS}
    known = {unit.name for unit in units("cpu")}
    assert {name for name in named if not name.startswith("recorded/")} <= known


@pytest.mark.skipif(not TRACES.is_dir(), reason="the recorded trajectories are not here")
def test_sample_of_recorded_candidates_is_always_the_same() -> None:
    found = units("cpu", TRACES)
    assert [unit.key for unit in found] == [unit.key for unit in units("cpu", TRACES)]
    assert len({unit.key for unit in found}) == len(found) > 400
    assert set(golden_corpus.UNSTABLE) <= {unit.name for unit in found}


def test_missing_candidate_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("".join(json.dumps(line(name)) + "\n" for name in ("a", "b")))
    new.write_text(json.dumps(line("a")) + "\n")
    assert main(["compare", str(old), str(old)]) == 0
    assert main(["compare", str(old), str(new)]) == 1
    assert capsys.readouterr().out.endswith("1 equal, 1 different\n")


def test_unreadable_file_is_an_error_of_use(tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    torn.write_text('{"key": "a#0", "http"')
    assert main(["compare", str(torn), str(torn)]) == 2


@pytest.mark.slow
def test_make_continues_a_stopped_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    make = ["make", "--out", str(file), "--limit", "1"]
    assert main([*make, "--limit-s", "0"]) == 75
    assert read(file) == {}
    assert main(make) == 0
    first = file.read_text()
    assert {each["answer"]["metadata"]["status"] for each in read(file).values()} == {"passed"}
    assert main(make) == 0
    assert file.read_text() == first
