"""The prompts of the search's steps, in the run's layout and within its token limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adaexplore.core.draft import ShownKernel
from adaexplore.core.environment import ReferenceFacts
from adaexplore.core.task import Task
from adaexplore.core.text.figures import without_figures
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.prompts import paper, shared
from adaexplore.prompts.actions.action import StepAction
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.directions import direction_text
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.view import View, smaller

Layout = Literal["paper", "shared"]


@dataclass(frozen=True)
class StepPrompts:
    """The prompts of one task.

    Attributes:
        task: the task, with the module to replace.
        example: whether a worked answer is shown.
        layout: ``paper`` (one template per kind of step) or ``shared`` (all steps share a prefix).
        max_tokens: maximum tokens of a prompt, as :func:`~adaexplore.core.text.tokens.estimate_tokens` counts
            them; :func:`~adaexplore.prompts.view.smaller` decides what to drop. 0: no limit.
        reference: the judge's facts about the task's reference, for layout ``shared``.
    """

    task: Task
    facts: JudgeFacts
    rules: tuple[str, ...] = ()
    example: bool = True
    layout: Layout = "paper"
    max_tokens: int = 0
    reference: ReferenceFacts | None = None

    def step(
        self,
        action: StepAction,
        recent: Sequence[ShownKernel],
        elite: Sequence[ShownKernel] = (),
        guidance: str = "",
        direction: str = "",
    ) -> Prompt:
        """Ask for what ``action`` says, with ``guidance`` or the default one; ``direction`` names a way."""
        view = self._view(recent, elite, edits_last=action.kind.edits)
        said = guidance.strip() or render("guidance_default")
        if self.layout == "paper":
            return self._fitted(view, lambda view, facts: action.paper(self.task, facts, view, said))
        way = direction_text(direction)
        return self._fitted(
            view,
            lambda view, facts: shared.step_prompt(
                self.task, facts, self.reference, view, action.request(view, said) + way
            ),
        )

    def review(self, chain: Sequence[ShownKernel]) -> Prompt:
        """Ask, in layout ``paper``, for the most important changes to the last kernel of ``chain``."""
        view = self._view(chain, (), edits_last=True)
        return self._fitted(view, lambda view, facts: paper.review_prompt(self.task, facts, view))

    def _view(self, recent: Sequence[ShownKernel], elite: Sequence[ShownKernel], *, edits_last: bool) -> View:
        return View(self.rules, tuple(elite), tuple(recent), self.example, edits_last=edits_last)

    def _fitted(self, view: View, write: Callable[[View, JudgeFacts], Prompt]) -> Prompt:
        """Return the prompt with as much of ``view`` as fits; the smallest view if none fits."""
        prompt = write(view, self.facts)
        if self.max_tokens > 0:
            for less in smaller(view):
                view, prompt = less, write(less, self.facts)
                if estimate_tokens(prompt.text) <= self.max_tokens:
                    break
        return replace(prompt, plain=write(view, replace(self.facts, figures=False)).text)


def noted(prompt: Prompt, note: str) -> Prompt:
    """Return ``prompt`` with the user's note at its end; unchanged without a note."""
    if not note:
        return prompt
    told = f"\n\n{render('note', note=note)}\n"
    plain = None if prompt.plain is None else prompt.plain + told
    return replace(prompt, now=prompt.now + told, plain=plain)


def review_first() -> str:
    """Return the guidance to begin the answer with a review, in layout ``shared``."""
    return render("guidance_review")


def repair_prompt(objection: str, *, edits: bool) -> Prompt:
    """Ask again for all edits after a reply with ``edits``, else for a corrected file.

    The objection may quote a judge's figures. The code that it quotes is in the same conversation.
    """
    form, reason = render("repair_edits" if edits else "repair_kernel"), objection.strip()
    return Prompt(
        render("repair", reason=reason, form=form),
        plain=render("repair", reason=without_figures(reason), form=form),
    )
