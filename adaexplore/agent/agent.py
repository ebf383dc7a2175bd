"""One agent step: from a plan and the kernels it names to a draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adaexplore.agent.conversation import Conversation
from adaexplore.core.code_blocks import extract_code
from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.edits import EditError, apply_edits, parse_edits
from adaexplore.core.identity import source_identity
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.task import Task
from adaexplore.llm.protocol import Finish, ModelClient, ModelReply, Purpose
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.steps import large_prompt, repair_prompt, review_prompt, small_prompt


@dataclass(frozen=True)
class AgentOptions:
    """How the agent works.

    Attributes:
        reviewer: ask for a review before a small step.
        force_review: ask for it also where every kernel in view is wrong.
        worked_example: show a worked answer in large-step prompts.
    """

    reviewer: bool = True
    force_review: bool = False
    worked_example: bool = True


@dataclass(frozen=True)
class Agent:
    """Writes drafts for one task; holds no state, so steps may run side by side."""

    client: ModelClient
    task: Task
    facts: JudgeFacts
    rules: tuple[str, ...] = ()
    options: AgentOptions = field(default_factory=AgentOptions)

    def draft(self, plan: Plan, recent: Sequence[ShownKernel], elite: Sequence[ShownKernel] = ()) -> Draft:
        """Carry out ``plan`` with the kernels of its context in view.

        Raises:
            ModelError: the model could not be asked. What it answers never raises.
        """
        conversation = Conversation(self.client, f"{self.task.key}/{plan.step}")
        if plan.kind is StepKind.SMALL:
            return self._small(conversation, recent)
        return self._large(conversation, recent, elite)

    def _large(
        self, conversation: Conversation, recent: Sequence[ShownKernel], elite: Sequence[ShownKernel]
    ) -> Draft:
        prompt = large_prompt(
            self.task, self.facts, self.rules, elite, recent, with_example=self.options.worked_example
        )
        reply = conversation.ask(Purpose.LARGE, prompt)
        trouble = _trouble(reply)
        if trouble is not None:
            return conversation.draft(trouble, "")
        source = extract_code(reply.text)
        if source is None or not source.strip():
            return conversation.draft(DraftOutcome.NO_CODE, "")
        return conversation.draft(DraftOutcome.WRITTEN, source)

    def _small(self, conversation: Conversation, chain: Sequence[ShownKernel]) -> Draft:
        parent = chain[-1].source
        prompt = small_prompt(self.task, self.facts, self.rules, chain, self._guidance(conversation, chain))
        reply = conversation.ask(Purpose.SMALL, prompt)
        trouble = _trouble(reply)
        if trouble is not None:
            return conversation.draft(trouble, "")
        try:
            source = apply_edits(parent, parse_edits(reply.text))
        except EditError as error:
            repair = repair_prompt(parent, reply.text, str(error), error.nearest)
            reply = conversation.ask(Purpose.REPAIR, repair)
            if _trouble(reply) is not None:  # a cut reply may hold a part of the edits
                return conversation.draft(DraftOutcome.EDIT_FAILED, parent)
            try:
                source = apply_edits(parent, parse_edits(reply.text))
            except EditError:
                return conversation.draft(DraftOutcome.EDIT_FAILED, parent)
        unchanged = source_identity(source) == source_identity(parent)
        return conversation.draft(DraftOutcome.UNCHANGED if unchanged else DraftOutcome.WRITTEN, source)

    def _guidance(self, conversation: Conversation, chain: Sequence[ShownKernel]) -> str:
        """The review that precedes the edits, or "" for the standing sentence."""
        hopeless = not any(kernel.verdict is not None and kernel.verdict.correct for kernel in chain)
        if not self.options.reviewer or (hopeless and not self.options.force_review):
            return ""
        reply = conversation.ask(Purpose.REVIEW, review_prompt(self.task, self.facts, self.rules, chain[-1]))
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
