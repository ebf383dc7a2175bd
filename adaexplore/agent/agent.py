"""One agent step: from a plan and the kernels it names to a draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adaexplore.agent.attempt import Attempt, best_attempt, read_edits, read_kernel
from adaexplore.agent.checks import Check
from adaexplore.agent.conversation import Conversation
from adaexplore.core.draft import MOST_SHOWN_CHARS, Draft, DraftOutcome, RepairReason
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import Finish, ModelClient, ModelReply, Purpose
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel, finding
from adaexplore.prompts.steps import (
    Layout,
    StepPrompts,
    repair_edits_prompt,
    repair_kernel_prompt,
    review_first,
)

Known = Callable[[str], Verdict | None]
"""The verdict on a program that equals a source, if there was one."""


@dataclass(frozen=True)
class AgentOptions:
    """How the agent works.

    Attributes:
        reviewer: ask for a review before edits (in layout ``paper`` by a request of its own).
        force_review: ask for it also where every kernel in view is wrong.
        worked_example: show a worked answer (in layout ``paper`` in large steps only).
        layout: of the prompts.
        max_prompt_tokens: most tokens of a prompt; 0: no limit.
        repair_attempts: how often a reply may be sent back within one step.
        repaired: for which reasons it is.
    """

    reviewer: bool = True
    force_review: bool = False
    worked_example: bool = True
    layout: Layout = "paper"
    max_prompt_tokens: int = 0
    repair_attempts: int = 1
    repaired: frozenset[RepairReason] = frozenset({RepairReason.EDIT})


@dataclass(frozen=True)
class Agent:
    """Writes drafts for one task; holds no state, so steps may run side by side.

    ``checks`` are asked in their order about every source before it becomes a draft.
    """

    client: ModelClient
    task: Task
    facts: JudgeFacts
    rules: tuple[str, ...] = ()
    options: AgentOptions = field(default_factory=AgentOptions)
    checks: tuple[Check, ...] = ()

    def draft(
        self,
        plan: Plan,
        recent: Sequence[ShownKernel],
        elite: Sequence[ShownKernel] = (),
        known: Known | None = None,
    ) -> Draft:
        """Carry out ``plan`` with the kernels of its context in view.

        Args:
            plan: what to do.
            recent: the kernels in view, in the plan's order; a small step edits the last one.
            elite: kernels in view before them.
            known: verdicts on programs that were judged before.

        Raises:
            ModelError: the model could not be asked. What it answers never raises.
            JudgeError: a check of the judge's failed.
        """
        conversation = Conversation(self.client, f"{self.task.key}/{plan.step}", plan.note)
        prompts = StepPrompts(
            self.task,
            self.facts,
            self.rules,
            self.options.worked_example,
            self.options.layout,
            self.options.max_prompt_tokens,
        )
        if plan.kind is StepKind.SMALL:
            parent = recent[-1].source
            guidance = self._guidance(conversation, prompts, recent)
            prompt = prompts.small(recent, guidance, plan.direction)
            reply = conversation.ask(Purpose.SMALL, prompt)
        else:
            parent = None
            reply = conversation.ask(Purpose.LARGE, prompts.large(recent, elite, plan.direction))
        return self._settled(conversation, reply, parent, known)

    def _settled(
        self, conversation: Conversation, reply: ModelReply, parent: str | None, known: Known | None
    ) -> Draft:
        """Send the reply back until nothing is wrong with it, or the attempts are used up."""
        trouble = _trouble(reply)
        if trouble is not None:
            return conversation.draft(trouble, "")
        attempts = [self._attempt(reply, parent, "", known)]
        while len(attempts) <= self.options.repair_attempts:
            last = attempts[-1]
            if last.reason is None or last.reason not in self.options.repaired:
                break
            if len(reply.text) > MOST_SHOWN_CHARS:
                break
            written = "" if parent is not None else next((a.source for a in attempts[::-1] if a.source), "")
            repair = repair_kernel_prompt if parent is None else repair_edits_prompt
            reply = conversation.ask_again(last.reason, repair(last.objection))
            if _trouble(reply) is not None:  # a cut reply may hold a part of the edits
                break
            attempts.append(self._attempt(reply, parent, written, known))
        best = best_attempt(attempts)
        return conversation.draft(best.outcome, best.source, best.verdict)

    def _attempt(self, reply: ModelReply, parent: str | None, written: str, known: Known | None) -> Attempt:
        """What ``reply`` comes to: read, then compared with what is known, then checked."""
        attempt = read_kernel(reply.text, written) if parent is None else read_edits(reply.text, parent)
        if attempt.reason is not None:
            return attempt
        verdict = known(attempt.source) if known is not None else None
        if verdict is not None:
            told = f"An equal program was judged before: {finding(verdict)}\nWrite one that differs from it."
            return Attempt(DraftOutcome.WRITTEN, attempt.source, RepairReason.DUPLICATE, told)
        for check in self.checks:
            objection = check(attempt.source)
            if objection is not None:
                return Attempt(
                    objection.outcome,
                    attempt.source,
                    objection.reason,
                    objection.text,
                    objection.verdict,
                )
        return attempt

    def _guidance(
        self, conversation: Conversation, prompts: StepPrompts, chain: Sequence[ShownKernel]
    ) -> str:
        """What the edits are to follow: a review, one that the answer begins with, or "" for neither."""
        hopeless = not any(kernel.verdict is not None and kernel.verdict.correct for kernel in chain)
        if not self.options.reviewer or (hopeless and not self.options.force_review):
            return ""
        if self.options.layout == "shared":
            return review_first()
        reply = conversation.ask(Purpose.REVIEW, prompts.review(chain))
        return "" if reply.finish is Finish.REFUSED else reply.text


def _trouble(reply: ModelReply) -> DraftOutcome | None:
    """The typed outcome of a reply that cannot hold a usable answer."""
    if reply.finish is Finish.REFUSED:
        return DraftOutcome.REFUSED
    if reply.finish is Finish.CUT:
        return DraftOutcome.CUT
    if not reply.text.strip():
        return DraftOutcome.EMPTY
    return None
