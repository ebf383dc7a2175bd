"""``adaexplore judge``: start the judge service in the foreground."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from adaexplore.core.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--host", default=None, help="address to bind (default: HOST or 127.0.0.1)")
    parser.add_argument("--port", type=int, default=None, help="port (default: PORT or 12017; 0: any free)")


def run(args: argparse.Namespace) -> int:
    """Replace this process by the judge."""
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("torch") is None:
        raise UsageError("the judge needs its own packages: pip install 'adaexplore[judge]'")
    command = [sys.executable, "-m", "online_judge"]
    if args.host is not None:
        command += ["--host", args.host]
    if args.port is not None:
        command += ["--port", str(args.port)]
    os.execv(sys.executable, command)
