"""Measure the judge: integrity, repeatability, speed, each figure with its target.

    python tool_scripts/bench_judge.py --device cuda --candidates DIR --json

``docs/judge-benchmark.md`` says what each figure means. The work is in ``tool_scripts/judge_bench``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code (75: units are left, run it again)."""
    from tool_scripts.judge_bench.command import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation
    sys.exit(main())
