"""Step actions: each kind of step has one, and it alone decides what is asked."""

from __future__ import annotations

import pytest

from adaexplore.core.draft import ShownKernel
from adaexplore.core.plan import StepKind
from adaexplore.prompts.actions.action import StepAction, all_actions
from adaexplore.prompts.view import View

SHOWN = View(recent=(ShownKernel("a", None), ShownKernel("b", None)))


def test_each_kind_of_step_has_an_action() -> None:
    assert all_actions().keys() == set(StepKind) - {StepKind.DUMMY_ROOT}


@pytest.mark.parametrize("action", all_actions().values(), ids=lambda action: action.kind)
def test_request_bears_the_name_of_its_step(action: StepAction) -> None:
    assert action.purpose.value == action.kind.label


@pytest.mark.parametrize("action", all_actions().values(), ids=lambda action: action.kind)
def test_request_says_the_form_of_its_answer(action: StepAction) -> None:
    heading = "## Now: edits\n" if action.kind.edits else "## Now: a kernel\n"
    assert action.request(SHOWN, "Be brief.").startswith(heading)
    assert ("Be brief." in action.request(SHOWN, "Be brief.")) == action.reviewed


def test_only_small_steps_of_the_release_edit() -> None:
    assert [kind for kind in StepKind if kind.edits] == [StepKind.SMALL]
