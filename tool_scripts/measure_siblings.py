"""How many prompts in flight are the same: a run whose model is a mailbox, answered by the offline writer.

    python -m tool_scripts.measure_siblings --run /tmp/siblings [--tasks 20] [--in-flight 8] [--steps 24]

Before each answer all prompts in flight wait in the mailbox, so equal ones can be counted there. A third of
those that wait is answered before the run goes on. Verdicts are random (``dummy``): no judge is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from adaexplore.core.errors import AnswersPending
from adaexplore.llm.offline import OfflineWriter
from adaexplore.llm.protocol import ModelRequest, Purpose
from adaexplore.records.run_records import RunRecords


def main() -> int:
    """Run, answer and count; prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, required=True, help="run directory, new or to go on with")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--steps", type=int, default=24)
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    tasks = args.run.parent / f"{args.run.name}-tasks.txt"
    tasks.write_text(f"1 1-{args.tasks}\n")
    settings = {
        "preset": "default",
        "test_source": "SYN",
        "test_list_path": tasks,
        "server_type": "mailbox",
        "dummy": "true",
        "parallel_steps": args.in_flight,
        "total_steps": args.steps,
        "save_path": args.run,
    }
    chosen = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "adaexplore", "run", *chosen]
    draw, writer = random.Random(0), OfflineWriter(seed=0)
    looks, shown, equal = 0, 0, 0
    while (code := subprocess.run(command, stdout=subprocess.DEVNULL).returncode) != 0:
        if code != AnswersPending.exit_code:
            return code
        prompts, answers = args.run / "mailbox/prompts", args.run / "mailbox/answers"
        waiting = [path for path in sorted(prompts.glob("*.md")) if not (answers / path.name).exists()]
        found = Counter((path.name.split(".")[0], path.read_text()) for path in waiting)
        looks, shown = looks + 1, shown + len(waiting)
        equal += sum(count - 1 for count in found.values())
        for path in draw.sample(waiting, -(-len(waiting) // 3)):
            key = path.name.rsplit(".", 2)[0].replace(".", "/")
            purpose = Purpose(key.rsplit("/", 1)[1].partition("-")[0])
            reply = writer.complete(ModelRequest(path.read_text(), purpose, key))
            (answers / path.name).write_text(reply.text)
    records = RunRecords(args.run)
    steps = [step for key in records.tasks() for step in records.task(key).steps()]
    asked = [step.draft.exchanges[0].prompt for step in steps if step.draft.exchanges]
    print(  # noqa: T201
        json.dumps(
            {"looks": looks, "in_flight": shown, "equal_in_flight": equal, "steps": len(asked)}
            | {"distinct_prompts": len(set(asked))}
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
