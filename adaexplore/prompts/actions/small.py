"""A small step: edits of the last shown kernel."""

from __future__ import annotations

from adaexplore.core.plan import Purpose, StepKind
from adaexplore.prompts.actions.action import StepAction
from adaexplore.prompts.paper import small_prompt
from adaexplore.prompts.view import View


def _request(view: View, guidance: str) -> str:
    last = len(view.kernels) - 1
    before = "; those before it led to it" if last else ""
    return f"## Now: edits\nEdit kernel {last}, the last one{before}.\n{guidance}"


ACTION = StepAction(
    kind=StepKind.SMALL,
    purpose=Purpose.SMALL,
    request=_request,
    paper=small_prompt,
    reviewed=True,
    reply_tokens=600,
)
