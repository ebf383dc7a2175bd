"""``adaexplore lint``: find mistakes that keep kernels from working."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from adaexplore.cli.options import add_task
from adaexplore.cli.output import show
from adaexplore.core.cpu_limit import CpuLimitReached, cpu_limit
from adaexplore.core.environment import TritonFacts
from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import input_bytes
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_names import read_triton
from adaexplore.tasks.sources import task_from_file

FOUND = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="module that defines ModelNew")
    add_task(parser, required=False)
    parser.add_argument(
        "--triton",
        type=Path,
        metavar="FILE",
        help="judge_environment.json of a run: names and parameters of that judge's Triton (default: none)",
    )
    parser.add_argument("--strict", action="store_true", help="return exit code 1 if there are findings")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="seconds of CPU time per file (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def run(args: argparse.Namespace) -> int:
    """Print the findings of each readable file; return 0, or with ``--strict`` 1 if there are findings.

    Raises:
        UsageError: a file cannot be read.
    """
    if not args.timeout > 0:
        raise UsageError(f"--timeout must be above 0, not {args.timeout:g}")
    triton = None if args.triton is None else read_triton(args.triton)
    reference = None if args.task is None else task_from_file(args.task, "fp32").reference
    told, unread = [], []
    for file in args.files:
        try:
            with cpu_limit(args.timeout, f"{file}: no findings within {args.timeout:g} s; raise --timeout"):
                told.append((str(file), _findings(file, triton, reference)))
        except (UsageError, CpuLimitReached) as error:
            unread.append(str(error))
    _show(told, as_json=args.json)
    if unread:
        raise UsageError("\n".join(unread))
    return FOUND if args.strict and any(found for _, found in told) else 0


def _show(told: Sequence[tuple[str, Sequence[Finding]]], *, as_json: bool) -> None:
    if as_json:
        files = [{"file": file, "findings": [vars(each) for each in found]} for file, found in told]
        print(json.dumps(files, indent=2))  # noqa: T201
        return
    for file, found in told:
        for each in found:
            show(f"{file}:{each.line}: {each.message} [{each.rule}]")
        if not found:
            show(f"{file}: nothing found")


def _findings(file: Path, triton: TritonFacts | None, reference: str | None) -> tuple[Finding, ...]:
    try:
        source = input_bytes(file, "file").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return (finding("syntax", 1, what=f"byte {error.start} is not UTF-8 text"),)
    return lint(source, triton, reference)
