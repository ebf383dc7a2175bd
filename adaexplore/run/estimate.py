"""Estimate a run's model requests without a model.

The real policy plans every step on made-up verdicts. Its plans are rendered as real prompts with kernels of
the usual length. Only the lengths of replies are assumed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.draft import ShownKernel
from adaexplore.core.plan import Plan
from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.text.tokens import BYTES_PER_TOKEN, estimate_tokens
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Score
from adaexplore.llm.pricing import usd
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.actions.large import KERNEL_TOKENS
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.steps import review_first
from adaexplore.run.build import agent_options, search_knobs
from adaexplore.search.build import build_policy
from adaexplore.settings.config import RunConfig

REVIEW_TOKENS = 400
CORRECT_SHARE = 0.7
REQUEST_S = 60.0
"""Assumed seconds per request, for the estimated duration of a run."""


@dataclass(frozen=True)
class Estimate:
    """Estimated steps, requests and tokens of a run."""

    steps: int  # steps of all tasks that ask a model
    free: int  # steps that ask no model: recorded ones and starting kernels
    requests: int  # requests to the model, without repairs
    input_tokens: int  # tokens of the full prompts; savings by a prompt cache are not counted
    least_output_tokens: int  # tokens of the replies without any reasoning
    most_output_tokens: int  # tokens of the replies if each uses all of ``max_completion_tokens``

    def usd(self, model: str, tier: str | None = None) -> tuple[float, float] | None:
        """Return minimum and maximum cost at list prices; None for a model or tier without a known price."""
        least, most = (
            usd(model, Usage(self.input_tokens, output_tokens=written), tier)
            for written in (self.least_output_tokens, self.most_output_tokens)
        )
        return None if least is None or most is None else (least, most)

    def dearest_step(self, model: str, tier: str | None = None) -> Usage:
        """Return the maximum cost of one step with the mean number of requests."""
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
    """Simulate the search of every task without a model or a judge.

    ``free`` is the number of first steps of each task that ask no model.
    """
    known = {task.key: min((free or {}).get(task.key, 0), config.total_steps) for task in tasks}
    asked = [pair for task in tasks for pair in _requests(config, task, facts, rules, known[task.key])]
    return Estimate(
        steps=len(tasks) * config.total_steps - sum(known.values()),
        free=sum(known.values()),
        requests=len(asked),
        input_tokens=sum(read for read, _ in asked),
        least_output_tokens=sum(written for _, written in asked),
        most_output_tokens=len(asked) * config.max_completion_tokens,
    )


def _requests(
    config: RunConfig, task: Task, facts: JudgeFacts, rules: tuple[str, ...], free: int
) -> Iterator[tuple[int, int]]:
    """Yield input and output tokens of each request of a task's search, after ``free`` steps."""
    options = agent_options(config)
    prompts = options.prompts(task, facts, rules)
    policy = build_policy(config.agent_type, search_knobs(config))
    for step in range(1, config.total_steps + 1):
        rng = stream(config.seed, task.key, "estimate", step)
        plan = policy.plan(step, rng)
        recent, elite = ([_kernel(node) for node in ids] for ids in (plan.context_ids, plan.elite_ids))
        action, asked, guidance = all_actions()[plan.kind], [], ""
        written = action.reply_tokens
        if action.reviewed and options.reviewer and options.layout == "shared":
            guidance = review_first()
            written += REVIEW_TOKENS
        elif action.reviewed and options.reviewer:
            guidance = "x" * REVIEW_TOKENS * BYTES_PER_TOKEN
            asked.append((prompts.review(recent).text, REVIEW_TOKENS))
        asked.append((prompts.step(action, recent, elite, guidance).text, written))
        if step > free:
            yield from ((estimate_tokens(text), written) for text, written in asked)
        policy.observe(plan, f"kernel {step}", _made_up(plan, rng.random(), rng.random()))


def _kernel(node: int) -> ShownKernel:
    """Return a kernel of the usual length that differs from every other node's."""
    return ShownKernel(f"# {node} ".ljust(KERNEL_TOKENS * BYTES_PER_TOKEN, "#"), None)


def _made_up(plan: Plan, luck: float, speed: float) -> Score:
    """Return a plausible score: sometimes wrong, faster in later steps."""
    correct = luck < CORRECT_SHARE
    return Score(True, correct, (0.5 + speed) * (1 + plan.step / 25) if correct else 0.0)
