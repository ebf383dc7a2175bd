"""What the prompts of a search cost in billed input tokens, in the default layout against the paper's.

    python tool_scripts/bench_prompts.py [--traces DIR] [--steps 50] [--out FILE.json]

``docs/prompts.md`` says what is measured. The work is in ``tool_scripts/prompt_bench``; the model server
is that of the tests, so this runs in a checkout of the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    from tool_scripts.prompt_bench.command import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation
    sys.exit(main())
