"""Flags: order, metadata, and the table of the documentation."""

from pathlib import Path

from adaexplore.core.judging.flags import Flag, ProblemFlag
from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from online_judge.verdict.flags import listed, listed_of_problem, merged
from tests.documented_tables import flag_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrity.md"
NOTE, SUSPECT, REJECT = "launch_bound", "stale_weights", "clock_mismatch"


def flag(id_: str, evidence: str = "") -> Flag:
    return Flag(id_, str(all_flags()[id_].severity), evidence)


def test_gravest_comes_first_and_the_first_evidence_counts() -> None:
    found = merged(
        [flag(NOTE, "a"), flag(SUSPECT, "b"), flag(REJECT, "c"), flag(NOTE, "d"), flag(REJECT, "e")]
    )
    assert found == [flag(REJECT, "c"), flag(SUSPECT, "b"), flag(NOTE, "a")]


def test_findings_of_one_severity_keep_their_order() -> None:
    ids = ["global_flags", "library_bound", "launch_bound"]
    assert [flag.id for flag in merged(flag(id_) for id_ in ids)] == ids
    assert [flag.id for flag in merged(flag(id_) for id_ in ids[::-1])] == ids[::-1]


def test_evidence_of_listed_flags_is_cut() -> None:
    assert listed([flag(NOTE, "x" * 1000), flag(REJECT, "y")]) == (flag(REJECT, "y"), flag(NOTE, "x" * 300))
    found = listed_of_problem([ProblemFlag("degenerate_problem", "x" * 1000)])
    assert found == (ProblemFlag("degenerate_problem", "x" * 300),)


def test_page_has_the_table_of_all_flags() -> None:
    table = flag_table()
    assert table in PAGE.read_text(encoding="utf-8"), f"replace the table of docs/integrity.md by\n{table}"


def test_only_five_flags_reject() -> None:
    assert {id_ for id_, kind in all_flags().items() if kind.severity is Severity.REJECT} == {
        "timed_output_wrong",
        "clock_mismatch",
        "side_stream",
        "inputs_changed",
        "below_bandwidth_bound",
    }
    texts = {kind.severity for id_, kind in all_flags().items() if id_.startswith("static_")}
    assert texts == {Severity.NOTE}
