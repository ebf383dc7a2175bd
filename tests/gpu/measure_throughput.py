"""Measure verdicts per hour of revisions of the judge with saved kernels, on one GPU.

``python -m tests.gpu.measure_throughput --saved DIR --kernelbench DIR --tree OLD --tree . --out FILE.jsonl``

The judge of each tree gets the same kernels in the same order. A tree may be named again, so that batches
alternate. ``--out`` gets one line for each job and each batch; ``ended_s`` counts from the batch's start.
"""

import argparse
import contextlib
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from adaexplore.core.errors import JudgeUnavailableError, UsageError
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.tasks.saved_kernels import saved_kernels
from tool_scripts.judge_bench import own
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.plan import until
from tool_scripts.judge_bench.service import WAITING_S, Client, request_of, running_judge
from tool_scripts.script import script

TIMEOUT_S = 120
_GPU = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
_SMI = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", _GPU)
_TEXT_CHARS = 300

Line = dict[str, Any]
"""A line of ``--out``; the status of a job without a verdict is ``error``."""


@dataclass(frozen=True)
class Kernel:
    """A candidate; ``published`` is its recorded speedup, if there is one."""

    candidate: Candidate
    published: float | None = None

    @property
    def autotuned(self) -> bool:
        return "triton.autotune" in self.candidate.source


@dataclass(frozen=True)
class Service:
    """The running judge of a tree."""

    tree: str
    batch: int
    client: Client
    slots: int
    in_flight: int
    v1: bool
    knows_best: bool

    def judge(self, kernel: Kernel) -> Line:
        """Judge a kernel anew; a failure of the judge becomes the job's ``error``."""
        request = request_of(kernel.candidate, TIMEOUT_S)
        if self.knows_best and kernel.published:
            request["best_so_far"] = kernel.published
        limit_s = math.ceil(self.in_flight / self.slots) * (2 * TIMEOUT_S + WAITING_S)
        answer: Line
        begin = time.monotonic()
        try:
            if self.v1:
                response = self.client.post("/evaluate", json=request, timeout=limit_s)
                answer = response.raise_for_status().json()
            else:
                body = {"kind": "candidate", "request": request, "force": True}
                answer = self.client.finished(body, limit_s)
        except (JudgeUnavailableError, httpx.HTTPError, ValueError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        client_s = round(time.monotonic() - begin, 3)
        verdict = (answer if self.v1 else answer.get("verdict")) or {}
        meta, stats = verdict.get("metadata") or {}, verdict.get("runtime_stats") or {}
        status = verdict.get("status") or meta.get("status")  # v2's, or v1's if the judge states one
        if status is None:
            known = "passed" if verdict.get("correctness") else "failed"
            status = "error" if answer.get("error") or not verdict else known
        why = answer.get("error") or meta.get("error") or meta.get("feedback") or answer.get("state")
        line = {"kind": "job", **self.named()}
        line |= {"candidate": kernel.candidate.id, "autotuned": kernel.autotuned}
        line |= {"status": status, "client_s": client_s, "queue_s": answer.get("queue_time")}
        line |= {"speedup": stats.get("fast_p"), "best_so_far": request.get("best_so_far")}
        line |= {"stopped_early": bool(stats.get("stopped_early")), "seconds": meta.get("seconds") or {}}
        line |= {"runtime_slot": stats.get("slot") or {}, "slot": meta.get("slot") or {}}
        return line | {"error": None if status == "passed" else str(why)[:_TEXT_CHARS]}

    def named(self) -> Line:
        mode = "v1" if self.v1 else "v2"
        return {"tree": self.tree, "batch": self.batch, "mode": mode, "slots": self.slots}


@dataclass(frozen=True)
class Load:
    """Mean utilization of the GPU in percent and mean number of busy cores; None if not measured."""

    gpu_busy: float | None = None
    cores_busy: float | None = None


def choose(
    saved: Path, kernelbench: Path, count: int, autotuned: int, without: Sequence[str] = ()
) -> list[Kernel]:
    """Return ``count`` saved kernels in random order; at least ``autotuned`` of them use ``triton.autotune``.

    ``without`` names problems to leave out, such as ``2_99``.

    Raises:
        UsageError: a problem is missing, or there are too few such kernels.
    """
    found = []
    for each in saved_kernels(saved):
        if each.key in without:
            continue
        file = next(kernelbench.glob(f"level{each.level}/{each.problem_id}_*.py"), None)
        if file is None:
            raise UsageError(f"{kernelbench} has no level{each.level}/{each.problem_id}_*.py for {each.path}")
        candidate = Candidate(f"{each.key}/saved", each.key, file.read_text(encoding="utf-8"), each.source)
        found.append(Kernel(candidate, each.published))
    tuned = [kernel for kernel in found if kernel.autotuned]
    if autotuned > min(count, len(tuned)):
        raise UsageError(f"--autotuned {autotuned} of --count {count}, but {len(tuned)} use triton.autotune")
    rng = random.Random(0)
    chosen = rng.sample(tuned, autotuned)
    rest = [kernel for kernel in found if kernel not in chosen]
    chosen += rng.sample(rest, min(count - autotuned, len(rest)))
    return rng.sample(chosen, len(chosen))


@contextlib.contextmanager
def running(tree: str, place: Path, batch: int, options: argparse.Namespace) -> Iterator[Service]:
    """Run the judge of a tree; it has judged a small kernel.

    Raises:
        JudgeUnavailableError: it does not start, or that kernel does not pass.
    """
    slots, in_flight = (1, 1) if options.one_by_one else (options.slots, options.in_flight)
    wire = (place / "adaexplore" / "core" / "wire.py").read_text(encoding="utf-8")
    fixed = {"ADAEXPLORE_JUDGE_SECRET": "throughput"}
    log = options.out.with_suffix(f".{batch}.log")
    with running_judge(options.device, slots, log, place, **fixed) as url, Client(url) as client:
        best = "best_so_far" in wire and not options.v1
        service = Service(tree, batch, client, slots, in_flight, options.v1, best)
        warm = service.judge(Kernel(own.offline(0, 1)[0]))
        if warm["status"] != "passed":
            raise JudgeUnavailableError(
                f"{tree}: the warm-up got {warm['status']}: {warm['error']}; see {log}"
            )
        yield service


def judge_batch(service: Service, kernels: Sequence[Kernel], deadline: float, out: JsonLines) -> list[Line]:
    """Judge the kernels, several at a time; append and return a line for each and one for all."""
    jobs: list[Line] = []

    def one(kernel: Kernel) -> None:
        job = service.judge(kernel)
        jobs.append(job := job | {"ended_s": round(time.monotonic() - begin, 2)})
        out.append(job)

    stop, begin = threading.Event(), time.monotonic()
    with ThreadPoolExecutor(1) as sampler:
        load = sampler.submit(sample, stop)
        try:
            until(deadline, kernels, service.in_flight, one)
            wall_s = time.monotonic() - begin
        finally:
            stop.set()
    return [*jobs, summarise(service, jobs, wall_s, load.result(), out)]


def judge_in_turn(
    services: Sequence[Service], kernels: Sequence[Kernel], deadline: float, out: JsonLines
) -> list[Line]:
    """Judge each kernel on each tree, one job at a time; the trees take turns at being first."""
    jobs = []
    for number, kernel in enumerate(kernels):
        if time.monotonic() >= deadline:
            break
        first = number % len(services)
        for service in [*services[first:], *services[:first]]:
            out.append(job := service.judge(kernel))
            jobs.append(job)
    of = {service: [job for job in jobs if job["batch"] == service.batch] for service in services}
    walls = {service: sum(job["client_s"] for job in of[service]) for service in services}
    return jobs + [summarise(each, of[each], walls[each], Load(), out) for each in services]


def sample(stop: threading.Event) -> Load:
    """Read the machine's load once a second until ``stop`` is set."""
    shares, (busy, total) = [gpu_busy()], cpu_ticks()
    while not stop.wait(1.0):
        shares.append(gpu_busy())
    busy_now, total_now = cpu_ticks()
    cores = (os.cpu_count() or 1) * (busy_now - busy) / max(total_now - total, 1)
    return Load(mean(shares), round(cores, 2))


def gpu_busy() -> float | None:
    try:
        return float(subprocess.run(_SMI, capture_output=True, text=True, timeout=20, check=True).stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def cpu_ticks() -> tuple[int, int]:
    """Return the busy time and the whole time of all cores."""
    line = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0]
    ticks = [int(word) for word in line.split()[1:9]]  # guests are counted in the first two
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and iowait


def summarise(service: Service, jobs: Sequence[Line], wall_s: float, load: Load, out: JsonLines) -> Line:
    """Append, print and return the figures of a batch."""
    verdicts = sum(job["status"] != "error" for job in jobs)
    passed = sum(job["status"] == "passed" for job in jobs)
    rate = round(verdicts * 3600 / wall_s, 1) if wall_s else None
    line = {"kind": "batch", **service.named(), "wall_s": round(wall_s, 2), "verdicts": verdicts}
    out.append(line := line | {"per_hour": rate, "passed": passed, **vars(load)})
    stages = dict.fromkeys(stage for job in jobs for stage in job["seconds"])
    spent = [f"{stage} {shown(mean(job['seconds'].get(stage) for job in jobs))}" for stage in stages]
    held_s = mean(job["runtime_slot"].get("held_s") for job in jobs)
    sys.stdout.write(
        f"{service.batch} {service.tree} ({line['mode']}, {service.slots} slots): {shown(rate)} per hour "
        f"({verdicts} verdicts in {wall_s:.1f} s, {passed} passed, {len(jobs) - verdicts} errors)\n"
        f"  client seconds: {spread(jobs)}; autotuned: {spread([job for job in jobs if job['autotuned']])}\n"
        f"  mean seconds of stages: {', '.join(spent) or 'none'}\n  mean slot.held_s {shown(held_s)}, "
        f"GPU busy {shown(load.gpu_busy)} %, cores busy {shown(load.cores_busy)}\n"
    )
    sys.stdout.flush()
    return line


def compare(first: str, last: str, lines: Sequence[Line]) -> None:
    """Print the ratios of two trees' rates: of whole batches, and over the kernels that passed on both.

    The latter is the inverse ratio of mean seconds without the queue, so batches may have ended early.
    """
    jobs = [line for line in lines if line["kind"] == "job"]
    passed = {(job["tree"], job["candidate"]) for job in jobs if job["status"] == "passed"}
    both = [job for job in jobs if {(first, job["candidate"]), (last, job["candidate"])} <= passed]
    rates = [
        mean(b["per_hour"] for b in lines if b["kind"] == "batch" and b["tree"] == t) for t in (first, last)
    ]
    sys.stdout.write(f"{last} / {first}: rates of batches {ratio(rates[1], rates[0])}\n")
    for name, common in (("all", both), ("autotuned", [job for job in both if job["autotuned"]])):
        of = [[job for job in common if job["tree"] == tree] for tree in (first, last)]
        busy = [mean(job["client_s"] - (job["queue_s"] or 0) for job in group) for group in of]
        count = len({job["candidate"] for job in common})
        sys.stdout.write(
            f"  {name}, {count} passed on both: rate {ratio(busy[0], busy[1])}; "
            f"seconds of {first} {spread(of[0])}; of {last} {spread(of[1])}\n"
        )


def ratio(value: float | None, base: float | None) -> str:
    return f"{value / base:.3f}" if value is not None and base else "-"


def spread(jobs: Sequence[Line]) -> str:
    times = [job["client_s"] for job in jobs]
    return f"mean {statistics.fmean(times):.2f} p50 {statistics.median(times):.2f}" if times else "none"


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


@script
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--saved", type=Path, required=True, help="kernels level<N>/<id>.py and metrics")
    parser.add_argument("--kernelbench", type=Path, required=True, help="problems level<N>/<id>_*.py")
    parser.add_argument("--tree", action="append", required=True, help="checkout of a judge; several")
    parser.add_argument("--slots", type=int, default=12)
    parser.add_argument("--in-flight", type=int, default=24)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--without", nargs="*", default=[], help="problems to leave out, such as 2_99")
    parser.add_argument("--autotuned", type=int, default=0, help="kernels that use triton.autotune, at least")
    parser.add_argument("--one-by-one", action="store_true", help="one slot; trees in turn")
    parser.add_argument("--v1", action="store_true", help="use /evaluate, without best_so_far")
    parser.add_argument("--limit-s", type=float, default=math.inf, help="shared equally by the batches")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    end, options.out = time.monotonic() + options.limit_s, options.out.resolve()
    kernels = choose(options.saved, options.kernelbench, options.count, options.autotuned, options.without)
    trees, out, lines = list(dict.fromkeys(options.tree)), JsonLines(options.out), []
    places = {tree: Path(tree).resolve() for tree in trees}  # a judge runs with its tree as working directory
    if options.one_by_one:
        with contextlib.ExitStack() as stack:
            services = [
                stack.enter_context(running(tree, places[tree], batch, options))
                for batch, tree in enumerate(trees)
            ]
            lines = judge_in_turn(services, kernels, end, out)
    else:
        for batch, tree in enumerate(options.tree):
            share_s = (end - time.monotonic()) / (len(options.tree) - batch)
            deadline = time.monotonic() + share_s
            with running(tree, places[tree], batch, options) as service:
                lines += judge_batch(service, kernels, deadline, out)
    if len(trees) > 1:
        compare(trees[0], trees[-1], lines)


if __name__ == "__main__":
    main()
