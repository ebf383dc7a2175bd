from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.draft import Draft, DraftOutcome, RepairReason
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, Purpose, StepKind
from adaexplore.core.task import Task
from adaexplore.core.text.identity import MOST_PARSED_CHARS
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, StepData
from adaexplore.preflight.findings import Finding
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.render import render
from adaexplore.run import step
from adaexplore.run.step import write_draft
from adaexplore.run.verdicts import Verdicts
from tests.run.parts import StubJudge
from tests.verdicts import make_verdict

TASK = Task(1, "1", "1_x", "class Model: ...\n", "fp32", Path("1_x.py"))
FACTS = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10)
KERNEL = "import torch\n\n\nclass ModelNew:\n    size = 1\n"
GOOD = ShownKernel(KERNEL, Verdict(status=Status.PASSED))
BAD = ShownKernel(KERNEL, Verdict(status=Status.COMPILE))
LARGE = Plan(3, StepKind.LARGE, 0)
SMALL = Plan(4, StepKind.SMALL, 3, (3,))
EDIT = "<old_str_1>\n    size = 1\n</old_str_1>\n<new_str_1>\n    size = 2\n</new_str_1>"
MISSING = EDIT.replace("size = 1", "size = 7")


@dataclass
class Scripted:
    """A model that answers in order and records its requests."""

    replies: list[str | Finish]
    requests: list[ModelRequest] = field(default_factory=list)

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        text, finish = ("", reply) if isinstance(reply, Finish) else (reply, Finish.COMPLETE)
        return ModelReply(text, finish, Usage(10, 0, 5, 0.5, 0.01), "scripted")

    @property
    def purposes(self) -> list[Purpose]:
        return [request.purpose for request in self.requests]


REFUSED = CompileReport(ok=False, status="compile", kernel="k", message="no such thing")


class Compiling(StubJudge):
    """A judge whose compiler returns findings of a list, in turn."""

    def __init__(self, findings: list[CompileReport]) -> None:
        super().__init__()
        self.findings = findings

    def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
        return self.findings.pop(0) if self.findings else CompileReport(ok=True, status="passed")


@pytest.fixture(autouse=True)
def lints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a single lint, which objects to ``break``."""
    monkeypatch.setattr(step, "lint", no_break)


def draft(
    replies: list[str | Finish],
    plan: Plan,
    shown: Sequence[ShownKernel] = (),
    *,
    compiled: Sequence[CompileReport] = (),
    known: Mapping[str, Verdict] | None = None,
    **options: Any,
) -> tuple[Draft, Scripted]:
    """Write a draft; the judge's compiler returns ``compiled`` in turn, then no findings."""
    client = Scripted(replies)
    agent = Agent(client, TASK, FACTS, ("You cannot fly.",), AgentOptions(**options))
    verdicts = Verdicts(JudgeAccess([Compiling(list(compiled))]), TASK)
    for source, verdict in (known or {}).items():
        verdicts.learn(source, verdict)
    return write_draft(agent, verdicts, plan, shown), client


def test_large_step_takes_first_fenced_code() -> None:
    made, client = draft([f"Here:\n```python\n{KERNEL}```\ndone"], LARGE)
    assert made.outcome is DraftOutcome.WRITTEN
    assert made.source.strip() == KERNEL.strip()
    assert client.requests[0].key == "1_1/3/large"
    assert "- You cannot fly." in client.requests[0].prompt


def test_requests_of_a_step_carry_its_data() -> None:
    plan = replace(SMALL, direction="tiles")
    _, client = draft(["1. Double.", MISSING, EDIT], plan, [BAD, GOOD])
    assert client.purposes == [Purpose.REVIEW, Purpose.SMALL, Purpose.REPAIR]
    kernels = (BAD, GOOD)
    data = StepData(TASK.reference, kernels, ("You cannot fly.",), "tiles", tunes=False, edits=True)
    assert [request.data for request in client.requests] == [data] * 3


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("", DraftOutcome.EMPTY),
        (" \n", DraftOutcome.EMPTY),
        (Finish.REFUSED, DraftOutcome.REFUSED),
        (Finish.CUT, DraftOutcome.CUT),
        ("I am sorry, no.", DraftOutcome.NO_CODE),
        ("```python\n\n```", DraftOutcome.NO_CODE),
    ],
)
def test_replies_without_code_are_typed_outcomes(reply: str | Finish, outcome: DraftOutcome) -> None:
    made, _ = draft([reply], LARGE)
    assert (made.outcome, made.source) == (outcome, "")


def test_small_step_reviews_then_edits_the_last_kernel() -> None:
    made, client = draft(["1. Double the size.", EDIT], SMALL, [BAD, GOOD])
    assert client.purposes == [Purpose.REVIEW, Purpose.SMALL]
    assert "1. Double the size." in client.requests[1].prompt
    assert made.outcome is DraftOutcome.WRITTEN
    assert made.source == KERNEL.replace("size = 1", "size = 2")
    assert made.usage == Usage(20, 0, 10, 1.0, 0.02)


def test_review_is_skipped_if_all_kernels_wrong() -> None:
    _, client = draft([EDIT], SMALL, [BAD])
    assert client.purposes == [Purpose.SMALL]
    assert render("guidance_default") in client.requests[0].prompt


def test_review_can_be_forced_and_disabled() -> None:
    _, forced = draft(["mend", EDIT], SMALL, [BAD], force_review=True)
    _, disabled = draft([EDIT], SMALL, [GOOD], reviewer=False)
    assert forced.purposes == [Purpose.REVIEW, Purpose.SMALL]
    assert disabled.purposes == [Purpose.SMALL]


def test_shared_layout_has_review_and_edits_together() -> None:
    made, client = draft([f"1. Double the size.\n\n{EDIT}"], SMALL, [BAD, GOOD], layout="shared")
    assert client.purposes == [Purpose.SMALL]
    assert client.requests[0].prompt.endswith(render("guidance_review"))
    assert made.source == KERNEL.replace("size = 1", "size = 2")
    assert made.exchanges[0].reply.startswith("1. Double the size.")


def test_shared_layout_skips_forces_and_disables_review() -> None:
    standing = render("guidance_default")
    for shown, options, asked in (
        (BAD, {}, standing),
        (BAD, {"force_review": True}, render("guidance_review")),
        (GOOD, {"reviewer": False}, standing),
    ):
        _, client = draft([EDIT], SMALL, [shown], layout="shared", **options)
        assert client.requests[0].prompt.endswith(asked)


def test_failed_edit_is_sent_back_with_nearest_lines() -> None:
    made, client = draft([MISSING, EDIT], SMALL, [BAD])
    assert client.purposes == [Purpose.SMALL, Purpose.REPAIR]
    assert "size = 1" in client.requests[1].prompt
    assert made.outcome is DraftOutcome.WRITTEN


def test_reply_without_edits_is_sent_back() -> None:
    _, client = draft(["1. Double the size.", EDIT], SMALL, [BAD])
    assert "There are no edits in your answer." in client.requests[1].prompt


def test_a_cut_repair_is_not_applied_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_after_one_edit = ModelReply(EDIT + "\n<old_str_2>", Finish.CUT, Usage(), "scripted")
    replies = [ModelReply(MISSING, Finish.COMPLETE, Usage(), "scripted"), cut_after_one_edit]
    monkeypatch.setattr(Scripted, "complete", lambda *_: replies.pop(0))
    made, _ = draft([], SMALL, [BAD])
    assert (made.outcome, made.source) == (DraftOutcome.EDIT_FAILED, KERNEL)


def test_edit_that_fails_twice_keeps_the_parent() -> None:
    made, _ = draft([MISSING, MISSING], SMALL, [BAD])
    assert (made.outcome, made.source) == (DraftOutcome.EDIT_FAILED, KERNEL)


def test_edit_that_changes_only_a_comment_is_unchanged() -> None:
    comment = EDIT.replace("size = 2", "size = 1  # as before")
    made, _ = draft([comment], SMALL, [BAD])
    assert made.outcome is DraftOutcome.UNCHANGED


BIGGER = KERNEL.replace("size = 1", "size = 9")


def test_whole_file_in_small_step_is_rewrite() -> None:
    made, client = draft([code(BIGGER)], SMALL, [BAD], layout="shared")
    assert (made.outcome, made.source, made.rewritten) == (DraftOutcome.WRITTEN, BIGGER, True)
    assert client.purposes == [Purpose.SMALL]


def test_paper_layout_asks_again_for_edits() -> None:
    made, client = draft([code(BIGGER), code(BIGGER)], SMALL, [BAD])
    assert (made.outcome, made.source, made.rewritten) == (DraftOutcome.EDIT_FAILED, KERNEL, False)
    assert client.purposes == [Purpose.SMALL, Purpose.REPAIR]


def test_repair_of_a_rewrite_edits_that_file() -> None:
    broken = BIGGER + "break\n"
    edit = "<old_str_1>\nbreak\n</old_str_1>\n<new_str_1>\nx = 1\n</new_str_1>"
    made, client = draft([code(broken), edit], SMALL, [BAD], layout="shared", **EVERYTHING)
    assert (made.outcome, made.source, made.rewritten) == (DraftOutcome.WRITTEN, BIGGER + "x = 1\n", True)
    assert render("repair_kernel") in client.requests[1].prompt


def test_kernel_sent_back_whole_is_unchanged() -> None:
    made, _ = draft([code(KERNEL)], SMALL, [BAD], layout="shared")
    assert (made.outcome, made.rewritten) == (DraftOutcome.UNCHANGED, False)


def test_incomplete_file_is_sent_back_with_reason() -> None:
    stub = code("class ModelNew:\n    # same as before\n    ...\n")
    made, client = draft([stub, code(KERNEL)], LARGE, layout="shared", **EVERYTHING)
    assert made.source == KERNEL
    assert "complete file that defines ModelNew" in client.requests[1].prompt


REASONING = f"<think>\nMaybe\n```python\n{KERNEL}```\nor {MISSING}?\n</think>\n\n"


def test_answer_after_reasoning_is_the_kernel() -> None:
    final = KERNEL.replace("size = 1", "size = 3")
    for reasoning in (REASONING, REASONING.removeprefix("<think>")):
        made, _ = draft([f"{reasoning}```python\n{final}```"], LARGE)
        assert made.source == final
        assert made.exchanges[0].reply.startswith(reasoning)


def test_reasoning_reaches_neither_edits_nor_later_prompts() -> None:
    replies: list[str | Finish] = [f"{REASONING}1. Double.", REASONING + MISSING, REASONING + EDIT]
    made, client = draft(replies, SMALL, [GOOD])
    assert made.source == KERNEL.replace("size = 1", "size = 2")
    assert "1. Double." in client.requests[1].prompt
    assert not any("</think>" in request.transcript for request in client.requests)


def test_reply_with_reasoning_alone_is_empty() -> None:
    assert draft([REASONING], LARGE)[0].outcome is DraftOutcome.EMPTY


def test_failed_repair_reply_is_recorded_with_the_others() -> None:
    made, _ = draft([MISSING, ""], SMALL, [BAD])
    assert [exchange.purpose for exchange in made.exchanges] == ["small", "repair"]
    assert made.outcome is DraftOutcome.EDIT_FAILED


EVERYTHING = {"repaired": frozenset(RepairReason), "repair_attempts": 2}


def code(source: str) -> str:
    return f"```python\n{source}```"


def no_break(source: str, *_: object) -> tuple[Finding, ...]:
    lines = source.splitlines()
    return tuple(
        Finding("unsupported-syntax", n, "no break") for n, line in enumerate(lines, 1) if "break" in line
    )


def test_repair_continues_the_conversation() -> None:
    made, client = draft(["1. Double the size.", MISSING, EDIT], SMALL, [GOOD])
    _, small, repair = client.requests
    (turn,) = repair.earlier
    assert (turn.prompt, turn.purpose, turn.reply) == (small.prompt, Purpose.SMALL, MISSING)
    assert small.earlier == ()
    assert KERNEL not in repair.prompt
    assert "5:     size = 1" in repair.prompt
    assert [exchange.reason for exchange in made.exchanges] == ["", "", "edit"]
    assert repair.transcript.startswith(small.prompt)
    assert repair.transcript.endswith(repair.prompt)


def test_replies_are_sent_back_as_often_as_allowed() -> None:
    made, client = draft([MISSING, MISSING, EDIT], SMALL, [BAD], repair_attempts=2)
    assert made.outcome is DraftOutcome.WRITTEN
    assert [request.key for request in client.requests] == ["1_1/4/small", "1_1/4/repair", "1_1/4/repair-2"]
    assert [turn.purpose for turn in client.requests[2].earlier] == [Purpose.SMALL, Purpose.REPAIR]
    made, client = draft([MISSING], SMALL, [BAD], repair_attempts=0)
    assert (made.outcome, made.source) == (DraftOutcome.EDIT_FAILED, KERNEL)


@pytest.mark.parametrize(("space", "requests"), [(0, 1), (500, 2)])
def test_repair_counts_with_conversation_before_it(space: int, requests: int) -> None:
    _, first = draft([MISSING], SMALL, [BAD], repair_attempts=0)
    most = estimate_tokens(first.requests[0].prompt + MISSING) + space
    made, client = draft([MISSING, MISSING], SMALL, [BAD], max_prompt_tokens=most)
    assert len(client.requests) == requests
    assert (made.outcome, made.source) == (DraftOutcome.EDIT_FAILED, KERNEL)


def test_edits_without_effect_are_sent_back_if_enabled() -> None:
    comment = EDIT.replace("size = 2", "size = 1  # as before")
    made, _ = draft([comment, EDIT], SMALL, [BAD], **EVERYTHING)
    assert made.outcome is DraftOutcome.WRITTEN
    assert made.exchanges[1].reason == "unchanged"
    made, _client = draft([comment], SMALL, [BAD])
    assert made.outcome is DraftOutcome.UNCHANGED


def test_judged_program_is_sent_back_with_verdict() -> None:
    known = {KERNEL: make_verdict(status=Status.WRONG_VALUE, metadata={"feedback": "first difference at 3"})}
    made, client = draft([code(KERNEL), code(KERNEL + "x = 1\n")], LARGE, known=known, **EVERYTHING)
    assert "judged before: wrong_value\nfirst difference at 3" in client.requests[1].prompt
    assert made.source == KERNEL + "x = 1\n"
    made, client = draft([code(KERNEL)] * 3, LARGE, known=known, **EVERYTHING)
    assert (made.outcome, made.source, len(client.requests)) == (DraftOutcome.WRITTEN, KERNEL, 3)
    made, client = draft([code(KERNEL)], LARGE, known=known)
    assert (made.outcome, len(client.requests)) == (DraftOutcome.WRITTEN, 1)


def test_lint_findings_show_text_of_their_lines() -> None:
    broken = KERNEL + "break  # out\n"
    made, client = draft([code(broken), code(KERNEL)], LARGE, **EVERYTHING)
    assert (made.outcome, made.source) == (DraftOutcome.WRITTEN, KERNEL)
    assert "line 6, `break  # out`: no break" in client.requests[1].prompt
    assert made.exchanges[1].reason == "lint"


def test_very_long_sources_are_not_linted() -> None:
    made, _ = draft([code(f"{KERNEL}break\n# {'x' * MOST_PARSED_CHARS}\n")], LARGE, **EVERYTHING)
    assert made.outcome is DraftOutcome.WRITTEN


def test_final_lint_finding_is_verdict_without_judge() -> None:
    broken = code(KERNEL + "break\n")
    made, client = draft([broken] * 3, LARGE, **EVERYTHING)
    assert (made.outcome, len(client.requests)) == (DraftOutcome.LINT_STOPPED, 3)
    assert made.verdict is not None
    assert (made.verdict.status, made.verdict.feedback) == (Status.COMPILE, "line 6, `break`: no break")


def test_file_may_be_repaired_by_edits() -> None:
    broken = KERNEL + "break\n"
    edit = "<old_str_1>\nbreak\n</old_str_1>\n<new_str_1>\npass\n</new_str_1>"
    made, _ = draft([code(broken), edit], LARGE, **EVERYTHING)
    assert (made.outcome, made.source) == (DraftOutcome.WRITTEN, KERNEL + "pass\n")


def test_failed_repair_keeps_the_earlier_source() -> None:
    broken = KERNEL + "break\n"
    nowhere = "<old_str_1>\nzzz\n</old_str_1>\n<new_str_1>\npass\n</new_str_1>"
    made, _ = draft([code(broken), nowhere, "no"], LARGE, **EVERYTHING)
    assert (made.outcome, made.source) == (DraftOutcome.LINT_STOPPED, broken)
    made, client = draft([code(broken), Finish.CUT], LARGE, **EVERYTHING)
    assert (made.outcome, made.source) == (DraftOutcome.LINT_STOPPED, broken)
    assert len(client.requests) == 2


def test_a_reply_without_code_is_sent_back() -> None:
    made, _client = draft(["I would rather talk.", code(KERNEL)], LARGE, **EVERYTHING)
    assert made.outcome is DraftOutcome.WRITTEN
    assert made.exchanges[1].reason == "format"


def test_compile_errors_are_sent_back_and_remembered() -> None:
    refused = REFUSED.model_copy(update={"line": 5, "message": "size is not constexpr"})
    replies: list[str | Finish] = [code(KERNEL), code(KERNEL + "x = 1\n")]
    made, client = draft(replies, LARGE, compiled=[refused], **EVERYTHING)
    assert made.outcome is DraftOutcome.WRITTEN
    assert "in k, line 5, `size = 1`: size is not constexpr" in client.requests[1].prompt
    assert made.exchanges[1].reason == "gate"


def test_final_compile_error_is_verdict_without_judge() -> None:
    made, _ = draft([code(KERNEL)], LARGE, compiled=[REFUSED], **EVERYTHING | {"repair_attempts": 0})
    assert made.outcome is DraftOutcome.GATE_STOPPED
    assert made.verdict == make_verdict(status=Status.COMPILE, metadata={"feedback": "in k, no such thing"})


@pytest.mark.parametrize("status", [Status.NOT_CHECKED, Status.TIMEOUT, Status.OUT_OF_MEMORY])
def test_uncertain_compile_errors_pass(status: Status) -> None:
    made, client = draft(
        [code(KERNEL)],
        LARGE,
        compiled=[CompileReport(ok=status is Status.NOT_CHECKED, status=status)],
        **EVERYTHING,
    )
    assert (made.outcome, made.verdict, len(client.requests)) == (DraftOutcome.WRITTEN, None, 1)


def test_a_known_program_costs_no_check() -> None:
    known = {KERNEL: Verdict(status=Status.PASSED)}
    options = EVERYTHING | {"repair_attempts": 0}
    made, _ = draft([code(KERNEL)], LARGE, known=known, compiled=[REFUSED], **options)
    assert (made.outcome, made.source) == (DraftOutcome.WRITTEN, KERNEL)


def test_prompts_with_common_prefix_have_cuts() -> None:
    _, small = draft([EDIT], SMALL, [BAD, GOOD], layout="shared")
    _, large = draft([code(KERNEL)], LARGE, [BAD, GOOD], layout="shared")
    (edits,), (kernel,) = small.requests, large.requests
    assert edits.prompt[: edits.cuts[-1]] == kernel.prompt[: kernel.cuts[-1]]
    assert KERNEL.rstrip() in edits.prompt[: edits.cuts[-1]]
    _, client = draft(["1. Double.", EDIT], SMALL, [BAD, GOOD])
    assert [request.cuts for request in client.requests] == [(), ()]
