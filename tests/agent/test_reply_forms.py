from __future__ import annotations

import pytest

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.draft import Draft, DraftOutcome, RepairReason
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.text.identity import source_identity
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.llm.protocol import Finish
from adaexplore.prompts.blocks import ShownKernel
from adaexplore.run.step import write_draft
from adaexplore.run.verdicts import Verdicts
from tests.agent.reply_forms import BROKEN, FORMS, MISSING_EDIT, PARENT, Form, fenced
from tests.agent.test_agent import FACTS, LARGE, SMALL, TASK, Scripted
from tests.run.parts import StubJudge

OPTIONS = AgentOptions(
    layout="shared",
    repair_attempts=2,
    repaired=frozenset(
        {RepairReason.EDIT, RepairReason.FORMAT, RepairReason.UNCHANGED, RepairReason.DUPLICATE}
    ),
)
BEFORE = {"small repair": [MISSING_EDIT], "large repair": [fenced(BROKEN)]}


def read(form: Form) -> tuple[Draft, int]:
    """Answer a step with the form; return its draft, and how often the form was sent back."""
    before: list[str | Finish] = [*BEFORE.get(form.step, [])]
    client = Scripted([*before, form.reply, Finish.REFUSED])
    verdicts = Verdicts(JudgeAccess([StubJudge()]), TASK)
    verdicts.learn(BROKEN, Verdict(status=Status.WRONG_VALUE))
    plan: Plan = SMALL if form.step.startswith("small") else LARGE
    shown = [ShownKernel(PARENT, Verdict(status=Status.WRONG_VALUE))] if plan.kind is StepKind.SMALL else []
    draft = write_draft(Agent(client, TASK, FACTS, (), OPTIONS), verdicts, plan, shown)
    return draft, len(client.requests) - len(before) - 1


def test_the_table_holds_sixty_different_forms() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS) >= 60
    assert len({form.reply for form in FORMS if form.taken is not None}) >= 60


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_answer_is_taken_from_each_form(form: Form) -> None:
    draft, repairs = read(form)
    if form.taken is None:
        assert draft.outcome in (DraftOutcome.NO_CODE, DraftOutcome.EDIT_FAILED, DraftOutcome.EMPTY)
        assert repairs == (draft.outcome is not DraftOutcome.EMPTY)
    else:
        assert source_identity(draft.source) == source_identity(form.taken)
        assert (draft.outcome, repairs, draft.rewritten) == (DraftOutcome.WRITTEN, 0, form.rewritten)
