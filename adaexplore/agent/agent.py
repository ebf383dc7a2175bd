"""The agent's part of one step: prompts go to the model, replies become sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adaexplore.agent.attempt import Attempt, best_attempt
from adaexplore.agent.reading import reading_of
from adaexplore.core.draft import (
    MOST_SHOWN_CHARS,
    Draft,
    DraftOutcome,
    Exchange,
    RepairReason,
    ShownKernel,
    request_name,
)
from adaexplore.core.environment import ReferenceFacts
from adaexplore.core.plan import Plan, Purpose
from adaexplore.core.task import Task
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import (
    Finish,
    ModelClient,
    ModelReply,
    ModelRequest,
    StepData,
    Turn,
)
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.steps import (
    Layout,
    StepPrompts,
    noted,
    repair_prompt,
    review_first,
)


@dataclass(frozen=True)
class AgentOptions:
    """Settings of the agent.

    Attributes:
        reviewer: ask for a review before edits (in layout ``paper`` with a separate request).
        force_review: ask for a review even if every shown kernel is wrong.
        worked_example: show a worked answer (in layout ``paper`` in large steps only).
        max_prompt_tokens: maximum tokens of a prompt, for a repair of the conversation; 0: no limit.
        repair_attempts: how often a reply may be sent back within one step.
        repaired: reasons to send a reply back; with ``LINT`` and ``GATE``, lints and the judge's compiler
            check sources.
    """

    reviewer: bool = True
    force_review: bool = False
    worked_example: bool = True
    layout: Layout = "paper"
    max_prompt_tokens: int = 0
    repair_attempts: int = 1
    repaired: frozenset[RepairReason] = frozenset({RepairReason.EDIT})

    def prompts(
        self, task: Task, facts: JudgeFacts, rules: tuple[str, ...], reference: ReferenceFacts | None = None
    ) -> StepPrompts:
        """Return the prompts of a task."""
        shown = (self.worked_example, self.layout, self.max_prompt_tokens)
        return StepPrompts(task, facts, rules, *shown, reference)


@dataclass(frozen=True)
class Agent:
    """The model client and the prompts of one task.

    ``reference`` holds the judge's facts about the task's reference.
    """

    client: ModelClient
    task: Task
    facts: JudgeFacts
    rules: tuple[str, ...] = ()
    options: AgentOptions = field(default_factory=AgentOptions)
    reference: ReferenceFacts | None = None


class Conversation:
    """The model calls of one step, kept in order with their cost.

    The plan's note is at the end of every prompt except repairs.
    """

    def __init__(self, agent: Agent, plan: Plan) -> None:
        self._agent = agent
        self._plan = plan
        self._reading = reading_of(agent.options.layout)
        self._parent: str | None = None
        self._data: StepData | None = None
        self._turns: tuple[Turn, ...] = ()
        self._exchanges: list[Exchange] = []
        self._usage = Usage()

    def write(self, recent: Sequence[ShownKernel], elite: Sequence[ShownKernel]) -> Attempt:
        """Send the request of the plan, and read the reply.

        Args:
            recent: the shown kernels, in the plan's order; a step that edits changes the last one.
            elite: kernels that are shown before them.

        Raises:
            ModelError: the model could not be asked. A bad answer never raises.
        """
        agent, options, plan = self._agent, self._agent.options, self._plan
        self._data = StepData(
            agent.task.reference,
            (*elite, *recent),
            agent.rules,
            plan.direction,
            tunes=agent.facts.tunes and options.layout == "shared",
            edits=plan.kind.edits,
        )
        prompts = options.prompts(agent.task, agent.facts, agent.rules, agent.reference)
        action = all_actions()[plan.kind]
        self._parent = recent[-1].source if plan.kind.edits else None
        guidance = self._guidance(prompts, recent) if action.reviewed else ""
        prompt = prompts.step(action, recent, elite, guidance, plan.direction)
        return self._read(self._ask(action.purpose, prompt))

    def may_repair(self, attempts: Sequence[Attempt]) -> bool:
        """Return whether to send the last reply back; not if that makes a prompt too long."""
        options = self._agent.options
        wanted = attempts[-1].reason in options.repaired and len(attempts) <= options.repair_attempts
        if not wanted or len(self._turns[-1].reply) > MOST_SHOWN_CHARS:
            return False
        prompt = self._repair_prompt(attempts[-1]).text
        request = ModelRequest(prompt, Purpose.REPAIR, "", earlier=self._turns)
        most = options.max_prompt_tokens
        return most <= 0 or estimate_tokens(request.transcript) <= most

    def repair(self, attempts: Sequence[Attempt]) -> Attempt:
        """Send the last reply back with its fault, and read the answer.

        Edits in an answer apply to the last whole file of this step, if there is one.

        Raises:
            ModelError: as :meth:`write`.
        """
        last = attempts[-1]
        reason = "" if last.reason is None else last.reason.value
        reply = self._send(Purpose.REPAIR, self._repair_prompt(last), reason)
        whole = (each.source for each in reversed(attempts) if self._is_whole(each))
        return self._read(reply, next(whole, ""))

    def draft(self, attempts: Sequence[Attempt]) -> Draft:
        """Close the step with the best attempt."""
        best = best_attempt(attempts)
        exchanges = tuple(self._exchanges)
        return Draft(best.outcome, best.source, exchanges, self._usage, best.verdict, best.rewritten)

    def _read(self, reply: ModelReply, written: str = "") -> Attempt:
        trouble = _trouble(reply)
        if trouble is not None:  # a truncated reply may hold only part of the edits
            return Attempt(trouble, "")
        return self._reading.read(reply.text, self._parent, written)

    def _is_whole(self, attempt: Attempt) -> bool:
        """Return whether the reply was a whole file."""
        return bool(attempt.source) and (self._parent is None or attempt.rewritten)

    def _repair_prompt(self, last: Attempt) -> Prompt:
        return repair_prompt(last.objection, edits=self._parent is not None and not last.rewritten)

    def _guidance(self, prompts: StepPrompts, chain: Sequence[ShownKernel]) -> str:
        """Return the guidance for edits: a review, a request to write one first, or "" for neither."""
        options = self._agent.options
        hopeless = not any(kernel.verdict is not None and kernel.verdict.correct for kernel in chain)
        if not options.reviewer or (hopeless and not options.force_review):
            return ""
        if options.layout == "shared":
            return review_first()
        reply = self._ask(Purpose.REVIEW, prompts.review(chain))
        return "" if reply.finish is Finish.REFUSED else reply.text

    def _ask(self, purpose: Purpose, prompt: Prompt) -> ModelReply:
        """Send a request that starts a new conversation."""
        self._turns = ()
        return self._send(purpose, noted(prompt, self._plan.note), "")

    def _send(self, purpose: Purpose, prompt: Prompt, reason: str) -> ModelReply:
        name = request_name(purpose.value, [exchange.purpose for exchange in self._exchanges])
        key = f"{self._agent.task.key}/{self._plan.step}/{name}"
        text, cuts, plain = prompt.text, prompt.cuts, prompt.plain
        request = ModelRequest(text, purpose, key, cuts, self._turns, self._data, plain)
        reply = self._agent.client.complete(request)
        self._exchanges.append(Exchange(purpose.value, text, reply.text, reply.finish.value, reason))
        self._usage += reply.usage
        reply = replace(reply, text=self._reading.answer_in(reply.text))
        self._turns = (*self._turns, Turn(text, purpose, reply.text, cuts, plain))
        return reply


def _trouble(reply: ModelReply) -> DraftOutcome | None:
    """Return the outcome of a reply that cannot hold a usable answer; None for any other reply."""
    if reply.finish is Finish.REFUSED:
        return DraftOutcome.REFUSED
    if reply.finish is Finish.CUT:
        return DraftOutcome.CUT
    if not reply.text.strip():
        return DraftOutcome.EMPTY
    return None
