"""``adaexplore lint``: find mistakes in kernels with which they cannot work."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_api import TritonApi, triton_api


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
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def run(args: argparse.Namespace) -> int:
    """Print the findings of each file; 0 whatever they are."""
    api = triton_api(args.triton)
    if api is None:
        raise UsageError(f"no table for Triton {args.triton}; leave --triton out, or give 3.6 or 3.7")
    reference = None if args.task is None else _bytes(args.task).decode("utf-8", "replace")
    told = [(str(file), _findings(file, api, reference)) for file in args.files]
    if args.json:
        files = [{"file": file, "findings": [vars(each) for each in found]} for file, found in told]
        print(json.dumps(files, indent=2))  # noqa: T201
        return 0
    for file, found in told:
        for each in found:
            print(f"{file}:{each.line}: {each.message} [{each.rule}]")  # noqa: T201
        if not found:
            print(f"{file}: nothing found")  # noqa: T201
    return 0


def _findings(file: Path, api: TritonApi, reference: str | None) -> tuple[Finding, ...]:
    try:
        source = _bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return (finding("syntax", 1, what=f"byte {error.start} is not UTF-8 text"),)
    return lint(source, api, reference)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"no file {path}") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
