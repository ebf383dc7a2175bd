from __future__ import annotations

import hashlib
import json
import logging
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.core.errors import Interrupted, JudgeError, ModelUnavailableError, StorageError, UsageError
from adaexplore.core.plan import Purpose
from adaexplore.core.wire import DtypeName, ProblemReport
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.llm.protocol import ModelReply, ModelRequest
from adaexplore.offline_writer.writer import OfflineWriter
from synthesis.catalogue import read_catalogue
from synthesis.journal import Journal, Reply
from synthesis.prompts import Style
from synthesis.synthesiser import Account, Order, Synthesiser
from synthesis.validation import MAX_ELEMENTS
from tests.stub_model import StubModel

SEEDS = ["import torch\n\n\nclass Model: ...\n"] * 4
PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * {number}.0


def get_inputs():
    return [torch.randn(8)]


def get_init_inputs():
    return []
"""


class Judge(DummyJudge):
    """Finds in a problem what ``trait`` says of its source."""

    def __init__(self, trait: Callable[[str], dict[str, object]] = lambda _: {}) -> None:
        super().__init__(0)
        self.seen: list[str] = []
        self._trait = trait

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        self.seen.append(source)
        report = super().examine_problem(source, dtype)
        assert report.traits is not None
        changes = self._trait(source)
        if "reason" in changes:
            return ProblemReport(ok=False, reason=str(changes["reason"]), device="cpu", hardware="x")
        return report.model_copy(update={"traits": report.traits.model_copy(update=changes)})


class Counting(OfflineWriter):
    """The offline writer, with the keys that it was asked."""

    def __init__(self) -> None:
        super().__init__(0)
        self.keys: list[str] = []

    def complete(self, request: ModelRequest) -> ModelReply:
        assert request.purpose is Purpose.TASK
        self.keys.append(request.key)
        return super().complete(request)


def fill(
    folder: Path,
    count: int,
    *,
    model: object = None,
    judge: DummyJudge | None = None,
    workers: int = 1,
    stop: threading.Event | None = None,
    progress: Callable[[int], object] = lambda _: None,
    **order: object,
) -> Account:
    wanted = Order(count=count, workers=workers, **order)  # type: ignore[arg-type]
    synthesiser = Synthesiser(folder, read_catalogue(), SEEDS, model or OfflineWriter(0), judge or Judge())  # type: ignore[arg-type]
    return synthesiser.fill(wanted, stop or threading.Event(), progress)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.*") if path.is_file()}


def manifest(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def numbered(request: ModelRequest) -> str:
    return "```python\n" + PROBLEM.format(number=request.key.split("/")[1]) + "```"


def test_exactly_as_many_as_asked_with_a_manifest(tmp_path: Path) -> None:
    account = fill(tmp_path, 7, workers=3)
    assert (account.asked, account.written, account.rejected) == (7, 7, {})
    assert sorted(path.name for path in tmp_path.glob("*.py")) == sorted(f"{n}.py" for n in range(1, 8))
    entries = manifest(tmp_path)
    assert [entry["id"] for entry in entries] == list(range(1, 8))
    for entry in entries:
        assert entry["hash"] == hashlib.sha256((tmp_path / f"{entry['id']}.py").read_bytes()).hexdigest()
        assert entry["model"] == "offline"
        assert entry["style"] in set(Style)
    used = {name for entry in entries for name in entry["operators"]}  # type: ignore[attr-defined]
    assert account.operators == len(used) > 7


def test_set_does_not_depend_on_worker_count(tmp_path: Path) -> None:
    for name, workers in (("one", 1), ("four", 4)):
        fill(tmp_path / name, 6, workers=workers, judge=Judge(_some_fail))
    assert contents(tmp_path / "one") == contents(tmp_path / "four")
    assert contents(tmp_path / "one")


def _some_fail(source: str) -> dict[str, object]:
    return {"flags": ["degenerate_problem"]} if len(source) % 3 == 0 else {}


def test_more_can_be_asked_for_later(tmp_path: Path) -> None:
    fill(tmp_path / "a", 3)
    model = Counting()
    account = fill(tmp_path / "a", 5, model=model)
    fill(tmp_path / "b", 5)
    assert account.written == 5
    assert len(model.keys) == 2
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert fill(tmp_path / "a", 5, model=None, judge=None).written == 5


@pytest.mark.parametrize(
    ("trait", "reason"),
    [
        ({"flags": ["nondeterministic"]}, "nondeterministic"),
        ({"flags": ["stochastic"]}, "nondeterministic"),
        ({"flags": ["constant_inputs"]}, "constant input"),
        ({"flags": ["degenerate_problem"]}, "trivial answer passes"),
        ({"flags": ["nearly_degenerate"]}, "trivial answer passes"),
        ({"flags": ["nonfinite"]}, "not finite"),
        ({"flags": ["view_of_input"]}, "view of an input"),
        ({"flags": ["writes_inputs"]}, "changes its inputs"),
        ({"elements": 10**9}, "too large"),
        ({"call_ms": 1e5}, "too slow"),
        ({"reason": "forward() fails: RuntimeError"}, "fails"),
        ({"reason": "too large for the CPU judge: 5"}, "too large"),
        ({"graph": "the same"}, "duplicate"),
    ],
)
def test_problems_refused_by_judge_are_counted(tmp_path: Path, trait: dict[str, object], reason: str) -> None:
    bad = {"3", "4"} | ({"1"} if reason == "duplicate" else set())

    def of(source: str) -> dict[str, object]:
        return trait if source.split("x * ")[1].split(".")[0] in bad else {}

    account = fill(tmp_path, 4, model=StubModel(numbered), judge=Judge(of))
    assert (account.written, account.rejected) == (4, {reason: 2})
    assert [entry["attempt"] for entry in manifest(tmp_path)] == [1, 2, 5, 6]


def test_replies_without_a_problem_skip_the_judge(tmp_path: Path) -> None:
    answers = {"1": "I cannot.", "2": "```python\nx = 1\n```", "3": "```python\nclass Model(:\n```"}
    judge = Judge()
    model = StubModel(lambda request: answers.get(request.key.split("/")[1]) or numbered(request))
    account = fill(tmp_path, 1, model=model, judge=judge)
    assert account.rejected == {"no problem module": 1, "no code": 2}
    assert len(judge.seen) == 1


def test_problem_is_the_block_that_defines_it(tmp_path: Path) -> None:
    draft = "<think>\n```python\nclass Model: ...\n```\n</think>\n"
    model = StubModel(lambda request: f"{draft}I use:\n```\ntorch.relu\n```\n{numbered(request)}")
    assert fill(tmp_path, 1, model=model).rejected == {}


def test_one_program_in_two_spellings_is_written_once(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> str:
        number = request.key.split("/")[1]
        return (
            numbered(request) if int(number) > 2 else f"```python\n# {number}\n{PROBLEM.format(number=1)}```"
        )

    assert fill(tmp_path, 2, model=StubModel(answer)).rejected == {"duplicate": 1}


def test_too_many_failures_end_it_with_an_account(tmp_path: Path) -> None:
    judge = Judge(lambda source: {} if "x * 2.0" in source else {"flags": ["nonfinite"]})
    account = fill(tmp_path, 12, model=StubModel(numbered), judge=judge)
    assert (account.asked, account.written, account.rejected) == (12, 1, {"not finite": 24})
    assert fill(tmp_path, 12, model=StubModel(numbered), judge=judge) == account


def test_answers_before_a_crash_are_not_requested_again(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    fill(whole, 8, judge=Judge(_some_fail))
    keys: list[str] = []
    for _ in range(40):
        model = Counting()
        judged = 0

        def trait(source: str) -> dict[str, object]:
            nonlocal judged
            judged += 1
            if judged == 2:
                raise JudgeError("gone")
            return _some_fail(source)

        try:
            account = fill(tmp_path / "torn", 8, model=model, judge=Judge(trait))
        except JudgeError:
            continue
        finally:
            keys += model.keys
        break
    assert account.written == 8
    assert contents(tmp_path / "torn") == contents(whole)
    assert len(keys) == len(set(keys))


def test_model_failure_stops_synthesis_and_keeps_finished_work(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> str:
        if request.key == "synth/3/task":
            raise ModelUnavailableError("no answer")
        return numbered(request)

    with pytest.raises(ModelUnavailableError):
        fill(tmp_path, 5, model=StubModel(answer))
    assert len(manifest(tmp_path)) == 2
    assert fill(tmp_path, 5, model=StubModel(numbered)).written == 5


def test_it_stops_when_told_to(tmp_path: Path) -> None:
    stop = threading.Event()
    with pytest.raises(Interrupted):
        fill(tmp_path, 9, stop=stop, progress=lambda done: stop.set() if done == 4 else None)
    assert len(manifest(tmp_path)) == 4


def test_malformed_lines_are_named_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, 3)
    path = tmp_path / "manifest.jsonl"
    lines = path.read_text().splitlines()
    lines[1] = '{"id": 2, "attempt": "x"}'
    path.write_text("\n".join([*lines[:2], "", lines[2], lines[2], "{"]))
    journal = tmp_path / ".synth" / "attempts.jsonl"
    with journal.open("a") as out:
        out.write('{"attempt": 4, "reply": "torn')
    before = (tmp_path / "2.py").read_text()
    with caplog.at_level(logging.WARNING):
        account = fill(tmp_path, 4)
    assert account.written == 4
    assert f"{path}:2: left out: attempt:" in caplog.text
    assert f"{path}:5: left out: problem 3 is listed before" in caplog.text
    assert f"{path}:6: left out:" in caplog.text
    assert f"{journal}:4: left out:" in caplog.text
    assert (tmp_path / "2.py").read_text() == before
    assert path.read_text().splitlines()[1] == lines[1]
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()[6:]] == [2, 4]
    assert len(list(tmp_path.glob("*.py"))) == 4
    caplog.clear()
    assert fill(tmp_path, 4).written == 4


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "1.py").write_text("mine\n")
    fill(tmp_path, 2)
    assert (tmp_path / "1.py").read_text() == "mine\n"
    assert [entry["id"] for entry in manifest(tmp_path)] == [2, 3]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    other = Synthesiser(tmp_path, read_catalogue(), SEEDS, OfflineWriter(0), Judge())
    with (
        other._journal.held(),
        pytest.raises(UsageError, match="another process"),
    ):
        fill(tmp_path, 1)


def test_problem_with_too_many_elements_is_rejected(tmp_path: Path) -> None:
    judge = Judge(lambda _: {"elements": MAX_ELEMENTS + 1})
    assert fill(tmp_path, 1, judge=judge).written == 0


def test_non_utf8_manifest_line_is_named_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, 2)
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": 3, "style": "\xff"}\n')
    assert fill(tmp_path, 3).written == 3
    assert f"{path}:3: left out:" in caplog.text
    assert len(path.read_bytes().splitlines()) == 4


def test_line_cut_by_full_disk_spoils_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.reply(1, Reply("one", "m"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 9, limits[1]))
    try:
        with pytest.raises(StorageError, match="cannot write"):
            journal.reply(2, Reply("two", "m"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.reply(3, Reply("three", "m"))
    assert set(Journal(tmp_path).replies) == {1, 3}


def test_lock_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".synth" / "lock").mkdir(parents=True)
    with pytest.raises(StorageError, match="choose another folder"):
        fill(tmp_path, 1)
