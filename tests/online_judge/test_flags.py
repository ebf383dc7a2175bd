"""Findings and their order."""

import re
from pathlib import Path

import pytest

from adaexplore.core.flags import ProblemFlag
from online_judge.verdict.flags import (
    PROBLEM_FLAGS,
    SEVERITIES,
    Flag,
    Severity,
    merged,
    metadata,
    problem_metadata,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrity.md"
NOTE, SUSPECT, REJECT = "launch_bound", "stale_weights", "clock_mismatch"


def test_gravest_comes_first_and_the_first_evidence_counts() -> None:
    found = merged(
        [Flag(NOTE, "a"), Flag(SUSPECT, "b"), Flag(REJECT, "c"), Flag(NOTE, "d"), Flag(REJECT, "e")]
    )
    assert found == [Flag(REJECT, "c"), Flag(SUSPECT, "b"), Flag(NOTE, "a")]


def test_findings_of_one_severity_keep_their_order() -> None:
    ids = ["global_flags", "library_bound", "launch_bound"]
    assert [flag.id for flag in merged(Flag(id_, "") for id_ in ids)] == ids
    assert [flag.id for flag in merged(Flag(id_, "") for id_ in ids[::-1])] == ids[::-1]


def test_nothing_found_says_nothing() -> None:
    assert metadata([]) == {}


def test_metadata_names_ids_and_cuts_evidence() -> None:
    found = metadata([Flag(NOTE, "x" * 1000), Flag(REJECT, "y")])
    assert found["integrity"] == [REJECT, NOTE]
    assert [entry["severity"] for entry in found["integrity_evidence"]] == ["reject", "note"]
    assert max(len(entry["evidence"]) for entry in found["integrity_evidence"]) == 300


def test_problem_flags_have_their_own_keys() -> None:
    assert problem_metadata([]) == {}
    assert problem_metadata([ProblemFlag("degenerate_problem", "x" * 1000)]) == {
        "problem_flags": ["degenerate_problem"],
        "problem_flags_evidence": [{"id": "degenerate_problem", "evidence": "x" * 300}],
    }


def test_no_flag_is_of_kernel_and_problem() -> None:
    assert not PROBLEM_FLAGS.keys() & SEVERITIES.keys()
    with pytest.raises(ValueError, match="decoy_kernel"):
        problem_metadata([ProblemFlag("decoy_kernel", "")])


def test_every_flag_has_its_row_in_the_docs() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| \w+ \| (\S+) \|", PAGE.read_text(), re.MULTILINE)
    described = {name: severity.strip("*") for names, severity in rows for name in re.findall(r"\w+", names)}
    assert described == {**SEVERITIES, **dict.fromkeys(PROBLEM_FLAGS, "-")}


def test_only_five_flags_reject() -> None:
    assert {id_ for id_, severity in SEVERITIES.items() if severity is Severity.REJECT} == {
        "timed_output_wrong",
        "clock_mismatch",
        "side_stream",
        "inputs_changed",
        "below_bandwidth_bound",
    }
    texts = {severity for id_, severity in SEVERITIES.items() if id_.startswith("static_")}
    assert texts == {Severity.NOTE}
