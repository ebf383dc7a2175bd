from __future__ import annotations

import json
from collections import Counter

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.verdict import Verdict
from adaexplore.records.step_reader import StepSummary
from adaexplore.report.closing import closing_report
from adaexplore.report.savings import Savings, count_savings, savings_line
from adaexplore.report.statistics import run_statistics
from adaexplore.report.tables import TableFormat, render

PASSED = Verdict(status=Status.PASSED)


def step(outcome=DraftOutcome.WRITTEN, verdict=PASSED, evaluated=False, **more):
    return StepSummary(1, StepKind.LARGE, outcome, verdict, evaluated, None, **more)


def test_each_kind_of_saving_is_counted_separately():
    found = count_savings(
        [
            step(evaluated=True),
            step(evaluated=True, retimed=True),
            step(),
            step(DraftOutcome.SEED),
            step(DraftOutcome.UNCHANGED),
            step(DraftOutcome.EDIT_FAILED, repairs=Counter({"edit": 2})),
            step(DraftOutcome.LINT_STOPPED, repairs=Counter({"lint": 2})),
            step(DraftOutcome.GATE_STOPPED, repairs=Counter({"lint": 1, "gate": 1})),
            step(evaluated=True, repairs=Counter({"duplicate": 1})),
            step(DraftOutcome.EMPTY, None),
        ]
    )
    assert found.evaluations == 4
    assert found.saved == {"duplicate": 3, "unchanged": 2, "lint": 4, "gate": 2}
    assert found.repairs == {"edit": 2, "lint": 3, "gate": 1, "duplicate": 1}
    assert found.outcomes["written"] == 4
    assert found.outcomes["empty"] == 1
    assert (found + found).evaluations == 8


def test_savings_line_lists_nonzero_counts():
    assert savings_line(Savings(evaluations=3)) == "Judge evaluations: 3"
    counted = Savings(Counter(), 3, Counter({"lint": 1, "duplicate": 2}), Counter({"edit": 1}))
    assert savings_line(counted) == (
        "Judge evaluations: 3; not sent to the judge: 3 (2 equal to a judged kernel, "
        "1 with a mistake that a lint found); sent back to the model: 1 (1 with edits that do not fit)"
    )


def log(run, key, step_number, **more):
    path = run / key / f"step_{step_number}_log.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


def test_a_report_and_the_figures_tell_of_them(run):
    log(run, "2_2", 4, evaluated=False, outcome="unchanged", total_nodes=5)
    log(run, "3_1", 2, repairs={"gate": 1})
    figures = run_statistics(run)
    assert figures.savings.evaluations == 10
    assert figures.savings.outcomes == {"written": 10, "unchanged": 1}
    assert figures.savings.saved == {"gate": 1, "unchanged": 1}
    assert json.loads(render([figures], TableFormat.JSON))["savings"]["repairs"] == {"gate": 1}
    lines = [line.split() for line in render([figures], TableFormat.TABLE).splitlines()]
    place = lines.index(["saved", "2"])
    assert lines[place - 1 : place + 5] == [
        ["evaluations", "10"],
        ["saved", "2"],
        ["gate", "1"],
        ["unchanged", "1"],
        ["repairs", "1"],
        ["gate", "1"],
    ]
    report = closing_report(run, 4)
    assert (
        "Judge evaluations: 10; not sent to the judge: 2 (1 with a compile error, 1 without a change); "
        "sent back to the model: 1 (1 with a compile error)"
    ) in report


def test_pass_at_1_uses_first_model_step(run):
    log(run, "2_10", 1, outcome="seed", total_nodes=2)
    before = run_statistics(run).pass_at_1
    log(run, "2_10", 1, outcome="written")
    assert (before, run_statistics(run).pass_at_1) == (1 / 5, 2 / 5)
