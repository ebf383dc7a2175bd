"""A run with a mailbox, killed at random moments: real processes, real SIGKILL."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.core.draft import request_name
from adaexplore.core.errors import AnswersPending
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import ModelRequest, StepData
from adaexplore.offline_writer.writer import OfflineWriter
from adaexplore.records.run_records import RunRecords

ROOT = Path(__file__).parents[2]
STEPS = 4
KEYS = ("1_1", "1_3")

# Runs the command once per line of its input: the number of writes before SIGKILL.
DRIVER = """
import itertools, os, signal, sys
import adaexplore.cli.run, adaexplore.offline_writer.writer
from adaexplore.cli.main import main

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        writes, real = itertools.count(1), os.replace
        def replace(source, target):
            if next(writes) == int(line):
                os.kill(os.getpid(), signal.SIGKILL)
            real(source, target)
        os.replace, os.fsync = replace, lambda _: None
        os._exit(main(["run", *sys.argv[1:]]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def waiting(mailbox: Path) -> list[Path]:
    return [path for path in sorted((mailbox / "prompts").glob("*.md")) if not answer_of(path).exists()]


def answer_of(prompt: Path) -> Path:
    return prompt.parents[1] / "answers" / prompt.name


def write_answer(prompt: Path) -> None:
    key = prompt.name.rsplit(".", 2)[0].replace(".", "/")
    purpose = Purpose(key.rsplit("/", 1)[1].partition("-")[0])
    reference = next((ROOT / "datasets/quickstart/level1").glob(f"{key.split('/')[0][2:]}_*.py"))
    data = StepData(reference.read_text(), edits=purpose is not Purpose.LARGE)
    reply = OfflineWriter(seed=1).complete(ModelRequest(prompt.read_text(), purpose, key, data=data))
    draft = prompt.with_suffix(".draft")
    draft.write_text(reply.text)
    os.replace(draft, answer_of(prompt))


class Run:
    """Sessions of one run, and the prompts shown so far."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.mailbox = folder / "mailbox"
        self.seen: dict[str, str] = {}
        tasks = folder.parent / "tasks.txt"
        tasks.write_text("1 1,3\n")
        chosen = [
            "dummy=true",
            "server_type=mailbox",
            f"problem_root={ROOT / 'datasets/quickstart'}",
            f"test_list_path={tasks}",
            f"total_steps={STEPS}",
            f"save_path={folder}",
            *settings,
        ]
        arguments = [text for setting in chosen for text in ("--set", setting)]
        self._driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def session(self, kill_at: int = 0) -> int:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        print(kill_at, file=self._driver.stdin, flush=True)
        code = int(self._driver.stdout.readline())
        for path in (self.mailbox / "prompts").glob("*.md"):
            assert self.seen.setdefault(path.name, path.read_text()) == path.read_text()
        assert all((self.mailbox / "prompts" / name).exists() for name in self.seen), "a prompt is lost"
        return code

    def end(self) -> str:
        return self._driver.communicate()[1]

    def recorded(self) -> list[tuple[str, str]]:
        """Return the name of each recorded request, and the reply to it."""
        found = []
        for key in KEYS:
            for step in RunRecords(self.folder).task(key).steps():
                earlier: list[str] = []
                for each in step.draft.exchanges:
                    name = request_name(each.purpose, earlier)
                    found.append((f"{key}.{step.node.plan.step}.{name}", each.reply))
                    earlier.append(each.purpose)
        return sorted(found)

    def answered(self) -> list[tuple[str, str]]:
        """Return the name of each prompt that was ever shown, and the answer to it."""
        answers = self.mailbox / "answers"
        return sorted((name.rsplit(".", 2)[0], (answers / name).read_text()) for name in self.seen)

    def contents(self) -> dict[str, str]:
        return {
            f"{key}/{path.name}": path.read_text()
            for key in KEYS
            for path in (self.folder / key).iterdir()
            if not path.name.endswith("_usage.json")
        }


def answer_all(run: Run) -> None:
    while (code := run.session()) == AnswersPending.exit_code:
        assert waiting(run.mailbox)
        for prompt in waiting(run.mailbox):
            write_answer(prompt)
    assert code == 0


def test_run_says_where_prompts_of_tasks_wait(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", "parallel_steps=3", "num_processes=1")
    assert run.session() == AnswersPending.exit_code
    assert len(waiting(run.mailbox)) == 3 * len(KEYS)
    assert f"6 prompts wait in {run.mailbox}/prompts" in run.end()


@pytest.mark.slow
@pytest.mark.parametrize(("parallel_steps", "preset"), [(1, "default"), (3, "paper")])
def test_kill_neither_loses_nor_repeats_prompts(tmp_path: Path, parallel_steps: int, preset: str) -> None:
    settings = (f"parallel_steps={parallel_steps}", f"preset={preset}")
    draw = random.Random(parallel_steps)
    run, killed = Run(tmp_path / "killed", *settings), 0
    while (code := run.session(draw.choice([0, draw.randrange(1, 16)]))) != 0:
        assert code in (-9, AnswersPending.exit_code), run.end()
        killed += code == -9
        for prompt in waiting(run.mailbox):
            if draw.random() < 0.5:
                write_answer(prompt)
    run.end()
    assert killed > 1
    assert run.recorded() == run.answered()
    assert all(RunRecords(run.folder).task(key).finished(STEPS) for key in KEYS)
    if parallel_steps == 1:
        whole = Run(tmp_path / "whole", *settings)
        answer_all(whole)
        whole.end()
        assert run.contents() == whole.contents()
