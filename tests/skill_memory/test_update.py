from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adaexplore.core.errors import ModelRequestError, ModelUnavailableError, StorageError
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Status, Verdict
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Purpose
from skill_memory import update
from skill_memory.distil import Failure, excerpt, nearest, rule_in
from skill_memory.sidecar import locked, sidecar_path
from skill_memory.store import Rule, read_rules, write_rules
from skill_memory.update import MemoryUpdater

RULES = {
    "tanh": "You cannot call tl.tanh; use libdevice.tanh.",
    "slice": "You cannot slice a tensor inside a kernel; load the part you need.",
    "slip": "no rule",
}
SOURCE = "import triton\n\n@triton.jit\ndef kernel(p):\n    pass\n"


@dataclass
class Model:
    """Answers with the rule whose name stands in the prompt's error."""

    finish: Finish = Finish.COMPLETE
    requests: list[ModelRequest] = field(default_factory=list)
    fails: Exception | None = None

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        name = next((name for name in RULES if f"Error: {name} " in request.prompt), "slip")
        return ModelReply(f"Some thought.\n{RULES[name]}", self.finish, Usage(10, 0, 5), "model")


def failure(step: int, name: str, status: Status = Status.LAUNCH) -> Failure:
    return Failure(
        step, SOURCE, Verdict(status=status, metadata={"runtime_error": f"ValueError: {name} {step}"})
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.txt"


def rules(path: Path) -> dict[str, float]:
    return {rule.text: rule.count for rule in read_rules(path)}


def test_one_call_for_each_kind_and_one_count_for_each_task(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model, "run")
    change = updater.task_finished("2_1", [failure(1, "tanh"), failure(2, "tanh"), failure(3, "slice")])
    assert (change.calls, change.usage.input_tokens) == (2, 20)
    assert set(change.added) == {RULES["tanh"], RULES["slice"]}
    assert rules(path) == {RULES["tanh"]: 1, RULES["slice"]: 1}
    assert [(r.key, r.purpose) for r in model.requests] == [
        ("2_1/rule/1", Purpose.RULE),
        ("2_1/rule/3", Purpose.RULE),
    ]


def test_a_known_kind_raises_the_count_without_a_call(path: Path) -> None:
    model = Model()
    MemoryUpdater(path, model, "run").task_finished("2_1", [failure(1, "tanh")])
    change = MemoryUpdater(path, model, "run").task_finished("2_2", [failure(9, "tanh")])
    assert (change.calls, change.raised) == (0, (RULES["tanh"],))
    assert rules(path) == {RULES["tanh"]: 2}


def test_no_rule_is_remembered(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model, "run")
    updater.task_finished("2_1", [failure(1, "slip")])
    updater.task_finished("2_2", [failure(1, "slip")])
    assert len(model.requests) == 1
    assert rules(path) == {}


def test_a_resumed_task_is_not_counted_again(path: Path) -> None:
    model = Model()
    MemoryUpdater(path, model, "run").task_finished("2_1", [failure(1, "tanh")])
    MemoryUpdater(path, model, "run").task_finished("2_1", [failure(1, "tanh"), failure(2, "slice")])
    assert rules(path) == {RULES["tanh"]: 1, RULES["slice"]: 1}
    MemoryUpdater(path, model, "another").task_finished("2_1", [failure(1, "tanh")])
    assert rules(path)[RULES["tanh"]] == 2


def test_a_near_duplicate_raises_the_rule_that_is_there(path: Path) -> None:
    write_rules(path, [Rule("You cannot call `tl.tanh`: use libdevice.tanh instead", 4)])
    MemoryUpdater(path, Model(), "run").task_finished("2_1", [failure(1, "tanh")])
    assert rules(path) == {"You cannot call `tl.tanh`: use libdevice.tanh instead": 5}


def test_what_is_no_material_costs_nothing(path: Path) -> None:
    model = Model()
    change = MemoryUpdater(path, model, "run").task_finished("2_1", [failure(1, "tanh", Status.WRONG_VALUE)])
    assert (change.calls, model.requests, path.exists()) == (0, [], False)


def test_a_reply_cut_by_the_token_limit_makes_no_rule(path: Path) -> None:
    MemoryUpdater(path, Model(finish=Finish.CUT), "run").task_finished("2_1", [failure(1, "tanh")])
    assert rules(path) == {}


def test_without_an_answer_the_kind_stays_open(path: Path) -> None:
    model = Model()
    updater = MemoryUpdater(path, model, "run")
    updater.task_finished("2_0", [failure(1, "slice")])
    model.fails = ModelUnavailableError("no answer")
    updater.task_finished("2_1", [failure(1, "tanh"), failure(2, "slice")])
    assert rules(path) == {RULES["slice"]: 2}
    model.fails = None
    updater.task_finished("2_1", [failure(1, "tanh"), failure(2, "slice")])
    assert rules(path) == {RULES["slice"]: 2, RULES["tanh"]: 1}


def test_a_refused_request_stops_the_run(path: Path) -> None:
    with pytest.raises(ModelRequestError):
        MemoryUpdater(path, Model(fails=ModelRequestError("key")), "run").task_finished(
            "1", [failure(1, "tanh")]
        )


def test_the_lock_is_free_while_the_model_is_asked(path: Path) -> None:
    class Locking(Model):
        def complete(self, request: ModelRequest) -> ModelReply:
            entered = threading.Event()

            def enter() -> None:
                with locked(path):
                    entered.set()

            threading.Thread(target=enter, daemon=True).start()
            assert entered.wait(10)
            return super().complete(request)

    MemoryUpdater(path, Locking(), "run").task_finished("2_1", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 1}


def test_many_workers_lose_no_count(path: Path) -> None:
    def work(number: int) -> None:
        updater = MemoryUpdater(path, Model(), "run")
        updater.task_finished(f"2_{number}", [failure(1, "tanh"), failure(2, "slice")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert rules(path) == {RULES["tanh"]: 40, RULES["slice"]: 40}


def test_a_process_killed_between_the_two_files_loses_and_doubles_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updater = MemoryUpdater(path, Model(), "run")
    updater.task_finished("2_1", [failure(1, "tanh")])

    def killed(*_: object) -> None:
        raise StorageError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(update, "write_text", killed)
        with pytest.raises(StorageError):
            updater.task_finished("2_2", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 1}
    updater.task_finished("2_2", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 2}
    updater.task_finished("2_3", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 3}


def test_a_damaged_sidecar_is_named_and_the_run_goes_on(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sidecar_path(path).write_text("{half")
    MemoryUpdater(path, Model(), "run").task_finished("2_1", [failure(1, "tanh")])
    assert rules(path) == {RULES["tanh"]: 1}
    assert "memory.txt.signatures.json" in caplog.text


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (
            "Because of this.\n\nYou cannot call tl.tanh in a kernel.\n",
            "You cannot call tl.tanh in a kernel.",
        ),
        ("- **You cannot call tl.tanh in a kernel.**", "You cannot call tl.tanh in a kernel."),
        ("Rule: you cannot call tl.tanh in a kernel.", "You cannot call tl.tanh in a kernel."),
        ("no rule", None),
        ("Thought.\nNo rule.", None),
        ("no guidance", None),
        ("", None),
        ("You cannot", None),
        ("You cannot do this:\nelse: at line 223", None),
        ("You cannot write the else branch at line 223 of a kernel.", None),
        ("You cannot import from candidate.py in a kernel.", None),
        ("Always use tl.maximum instead of tl.max.", None),
        ("You cannot write a||b in a kernel at all.", None),
        ("You cannot " + "x" * 400, None),
    ],
)
def test_a_reply_is_a_rule_only_when_it_is_one(reply: str, rule: str | None) -> None:
    assert rule_in(reply) == rule


def test_different_rules_are_no_duplicates() -> None:
    known = ["You cannot pass other= to tl.store; only tl.load has it."]
    assert nearest("You cannot pass other= to tl.load without mask=.", known) is None


def test_the_excerpt_is_bounded_and_shows_the_place() -> None:
    source = "\n".join(f"    x{n} = tl.load(p + {n})" for n in range(500))
    caret = excerpt(source, "at 3:4:\n    x400 = tl.load(p + 400)\n           ^\nTypeError('x')")
    numbered = excerpt(source, 'File "c.py", line 451, in forward\nTypeError: x')
    assert "x400 = " in caret
    assert "x450 = " in numbered
    assert len(caret.splitlines()) == len(numbered.splitlines()) == 40
    assert len(excerpt("y" * 100_000, "")) <= 3000


def test_the_prompt_holds_code_error_and_stage_and_stays_bounded(path: Path) -> None:
    model = Model()
    verdict = Verdict(
        status=Status.COMPILE, metadata={"runtime_error": "x" * 9000 + "\nValueError: tanh $ {y}"}
    )
    MemoryUpdater(path, model, "run").task_finished("2_1", [Failure(1, SOURCE * 300, verdict)])
    prompt = model.requests[0].prompt
    assert "ValueError: tanh $ {y}" in prompt
    assert "@triton.jit" in prompt
    assert '"compile"' in prompt
    assert len(prompt) < 7000
