from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adaexplore.core.errors import ModelRequestError, ModelUnavailableError, StorageError
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest
from skill_memory import update
from skill_memory.distil import UnusableReply, rule_in
from skill_memory.failures.failure import Failure, TaskFailures
from skill_memory.merge import nearest
from skill_memory.rule import Rule
from skill_memory.sidecar import locked, sidecar_path
from skill_memory.store import read_rules, write_rules
from skill_memory.update import MemoryUpdater, shortest_excerpt
from tests.verdicts import make_verdict

RULES = {
    "tanh": "You cannot call tl.tanh; use libdevice.tanh.",
    "slice": "You cannot slice a tensor inside a kernel; load the part you need.",
    "slip": "no rule",
}
SOURCE = "import triton\n\n@triton.jit\ndef kernel(p):\n    pass\n"


@dataclass
class Model:
    """Answers with ``text`` or the rule whose name stands in the prompt, and that all rules differ."""

    finish: Finish = Finish.COMPLETE
    requests: list[ModelRequest] = field(default_factory=list)
    fails: Exception | None = None
    same: str = "different"
    text: str | None = None
    thought: str = "Some thought.\n"

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        if request.purpose is Purpose.MERGE:
            return ModelReply(f"{self.thought}{self.same}", self.finish, Usage(1, 0, 1), "model")
        name = next((name for name in RULES if f"{name} " in request.prompt), "slip")
        text = f"{self.thought}{RULES[name]}" if self.text is None else self.text
        return ModelReply(text, self.finish, Usage(10, 0, 5), "model")


def failure(step: int, name: str, status: Status = Status.LAUNCH, lineage: int | None = None) -> Failure:
    verdict = make_verdict(status=status, metadata={"runtime_error": f"ValueError: {name} {step}"})
    return Failure(step, SOURCE, verdict, lineage=step if lineage is None else lineage)


@pytest.fixture(params=["memory.txt", "memory.jsonl"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / str(request.param)


def finished(
    updater: MemoryUpdater, task: str, failures: Sequence[Failure], run: str = "run"
) -> update.MemoryUpdate:
    return updater.add([TaskFailures(f"{run}/{task}", tuple(failures))])


def rules(path: Path) -> dict[str, float]:
    return {rule.text: rule.count for rule in read_rules(path)}


def test_kind_costs_one_call_and_counts_lineages(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model)
    failures = [failure(1, "tanh"), failure(2, "tanh", lineage=1), failure(3, "tanh"), failure(4, "slice")]
    change = finished(updater, "2_1", failures)
    assert (change.calls, change.usage.input_tokens, change.added) == (1, 10, (RULES["tanh"],))
    assert rules(path) == {RULES["tanh"]: 2}
    assert [request.purpose for request in model.requests] == [Purpose.RULE]


def test_kind_recurs_across_tasks_and_keeps_its_count(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model)
    assert finished(updater, "2_1", [failure(1, "tanh")]).calls == 0
    assert finished(updater, "2_2", [failure(1, "tanh")]).calls == 1
    change = finished(updater, "2_3", [failure(9, "tanh")])
    assert (change.calls, change.raised) == (0, (RULES["tanh"],))
    assert rules(path) == {RULES["tanh"]: 3}


def test_no_rule_is_remembered(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model)
    finished(updater, "2_1", [failure(1, "slip"), failure(2, "slip")])
    finished(updater, "2_2", [failure(1, "slip")])
    assert len(model.requests) == 1
    assert rules(path) == {}


def test_a_resumed_task_is_not_counted_again(path: Path) -> None:
    first = [failure(1, "tanh"), failure(2, "tanh")]
    finished(MemoryUpdater(path, Model()), "2_1", first)
    finished(MemoryUpdater(path, Model()), "2_1", [*first, failure(3, "slice"), failure(4, "slice")])
    assert rules(path) == {RULES["tanh"]: 2, RULES["slice"]: 2}
    finished(MemoryUpdater(path, Model()), "2_1", [failure(1, "tanh")], run="another")
    assert rules(path)[RULES["tanh"]] == 3


def test_kinds_met_once_are_put_together_by_family(path: Path) -> None:
    model = Model()
    errors = [f"AttributeError: module 'triton.language' has no attribute '{name}'" for name in ("eq", "or")]
    for number, text in enumerate(errors):
        verdict = make_verdict(status=Status.COMPILE, metadata={"runtime_error": text})
        finished(MemoryUpdater(path, model), f"2_{number}", [Failure(1, SOURCE, verdict, 1)])
    assert len(model.requests) == 1
    assert all(text in model.requests[0].prompt for text in errors)


def test_near_rule_is_merged_only_if_model_agrees(path: Path) -> None:
    known = "You cannot call tl.tanh in a kernel; use libdevice.tanh or an identity"
    write_rules(path, [Rule(known, 4)])
    model = Model(same="same")
    change = finished(MemoryUpdater(path, model), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert change.calls == 2
    assert rules(path) == {known: 6}
    write_rules(path, [Rule(known, 4)])
    sidecar_path(path).unlink()
    finished(MemoryUpdater(path, Model()), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert rules(path) == {known: 4, RULES["tanh"]: 2}


def test_reasoning_before_rules_and_comparisons_is_skipped(path: Path) -> None:
    known = "You cannot call tl.tanh in a kernel; use libdevice.tanh or an identity"
    write_rules(path, [Rule(known, 4)])
    model = Model(same="same", thought="<think>It is tanh.</think>")
    change = finished(MemoryUpdater(path, model), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert (change.calls, rules(path)) == (2, {known: 6})


def test_rule_of_equal_words_merges_without_asking(path: Path) -> None:
    write_rules(path, [Rule("You cannot call `tl.tanh`: use libdevice.tanh instead", 4)])
    change = finished(MemoryUpdater(path, Model()), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert change.calls == 1
    assert rules(path) == {"You cannot call `tl.tanh`: use libdevice.tanh instead": 6}


def test_wrong_values_cost_no_model_request(path: Path) -> None:
    model = Model()
    wrong = [failure(step, "tanh", Status.WRONG_VALUE) for step in (1, 2)]
    assert finished(MemoryUpdater(path, model), "2_1", wrong).calls == 0
    assert (model.requests, path.exists()) == ([], False)


@pytest.mark.parametrize("bad", [Model(finish=Finish.CUT), Model(finish=Finish.REFUSED), Model(text="")])
def test_kind_is_asked_again_after_unusable_reply(
    path: Path, bad: Model, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [failure(1, "tanh"), failure(2, "tanh")]
    with caplog.at_level(logging.WARNING, "skill_memory"):
        finished(MemoryUpdater(path, bad), "2_1", failures)
    assert rules(path) == {}
    assert ["no rule for now" in record.message for record in caplog.records] == [True]
    finished(MemoryUpdater(path, Model()), "2_1", failures)
    assert rules(path) == {RULES["tanh"]: 2}


def test_unusable_reply_leaves_other_kinds_answered(path: Path) -> None:
    class Shy(Model):
        def complete(self, request: ModelRequest) -> ModelReply:
            self.text = "Hm." if "tanh " in request.prompt else None
            return super().complete(request)

    failures = [failure(step, name) for step, name in enumerate(["tanh", "tanh", "slice", "slice"])]
    finished(MemoryUpdater(path, Shy()), "2_1", failures)
    assert rules(path) == {RULES["slice"]: 2}


def test_unanswered_kind_stays_open_and_counted(path: Path) -> None:
    model = Model(fails=ModelUnavailableError("no answer"))
    updater = MemoryUpdater(path, model)
    finished(updater, "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert rules(path) == {}
    model.fails = None
    finished(updater, "2_2", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 3}


def test_a_refused_request_stops_the_run(path: Path) -> None:
    updater = MemoryUpdater(path, Model(fails=ModelRequestError("key")))
    with pytest.raises(ModelRequestError):
        finished(updater, "1", [failure(1, "tanh"), failure(2, "tanh")])


def test_lock_is_free_during_the_model_call(path: Path) -> None:
    class Locking(Model):
        def complete(self, request: ModelRequest) -> ModelReply:
            entered = threading.Event()

            def enter() -> None:
                with locked(path):
                    entered.set()

            threading.Thread(target=enter, daemon=True).start()
            assert entered.wait(10)
            return super().complete(request)

    finished(MemoryUpdater(path, Locking()), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert rules(path) == {RULES["tanh"]: 2}


def test_many_threads_lose_no_count(path: Path) -> None:
    def work(number: int) -> None:
        updater = MemoryUpdater(path, Model())
        finished(updater, f"2_{number}", [failure(1, "tanh"), failure(2, "slice")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(20)))
    assert rules(path) == {RULES["tanh"]: 20, RULES["slice"]: 20}


def test_kill_between_two_writes_keeps_counts_exact(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updater = MemoryUpdater(path, Model())
    finished(updater, "2_1", [failure(1, "tanh"), failure(2, "tanh")])

    def killed(*_: object) -> None:
        raise StorageError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(update, "write_text", killed)
        with pytest.raises(StorageError):
            finished(updater, "2_2", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 2}
    finished(updater, "2_2", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 3}
    finished(updater, "2_3", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 4}


def test_damaged_sidecar_is_named_and_run_continues(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sidecar_path(path).write_text("{half")
    finished(MemoryUpdater(path, Model()), "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert rules(path) == {RULES["tanh"]: 2}
    assert sidecar_path(path).name in caplog.text


def test_json_lines_prevent_double_counts_after_sidecar_loss(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    failures = [failure(1, "tanh"), failure(2, "tanh")]
    finished(MemoryUpdater(path, Model()), "2_1", failures)
    sidecar_path(path).unlink()
    model = Model()
    finished(MemoryUpdater(path, model), "2_1", [*failures, failure(7, "tanh")])
    (rule,) = read_rules(path)
    assert (rule.count, rule.tasks, model.requests) == (3, ("run/2_1#1", "run/2_1#2", "run/2_1#7"), [])
    assert rule.evidence[0].error == "ValueError: tanh 1"


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (
            "Because of this.\n\nYou cannot call tl.tanh in a kernel.\n",
            "You cannot call tl.tanh in a kernel.",
        ),
        ("- **You cannot call tl.tanh in a kernel.**", "You cannot call tl.tanh in a kernel."),
        ("Rule: you cannot call tl.tanh in a kernel.", "You cannot call tl.tanh in a kernel."),
        ("```\nYou cannot call tl.tanh in a kernel.\n```", "You cannot call tl.tanh in a kernel."),
        ("no rule", None),
        ("Thought.\nNo rule.", None),
        ("```\nno rule\n```", None),
        ("no guidance", None),
    ],
)
def test_rule_or_no_rule_is_read(reply: str, rule: str | None) -> None:
    assert rule_in(reply) == rule


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "```",
        "You cannot",
        "You cannot do this:\nelse: at line 223",
        "You cannot write the else branch at line 223 of a kernel.",
        "You cannot import from candidate.py in a kernel.",
        "Always use tl.maximum instead of tl.max.",
        "You cannot write a||b in a kernel at all.",
        "You cannot " + "x" * 400,
    ],
)
def test_other_replies_are_no_answer(reply: str) -> None:
    with pytest.raises(UnusableReply):
        rule_in(reply)


def test_different_rules_are_no_duplicates() -> None:
    known = ["You cannot make a block of more than 1048576 elements."]
    assert nearest("You cannot pass other= to tl.load without mask=.", known) is None


def test_the_excerpt_is_the_offending_line() -> None:
    source = "\n".join(f"    x{n} = tl.load(p + {n})" for n in range(500))
    error = "at 3:4:\n    x400 = tl.load(p + 400)\n           ^\nTypeError('x')"
    assert shortest_excerpt(source, error) == "x400 = tl.load(p + 400)"
    assert shortest_excerpt(source, "TypeError: x", line=3) == "x2 = tl.load(p + 2)"
    assert shortest_excerpt(source, "x7 = tl.load(p + 7)\nTypeError: x") == "x7 = tl.load(p + 7)"
    assert shortest_excerpt(source, "TypeError: x") == ""


def test_unreadable_lines_are_kept_in_rejected_file(path: Path) -> None:
    good = "You cannot one||3" if path.suffix == ".txt" else '{"rule": "You cannot one", "count": 3}'
    bad = "You cannot 2||many" if path.suffix == ".txt" else '{"rule": '
    path.write_text(f"{good}\n{bad}\n")
    updater = MemoryUpdater(path, Model())
    finished(updater, "2_1", [failure(1, "tanh"), failure(2, "tanh")])
    assert rules(path) == {"You cannot one": 3, RULES["tanh"]: 2}
    assert path.with_name(f"{path.name}.rejected").read_text() == f"{bad}\n"


def test_prompt_holds_error_and_stage_within_a_limit(path: Path) -> None:
    model = Model()
    text = "x" * 9000 + "\nValueError: tanh $ {y}"
    verdict = make_verdict(status=Status.COMPILE, metadata={"runtime_error": text})
    failures = [Failure(step, SOURCE * 300, verdict, lineage=step) for step in (1, 2)]
    finished(MemoryUpdater(path, model), "2_1", failures)
    prompt = model.requests[0].prompt
    assert "ValueError: tanh $ {y}" in prompt
    assert '"compile"' in prompt
    assert len(prompt) < 7000


def test_lone_surrogate_in_a_failure_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    metadata = {"runtime_error": "f()\nNameError: tanh \ud800", "runtime_error_name": "\ud800Error"}
    verdict = make_verdict(status=Status.LOAD, metadata=metadata)
    failures = [Failure(step, 'f("\ud800")', verdict, lineage=step, line=1) for step in (1, 2)]
    finished(MemoryUpdater(path, Model()), "2_1", failures)
    assert rules(path) == {RULES["tanh"]: 2}
    (rule,) = read_rules(path)
    assert {(item.excerpt, item.error) for item in rule.evidence} == {
        (r'f("\ud800")', r"NameError: tanh \ud800")
    }
