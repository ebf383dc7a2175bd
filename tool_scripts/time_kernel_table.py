"""Time the kernels of tier B of the search benchmark, once, on one GPU.

    python3 tool_scripts/time_kernel_table.py --out FILE.jsonl --limit-s 540

Compiles first, with all cores, then checks every candidate against float64 and times it in one child process.
Run it again with the same ``--out`` to go on where it stopped (``--done FILE``: records of another machine).
Without a GPU, ``--compile-only`` compiles and ``--pack FILE`` stores records as the table that tier B reads.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation

from adaexplore.core.errors import ConfigError
from tool_scripts.search_bench.table import pack
from tool_scripts.search_bench.table_children import Child, ChildLost, keys_in, order_of
from tool_scripts.search_bench.templates.space import EAGER, FAMILIES, NO_SLIP, SLIP_AXIS, Point, points

_log = logging.getLogger("time_kernel_table")

_COMPILE_SILENT_S = 25.0  # a kernel that takes longer to compile is a failure
_TIME_SILENT_S = 40.0
_BATCH = 48


def every_point(families: Sequence[str]) -> list[Point]:
    """All candidates, baselines first, in an order in which a run that is cut short has some of all."""
    ranked: list[tuple[int, Point]] = []
    for name in families:
        family = FAMILIES[name]
        for shape in family.shapes:
            ranked.append((-1, Point(name, shape, EAGER, {SLIP_AXIS: NO_SLIP})))
            seen: Counter[str] = Counter()
            for point in points(family, shape):
                ranked.append((seen[point.structure], point))
                seen[point.structure] += 1
    ranked.sort(key=lambda entry: entry[0])
    return [point for _, point in ranked]


def _same_kernels(todo: Iterable[Point]) -> Iterator[list[Point]]:
    """Points that differ in their shape only share kernels: one job, so that none is compiled twice."""
    jobs: dict[str, list[Point]] = {}
    for point in todo:
        key = json.dumps([point.family, point.structure, dict(sorted(point.choices.items()))])
        jobs.setdefault(key, []).append(point)
    yield from jobs.values()


class Compiling:
    """Workers that fill Triton's cache until ``until`` (monotonic seconds)."""

    def __init__(self, todo: Sequence[Point], until: float) -> None:
        self.compiled: set[str] = set()
        self.too_slow: list[Point] = []
        self._until = until
        self._jobs: queue.SimpleQueue[list[Point]] = queue.SimpleQueue()
        for job in _same_kernels(todo):
            self._jobs.put(job)

    def run(self, workers: int) -> None:
        """Compile with that many processes."""
        threads = [threading.Thread(target=self._work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        child: Child | None = None
        while time.monotonic() < self._until:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            for point in job:
                child = child or Child("compile")
                try:
                    for answer in child.ask({"points": [order_of(point)]}, _COMPILE_SILENT_S):
                        _log.debug("%s: %s", point.key, answer)
                    self.compiled.add(point.key)
                except ChildLost:
                    child.close()
                    child = None
                    self.too_slow.append(point)
        if child is not None:
            child.close()


def _record(file: TextIO, data: dict[str, Any]) -> None:
    file.write(json.dumps(data) + "\n")
    file.flush()


def time_points(
    todo: Sequence[Point], file: TextIO, repeats: int, until: float, first: Child | None = None
) -> bool:
    """Check and time in batches; returns whether all were done in time."""
    left, child = list(todo), first
    right = 0
    while left and time.monotonic() < until:
        batch = left[:_BATCH]
        child = child or Child("time")
        answered: set[int] = set()
        at = 0
        try:
            for answer in child.ask(
                {"points": [order_of(p) for p in batch], "repeats": repeats}, _TIME_SILENT_S
            ):
                at = answer.get("begin", at)
                if "result" in answer:
                    answered.add(answer["result"])
                    point = batch[answer["result"]]
                    right += answer["status"] == "ok" and point.structure != EAGER
                    if point.structure == EAGER and answer["status"] != "ok":
                        raise SystemExit(f"the baseline {point.key} failed: {answer['message']}")
                    fields: dict[str, Any] = {
                        name: answer[name] for name in ("status", "message", "us") if name in answer
                    }
                    _record(file, {**order_of(point), **fields})
        except ChildLost as error:
            child.close()
            child = None
            if at not in answered:
                answered.add(at)
                _record(file, {**order_of(batch[at]), "status": "launch_error", "message": f"child {error}"})
        left = [point for number, point in enumerate(batch) if number not in answered] + left[len(batch) :]
        if not right and len(todo) - len(left) >= _BATCH:
            raise SystemExit("none of the first candidates ran: see the messages in the record file")
        _log.info("%d left, %.0f s left", len(left), until - time.monotonic())
    if child is not None:
        child.close()
    return not left


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code (75: points are left, run it again)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="record file (JSON lines), appended to")
    parser.add_argument(
        "--done", type=Path, nargs="*", default=[], help="record files whose points are left out"
    )
    parser.add_argument("--limit-s", type=float, default=540.0, help="seconds for everything")
    parser.add_argument(
        "--compile-s", type=float, help="seconds of these for compiling (default: 45 %% of them)"
    )
    parser.add_argument(
        "--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="compiling processes"
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--most", type=int, help="take only the first points (a trial)")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="only store the records as a table in FILE")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    if options.pack:
        try:
            _log.info("%d candidates in %s", pack(options.out, options.pack), options.pack)
        except ConfigError as error:
            _log.error("%s", error)
            return error.exit_code
        return 0
    started = time.monotonic()
    until = started + options.limit_s
    done = keys_in(options.out).union(*(keys_in(path) for path in options.done))
    todo = [point for point in every_point(options.families) if point.key not in done][: options.most]
    _log.info("%d points to do, %d done", len(todo), len(done))
    compiling = Compiling(todo, started + (options.compile_s or 0.45 * options.limit_s))
    compiling.run(options.workers)
    _log.info("%d compiled, %d too slow", len(compiling.compiled), len(compiling.too_slow))
    if options.compile_only:
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as file:
        child = Child("time")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        command = " ".join(["python3", "tool_scripts/time_kernel_table.py", *(arguments or sys.argv[1:])])
        _record(file, {"date": now, "command": command, "repeats": options.repeats, **child.about})
        for point in compiling.too_slow:
            message = f"compiling took over {_COMPILE_SILENT_S:g} s"
            _record(file, {**order_of(point), "status": "compile_error", "message": message})
        ready = [point for point in todo if point.key in compiling.compiled]
        finished = time_points(ready, file, options.repeats, until, child)
    _log.info("%.0f s in all", time.monotonic() - started)
    return 0 if finished and len(ready) + len(compiling.too_slow) == len(todo) else 75


if __name__ == "__main__":
    sys.exit(main())
