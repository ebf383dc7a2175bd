"""The parts that are made of verdicts: honest, repeat, aa, problems, throughput, latency."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence

from adaexplore.core.errors import UsageError
from tool_scripts.judge_bench import candidates, own
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.children import run_child
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.plan import Plan, log, tell, without
from tool_scripts.judge_bench.records import Batch, Judged, NaiveRun, PlainRun, Session
from tool_scripts.judge_bench.service import JOB_TIMEOUT_S, Client, running_judge

HONEST_COUNT = 210
THROUGHPUT_COUNT = 46
LATENCY_COUNT = 20
REPEATS = 20
AA_REPEATS = 5
COMPILE_ERROR = "CompilationError"
PLAIN = "plain"
"""Plain runs have a file of their own: what the judge says can be measured again without them."""


def honest(plan: Plan, ledger: Ledger) -> int:
    """Plain runs until enough candidates passed, then a verdict on each of those."""
    recorded = candidates.shuffled([each for each in plan.recorded if each.correct], plan.seed, "honest")
    if plan.device == "cuda" and not recorded:
        raise UsageError("the part honest needs recorded candidates; name them with --candidates DIR")
    wanted = HONEST_COUNT if plan.count is None else plan.count
    plain = Ledger(plan.out, plan.device, PLAIN)
    for session in ledger.of(Session)[-1:]:
        plain.open_session(session)
    known = [run.candidate for run in plain.of(PlainRun)]
    ids = {each.id for each in recorded}

    def enough() -> bool:
        return sum(run.outcome == "passed" and run.candidate in ids for run in plain.of(PlainRun)) >= wanted

    threads = str(max(1, (os.cpu_count() or 1) // plan.plain_jobs))  # each with its share of the cores

    def try_plainly(candidate: Candidate) -> None:
        if candidate.id in ids and enough():
            return
        environment = plan.child_environment | {"TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": threads}
        end = run_child("plain", candidate, plan.device, plan.child_limit_s, environment)
        run = PlainRun(
            candidate=candidate.id, outcome=end.outcome, detail=end.reason[:300], seconds=end.seconds
        )
        plain.add(run)
        log.info("plain %s: %s (%.1f s) %s", run.candidate, run.outcome, run.seconds, run.detail)

    with tempfile.TemporaryDirectory(prefix="bench-judge-", ignore_cleanup_errors=True) as cache:
        left = plan.each(without([*plan.own, *recorded], known), plan.plain_jobs, try_plainly)
    if left:
        return left
    passed = {run.candidate for run in plain.of(PlainRun) if run.outcome == "passed"}
    return _judge(plan, ledger, [each for each in [*plan.own, *recorded] if each.id in passed])


def repeat(plan: Plan, ledger: Ledger) -> int:
    """This benchmark's own kernels, one after another, in rounds."""
    rounds = REPEATS if plan.repeats is None else plan.repeats
    units = [(f"{each.id}/{turn}", each) for turn in range(rounds) for each in own.kernels()]
    return _judge_units(plan, ledger, units, slots=1)


def aa(plan: Plan, ledger: Ledger) -> int:
    """Each reference against itself; every round has a judge of its own, so that nothing is remembered."""
    problems = candidates.references([*plan.recorded, *own.kernels()])[: plan.count]
    left = 0
    for turn in range(AA_REPEATS if plan.repeats is None else plan.repeats):
        units = [(f"{each.id}/{turn}", each) for each in problems]
        left += _judge_units(plan, ledger, units, slots=1)
    return left


def again(plan: Plan, ledger: Ledger) -> int:
    """Judge every candidate of ``--candidates`` several times."""
    units = [
        (f"{each.id}/{number}", each) for number in range(plan.repeats or REPEATS) for each in plan.recorded
    ]
    return _judge_units(plan, ledger, units, slots=plan.slots)


def problems(plan: Plan, ledger: Ledger) -> int:
    """Judge every KernelBench problem with its own reference as its candidate.

    Raises:
        UsageError: no KernelBench folder is named, or a level has no problems.
    """
    if plan.kernelbench is None:
        raise UsageError("the part problems needs KernelBench; name its folder with --kernelbench DIR")
    chosen = candidates.kernelbench(plan.kernelbench, plan.levels)[: plan.count]
    return _judge(plan, ledger, chosen, plan.unit_limit_s)


def naive(plan: Plan, ledger: Ledger) -> int:
    """The released design on the candidates of ``throughput``, one at a time."""
    chosen = _throughput_set(plan)
    known = [run.candidate for run in ledger.of(NaiveRun)]

    def evaluate(candidate: Candidate) -> None:
        begin = time.time()
        environment = plan.child_environment | {"TRITON_CACHE_DIR": cache}
        end = run_child("naive", candidate, plan.device, plan.child_limit_s, environment)
        stages = dict(end.result.get("stages_s", {}))
        if "ended_at" in end.result:
            stages["exit"] = begin + end.seconds - float(end.result["ended_at"])
        run = NaiveRun(
            candidate=candidate.id,
            outcome=end.outcome,
            detail=end.reason[:300],
            seconds=end.seconds,
            stages_s=stages,
            speedup=end.result.get("speedup"),
        )
        ledger.add(run)
        spent = " ".join(f"{name} {seconds:.1f}" for name, seconds in stages.items())
        log.info("naive %s: %s in %.1f s (%s)", run.candidate, run.outcome, run.seconds, spent)

    # one cache for all runs, as a service has one: Triton's launcher is built once
    with tempfile.TemporaryDirectory(prefix="bench-judge-", ignore_cleanup_errors=True) as cache:
        return plan.each(without(chosen, known), 1, evaluate)


def throughput(plan: Plan, ledger: Ledger) -> int:
    """The judge on those of the same candidates whose naive run ended; all of them in one batch.

    Raises:
        UsageError: the part ``naive`` is not complete.
    """
    runs = {run.candidate: run for run in Ledger(plan.out, plan.device, "naive").of(NaiveRun)}
    chosen = _throughput_set(plan)
    if without(chosen, runs):
        raise UsageError("throughput compares with the part naive: run --part naive to its end first")
    if ledger.of(Batch):
        return 0
    chosen = [each for each in chosen if runs[each.id].outcome != "timeout"]
    begin = time.monotonic()
    log_file = plan.log_file(ledger.part)
    with running_judge(plan.device, plan.slots, log_file) as address, Client(address) as client:
        tell(client.judge(own.small(), "throughput/first"))
        start_s = time.monotonic() - begin
        verdicts: list[Judged] = []

        def evaluate(candidate: Candidate) -> None:
            verdicts.append(client.judge(candidate, f"throughput/{candidate.id}"))
            tell(verdicts[-1])

        begin = time.monotonic()
        left = plan.each(chosen, plan.in_flight, evaluate)
        wall_s = time.monotonic() - begin
    if not left:
        batch = Batch(
            slots=plan.slots,
            in_flight=plan.in_flight,
            wall_s=wall_s,
            start_s=start_s,
            verdicts=tuple(verdicts),
        )
        ledger.add(batch)
    return left


def latency(plan: Plan, ledger: Ledger) -> int:
    """Recorded compile errors and recorded correct kernels, one at a time, on a judge that is ready."""
    count = LATENCY_COUNT if plan.count is None else plan.count
    failing = [each for each in plan.recorded if COMPILE_ERROR in each.error]
    passing = [each for each in plan.recorded if each.correct]
    if not failing or not passing:
        raise UsageError("the part latency needs recorded candidates; name them with --candidates DIR")
    units = [
        (f"{kind}/{each.id}", each)
        for kind, pool in (("compile", failing), ("pass", passing))
        for each in candidates.shuffled(pool, plan.seed, f"latency {kind}")[:count]
    ]
    return _judge_units(plan, ledger, units, slots=1)


def _throughput_set(plan: Plan) -> list[Candidate]:
    count = THROUGHPUT_COUNT if plan.count is None else plan.count
    chosen = candidates.in_recorded_share(plan.recorded, count, plan.seed)
    if not chosen:
        raise UsageError("this part needs recorded candidates; name them with --candidates DIR")
    return chosen


def _judge(plan: Plan, ledger: Ledger, chosen: Sequence[Candidate], limit_s: int = JOB_TIMEOUT_S) -> int:
    units = [(each.id, each) for each in chosen]
    return _judge_units(plan, ledger, units, slots=plan.slots, limit_s=limit_s)


def _judge_units(
    plan: Plan,
    ledger: Ledger,
    units: Sequence[tuple[str, Candidate]],
    *,
    slots: int,
    limit_s: int = JOB_TIMEOUT_S,
) -> int:
    """Get verdicts on the units that have none, and return the number left over.

    A problem error is final. Other failures are asked again by the next call, after all new units: a
    problem that ends the judge must not be first in every call.
    """
    asked = {each.unit: each for each in ledger.of(Judged)}
    known = {each.unit for each in asked.values() if each.failure in (None, "problem error")}
    missing = [(f"{ledger.part}/{unit}", each) for unit, each in units]
    missing = [(unit, each) for unit, each in missing if unit not in known]
    missing.sort(key=lambda item: item[0] in asked)
    if not missing or plan.time_is_up():
        return len(missing)
    log.info("%s: %d of %d verdicts to get", ledger.part, len(missing), len(units))
    with (
        running_judge(plan.device, slots, plan.log_file(ledger.part)) as address,
        Client(address) as client,
    ):
        _warm_up(client)
        evaluate = _evaluation(client, ledger, limit_s)
        return plan.each(missing, plan.in_flight if slots > 1 else 1, evaluate)


def _warm_up(client: Client) -> None:
    """One verdict that is not kept: processes start, pages are read."""
    tell(client.judge(own.small(), "warm-up"))


def _evaluation(client: Client, ledger: Ledger, limit_s: int) -> Callable[[tuple[str, Candidate]], None]:
    def evaluate(unit: tuple[str, Candidate]) -> None:
        verdict = client.judge(unit[1], unit[0], limit_s)
        ledger.add(verdict)
        tell(verdict)

    return evaluate
