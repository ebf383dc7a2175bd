"""From a configuration to the parts of a run."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.agent.checks import Check, gate_check, lint_check
from adaexplore.core.directions import Directions
from adaexplore.core.draft import RepairReason
from adaexplore.core.task import Task
from adaexplore.judge_client.connection import open_client
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.http import Evaluation, HttpJudge
from adaexplore.judge_client.protocol import Judge, JudgeIdentity
from adaexplore.llm.budget import Budget
from adaexplore.llm.build import build_client
from adaexplore.llm.limits import LimitedClient, RateLimits
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.pricing import price_of
from adaexplore.llm.protocol import ModelClient
from adaexplore.llm.replay_client import RecordedReply
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_api import triton_api
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.directions import offered_directions
from adaexplore.records import layout
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Steering
from adaexplore.run.hardware import contradiction, prompt_hardware
from adaexplore.run.solve import Solver
from adaexplore.run.spending import NotingClient
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.build import build_policy
from adaexplore.search.knobs import SearchKnobs
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.settings.paths import expanded

logger = logging.getLogger(__name__)

WARMUP_RUNS = 10
"""Least number of untimed runs before the timed ones, as the judge does it."""


@dataclass(frozen=True)
class JudgeAccess:
    """The judges of a run, one a worker in turn, and what they are."""

    judges: tuple[Judge, ...]
    identity: JudgeIdentity

    def of_worker(self, index: int) -> Judge:
        """The judge that worker ``index`` uses."""
        return self.judges[index % len(self.judges)]

    def of_task(self, worker: int, parallel_steps: int) -> tuple[Judge, ...]:
        """The judges of that worker's task: its own first, then others as several steps need them."""
        return tuple(self.of_worker(worker + turn) for turn in range(min(parallel_steps, len(self.judges))))


@contextmanager
def open_judge(
    config: RunConfig, log_path: Path, stop: threading.Event, *, force: bool = False
) -> Iterator[JudgeAccess]:
    """Reach the remote judge, or start one for the length of the run, with a token of its own.

    Args:
        config: which judge, and how candidates are to be judged.
        log_path: takes the output of a judge of the run's own.
        stop: ends waiting for the judge when set.
        force: measure each candidate anew, also where the judge knows a verdict on it.

    Raises:
        JudgeUnavailableError: none answers or it cannot be started.
    """
    if config.dummy:
        dummy = DummyJudge(config.seed)
        yield JudgeAccess((dummy,), dummy.identity())
        return
    with ExitStack() as stack:
        gpu_ids: Sequence[int] = config.gpu_ids or ()
        own_log = None if config.use_remote_eval else log_path
        if config.use_remote_eval:
            url = config.remote_eval_url
            token = read_environment(os.environ).judge_token
        else:
            token = secrets.token_urlsafe(32)
            url = stack.enter_context(
                embedded_judge(
                    device=config.judge_device,
                    compile_target=config.compile_target,
                    gpu_ids=gpu_ids,
                    workers=config.num_processes * config.parallel_steps,
                    seed=config.seed,
                    log_path=log_path,
                    token=token,
                )
            )
            gpu_ids = ()
        client = stack.enter_context(open_client())
        evaluation = Evaluation(
            tolerance=config.tolerance,
            tf32=config.tf32,
            tier=config.tier,
            baseline=config.baseline,
            timeout_s=config.timeout,
            try_reference=config.preset != "paper",
            force=force,
            tune_s=config.tune_s,
            gpu_name=_recorded_gpu(config),
        )
        judges = tuple(
            HttpJudge(
                url,
                replace(evaluation, device=gpu),
                token=token,
                own_log=own_log,
                client=client,
                sleep=stop.wait,
            )
            for gpu in gpu_ids or (None,)
        )
        identity = judges[0].identity()
        warning = contradiction(config.gpu_name, identity)
        if warning is not None:
            logger.warning("%s", warning)
        yield JudgeAccess(judges, identity)


def _recorded_gpu(config: RunConfig) -> str | None:
    """The GPU whose recorded baselines the judge may use.

    They are eager times of KernelBench's problems; a synthesised task shares numbers with these.
    """
    usable = config.gpu_name != "auto" and config.test_source == "KB" and config.baseline == "eager"
    return config.gpu_name if usable else None


def open_model(
    config: RunConfig,
    replies: Mapping[str, RecordedReply] | None,
    stop: threading.Event,
    records: RunRecords | None = None,
) -> MeteredClient:
    """The model that the configuration names, with its cost counted and, for a run, noted in ``records``.

    Raises:
        ModelError: a key or a package is missing.
    """
    mailbox = None if records is None else records.folder / layout.MAILBOX
    if config.mailbox_path is not None:
        mailbox = expanded(config.mailbox_path)
    client: ModelClient = build_client(
        config.server_type,
        config.model_name,
        base_url=config.base_url,
        command=config.command,
        mailbox=mailbox,
        mailbox_wait_s=config.mailbox_wait_s,
        replies=replies,
        temperature=config.temperature,
        reasoning_effort=config.reasoning_effort,
        service_tier=config.service_tier,
        openai_api=config.openai_api,
        max_completion_tokens=config.max_completion_tokens,
        seed=config.seed,
        stop=stop,
    )
    limits = RateLimits(config.max_concurrent_requests, config.requests_per_minute, config.tokens_per_minute)
    if limits:
        client = LimitedClient(client, limits, stop)
    return MeteredClient(client if records is None else NotingClient(client, records))


def judge_facts(config: RunConfig, identity: JudgeIdentity) -> JudgeFacts:
    """What the prompts say about the judge."""
    name, architecture = prompt_hardware(
        config.gpu_name, config.gpu_architecture, identity, config.compile_target
    )
    evaluation = Evaluation(config.tolerance, config.tf32)
    return JudgeFacts(
        gpu_name=name,
        gpu_architecture=architecture,
        dtype=config.dtype_str,
        tf32=config.tf32,
        tolerance=config.tolerance,
        trials=evaluation.trials,
        timed_runs=evaluation.timed_runs,
        warmup_runs=WARMUP_RUNS,
        tier=config.tier,
        shows_flags=config.preset != "paper",
        tunes=config.tune_s > 0 and identity.device == "cuda",
    )


def agent_options(config: RunConfig) -> AgentOptions:
    """How drafts are written."""
    paper = config.preset == "paper"
    return AgentOptions(
        reviewer=not config.disable_reviewer,
        force_review=config.force_reviser,
        worked_example=config.test_source == "KB",
        layout="paper" if paper else "shared",
        max_prompt_tokens=config.max_prompt_tokens or (0 if paper else _space(config)),
        repair_attempts=config.repair_attempts,
        repaired=_repaired(config),
    )


def _space(config: RunConfig) -> int:
    """Return the tokens that the model's context leaves for a prompt; 0 where that is unknown."""
    model = price_of(config.model_name) if config.server_type in ("openai", "claude", "anthropic") else None
    if model is None or model.context is None:
        return 0
    return max(model.context - config.max_completion_tokens, 1)


def _repaired(config: RunConfig) -> frozenset[RepairReason]:
    """What is sent back: failed edits always, what a check objects to where there is the check."""
    reasons = {RepairReason.EDIT}
    if config.preset != "paper":
        reasons |= {RepairReason.FORMAT, RepairReason.UNCHANGED, RepairReason.DUPLICATE}
    if config.preflight:
        reasons.add(RepairReason.LINT)
    if config.compile_gate:
        reasons.add(RepairReason.GATE)
    return frozenset(reasons)


def draft_checks(config: RunConfig, task: Task, verdicts: Verdicts, triton: str | None) -> tuple[Check, ...]:
    """What a source is asked before it becomes a draft, the cheapest first."""
    checks: list[Check] = []
    if config.preflight:
        api = triton_api(triton)
        checks.append(lint_check(lambda source: lint(source, api, task.reference)))
    if config.compile_gate:
        checks.append(gate_check(verdicts.compile))
    return tuple(checks)


def search_knobs(config: RunConfig) -> SearchKnobs:
    """What steers the search."""
    return SearchKnobs(
        exploration_weight=config.exploration_weight,
        expand_exploration_ratio=config.expand_exploration_ratio,
        reward_alpha=config.reward_alpha,
        small_step_limit=config.small_step_limit,
        p_large=config.p_large,
        pool_size=config.pool_size,
        pool_size_extra_max=config.pool_size_extra_max,
        softmax_temperature=config.softmax_temperature,
        geometric_p=config.geometric_p,
        max_memory_round=config.max_memory_round,
        selection=config.selection,
        lineage_patience=config.lineage_patience,
        lineage_reach=config.lineage_reach,
    )


def build_solver(
    config: RunConfig,
    task: Task,
    *,
    client: ModelClient,
    judges: tuple[Judge, ...],
    facts: JudgeFacts,
    rules: tuple[str, ...],
    seeds: tuple[str, ...],
    profiles: bool,
    triton: str | None,
    records: RunRecords,
    budget: Budget | None,
    steering: Steering | None = None,
    pinned: Mapping[int, int] | None = None,
    notes: Mapping[int, str] | None = None,
    bans: Mapping[int, tuple[int, ...]] | None = None,
) -> Solver:
    """The parts of one task's search; ``triton`` is the judge's version, where it told."""
    verdicts = Verdicts(judges, task)
    checks = draft_checks(config, task, verdicts, triton)
    return Solver(
        agent=Agent(client, task, facts, rules, agent_options(config), checks),
        policy=build_policy(config.agent_type, search_knobs(config)),
        verdicts=verdicts,
        records=records.task(task.key, config.agent_type),
        seed=config.seed,
        total_steps=config.total_steps,
        parallel_steps=config.parallel_steps,
        seeds=seeds,
        directions=offered_directions(task.reference) if config.directions else Directions(),
        profiles=profiles,
        budget=budget,
        steering=steering,
        pinned=pinned or {},
        notes=notes or {},
        bans=bans or {},
    )
