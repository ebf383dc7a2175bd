"""The prompts of the search's steps, in the layout of the run and within its budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adaexplore.core.task import Task
from adaexplore.core.tokens import estimate_tokens
from adaexplore.prompts import paper, shared
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.directions import direction_text
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.view import View, smaller

Layout = Literal["paper", "shared"]


@dataclass(frozen=True)
class StepPrompts:
    """Writes the prompts of one task.

    Attributes:
        task: whose module is to be replaced.
        facts: what is said about the judge.
        rules: the skill memory.
        example: whether a worked answer is shown.
        layout: ``paper`` (a template a step) or ``shared`` (all steps begin alike).
        max_tokens: most tokens of a prompt, as :func:`~adaexplore.core.tokens.estimate_tokens` counts
            them; what goes first is said at :func:`~adaexplore.prompts.view.smaller`. 0: no limit.
    """

    task: Task
    facts: JudgeFacts
    rules: tuple[str, ...] = ()
    example: bool = True
    layout: Layout = "paper"
    max_tokens: int = 0

    def large(
        self, recent: Sequence[ShownKernel], elite: Sequence[ShownKernel] = (), direction: str = ""
    ) -> Prompt:
        """Ask for a new kernel that differs in structure from those shown; ``direction`` names how."""
        view = View(self.rules, tuple(elite), tuple(recent), self.example)
        if self.layout == "paper":
            return self._fitted(view, lambda view: paper.large_prompt(self.task, self.facts, view))
        told = direction_text(direction)
        return self._fitted(view, lambda view: shared.large_prompt(self.task, self.facts, view, told))

    def review(self, chain: Sequence[ShownKernel]) -> Prompt:
        """Ask, in layout ``paper``, for the most important changes to the last kernel of ``chain``."""
        return self._fitted(self._chain(chain), lambda view: paper.review_prompt(self.task, self.facts, view))

    def small(self, chain: Sequence[ShownKernel], guidance: str = "", direction: str = "") -> Prompt:
        """Ask for edits of the last kernel of ``chain`` that follow ``guidance``, or the standing one."""
        write = paper.small_prompt if self.layout == "paper" else shared.small_prompt
        said = guidance.strip() or render("guidance_default")
        said += direction_text(direction) if self.layout == "shared" else ""
        return self._fitted(self._chain(chain), lambda view: write(self.task, self.facts, view, said))

    def _chain(self, chain: Sequence[ShownKernel]) -> View:
        return View(self.rules, (), tuple(chain), self.example, edits_last=True)

    def _fitted(self, view: View, write: Callable[[View], Prompt]) -> Prompt:
        """The prompt with as much of ``view`` as the budget allows; the least of it where nothing fits."""
        prompt = write(view)
        if self.max_tokens > 0:
            for less in smaller(view):
                prompt = write(less)
                if estimate_tokens(prompt.text) <= self.max_tokens:
                    break
        return prompt


def noted(prompt: Prompt, note: str) -> Prompt:
    """Return ``prompt`` with a person's note at its end; the same prompt where there is none."""
    return replace(prompt, now=f"{prompt.now}\n\n{render('note', note=note)}\n") if note else prompt


def review_first() -> str:
    """Guidance for edits whose answer begins with the review, in layout ``shared``."""
    return render("guidance_review")


def repair_edits_prompt(objection: str) -> str:
    """Ask, after a reply of edits, for all of them again."""
    return render("repair", reason=objection.strip(), form=render("repair_edits"))


def repair_kernel_prompt(objection: str) -> str:
    """Ask, after a reply with a whole file, for a corrected one."""
    return render("repair", reason=objection.strip(), form=render("repair_kernel"))
