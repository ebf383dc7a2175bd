"""Five processes add to one memory, and each is killed once at a random moment.

Until then each reports its tasks again and again, as resumed runs do, so none is done before it is killed.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skill_memory.sidecar import Sidecar, sidecar_path
from skill_memory.store import read_rules

WORKERS = 5
TASKS = 8
RULES = {
    "You cannot call tl.tanh in a kernel.",
    "You cannot slice blocks by ranges.",
    "You cannot break out of loops early.",
}

WORKER = """
import sys
from adaexplore.core.usage import Usage
from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import Finish, ModelReply
from pathlib import Path
from skill_memory.failures.failure import Failure, TaskFailures
from skill_memory.update import MemoryUpdater
import itertools, re, time

path, worker, tasks = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


class Model:
    def complete(self, request):
        time.sleep(0.01)
        if request.purpose == "merge":
            return ModelReply("different", Finish.COMPLETE, Usage(), "model")
        rule = sorted(sys.argv[5:])["abc".index(re.search(r"mistake (\\w+)", request.prompt)[1])]
        return ModelReply(rule, Finish.COMPLETE, Usage(), "model")


updater = MemoryUpdater(path, Model())
print("ready", flush=True)
for number in itertools.count():
    if number == tasks and sys.argv[4] == "once":
        break
    updater.add([TaskFailures(f"run/{worker}_{number % tasks}", tuple(
        Failure(step, "", Verdict(status=Status.LAUNCH, failure=FailureText(
            runtime_error=f"ValueError: mistake {'abc'[step]}")), lineage=step)
        for step in range(3)
    ))])
"""


@pytest.mark.parametrize("name", ["memory.txt", "memory.jsonl"])
def test_killed_workers_lose_and_double_no_count(tmp_path: Path, name: str) -> None:
    path, rng = tmp_path / name, random.Random(name)

    def start(worker: int, until: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, str(path), str(worker), str(TASKS), until, *RULES]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = [start(worker, "killed") for worker in range(WORKERS)]
    for process in first:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in rng.sample(first, WORKERS):
        time.sleep(rng.uniform(0, 0.1))
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        if path.exists():
            assert {rule.text for rule in read_rules(path)} <= RULES
    for process in first:
        process.communicate()
    for process in [start(worker, "once") for worker in range(WORKERS)]:
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0, told
    assert {rule.text: rule.count for rule in read_rules(path)} == dict.fromkeys(RULES, WORKERS * TASKS)
    state = Sidecar.model_validate_json(sidecar_path(path).read_bytes())
    assert {len(kind.occurrences) for kind in state.kinds.values()} == {WORKERS * TASKS}
