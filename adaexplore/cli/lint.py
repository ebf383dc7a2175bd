"""``adaexplore lint``: find mistakes in kernels with which they cannot work."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from adaexplore.cli.output import show
from adaexplore.core.cpu_limit import CpuLimitReached, cpu_limit
from adaexplore.core.errors import UsageError
from adaexplore.core.inputs import input_bytes, input_text
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_api import TritonApi, triton_api

FOUND = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="module that defines ModelNew")
    parser.add_argument("--task", type=Path, default=None, metavar="PROBLEM.py", help="the problem's file")
    parser.add_argument(
        "--triton",
        default=None,
        metavar="VERSION",
        help="the judge's Triton, as its /health tells (default: the one installed, else the newest known)",
    )
    parser.add_argument("--strict", action="store_true", help="end with exit code 1 where there are findings")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="seconds of CPU time a file (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def run(args: argparse.Namespace) -> int:
    """Print the findings of each file that can be read; 0 whatever they are, unless ``--strict``.

    Raises:
        UsageError: some cannot be read.
    """
    if not args.timeout > 0:
        raise UsageError(f"--timeout must be above 0, not {args.timeout:g}")
    api = triton_api(args.triton)
    if api is None:
        raise UsageError(f"no table for Triton {args.triton}; leave --triton out, or give 3.6 or 3.7")
    reference = None if args.task is None else input_text(args.task, "problem file")
    told, unread = [], []
    for file in args.files:
        try:
            with cpu_limit(args.timeout, f"{file}: no findings within {args.timeout:g} s; raise --timeout"):
                told.append((str(file), _findings(file, api, reference)))
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


def _findings(file: Path, api: TritonApi, reference: str | None) -> tuple[Finding, ...]:
    try:
        source = input_bytes(file, "file").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return (finding("syntax", 1, what=f"byte {error.start} is not UTF-8 text"),)
    return lint(source, api, reference)
