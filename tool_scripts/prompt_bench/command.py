"""``bench_prompts.py``: replay searches in both layouts against a model server that caches, and compare."""

from __future__ import annotations

import argparse
import json
import logging
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.errors import AdaExploreError, UsageError
from adaexplore.core.files import write_json
from adaexplore.llm.build import build_client
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest
from adaexplore.prompts.steps import Layout
from adaexplore.search.knobs import Selection
from tests.model_server import Answer, ModelServer
from tests.prompt_cache import LIFETIME_S
from tool_scripts.prompt_bench.causes import CACHED, Causes
from tool_scripts.prompt_bench.searches import Search, facts_of, offline_search, recorded_search, rules

Dialect = Literal["openai", "anthropic"]

WRITTEN = 1.25
CALL_S, CALL_SIGMA, EVALUATION_S = 60.0, 0.5, 4.0
TARGET = 0.40
SELECTIONS: tuple[Selection, ...] = ("uct", "lineages")
LAYOUTS: tuple[Layout, Layout] = ("paper", "shared")
MODELS: dict[Dialect, str] = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-6"}
QUICKSTART = Path(__file__).resolve().parents[2] / "datasets" / "quickstart"

logger = logging.getLogger("bench_prompts")


@dataclass(frozen=True)
class Bill:
    """Input tokens of a run as the service counts them; ``read`` and ``written`` are parts of ``sent``."""

    steps: int = 0
    requests: int = 0
    sent: int = 0
    read: int = 0
    written: int = 0

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.steps + other.steps,
            self.requests + other.requests,
            self.sent + other.sent,
            self.read + other.read,
            self.written + other.written,
        )

    @property
    def billed(self) -> float:
        """Cached tokens at 10 %, all others in full."""
        return self.sent - (1 - CACHED) * self.read

    @property
    def billed_with_writes(self) -> float:
        """The same with what Anthropic's cache takes in at 125 %."""
        return self.billed + (WRITTEN - 1) * self.written

    def per_step(self) -> dict[str, float]:
        """Figures for the report."""
        figures = {
            "requests": self.requests,
            "sent": self.sent,
            "read_from_cache": self.read,
            "written_to_cache": self.written,
            "billed": self.billed,
            "billed_with_writes": self.billed_with_writes,
        }
        return {name: round(value / self.steps, 2) for name, value in figures.items()}


class Timed:
    """A client whose calls take simulated time; ``causes`` learns of each."""

    def __init__(self, client: ModelClient, rng: random.Random, causes: Causes) -> None:
        self.now_s = 0.0
        self._client = client
        self._rng = rng
        self._causes = causes

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request, then let the time of a call pass."""
        reply = self._client.complete(request)
        self._causes.add(request, reply.usage.cached_input_tokens, self.now_s)
        self.now_s += CALL_S * self._rng.lognormvariate(0.0, CALL_SIGMA)
        return reply


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--traces", type=Path, metavar="DIR", help="recorded trees, in the web bundle's format"
    )
    parser.add_argument(
        "--problems", nargs="+", type=Path, metavar="FILE", help="default: the quickstart's levels 2 and 3"
    )
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--lifetime", type=float, default=LIFETIME_S, metavar="S", help="of what is cached, in seconds"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        figures = measure(options)
        if options.out is not None:
            write_json(options.out, figures)
    except AdaExploreError as error:
        logger.error("%s", error)
        return error.exit_code
    print(json.dumps(figures, indent=2))  # noqa: T201
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that the report holds.

    Raises:
        UsageError: there are no searches to measure.
    """
    problems = options.problems or sorted(QUICKSTART.glob("level[23]/*.py"))
    groups = {
        f"offline_{selection}": [
            offline_search(path, options.steps, options.seed, selection) for path in problems
        ]
        for selection in SELECTIONS
    }
    if options.traces is not None:
        trees = sorted(options.traces.glob("*.json"))
        groups["recorded"] = [recorded_search(path, options.steps) for path in trees]
    if not all(groups.values()):
        raise UsageError("no searches to measure; check --problems and --traces")
    return {
        "figure": "billed input tokens per step, layout shared against layout paper",
        "target": f"at least {TARGET:.0%} fewer",
        "date": datetime.now(UTC).date().isoformat(),
        "revision": _revision(),
        "steps": options.steps,
        "seed": options.seed,
        "cache_lifetime_s": options.lifetime,
        "seconds": {"call": CALL_S, "call_sigma": CALL_SIGMA, "evaluation": EVALUATION_S},
        **{name: compare(searches, options.seed, options.lifetime) for name, searches in groups.items()},
    }


def compare(searches: Sequence[Search], seed: int, lifetime_s: float = LIFETIME_S) -> dict[str, Any]:
    """Both layouts in both dialects, over all ``searches``."""
    found: dict[str, Any] = {"searches": [search.name for search in searches]}
    for dialect in MODELS:
        causes = [Causes(lifetime_s) for _ in searches]
        each = {
            "paper": [replay(search, "paper", dialect, seed, lifetime_s) for search in searches],
            "shared": [
                replay(search, "shared", dialect, seed, lifetime_s, why)
                for search, why in zip(searches, causes, strict=True)
            ],
        }
        paper, shared = (sum(each[layout], Bill()) for layout in LAYOUTS)
        least = sum(why.least for why in causes)
        fewer = 1 - shared.billed / paper.billed
        found[dialect] = {
            "paper_per_step": paper.per_step(),
            "shared_per_step": shared.per_step(),
            "shared_billed_for": {
                name: round(sum(why.figures()[name] for why in causes) / shared.steps, 2)
                for name in Causes(lifetime_s).figures()
            },
            "least_in_any_order": round(least / shared.steps, 2),
            "fewer_at_the_least": round(1 - least / paper.billed, 4),
            "fewer": round(fewer, 4),
            "fewer_with_writes": round(1 - shared.billed_with_writes / paper.billed_with_writes, 4),
            "fewer_than_paper_without_a_cache": round(1 - shared.billed_with_writes / paper.sent, 4),
            "fewer_each": [
                round(1 - ours.billed / theirs.billed, 4)
                for ours, theirs in zip(each["shared"], each["paper"], strict=True)
            ],
            "met": fewer >= TARGET,
        }
    return found


def replay(
    search: Search,
    layout: Layout,
    dialect: Dialect,
    seed: int,
    lifetime_s: float = LIFETIME_S,
    causes: Causes | None = None,
) -> Bill:
    """What a service of one dialect counts for the prompts of ``search`` in one layout; ``causes`` says why.

    Raises:
        ModelError: the server did not answer.
    """
    with ModelServer(lifetime_s) as server:
        url = server.openai_url if dialect == "openai" else server.url
        meter = MeteredClient(build_client(dialect, MODELS[dialect], base_url=url, environment={}))
        timed = Timed(meter, random.Random(f"{seed}/{search.name}"), causes or Causes(lifetime_s))
        server.caching, server.clock = True, lambda: timed.now_s
        agent = Agent(timed, search.task, facts_of(layout), rules(), AgentOptions(layout=layout))
        for step in search.steps:
            server.script(*map(Answer, step.replies(layout)))
            agent.draft(step.plan, step.view(layout, search.arranged))
            timed.now_s += EVALUATION_S
        total = meter.total()
    expected = sum(len(step.replies(layout)) for step in search.steps)
    if total.requests != expected:
        raise RuntimeError(f"{search.name}: {total.requests} requests, {expected} were recorded")
    usage = total.usage
    return Bill(
        len(search.steps),
        total.requests,
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.cache_write_tokens,
    )


def _revision() -> str | None:
    asked = subprocess.run(
        ["git", "-C", str(QUICKSTART), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or None
