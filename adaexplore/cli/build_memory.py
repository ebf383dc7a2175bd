"""``adaexplore build-memory``: make rules from recorded failures, and verify them."""

import argparse
import json
import logging
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaexplore.cli.options import add_config, add_short, configuration
from adaexplore.cli.output import columns
from adaexplore.core.errors import JudgeError, UsageError
from adaexplore.report.text import count_of, wrapped
from adaexplore.run.build import open_model_within_budget
from adaexplore.settings.config import RunConfig
from skill_memory.build import Built, build
from skill_memory.failures.sources import Collected, from_run, from_trees
from skill_memory.proof.compiler import open_compiler
from skill_memory.proof.compiling import located, needs_locating
from skill_memory.proof.proofs import Proofs, prove
from skill_memory.proof.verify import Verification, verify_file
from skill_memory.store import is_jsonl, read_rules

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", nargs="+", type=Path, default=[], metavar="RUN", help="run directories")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="folder of recorded trees (*.json)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the memory: .jsonl, else rule||count text")
    parser.add_argument(
        "--prove",
        type=float,
        nargs="?",
        const=60.0,
        metavar="SECONDS",
        help="also shrink failing candidates to reproducers and find working counterparts; "
        "maximum seconds per rule (default: 60); needs a .jsonl",
    )
    parser.add_argument(
        "--no-judge",
        action="store_true",
        help="do not recompile candidates whose recorded error is truncated",
    )
    parser.add_argument(
        "--verify", type=Path, metavar="FILE", help="compile the proof of every rule; builds no memory"
    )
    add_config(parser)
    add_short(parser, "target", "model", "offline")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Build or verify a memory; print the figures."""
    config = configuration(args, args.config)
    if args.verify is not None:
        if args.runs or args.traces is not None or args.out is not None:
            raise UsageError("--verify builds nothing; leave out --runs, --traces and --out")
        return _verify(args, config)
    if args.out is None or not (args.runs or args.traces is not None):
        raise UsageError("name the input (--runs or --traces) and the output (--out)")
    if args.prove is not None and (args.no_judge or not is_jsonl(args.out)):
        raise UsageError("--prove needs a judge and an --out that ends in .jsonl")
    runs = {folder.resolve(): folder for folder in args.runs}  # read each file once, even if named twice
    collected = sum(map(from_run, runs.values()), Collected())
    if args.traces is not None:
        collected += from_trees(args.traces)
    proofs = None
    if args.prove is not None:
        with open_compiler(config) as compiler:
            collected = located(collected, compiler)
            built = build(collected, args.out, open_model_within_budget(config, threading.Event()))
            proofs = prove(args.out, collected, compiler, args.prove)
    else:
        collected = _located(collected, config, judge=not args.no_judge)
        built = build(collected, args.out, open_model_within_budget(config, threading.Event()))
    figures = asdict(built) | ({} if proofs is None else {"proofs": asdict(proofs)})
    _print(figures, _told(built, proofs), as_json=args.json)
    return 0


def _located(collected: Collected, config: RunConfig, *, judge: bool) -> Collected:
    """Return ``collected`` with complete errors if a judge is available."""
    if not judge or not needs_locating(collected):
        return collected
    try:
        with open_compiler(config) as compiler:
            return located(collected, compiler)
    except JudgeError as error:
        logger.warning("truncated errors stay truncated: %s", error)
        return collected


def _verify(args: argparse.Namespace, config: RunConfig) -> int:
    if not is_jsonl(args.verify):
        raise UsageError(f"{args.verify} holds no proofs: --verify takes a memory that ends in .jsonl")
    read_rules(args.verify)  # report unreadable files before starting a judge
    with open_compiler(config) as compiler:
        found = verify_file(args.verify, compiler)
    _print(asdict(found), _page(found), as_json=args.json)
    return 0


def _print(figures: dict[str, Any], text: str, *, as_json: bool) -> None:
    print(json.dumps(figures, indent=2) if as_json else wrapped(text, columns()))  # noqa: T201


def _told(built: Built, proofs: Proofs | None) -> str:
    lines = [
        f"{count_of(built.failures, 'failure')} of {count_of(built.signatures, 'kind')}, "
        f"{count_of(built.infrastructure, 'failure')} of the judge or the machine left out, "
        f"{count_of(built.model_calls, 'model call')}",
        f"{count_of(built.rules, 'rule')}; {built.explained:.0%} of the failures have a rule that recurred",
    ]
    if proofs is not None:
        lines.append(
            f"{proofs.reproducers} reproducers and {proofs.counterparts} counterparts for {proofs.rules} "
            f"rules without, {proofs.compilations} compilations in {proofs.seconds:.0f} s"
        )
    return "\n".join(lines)


def _page(found: Verification) -> str:
    lines = [f"{found.hold} of {found.rules} rules hold with Triton {found.triton}, {found.retired} retired"]
    lines += [f"- {checked.rule}\n  {checked.reason}" for checked in found.per_rule if not checked.holds]
    return "\n".join(lines)
