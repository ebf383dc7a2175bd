"""Measure the billed input tokens of a search's prompts, in the default layout against the paper's.

    python tool_scripts/bench_prompts.py [--traces DIR] [--steps 50] [--out FILE.json]

``results/search/README.md`` describes the figures. Searches are replayed in both layouts against the model
server of the tests, which caches, so this needs a checkout of the repository.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.errors import UsageError
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest
from adaexplore.llm.vendors.vendor import Opening
from adaexplore.prompts.steps import Layout
from adaexplore.run.step import write_draft
from adaexplore.run.vendors import build_client
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.knobs import Selection
from adaexplore.settings.config import RunConfig
from tests.model_server import Answer, ModelServer
from tests.prompt_cache import LIFETIME_S
from tool_scripts.judge_bench.own import QUICKSTART
from tool_scripts.judge_bench.service import git_revision
from tool_scripts.prompt_bench import searches as made
from tool_scripts.prompt_bench.causes import CACHED, Causes
from tool_scripts.prompt_bench.searches import Search
from tool_scripts.script import script, show

Dialect = Literal["openai", "anthropic"]

WRITTEN = 1.25
CALL_S, CALL_SIGMA, EVALUATION_S = 60.0, 0.5, 4.0
TARGET = 0.40
SELECTIONS: tuple[Selection, ...] = ("uct", "lineages")
MODELS: dict[Dialect, str] = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-6"}


@dataclass(frozen=True)
class Bill:
    """Input tokens of searches as the service counts them; ``sent`` includes cached ones."""

    steps: int
    requests: int
    sent: int
    read_from_cache: int
    written_to_cache: int

    @property
    def billed(self) -> float:
        """Cached tokens at 10 %, all others in full."""
        return self.sent - (1 - CACHED) * self.read_from_cache

    @property
    def billed_with_writes(self) -> float:
        """The same, with tokens written to Anthropic's cache at 125 %."""
        return self.billed + (WRITTEN - 1) * self.written_to_cache

    def per_step(self) -> dict[str, float]:
        figures = {name: value for name, value in asdict(self).items() if name != "steps"}
        figures |= {"billed": self.billed, "billed_with_writes": self.billed_with_writes}
        return {name: round(value / self.steps, 2) for name, value in figures.items()}


def total(bills: Sequence[Bill]) -> Bill:
    return Bill(*map(sum, zip(*map(astuple, bills), strict=True)))


class Timed:
    """A client whose calls take simulated time; ``causes`` notes each request."""

    def __init__(self, client: ModelClient, rng: random.Random, causes: Causes) -> None:
        self.now_s = 0.0
        self._client = client
        self._rng = rng
        self._causes = causes

    def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._client.complete(request)
        self._causes.add(request, reply.usage.cached_input_tokens, self.now_s)
        self.now_s += CALL_S * self._rng.lognormvariate(0.0, CALL_SIGMA)
        return reply


@script
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--traces", type=Path, metavar="DIR", help="recorded trees, in the web bundle's format")
    add("--problems", nargs="+", type=Path, metavar="FILE", help="default: the quickstart's levels 2 and 3")
    add("--steps", type=int, default=50)
    add("--seed", type=int, default=0)
    add("--lifetime", type=float, default=LIFETIME_S, metavar="S", help="lifetime of the cache in seconds")
    add("--out", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    show(measure(options), options.out)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the whole report.

    Raises:
        UsageError: there are no searches to measure.
    """
    problems = options.problems or sorted(QUICKSTART.glob("level[23]/*.py"))
    groups = {
        f"offline_{selection}": [
            made.offline_search(path, options.steps, options.seed, selection) for path in problems
        ]
        for selection in SELECTIONS
    }
    if options.traces is not None:
        trees = sorted(options.traces.glob("*.json"))
        groups["recorded"] = [made.recorded_search(path, options.steps) for path in trees]
    if not all(groups.values()):
        raise UsageError("no searches to measure; check --problems and --traces")
    return {
        "figure": "billed input tokens per step, layout shared against layout paper",
        "target": f"at least {TARGET:.0%} fewer",
        "date": datetime.now(UTC).date().isoformat(),
        "revision": git_revision(),
        "steps": options.steps,
        "seed": options.seed,
        "cache_lifetime_s": options.lifetime,
        "seconds": {"call": CALL_S, "call_sigma": CALL_SIGMA, "evaluation": EVALUATION_S},
        **{name: compare(searches, options.seed, options.lifetime) for name, searches in groups.items()},
    }


def compare(searches: Sequence[Search], seed: int, lifetime_s: float) -> dict[str, Any]:
    """Return the figures of both layouts in both dialects, over all ``searches``."""
    found: dict[str, Any] = {"searches": [search.name for search in searches]}
    for dialect in MODELS:
        causes = [Causes(lifetime_s) for _ in searches]
        each_paper = [replay(search, "paper", dialect, seed, Causes(lifetime_s)) for search in searches]
        each_shared = [
            replay(search, "shared", dialect, seed, why) for search, why in zip(searches, causes, strict=True)
        ]
        paper, shared = total(each_paper), total(each_shared)
        least = sum(why.least for why in causes)
        fewer = 1 - shared.billed / paper.billed
        found[dialect] = {
            "paper_per_step": paper.per_step(),
            "shared_per_step": shared.per_step(),
            "shared_billed_for": {
                name: round(sum(why.billed[name] for why in causes) / shared.steps, 2)
                for name in causes[0].billed
            },
            "least_in_any_order": round(least / shared.steps, 2),
            "fewer_at_the_least": round(1 - least / paper.billed, 4),
            "fewer": round(fewer, 4),
            "fewer_with_writes": round(1 - shared.billed_with_writes / paper.billed_with_writes, 4),
            "fewer_than_paper_without_a_cache": round(1 - shared.billed_with_writes / paper.sent, 4),
            "fewer_each": [
                round(1 - ours.billed / theirs.billed, 4)
                for ours, theirs in zip(each_shared, each_paper, strict=True)
            ],
            "met": fewer >= TARGET,
        }
    return found


def replay(search: Search, layout: Layout, dialect: Dialect, seed: int, causes: Causes) -> Bill:
    """Return the tokens that a service of one dialect counts for ``search``; ``causes`` splits them."""
    with ModelServer(causes.lifetime_s) as server:
        url = server.openai_url if dialect == "openai" else server.url
        config = RunConfig(server_type=dialect, model_name=MODELS[dialect], base_url=url, temperature=None)
        meter = MeteredClient(build_client(Opening(config, environment={})))
        timed = Timed(meter, random.Random(f"{seed}/{search.name}"), causes)
        server.caching, server.clock = True, lambda: timed.now_s
        facts, options = made.facts_of(layout), AgentOptions(layout=layout)
        reference = made.stored_facts().reference
        agent = Agent(timed, search.task, facts, made.rules(), options, reference=reference)
        verdicts = Verdicts(JudgeAccess([DummyJudge(seed)]), search.task)
        for step in search.steps:
            server.script(*map(Answer, step.replies(layout)))
            write_draft(agent, verdicts, step.plan, step.view(layout, search.arranged))
            timed.now_s += EVALUATION_S
    expected = sum(len(step.replies(layout)) for step in search.steps)
    if meter.requests != expected:
        raise RuntimeError(f"{search.name}: {meter.requests} requests, {expected} were recorded")
    usage = meter.usage
    sent, read, written = usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens
    return Bill(len(search.steps), meter.requests, sent, read, written)


if __name__ == "__main__":
    sys.exit(main())
