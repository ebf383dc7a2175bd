"""``adaexplore judge``: start the judge service in the foreground."""

import argparse
import os
import sys

from adaexplore.cli.options import need_packages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to bind (default: HOST or 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port (default: PORT or 12017; 0: any free)")
    about = "use the devices of a Ray cluster; without an address that of this machine"
    parser.add_argument("--ray", nargs="?", const="auto", metavar="ADDRESS", help=about)


def run(args: argparse.Namespace) -> int:
    """Replace this process with the judge."""
    need_packages("the judge", "judge", "fastapi", "torch")
    command = [sys.executable, "-m", "online_judge"]
    if args.host is not None:
        command += ["--host", args.host]
    if args.port is not None:
        command += ["--port", str(args.port)]
    if args.ray is not None:
        need_packages("a judge on many machines", "scale", "ray")
        command += ["--ray", args.ray]
    os.execv(sys.executable, command)
