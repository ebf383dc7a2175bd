"""Searches to measure: the kernels that each step shows, and the replies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from adaexplore.agent.agent import Agent
from adaexplore.core.draft import ShownKernel
from adaexplore.core.environment import Environment, ReferenceFacts
from adaexplore.core.judging.parts import RuntimeStats
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, Purpose, StepKind
from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.verdict import NO_SCORE, Verdict
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.offline_writer.patches import edits_between
from adaexplore.offline_writer.writer import OfflineWriter
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.steps import Layout
from adaexplore.run.build import judge_facts, search_knobs
from adaexplore.run.step import write_draft
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.build import build_policy
from adaexplore.search.knobs import Selection
from adaexplore.settings.config import BUNDLED_MEMORY, RunConfig
from adaexplore.settings.paths import locate
from adaexplore.tasks.sources import task_from_file
from skill_memory.store import injected, read_rules
from tool_scripts.search_bench.traces import RecordedStep, read_tree

WORDS_OF_A_REVIEW = 90
CONFIG = RunConfig(preset="default", dtype_str="fp32")


@dataclass(frozen=True)
class Step:
    """One step: its plan, the shown kernels, the review if there was one, the other replies in order."""

    plan: Plan
    shown: tuple[ShownKernel, ...]
    review: str | None
    answers: tuple[str, ...]

    def replies(self, layout: Layout) -> tuple[str, ...]:
        """Return the answers: in layout ``shared`` the review is in the answer with the edits."""
        if self.review is None:
            return self.answers
        if layout == "paper":
            return (self.review, *self.answers)
        return (f"{self.review}\n\n{self.answers[0]}", *self.answers[1:])

    def view(self, layout: Layout, arranged: bool) -> tuple[ShownKernel, ...]:
        """Return the kernels in order; in ``paper`` a pool ``arranged`` for a cache is oldest first."""
        if layout == "shared" or not arranged or self.plan.kind is StepKind.SMALL:
            return self.shown
        by_age = dict(sorted(zip(self.plan.context_ids, self.shown, strict=True)))
        return tuple(by_age.values())


@dataclass(frozen=True)
class Search:
    """All steps of one search; ``arranged`` if its policy orders pools for a cache."""

    name: str
    task: Task
    steps: tuple[Step, ...]
    arranged: bool = False


class Facts(BaseModel):
    """Facts from a judge with an H200; only their length matters here."""

    environment: Environment
    reference: ReferenceFacts


def facts_of(layout: Layout) -> JudgeFacts:
    """Return the facts about a judge with a GPU in the prompts of a preset."""
    ours = judge_facts(CONFIG, JudgeIdentity("cuda", "NVIDIA H200"), stored_facts().environment)
    return ours if layout == "shared" else replace(ours, shows_flags=False, tunes=False, environment=None)


@cache
def stored_facts() -> Facts:
    return Facts.model_validate_json(Path(__file__).with_name("facts.json").read_bytes())


def rules() -> tuple[str, ...]:
    """Return the rules of the bundled skill memory, as prompts show them."""
    return injected(read_rules(locate(BUNDLED_MEMORY)), CONFIG.knowledge_1_threshold)


def offline_search(problem: Path, steps: int, seed: int, selection: Selection = "uct") -> Search:
    """Return a search of the offline writer with preset ``default``'s knobs and random verdicts."""
    task, judge, nodes = task_from_file(problem, "fp32"), DummyJudge(seed), dict[int, ShownKernel]()
    knobs = replace(search_knobs(CONFIG), selection=selection)
    policy = build_policy(CONFIG.agent_type, knobs)
    agent = Agent(OfflineWriter(seed), task, facts_of("paper"), rules())
    verdicts, made = Verdicts(JudgeAccess([judge]), task), []
    for number in range(1, steps + 1):
        plan = policy.plan(number, stream(seed, task.key, "search", number))
        shown = tuple(nodes[node] for node in plan.context_ids)
        draft = write_draft(agent, verdicts, plan, shown)
        verdict = judge.evaluate(task, draft.source) if draft.source.strip() else None
        nodes[number] = ShownKernel(draft.source, verdict)
        policy.observe(plan, draft.source, NO_SCORE if verdict is None else verdict.score)
        review = draft.exchanges[0].reply if draft.exchanges[0].purpose == Purpose.REVIEW else None
        answers = [exchange.reply for exchange in draft.exchanges if exchange.purpose != Purpose.REVIEW]
        made.append(Step(plan, shown, review, tuple(answers)))
    name = "/".join(problem.with_suffix("").parts[-2:])
    return Search(name, task, tuple(made), arranged=selection == "lineages")


def recorded_search(path: Path, steps: int) -> Search:
    """Return the first steps of a recorded tree; unrecorded reviews become placeholder words."""
    tree = read_tree(path)
    task = Task(2, path.stem, path.stem, tree.reference, "fp32", path)
    nodes = {0: ShownKernel("", None)}
    made = []
    for step in tree.steps[:steps]:
        nodes[step.id] = ShownKernel(step.source, _verdict(step))
        plan = Plan(step.id, step.kind, step.parent_id, step.context_ids)
        shown = tuple(nodes[node] for node in plan.context_ids)
        if plan.kind is not StepKind.SMALL:
            made.append(Step(plan, shown, None, (f"```python\n{step.source or 'pass'}\n```",)))
        elif shown:
            made.append(Step(plan, shown, _review(shown), (_edits(shown[-1].source, step.source),)))
    return Search(path.stem, task, tuple(made))


def _verdict(step: RecordedStep) -> Verdict:
    if not step.correct:
        return Verdict(status=Status.COMPILE, feedback=step.error)
    timing = RuntimeStats(runtime_ms=step.runtime_ms, mean=step.runtime_ms, speedup=step.speedup)
    return Verdict(status=Status.PASSED, timing=timing)


def _review(shown: Sequence[ShownKernel]) -> str | None:
    """Return placeholder words if the step had a review."""
    reviewed = any(kernel.verdict is not None and kernel.verdict.correct for kernel in shown)
    return " ".join(["word"] * WORDS_OF_A_REVIEW) if reviewed else None


def _edits(parent: str, code: str) -> str:
    """Return edits that turn ``parent`` into ``code``."""
    line = next(line for line in parent.split("\n") if line.strip() and parent.count(line) == 1)
    nothing = f"<old_str_1>\n{line}\n</old_str_1>\n<new_str_1>\n{line}\n</new_str_1>"
    return edits_between(parent, code) or nothing
