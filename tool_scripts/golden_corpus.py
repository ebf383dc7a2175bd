"""Store the judge's answers on a fixed set of candidates, and compare the answers of two revisions.

``python -m tool_scripts.golden_corpus make --out FILE.jsonl [--device cpu|cuda] [--traces DIR]
[--limit N] [--limit-s SECONDS] [--tree DIR]``, then ``... compare OLD.jsonl NEW.jsonl``

A refactoring must not change answers: make a file before it and another after it on the same machine
(``--tree`` runs the judge of another checkout), and compare them. ``make`` completes an existing file; it
exits with 75 if its time ends first. A file holds whole answers. The lists below say what ``compare``
ignores, so they can change without judging again.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import math
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import httpx
from tqdm import tqdm

from adaexplore.core.errors import JudgeUnavailableError, RecordError
from adaexplore.core.files.json_lines import JsonLines
from tests.adversarial import sources
from tests.adversarial.manifest import CASES, HONEST
from tests.adversarial.trials import FIELDS, sweep
from tool_scripts.judge_bench import candidates, own
from tool_scripts.judge_bench.plan import until
from tool_scripts.judge_bench.service import ROOT, request_of, running_judge
from tool_scripts.measure_checks import sample
from tool_scripts.script import script

Device = Literal["cpu", "cuda"]

IGNORED = ("runtime", "execution_time", "queue_time")
"""Times, which are not compared. Of ``runtime_stats``, which holds measurements, only the keys are
compared."""
IGNORED_ON_CUDA = (
    *("metadata.seconds", "metadata.slot", "metadata.stdout"),  # times
    "metadata.tuned",  # times decide the sweep's choice
    # a GPU may sum in another order
    *("metadata.precision", "metadata.avg_difference", "metadata.max_difference"),
)
FLAGS_IGNORED_ON_CUDA = {
    *("below_soft_bound", "launch_bound", "library_bound", "baseline_drift"),  # these compare times
    *("throttled", "baseline_unconfirmed"),  # states of the GPU
    "nondeterministic",  # the order of atomics
}
NUMBERS_IGNORED_ON_CUDA = (
    *("metadata.feedback", "metadata.integrity_evidence"),  # errors and times
    "metadata.problem_flags_evidence",  # errors
)
REPLACED = (
    (r"(thread [^,;]+ is in candidate\.py):\d+", r"\1"),  # where the thread is at that moment
    (r"\bonline_judge(\.[a-z_]\w*)+", "<judge>"),  # modules and functions that a refactoring may rename
    (r"<judge>(, <judge>)+", "<judge>"),
    (r"Device -> (Pageable|Pinned)", "Device -> host"),  # the profiler calls the same copy one or the other
)
"""Patterns and replacements in all texts."""
SELF_TIMED = ("metadata.precision.rms", "metadata.precision.peak", "metadata.precision.noise")
"""Fields that are not compared of recorded candidates with the flag ``static_clock``.

They tune themselves by time, and their block sizes decide about rounding.
"""
UNSTABLE = {
    # a thread or timer of theirs races with the judge
    *(f"adversarial/r08_deferred_work_{letter}" for letter in "abc"),
    # they remember results by address or object id, and these return at random
    *(f"adversarial/r10_replay_by_identity_{letter}" for letter in "ab"),
    *(f"adversarial/r12_hidden_cache_{letter}" for letter in "ab"),
    *(f"adversarial/r14_batch_and_skip_{letter}" for letter in "abc"),
    "adversarial/r19_stale_memory_b",
    "recorded/kb-l2-p18-200/step-108",
    "recorded/kb-l2-p40-200/step-18",
}
"""Candidates whose verdict differs between runs of one revision: only ``STEADY`` is compared of them."""
STEADY = ("http", "compiled", "metadata.device", "metadata.hardware", "metadata.sandbox")
UNSTABLE_FIELDS = {"adversarial/r50_shrunk_memory_a": ("metadata.stdout",)}
"""Two of its threads print at the same time."""

_NUMBER = r"\d+(\.\d+)?(e[-+]?\d+)?"
_OF_EACH_OUTCOME = 75
_SMALL = "\nbatch_size, in_features, out_features, depth, height, width = 4, 64, 64, 6, 12, 12\n"
"""Behind a recorded reference, this makes a problem that the CPU can run."""
_DESIGNS = 3
_TUNABLES = '\nTUNABLES = {"LANES": [32, 64]}\n'
"""Behind an offline design; one without ``LANES`` gets the judge's complaint about it."""
_SLOTS = {"cpu": 2, "cuda": 8}
_HTTP_S = 1800.0
_UNFINISHED = 75


@dataclass(frozen=True)
class Unit:
    """One candidate: requests that are sent in turn; the last answer counts."""

    name: str
    requests: tuple[dict[str, Any], ...]

    @property
    def key(self) -> str:
        """Return the name and a digest of all requests."""
        digest = hashlib.sha256(json.dumps(self.requests, sort_keys=True).encode()).hexdigest()
        return f"{self.name}#{digest[:12]}"


def units(device: Device, traces: Path | None = None, limit: int | None = None) -> list[Unit]:
    """Return the candidates of all sets, at most ``limit`` of each."""
    sets = [_adversarial(device), _quickstart()]
    if traces is not None:
        chosen = sample(candidates.read(traces), _OF_EACH_OUTCOME, seed=0)
        sized = chosen
        if device == "cpu":
            first = {each.problem: each for each in reversed(chosen)}
            sets.append([Unit(f"too-large/{each.id}", (request_of(each),)) for each in first.values()])
            sized = [replace(each, reference=each.reference + _SMALL) for each in chosen]
        sets.append([Unit(f"recorded/{each.id}", (request_of(each),)) for each in sized])
    return [unit for group in sets for unit in group[:limit]]


def _adversarial(device: Device) -> list[Unit]:
    size: sources.Device = "cpu" if device == "cpu" else "gpu"
    fields = {"backend": "triton", "measure_performance": True, "tf32": "off"} | FIELDS[size]

    def request(fixture: str, problem: str) -> dict[str, Any]:
        return fields | {
            "original_model_src": sources.problem(problem, size),
            "custom_model_src": sources.fixture(fixture, size),
        }

    found = [Unit(f"adversarial/{twin}", (request(twin, problem),)) for problem, twin in HONEST.items()]
    for name, case in CASES.items():
        before = [] if case.prelude is None else [request(case.prelude, case.problem)]
        found.append(Unit(f"adversarial/{name}", (*before, request(name, case.problem) | dict(case.fields))))
    return found


def _quickstart() -> list[Unit]:
    references = candidates.kernelbench(own.QUICKSTART, (1, 2, 3))
    found = [Unit(f"quickstart/{each.id}", (request_of(each),)) for each in references]
    for each in own.offline(0, _DESIGNS):
        tuned = {"custom_model_src": each.source + _TUNABLES, "tune_s": 2.0}
        found.append(Unit(f"quickstart/{each.id}", (request_of(each) | tuned,)))
    return found


def make(out: Path, todo: list[Unit], device: Device, tree: Path, deadline: float) -> bool:
    """Append the answers of the judge in ``tree`` to the file ``out``; return True if all arrived in time.

    No candidate starts after the ``deadline`` of ``time.monotonic``.

    Raises:
        JudgeUnavailableError: the judge does not start, or it exits.
    """
    out = out.resolve()
    log = out.with_suffix(".judge.log")
    lines = JsonLines(out)
    with contextlib.ExitStack() as stack:
        stack.callback(sweep)
        fixed = {"ADAEXPLORE_JUDGE_SECRET": "golden-corpus"}
        url = stack.enter_context(running_judge(device, _SLOTS[device], log, tree, **fixed))
        client = stack.enter_context(httpx.Client(base_url=url, timeout=_HTTP_S, trust_env=False))

        bar = stack.enter_context(tqdm(total=len(todo), mininterval=5))

        def judge(unit: Unit) -> None:
            try:
                response = [client.post("/evaluate", json=body) for body in unit.requests][-1]
            except httpx.TransportError as error:
                raise JudgeUnavailableError(f"{unit.key}: no answer ({error}); see {log}") from error
            answer = {"http": response.status_code, "answer": response.json()}
            lines.append({"key": unit.key, "device": device} | answer)
            bar.update()

        return until(deadline, todo, _SLOTS[device], judge) == 0


def read(file: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of a file by key; warn about a partial line and skip it.

    Raises:
        StorageError: it cannot be read.
    """
    return dict(JsonLines(file).read(lambda line: (line["key"], line)))


def stable(line: dict[str, Any]) -> dict[str, str]:
    """Return the part of an answer that is equal in all runs of a revision: JSON by dotted name."""
    name, cuda = line["key"].partition("#")[0], line["device"] == "cuda"
    answer = dict(line["answer"])
    answer["runtime_stats"] = sorted(answer.get("runtime_stats", ()))
    metadata = answer["metadata"] = dict(answer.get("metadata", {}))
    ignored = [*IGNORED, *UNSTABLE_FIELDS.get(name, ()), *(IGNORED_ON_CUDA if cuda else ())]
    if name.startswith("recorded/") and "static_clock" in metadata.get("integrity", ()):
        ignored += SELF_TIMED
    if cuda:
        evidence = metadata.get("integrity_evidence", [])
        metadata["integrity_evidence"] = [e for e in evidence if e["id"] not in FLAGS_IGNORED_ON_CUDA]
        metadata["integrity"] = [each["id"] for each in metadata["integrity_evidence"]]
    found: dict[str, str] = {}
    for field, value in _flat({"http": line["http"], **answer}):
        if _is_in(field, ignored) or (name in UNSTABLE and not _is_in(field, STEADY)):
            continue
        text = json.dumps(value)
        for pattern, new in REPLACED:
            text = re.sub(pattern, new, text)
        if cuda and field in NUMBERS_IGNORED_ON_CUDA:
            text = re.sub(_NUMBER, "#", text)
        found[field] = text
    return found


def _flat(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def _is_in(field: str, fields: Iterable[str]) -> bool:
    return any(f"{field}.".startswith(f"{each}.") for each in fields)


def compare(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return one text for each field that differs, by the key of the candidate."""
    found: dict[str, list[str]] = {}
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            found[key] = [f"{key} is in one file alone\n"]
            continue
        one, other = stable(old[key]), stable(new[key])
        for field in sorted(one.keys() | other.keys()):
            left, right = (fields.get(field, "absent") for fields in (one, other))
            if left != right:
                found.setdefault(key, []).append(f"{key} {field}\n  old: {left}\n  new: {right}\n")
    return found


@script
def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="judge the candidates that a file lacks")
    making.add_argument("--out", type=Path, required=True, help="file to make or to complete")
    making.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    making.add_argument("--traces", type=Path, help="folder with recorded trajectories (default: none)")
    making.add_argument("--limit", type=int, help="candidates of each set (default: all)")
    making.add_argument("--limit-s", type=float, default=math.inf, help="start none after so many seconds")
    making.add_argument("--tree", type=Path, default=ROOT, help="checkout of the judge (default: this one)")
    comparing = commands.add_parser("compare", help="print what differs between two files")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.command == "make":
        deadline = time.monotonic() + arguments.limit_s
        known = read(arguments.out)
        wanted = units(arguments.device, arguments.traces, arguments.limit)
        todo = [unit for unit in wanted if unit.key not in known]
        done = not todo or make(arguments.out, todo, arguments.device, arguments.tree, deadline)
        return 0 if done else _UNFINISHED
    old, new = read(arguments.old), read(arguments.new)
    if not old or not new:
        raise RecordError("a file without answers; make it with: golden_corpus make --out FILE")
    found = compare(old, new)
    for text in itertools.chain(*found.values()):
        sys.stdout.write(text)
    sys.stdout.write(f"{len(old.keys() | new.keys()) - len(found)} equal, {len(found)} different\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
