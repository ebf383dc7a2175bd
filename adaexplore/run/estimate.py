"""What a run would ask of a model, worked out without asking one.

The real policy plans every step on made-up verdicts, and the real prompts are written for its plans around
kernels of the usual length. Only the lengths of replies are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.tokens import BYTES_PER_TOKEN, estimate_tokens
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Score
from adaexplore.llm.pricing import usd
from adaexplore.prompts.blocks import JudgeFacts, ShownKernel
from adaexplore.prompts.steps import StepPrompts, review_first
from adaexplore.run.build import agent_options, search_knobs
from adaexplore.search.build import build_policy
from adaexplore.settings.config import RunConfig

KERNEL_TOKENS = 1870
"""Mean length of 1,364 kernels that models wrote for KernelBench, as bytes / 4."""
EDIT_TOKENS = 600
REVIEW_TOKENS = 400
CORRECT_SHARE = 0.7
REQUEST_S = 60.0
"""Assumed for the time that a run takes."""
FREE = ("offline", "replay")
"""Servers that cost nothing."""


@dataclass(frozen=True)
class Estimate:
    """Steps and requests of a run, and what they read and write.

    Attributes:
        steps: of all tasks, those that ask a model.
        free: steps that do not: recorded ones and starting kernels.
        requests: to the model, without repairs.
        input_tokens: of the prompts, at full length: what a cache saves is left out.
        least_output_tokens: of the replies without any reasoning.
        most_output_tokens: of replies that all use up ``max_completion_tokens``.
    """

    steps: int
    free: int
    requests: int
    input_tokens: int
    least_output_tokens: int
    most_output_tokens: int

    def usd(self, model: str, tier: str | None = None) -> tuple[float, float] | None:
        """The least and the most at list prices; None for a model or a tier without a known price."""
        found = [
            usd(
                model, input_tokens=self.input_tokens, cached_input_tokens=0, output_tokens=written, tier=tier
            )
            for written in (self.least_output_tokens, self.most_output_tokens)
        ]
        least, most = found
        return None if least is None or most is None else (least, most)

    def dearest_step(self, model: str, tier: str | None = None) -> Usage:
        """The most that one step may cost, by the mean of its requests."""
        steps = max(self.steps, 1)
        prices = self.usd(model, tier)
        return Usage(
            input_tokens=self.input_tokens // steps,
            output_tokens=self.most_output_tokens // steps,
            usd=None if prices is None else prices[1] / steps,
        )


def estimate(
    config: RunConfig,
    tasks: Sequence[Task],
    facts: JudgeFacts,
    rules: tuple[str, ...],
    free: Mapping[str, int] | None = None,
) -> Estimate:
    """Play the search of every task without a model and a judge.

    Args:
        config: the run.
        tasks: to be solved.
        facts: what prompts say about the judge.
        rules: the skill memory that they show.
        free: how many steps, the first, ask no model, by task.
    """
    parts = [_of_task(config, task, facts, rules, (free or {}).get(task.key, 0)) for task in tasks]
    return Estimate(
        steps=sum(part.steps for part in parts),
        free=sum(part.free for part in parts),
        requests=sum(part.requests for part in parts),
        input_tokens=sum(part.input_tokens for part in parts),
        least_output_tokens=sum(part.least_output_tokens for part in parts),
        most_output_tokens=sum(part.most_output_tokens for part in parts),
    )


def _of_task(config: RunConfig, task: Task, facts: JudgeFacts, rules: tuple[str, ...], free: int) -> Estimate:
    options = agent_options(config)
    prompts = StepPrompts(
        task, facts, rules, options.worked_example, options.layout, options.max_prompt_tokens
    )
    policy = build_policy(config.agent_type, search_knobs(config))
    requests = read = written = 0
    for step in range(1, config.total_steps + 1):
        rng = stream(config.seed, task.key, "estimate", step)
        plan = policy.plan(step, rng)
        recent, elite = ([_kernel(node) for node in ids] for ids in (plan.context_ids, plan.elite_ids))
        asked = [(prompts.large(recent, elite).text, KERNEL_TOKENS)]
        if plan.kind is StepKind.SMALL:
            if not options.reviewer:
                asked = [(prompts.small(recent).text, EDIT_TOKENS)]
            elif options.layout == "shared":
                asked = [(prompts.small(recent, review_first()).text, REVIEW_TOKENS + EDIT_TOKENS)]
            else:
                review = "x" * REVIEW_TOKENS * BYTES_PER_TOKEN
                asked = [(prompts.small(recent, review).text, EDIT_TOKENS)]
                asked.append((prompts.review(recent).text, REVIEW_TOKENS))
        if step > free:
            requests += len(asked)
            read += sum(estimate_tokens(text) for text, _ in asked)
            written += sum(tokens for _, tokens in asked)
        policy.observe(plan, f"kernel {step}", _made_up(plan, rng.random(), rng.random()))
    free = min(free, config.total_steps)
    most = requests * config.max_completion_tokens
    return Estimate(config.total_steps - free, free, requests, read, written, most)


def _kernel(node: int) -> ShownKernel:
    """One of the usual length, unlike any other node's."""
    return ShownKernel(f"# {node} ".ljust(KERNEL_TOKENS * BYTES_PER_TOKEN, "#"), None)


def _made_up(plan: Plan, luck: float, speed: float) -> Score:
    """A score such as kernels get: wrong now and then, faster by the step."""
    correct = luck < CORRECT_SHARE
    return Score(True, correct, (0.5 + speed) * (1 + plan.step / 25) if correct else 0.0)
