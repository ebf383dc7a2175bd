"""Compare search policies without a model, on a simulated clock.

    python tool_scripts/bench_search.py --tier a --fit DIR --seeds 200 --json
    python tool_scripts/bench_search.py --env FILE.py --seeds 200 --json

``docs/search.md`` says what each figure means. The work is in ``tool_scripts/search_bench``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    from tool_scripts.search_bench.command import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation
    sys.exit(main())
