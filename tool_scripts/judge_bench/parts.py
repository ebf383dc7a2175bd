"""The parts of the benchmark: each measures the units that its ledger lacks, and returns the number left."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from adaexplore.core.errors import UsageError
from tool_scripts.judge_bench import candidates, own
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.plain import compare
from tool_scripts.judge_bench.plan import Plan, log, until
from tool_scripts.judge_bench.records import Batch, Judged, Ledger, PlainRun, Session
from tool_scripts.judge_bench.service import JOB_TIMEOUT_S, Client, running_judge

HONEST_COUNT = 210
THROUGHPUT_COUNT = 46
THROUGHPUT_LIMIT_S = 60
LATENCY_COUNT = 20
REPEATS = 20
AA_REPEATS = 5
COMPILE_ERROR = "CompilationError"
PLAIN = "plain"
"""Plain runs have their own file: verdicts can be measured again without them."""


def honest(plan: Plan, ledger: Ledger) -> int:
    """Run plain comparisons until enough candidates passed, then judge each of those."""
    recorded = candidates.shuffled([each for each in plan.recorded if each.correct], plan.seed, "honest")
    if plan.device == "cuda" and not recorded:
        raise _no_candidates("honest")
    wanted = HONEST_COUNT if plan.count is None else plan.count
    plain = Ledger(plan.out, plan.device, PLAIN)
    for session in ledger.of(Session)[-1:]:
        plain.open_session(session)
    ids = {each.id for each in recorded}
    threads = str(max(1, (os.cpu_count() or 1) // plan.plain_jobs))  # each gets its share of the cores

    def enough() -> bool:
        return sum(run.outcome == "passed" and run.candidate in ids for run in plain.of(PlainRun)) >= wanted

    def work(candidate: Candidate) -> None:
        if candidate.id in ids and enough():
            return
        environment = {"TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": threads}
        run = compare(candidate, plan.device, plan.child_limit_s, environment)
        plain.add(run)
        log.info("plain %s: %s (%.1f s) %s", run.candidate, run.outcome, run.seconds, run.detail)

    everything = [*plan.own, *recorded]
    known = {run.candidate for run in plain.of(PlainRun)}
    missing = [each for each in everything if each.id not in known]
    # one cache for all, as in a service: Triton's launcher is built once
    with tempfile.TemporaryDirectory(prefix="bench-judge-", ignore_cleanup_errors=True) as cache:
        left = until(plan.deadline, missing, plan.plain_jobs, work)
    if left:
        return left
    passed = {run.candidate for run in plain.of(PlainRun) if run.outcome == "passed"}
    return _judge(plan, ledger, [(each.id, each) for each in everything if each.id in passed], plan.slots)


def repeat(plan: Plan, ledger: Ledger) -> int:
    """Judge this benchmark's own kernels one after another, in rounds."""
    kernels, rounds = own.kernels(), REPEATS if plan.repeats is None else plan.repeats
    return _judge(plan, ledger, [(f"{each.id}/{turn}", each) for turn in range(rounds) for each in kernels])


def aa(plan: Plan, ledger: Ledger) -> int:
    """Judge each reference against itself; each round has its own judge, so that nothing is remembered."""
    problems = candidates.references([*plan.recorded, *own.kernels()])[: plan.count]
    rounds = AA_REPEATS if plan.repeats is None else plan.repeats
    return sum(
        _judge(plan, ledger, [(f"{each.id}/{turn}", each) for each in problems]) for turn in range(rounds)
    )


def again(plan: Plan, ledger: Ledger) -> int:
    """Judge every candidate of ``--candidates`` several times."""
    rounds = range(plan.repeats or REPEATS)
    units = [(f"{each.id}/{number}", each) for number in rounds for each in plan.recorded]
    return _judge(plan, ledger, units, plan.slots)


def problems(plan: Plan, ledger: Ledger) -> int:
    """Judge every KernelBench problem with its own reference as its candidate.

    Raises:
        UsageError: no KernelBench folder is named, or a level has no problems.
    """
    if plan.kernelbench is None:
        raise UsageError("the part problems needs KernelBench; name its folder with --kernelbench DIR")
    chosen = candidates.kernelbench(plan.kernelbench, plan.levels)[: plan.count]
    asked = {"dtype_str": plan.dtype, "direction": plan.direction}
    units = [(each.id, replace(each, fields=asked)) for each in chosen]
    return _judge(plan, ledger, units, plan.slots, plan.unit_limit_s)


def throughput(plan: Plan, ledger: Ledger) -> int:
    """Judge recorded candidates in one batch."""
    count = THROUGHPUT_COUNT if plan.count is None else plan.count
    chosen = candidates.in_recorded_share(plan.recorded, count, plan.seed)
    if not chosen:
        raise _no_candidates("throughput")
    if ledger.of(Batch):
        return 0
    verdicts: list[Judged] = []

    def evaluate(candidate: Candidate) -> None:
        verdicts.append(_logged(client.judge(candidate, f"throughput/{candidate.id}", THROUGHPUT_LIMIT_S)))

    begin = time.monotonic()
    with _warm_judge(plan, ledger, plan.slots) as client:
        ready = time.monotonic()
        left = until(plan.deadline, chosen, plan.in_flight, evaluate)
        wall_s = time.monotonic() - ready
    if not left:
        batch = Batch(
            slots=plan.slots,
            in_flight=plan.in_flight,
            wall_s=wall_s,
            start_s=ready - begin,
            verdicts=tuple(verdicts),
        )
        ledger.add(batch)
    return left


def latency(plan: Plan, ledger: Ledger) -> int:
    """Judge recorded compile errors and correct kernels one at a time, with a judge that is ready."""
    count = LATENCY_COUNT if plan.count is None else plan.count
    failing = [each for each in plan.recorded if COMPILE_ERROR in each.error]
    passing = [each for each in plan.recorded if each.correct]
    if not failing or not passing:
        raise _no_candidates("latency")
    units = [
        (f"{kind}/{each.id}", each)
        for kind, pool in (("compile", failing), ("pass", passing))
        for each in candidates.shuffled(pool, plan.seed, f"latency {kind}")[:count]
    ]
    return _judge(plan, ledger, units)


PARTS: dict[str, Callable[[Plan, Ledger], int]] = {
    part.__name__: part for part in (honest, repeat, aa, again, problems, throughput, latency)
}


def _no_candidates(part: str) -> UsageError:
    return UsageError(f"the part {part} needs recorded candidates; name them with --candidates DIR")


def _judge(
    plan: Plan,
    ledger: Ledger,
    units: Sequence[tuple[str, Candidate]],
    slots: int = 1,
    limit_s: int = JOB_TIMEOUT_S,
) -> int:
    """Get verdicts on the units without one, and return the number left over.

    A problem error is final. The next call repeats units with other failures after all new units, because a
    problem that crashes the judge must not be first in every call.
    """
    asked = {each.unit: each for each in ledger.of(Judged)}
    known = {each.unit for each in asked.values() if each.failure in (None, "problem error")}
    missing = [(f"{ledger.part}/{unit}", each) for unit, each in units]
    missing = [(unit, each) for unit, each in missing if unit not in known]
    missing.sort(key=lambda item: item[0] in asked)
    if not missing or time.monotonic() >= plan.deadline:
        return len(missing)
    log.info("%s: %d of %d verdicts to get", ledger.part, len(missing), len(units))
    with _warm_judge(plan, ledger, slots) as client:

        def evaluate(unit: tuple[str, Candidate]) -> None:
            ledger.add(_logged(client.judge(unit[1], unit[0], limit_s)))

        return until(plan.deadline, missing, plan.in_flight if slots > 1 else 1, evaluate)


@contextlib.contextmanager
def _warm_judge(plan: Plan, ledger: Ledger, slots: int) -> Iterator[Client]:
    """Yield a client of a judge that is warm after one verdict, which is not kept."""
    log_file = ledger.path.with_name(f"{ledger.path.stem}-judge.log")
    with running_judge(plan.device, slots, log_file) as address, Client(address) as client:
        _logged(client.judge(own.offline(0, 1)[0], "warm-up"))
        yield client


def _logged(verdict: Judged) -> Judged:
    speed = "" if verdict.speedup is None else f" {verdict.speedup:.3f}x"
    rejects = f" REJECT {','.join(verdict.rejects)}" if verdict.rejects else ""
    said = verdict.error or verdict.status
    log.info("%s: %s%s%s (%.1f s)", verdict.unit, said, speed, rejects, verdict.seconds)
    return verdict
