from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Status, Verdict
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Purpose
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.render import render

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
    """Answers in order and remembers what it was asked."""

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


def draft(
    replies: list[str | Finish], plan: Plan, shown: Sequence[ShownKernel] = (), **options: bool
) -> tuple[Draft, Scripted]:
    client = Scripted(replies)
    agent = Agent(client, TASK, FACTS, ("You cannot fly.",), AgentOptions(**options))
    return agent.draft(plan, shown), client


def test_large_step_takes_the_code_of_the_first_fence() -> None:
    made, client = draft([f"Here:\n```python\n{KERNEL}```\ndone"], LARGE)
    assert made.outcome is DraftOutcome.WRITTEN
    assert made.source.strip() == KERNEL.strip()
    assert client.requests[0].key == "1_1/3/large"
    assert "- You cannot fly." in client.requests[0].prompt


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


def test_review_is_skipped_where_every_kernel_in_view_is_wrong() -> None:
    _, client = draft([EDIT], SMALL, [BAD])
    assert client.purposes == [Purpose.SMALL]
    assert render("guidance_default") in client.requests[0].prompt


def test_review_can_be_forced_and_disabled() -> None:
    _, forced = draft(["mend", EDIT], SMALL, [BAD], force_review=True)
    _, disabled = draft([EDIT], SMALL, [GOOD], reviewer=False)
    assert forced.purposes == [Purpose.REVIEW, Purpose.SMALL]
    assert disabled.purposes == [Purpose.SMALL]


def test_failed_edit_goes_back_once_with_reason_and_nearest_lines() -> None:
    made, client = draft([MISSING, EDIT], SMALL, [BAD])
    assert client.purposes == [Purpose.SMALL, Purpose.REPAIR]
    assert "size = 1" in client.requests[1].prompt
    assert made.outcome is DraftOutcome.WRITTEN


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


def test_failed_repair_reply_is_recorded_with_the_others() -> None:
    made, _ = draft([MISSING, ""], SMALL, [BAD])
    assert [exchange.purpose for exchange in made.exchanges] == ["small", "repair"]
    assert made.outcome is DraftOutcome.EDIT_FAILED


def test_half_a_surrogate_pair_does_not_reach_files_or_requests() -> None:
    made, _ = draft(["```python\nclass ModelNew:\n    name = '\ud83d'\n```"], LARGE)
    assert made.source.encode("utf-8")
    assert made.exchanges[0].reply.encode("utf-8")
