"""A large step: a new kernel with another structure than those shown."""

from __future__ import annotations

from adaexplore.core.plan import Purpose, StepKind
from adaexplore.prompts.actions.action import StepAction
from adaexplore.prompts.paper import large_prompt
from adaexplore.prompts.view import View

KERNEL_TOKENS = 1870
"""Mean length of 1,364 kernels that models wrote for KernelBench, as bytes / 4."""
_AIM = "Write one that beats the fastest of those above, with a different structure."


def _request(view: View, _: str) -> str:
    return f"## Now: a kernel\n{_AIM if view.kernels else 'Write a first kernel.'}"


ACTION = StepAction(
    kind=StepKind.LARGE,
    purpose=Purpose.LARGE,
    request=_request,
    paper=large_prompt,
    reviewed=False,
    reply_tokens=KERNEL_TOKENS,
)
