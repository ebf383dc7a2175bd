from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from adaexplore.core.draft import Draft, DraftOutcome, Exchange
from adaexplore.core.judging.flags import Flag, ProblemFlag
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Verdict
from adaexplore.records.run_records import RunRecords
from tests.flags import flags_metadata
from tests.verdicts import make_verdict

WRONG = Verdict(status=Status.WRONG_VALUE)
Export = Callable[..., list[dict[str, Any]]]


def passed(low: float, high: float, *flags: Flag, problem: str | None = None) -> Verdict:
    metadata = flags_metadata(flags, () if problem is None else (ProblemFlag(problem, "seen"),))
    stats = {"fast_p": (low + high) / 2, "ci_low": low, "ci_high": high}
    return make_verdict(status=Status.PASSED, metadata=metadata, runtime_ms=1.0, runtime_stats=stats)


class Folder:
    """A run with one task, written step by step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._records = RunRecords(folder).task("1_1", "MCTS")
        self._records.write_reference("the reference")
        self._steps = 0
        self.add(None, kind=StepKind.DUMMY_ROOT)

    def add(
        self,
        verdict: Verdict | None,
        *,
        kind: StepKind = StepKind.LARGE,
        context: tuple[int, ...] = (),
        source: str | None = None,
        repaired: bool = False,
        evaluated: bool = True,
    ) -> None:
        step, self._steps = self._steps, self._steps + 1
        exchanges = [Exchange("large", f"prompt {step}", f"reply {step}")]
        if repaired:
            exchanges.append(Exchange("repair", "no", f"repaired {step}", reason="format"))
        node = NodeState(
            Plan(step, kind, 0, context), 1, 1, 0.0, 0.0, NO_SCORE, step + 1, 0, NO_SCORE
        )  # fmt: skip
        draft = Draft(DraftOutcome.WRITTEN, source or f"x = {step}", tuple(exchanges), Usage())
        self._records.write_step(StepRecord(node, draft, verdict, evaluated))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "run")


@pytest.fixture
def export(folder: Folder, tmp_path: Path) -> Export:
    def exported(kind: str, *options: str, code: int = 0) -> list[dict[str, Any]]:
        out = tmp_path / "rows.jsonl"
        assert main(["export", str(folder.path), "--format", kind, "--out", str(out), *options]) == code
        return [json.loads(line) for line in out.read_text().splitlines()] if code == 0 else []

    return exported


def steps(rows: list[dict[str, Any]]) -> list[int]:
    return [row["step"] for row in rows]


def test_only_trusted_kernels_are_positives(folder: Folder, export: Export) -> None:
    folder.add(passed(2.0, 2.2))
    folder.add(WRONG)
    folder.add(passed(9.0, 9.2, Flag("decoy_kernel", "suspect", "seen")))
    folder.add(passed(1.5, 1.6, Flag("launch_bound", "note", "seen")))
    folder.add(passed(900.0, 901.0, problem="degenerate_problem"))
    folder.add(passed(2.0, 2.2), source="x = 1  # again")
    folder.add(passed(2.0, 2.2), evaluated=False)
    for kind in ("messages", "sft"):
        assert steps(export(kind)) == [1, 4]


def test_the_whole_interval_reaches_the_gain(folder: Folder, export: Export) -> None:
    folder.add(passed(1.1, 1.5))
    folder.add(passed(1.2, 1.3))
    folder.add(make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"}))
    assert steps(export("messages")) == [1, 2, 3]
    assert steps(export("messages", "--min-gain", "1.2")) == [2]
    assert export("messages", "--min-gain", "3", code=1) == []


def test_a_repaired_conversation_is_whole(folder: Folder, export: Export) -> None:
    folder.add(passed(2.0, 2.2), repaired=True)
    (row,) = export("messages")
    said = [(message["role"], message["content"]) for message in row["messages"]]
    assert said == [
        ("user", "prompt 1"),
        ("assistant", "reply 1"),
        ("user", "no"),
        ("assistant", "repaired 1"),
    ]
    (row,) = export("sft")
    assert row["completion"] == [{"role": "assistant", "content": "repaired 1"}]
    assert len(row["prompt"]) == 3


def test_pairs_are_a_better_and_worse_sibling(folder: Folder, export: Export) -> None:
    folder.add(passed(2.0, 2.2))
    folder.add(WRONG)
    folder.add(passed(1.0, 1.1))
    folder.add(passed(2.1, 2.3))
    folder.add(WRONG, context=(1,))
    folder.add(WRONG, repaired=True)
    pairs = [(row["step"], row["rejected_step"]) for row in export("preference")]
    assert pairs == [(1, 2), (1, 3), (3, 2), (4, 2), (4, 3)]
    row = export("preference")[0]
    assert (row["prompt"][0]["content"], row["rejected"][0]["content"]) == ("prompt 1", "reply 2")


@pytest.mark.parametrize(("kind", "said"), [("sft", "no step passes"), ("preference", "no two steps make")])
def test_lack_of_rows_names_what_is_missing(
    folder: Folder, export: Export, caplog: pytest.LogCaptureFixture, kind: str, said: str
) -> None:
    folder.add(WRONG)
    export(kind, code=1)
    assert said in caplog.text


def test_verl_rows_hold_reference_and_fastest_answer(folder: Folder, export: Export) -> None:
    folder.add(passed(2.0, 2.2))
    (row,) = export("verl")
    assert list(row) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    assert row["prompt"] == [{"role": "user", "content": "prompt 1"}]
    assert row["reward_model"]["ground_truth"] == "the reference"
    assert row["extra_info"]["answer"] == "x = 1"


def test_non_run_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "none"), "--format", "sft"]) == 2
    assert "none is not a folder; give a run's save_path" in capsys.readouterr().err
